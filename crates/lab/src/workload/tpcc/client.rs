//! A terminal: the five transactions (clauses 2.4.2, 2.5.2, 2.6.2, 2.7.4, 2.8.2).

use super::Options;
use super::requests::{Customer, Line, Request, Requests};
use super::statements::{DISTRICT_COLUMNS, Statement, lock_stock};
use crate::client::{Failure, Row, Value};
use crate::driver::session::Session;
use crate::workload::{self, Which};
use base::Random;
use std::sync::Arc;
use std::time::Duration;

/// Columns of `customer.c_data`.
const DATA_CHARACTERS: usize = 500;

/// See the module.
pub(super) struct Terminal {
    options: Arc<Options>,
    random: Random,
    requests: Requests,
    request: Request,
    home: u64,
    /// For Stock-Level.
    district: u64,
}

/// Cents as SQL has them.
fn decimal(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

/// A value that the specification says is there.
fn missing(what: &str) -> Failure {
    Failure::Connection(std::io::Error::new(
        std::io::ErrorKind::InvalidData,
        format!("{what} is not there: is this the data of the load?"),
    ))
}

fn text_of(row: &Row<'_>, column: usize) -> String {
    row.text(column).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

/// The only row of a statement, as one value made of it.
fn one<T>(
    session: &mut Session,
    statement: usize,
    values: &[Value<'_>],
    make: impl Fn(&Row<'_>) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let mut found = None;
    session.execute(statement, values, |row| {
        found = make(row);
        Ok(())
    })?;
    Ok(found)
}

impl Terminal {
    pub(super) fn new(options: Arc<Options>, which: Which) -> Self {
        let mut random = which.random(options.seed);
        let home = random.below(options.scale.warehouses) + 1;
        let district = random.below(options.scale.districts) + 1;
        let requests = Requests::new(&options, home);
        let request = Request::Delivery { carrier: 1 };
        Self { options, random, requests, request, home, district }
    }

    fn new_order(
        &self,
        session: &mut Session,
        (district, customer): (u64, u64),
        lines: &[Line],
    ) -> Result<(), Failure> {
        let (w, d) = (Value::from(self.home), Value::from(district));
        // The order within a transaction is the implementer's (clause 2.3). What everybody waits
        // for comes before the first read that is no lock: the snapshot is then not older than the
        // district's row, and orders of one district wait for each other in place of conflicting.
        let order = one(session, Statement::LockDistrict as usize, &[w, d], |row| row.integer(0))?;
        let o = Value::Integer(order.ok_or_else(|| missing("a district"))?);
        session.run(Statement::NextOrder as usize, &[w, d])?;
        session.run(Statement::CustomerAndTax as usize, &[w, d, customer.into()])?;
        let all_local = lines.iter().all(|line| line.supply_warehouse == self.home);
        let count = Value::from(lines.len() as u64);
        let values = [o, d, w, customer.into(), count, u64::from(all_local).into()];
        session.run(Statement::AddOrder as usize, &values)?;
        session.run(Statement::AddNewOrder as usize, &[o, d, w])?;
        for (number, line) in (1u64..).zip(lines) {
            if !self.order_line(session, [o, d, w, number.into()], district, line)? {
                return session.command("ROLLBACK").map(drop);
            }
        }
        session.command("COMMIT").map(drop)
    }

    /// One line of a new order; false if there is no such item.
    fn order_line(
        &self,
        session: &mut Session,
        [o, d, w, number]: [Value<'_>; 4],
        district: u64,
        line: &Line,
    ) -> Result<bool, Failure> {
        let (item, supply) = (Value::from(line.item), Value::from(line.supply_warehouse));
        let price = one(session, Statement::Item as usize, &[item], |row| row.hundredths(0))?;
        let Some(price) = price else { return Ok(false) };
        let column = lock_stock((district - 1) % DISTRICT_COLUMNS + 1);
        let stock =
            one(session, column, &[supply, item], |row| Some((row.integer(0)?, text_of(row, 2))))?;
        let (there, information) = stock.ok_or_else(|| missing("stock of an item"))?;
        let quantity = line.quantity as i64;
        let left = if there >= quantity + 10 { there - quantity } else { there + 91 - quantity };
        let is_remote = u64::from(line.supply_warehouse != self.home);
        let values =
            [Value::Integer(left), Value::Integer(quantity), is_remote.into(), supply, item];
        session.run(Statement::UpdateStock as usize, &values)?;
        let amount = decimal(price * quantity);
        let (amount, information) = (amount.as_str().into(), information.as_str().into());
        let values = [o, d, w, number, item, supply, Value::Integer(quantity), amount, information];
        session.run(Statement::AddLine as usize, &values)?;
        Ok(true)
    }

    /// The number of a customer; of those with a last name the middle one by first name.
    fn number(
        session: &mut Session,
        [w, d]: [Value<'_>; 2],
        customer: &Customer,
    ) -> Result<u64, Failure> {
        let name = match customer {
            Customer::Number(number) => return Ok(*number),
            Customer::LastName(name) => name.as_str(),
        };
        let mut numbers = Vec::new();
        session.execute(Statement::CustomersByName as usize, &[w, d, name.into()], |row| {
            numbers.extend(row.integer(0));
            Ok(())
        })?;
        let middle = numbers.len().div_ceil(2).saturating_sub(1);
        numbers.get(middle).map(|number| *number as u64).ok_or_else(|| missing("a last name"))
    }

    fn payment(&self, session: &mut Session) -> Result<(), Failure> {
        let Request::Payment { district, customer_warehouse, customer_district, customer, cents } =
            &self.request
        else {
            return Ok(());
        };
        let amount = decimal(*cents as i64);
        let amount = Value::from(amount.as_str());
        let (w, d) = (Value::from(self.home), Value::from(*district));
        let (cw, cd) = (Value::from(*customer_warehouse), Value::from(*customer_district));
        session.run(Statement::PayWarehouse as usize, &[amount, w])?;
        let name = |row: &Row<'_>| Some(text_of(row, 5));
        let warehouse = one(session, Statement::Warehouse as usize, &[w], name)?;
        session.run(Statement::PayDistrict as usize, &[amount, w, d])?;
        let district_name = one(session, Statement::District as usize, &[w, d], name)?;
        let number = Self::number(session, [cw, cd], customer)?;
        let c = Value::from(number);
        let credit = one(session, Statement::LockCustomer as usize, &[cw, cd, c], |row| {
            Some(text_of(row, 9))
        })?;
        if credit.ok_or_else(|| missing("a customer"))? == "BC" {
            let data = one(session, Statement::CustomerData as usize, &[cw, cd, c], |row| {
                Some(text_of(row, 0))
            })?;
            let mut data = format!(
                "{number} {customer_district} {customer_warehouse} {district} {} {}.{:02} {}",
                self.home,
                cents / 100,
                cents % 100,
                data.unwrap_or_default()
            );
            data.truncate(data.floor_char_boundary(DATA_CHARACTERS));
            let values = [amount, amount, data.as_str().into(), cw, cd, c];
            session.run(Statement::PayBadCustomer as usize, &values)?;
        } else {
            session.run(Statement::PayCustomer as usize, &[amount, amount, cw, cd, c])?;
        }
        let both =
            format!("{}    {}", warehouse.unwrap_or_default(), district_name.unwrap_or_default());
        let values = [cd, cw, c, d, w, amount, both.as_str().into()];
        session.run(Statement::AddHistory as usize, &values)?;
        session.command("COMMIT").map(drop)
    }

    fn order_status(
        &self,
        session: &mut Session,
        district: u64,
        customer: &Customer,
    ) -> Result<(), Failure> {
        let (w, d) = (Value::from(self.home), Value::from(district));
        let c = Value::from(Self::number(session, [w, d], customer)?);
        session.run(Statement::Customer as usize, &[w, d, c])?;
        let newest = one(session, Statement::NewestOrder as usize, &[w, d, c], |r| r.integer(0))?;
        if let Some(order) = newest {
            session.run(Statement::Lines as usize, &[w, d, Value::Integer(order)])?;
        }
        session.command("COMMIT").map(drop)
    }

    /// All districts in one transaction.
    fn delivery(&self, session: &mut Session, carrier: u64) -> Result<(), Failure> {
        let w = Value::from(self.home);
        for district in 1..=self.options.scale.districts {
            let d = Value::from(district);
            let oldest =
                one(session, Statement::OldestNewOrder as usize, &[w, d], |row| row.integer(0))?;
            let Some(order) = oldest else { continue };
            let key = [w, d, Value::Integer(order)];
            session.run(Statement::DeleteNewOrder as usize, &key)?;
            let customer =
                one(session, Statement::OrderCustomer as usize, &key, |row| row.integer(0))?;
            let c = Value::Integer(customer.ok_or_else(|| missing("an order"))?);
            session.run(Statement::Carry as usize, &[carrier.into(), key[0], key[1], key[2]])?;
            session.run(Statement::DeliverLines as usize, &key)?;
            let sum = one(session, Statement::SumLines as usize, &key, |row| row.hundredths(0))?;
            let sum = decimal(sum.ok_or_else(|| missing("a line of an order"))?);
            let values = [sum.as_str().into(), w, d, c];
            session.run(Statement::DeliverCustomer as usize, &values)?;
        }
        session.command("COMMIT").map(drop)
    }

    fn stock_level(&self, session: &mut Session, threshold: u64) -> Result<(), Failure> {
        let (w, d) = (Value::from(self.home), Value::from(self.district));
        let next = one(session, Statement::DistrictOrders as usize, &[w, d], |r| r.integer(0))?;
        let next = next.ok_or_else(|| missing("a district"))?;
        let (from, to) = (Value::Integer(next - 20), Value::Integer(next));
        session.run(Statement::StockLevel as usize, &[w, d, from, to, threshold.into()])?;
        session.command("COMMIT").map(drop)
    }

    /// Keying and think time of a transaction, in seconds; the second with a long tail.
    fn waiting(&self) -> (u64, f64) {
        match self.request {
            Request::NewOrder { .. } => (18, 12.0),
            Request::Payment { .. } => (3, 12.0),
            Request::OrderStatus { .. } => (2, 10.0),
            Request::Delivery { .. } | Request::StockLevel { .. } => (2, 5.0),
        }
    }
}

impl workload::Client for Terminal {
    fn decided(&self) -> String {
        format!("{:?}", self.request)
    }

    fn next(&mut self) -> usize {
        self.request = self.requests.draw(&mut self.random);
        self.request.operation()
    }

    fn pause(&mut self) -> Duration {
        if !self.options.think_times {
            return Duration::ZERO;
        }
        let (keying, mean) = self.waiting();
        let thinking = (-(1.0 - self.random.fraction()).ln() * mean).min(10.0 * mean);
        Duration::from_secs(keying) + Duration::from_secs_f64(thinking)
    }

    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        let session = &mut sessions[0];
        session.command("BEGIN")?;
        match &self.request {
            Request::NewOrder { district, customer, lines, .. } => {
                self.new_order(session, (*district, *customer), lines)
            }
            Request::Payment { .. } => self.payment(session),
            Request::OrderStatus { district, customer } => {
                self.order_status(session, *district, customer)
            }
            Request::Delivery { carrier } => self.delivery(session, *carrier),
            Request::StockLevel { threshold } => self.stock_level(session, *threshold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_are_decimals() {
        let texts = [0, 5, 99, 100, -1, -1005].map(decimal);
        assert_eq!(texts, ["0.00", "0.05", "0.99", "1.00", "-0.01", "-10.05"]);
    }
}
