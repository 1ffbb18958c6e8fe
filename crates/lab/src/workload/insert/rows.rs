//! Rows, tables and statements.

use crate::client::Value;
use base::Random;
use std::io::Write;
use types::DateTime;

/// Values of the columns are below these.
pub(super) const REGISTERS: u64 = 1_000;
pub(super) const CUSTOMERS: u64 = 100_000;
pub(super) const PRODUCTS: u64 = 10_000;
const PRICE_CENTS: u64 = 50_000;
/// Random characters at the end of a row's data.
const DATA_CHARACTERS: usize = 24;
/// Rows of a query.
const QUERY_ROWS: u64 = 10;
/// The moment of row 0, and how many rows there are a second: what is inserted later has a later
/// date, as ordered as its id.
const FIRST_SECOND: u64 = 1_704_067_200;
const ROWS_PER_SECOND: u64 = 1000;

/// A row without its id.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) register: u64,
    pub(super) customer: u64,
    pub(super) product: u64,
    pub(super) price: f64,
    /// The customer's number, and random characters.
    pub(super) data: Vec<u8>,
}

/// Columns in the order of the statements: the id and its moment come first.
pub(super) const COLUMNS: &str =
    "transactionid, dateandtime, cashregisterid, customerid, productid, price, data";

impl Row {
    pub(super) fn draw(random: &mut Random) -> Self {
        let (register, customer) = (random.below(REGISTERS), random.below(CUSTOMERS));
        let product = random.below(PRODUCTS);
        let price = price(random.below(PRICE_CENTS), customer);
        let mut data = Vec::with_capacity(6 + DATA_CHARACTERS);
        let _infallible = write!(data, "{customer:06}");
        data.extend((0..DATA_CHARACTERS).map(|_| b'a' + random.below(26) as u8));
        Self { register, customer, product, price, data }
    }

    /// As values of [`COLUMNS`]; `moment` is [`moment`] of the id.
    pub(super) fn values<'a>(&'a self, id: u64, moment: &'a str) -> [Value<'a>; 7] {
        [
            id.into(),
            moment.into(),
            self.register.into(),
            self.customer.into(),
            self.product.into(),
            Value::Double(self.price),
            Value::Bytes(&self.data),
        ]
    }
}

/// A price as the original has it: of the customer's number and a random part.
pub(super) fn price(cents: u64, customer: u64) -> f64 {
    (cents + customer) as f64 / 100.0
}

/// The highest price.
pub(super) fn price_max() -> f64 {
    price(PRICE_CENTS, CUSTOMERS)
}

/// When a row was bought, as SQL has it.
pub(super) fn moment(id: u64) -> String {
    let micros = (FIRST_SECOND + id / ROWS_PER_SECOND) * 1_000_000;
    let moment = DateTime::from_epoch_micros(micros as i64);
    moment.map(|moment| moment.to_string()).unwrap_or_default()
}

/// The secondary keys by name.
pub(super) const KEYS: [(&str, &str); 3] = [
    ("marketsegment", "price, customerid"),
    ("registersegment", "cashregisterid, price, customerid"),
    ("pdc", "price, dateandtime, customerid"),
];

/// The table with or without its secondary keys, and with options and partitions behind.
pub(super) fn create(table: u32, with_keys: bool, behind: &str) -> String {
    let keys: String = match with_keys {
        true => KEYS.iter().map(|(name, columns)| format!(", KEY {name} ({columns})")).collect(),
        false => String::new(),
    };
    format!(
        "CREATE TABLE purchases{table} (transactionid BIGINT NOT NULL AUTO_INCREMENT, dateandtime \
         DATETIME, cashregisterid INT NOT NULL, customerid INT NOT NULL, productid INT NOT NULL, \
         price FLOAT NOT NULL, data VARCHAR(4000), PRIMARY KEY (transactionid){keys}) {behind}"
    )
}

/// Makes the secondary keys.
pub(super) fn add_keys(table: u32) -> String {
    let keys = KEYS.map(|(name, columns)| format!("ADD KEY {name} ({columns})"));
    format!("ALTER TABLE purchases{table} {}", keys.join(", "))
}

/// A statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Insert,
    Delete,
    Point,
    Market,
    Register,
    PriceDate,
    /// The lowest id, and one above the highest.
    Interval,
}

const STATEMENTS: [Statement; 7] = [
    Statement::Insert,
    Statement::Delete,
    Statement::Point,
    Statement::Market,
    Statement::Register,
    Statement::PriceDate,
    Statement::Interval,
];

/// The number of a statement of a table, from 0.
pub(super) fn number(statement: Statement, table: usize) -> usize {
    table * STATEMENTS.len() + statement as usize
}

/// The texts, by number.
pub(super) fn statements(tables: u32, rows: u64) -> Vec<String> {
    let of_table = |table| STATEMENTS.map(|statement| text(statement, table, rows));
    (1..=tables).flat_map(of_table).collect()
}

fn text(statement: Statement, table: u32, rows: u64) -> String {
    let range = |columns: &str, key: &str, bound: &str| {
        format!(
            "SELECT {columns} FROM purchases{table} FORCE INDEX ({key}) WHERE {bound} \
             ORDER BY {columns} LIMIT {QUERY_ROWS}"
        )
    };
    match statement {
        Statement::Insert => {
            let row = "(?, ?, ?, ?, ?, ?, ?)";
            let values = vec![row; rows as usize].join(", ");
            format!("INSERT INTO purchases{table} ({COLUMNS}) VALUES {values}")
        }
        Statement::Delete => {
            format!("DELETE FROM purchases{table} WHERE transactionid>=? AND transactionid<?")
        }
        Statement::Point => format!("SELECT {COLUMNS} FROM purchases{table} WHERE transactionid=?"),
        Statement::Market => range(KEYS[0].1, KEYS[0].0, "price>=?"),
        Statement::Register => range(KEYS[1].1, KEYS[1].0, "cashregisterid=? AND price>=?"),
        Statement::PriceDate => range(KEYS[2].1, KEYS[2].0, "price>=?"),
        Statement::Interval => {
            format!("SELECT MIN(transactionid), MAX(transactionid)+1 FROM purchases{table}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0), "2024-01-01 00:00:00");
        assert_eq!(moment(59 * 86_400_000 + 1000), "2024-02-29 00:00:01");
        assert_eq!(moment(366 * 86_400_000 - 1), "2024-12-31 23:59:59");
        assert_eq!(moment(366 * 86_400_000), "2025-01-01 00:00:00");
    }

    #[test]
    fn columns_are_drawn_evenly() {
        let (draws, mut random) = (200_000, Random::new(6));
        let mut sums = [0.0; 4];
        for _ in 0..draws {
            let row = Row::draw(&mut random);
            assert!(row.register < REGISTERS && row.customer < CUSTOMERS);
            assert!(row.product < PRODUCTS && row.price <= price_max());
            assert!(row.data.starts_with(format!("{:06}", row.customer).as_bytes()));
            let parts = [
                row.register as f64 / REGISTERS as f64,
                row.customer as f64 / CUSTOMERS as f64,
                row.product as f64 / PRODUCTS as f64,
                row.price / price_max(),
            ];
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        for sum in sums {
            let mean = sum / f64::from(draws);
            assert!((mean - 0.5).abs() < 0.003, "{mean}");
        }
    }

    #[test]
    fn statements_are_found_by_number_and_have_their_values() {
        let texts = statements(3, 5);
        assert_eq!(texts.len(), 21);
        let insert = &texts[number(Statement::Insert, 2)];
        assert!(insert.contains("purchases3 ") && insert.matches('?').count() == 35, "{insert}");
        assert_eq!(texts[number(Statement::Register, 0)].matches('?').count(), 2);
        assert!(texts[number(Statement::Point, 1)].contains("purchases2 "));
    }
}
