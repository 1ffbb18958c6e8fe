//! The first rows (clause 4.3.3).

use super::requests::mask;
use super::statements::DISTRICT_COLUMNS;
use super::{Options, Scale, schema};
use crate::client::{Failure, Value};
use crate::distribution::between;
use crate::distribution::nonuniform::{NonUniform, last_name};
use crate::load::{Batch, Loading, TableForm};
use base::Random;

/// Items, or stock of items, of a job.
const JOB_ITEMS: u64 = 10_000;

/// See the module.
pub struct Load {
    options: Options,
    form: TableForm,
    now: String,
}

/// What a job fills.
enum Job {
    Items(u64),
    Warehouse(u64),
    Stock { warehouse: u64, part: u64 },
    District { warehouse: u64, district: u64 },
}

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const ORIGINAL: &str = "ORIGINAL";

/// A text of letters and digits of a length within bounds.
fn letters(random: &mut Random, low: u64, high: u64) -> String {
    let length = between(random, low, high);
    (0..length).map(|_| char::from(*random.pick(LETTERS))).collect()
}

fn digits(random: &mut Random, count: usize) -> String {
    (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
}

/// A text of 26 to 50 characters, one of ten with ORIGINAL somewhere.
fn data(random: &mut Random) -> String {
    let mut text = letters(random, 26, 50);
    if random.one_in(10) {
        let place = random.index(text.len() - ORIGINAL.len() + 1);
        text.replace_range(place..place + ORIGINAL.len(), ORIGINAL);
    }
    text
}

/// So many ten thousandths, as SQL has them.
fn ten_thousandths(value: u64) -> String {
    format!("0.{value:04}")
}

/// Two streets, city, state, postal code.
fn address(random: &mut Random) -> [String; 5] {
    let street = |random: &mut Random| letters(random, 10, 20);
    let (first, second, city) = (street(random), street(random), street(random));
    let state = letters(random, 2, 2).to_uppercase();
    [first, second, city, state, digits(random, 4) + "11111"]
}

impl Load {
    /// For these parameters; `now` is the moment of all rows, as SQL has it.
    pub fn new(options: Options, form: impl Into<TableForm>, now: &str) -> Self {
        Self { options, form: form.into(), now: now.into() }
    }

    fn scale(&self) -> &Scale {
        &self.options.scale
    }

    fn parts(&self) -> u64 {
        self.scale().items.div_ceil(JOB_ITEMS)
    }

    /// Jobs are: the items; then for each warehouse itself, its stock, its districts.
    fn which(&self, job: u64) -> Job {
        let (parts, districts) = (self.parts(), self.scale().districts);
        let Some(job) = job.checked_sub(parts) else { return Job::Items(job) };
        let each = 1 + parts + districts;
        let warehouse = job / each + 1;
        match job % each {
            0 => Job::Warehouse(warehouse),
            place if place <= parts => Job::Stock { warehouse, part: place - 1 },
            place => Job::District { warehouse, district: place - parts },
        }
    }

    fn item_range(&self, part: u64) -> std::ops::RangeInclusive<u64> {
        part * JOB_ITEMS + 1..=((part + 1) * JOB_ITEMS).min(self.scale().items)
    }

    fn items(&self, part: u64, batch: &mut Batch<'_>, random: &mut Random) -> Result<(), Failure> {
        for item in self.item_range(part) {
            let image = between(random, 1, 10_000);
            let cents = between(random, 100, 10_000);
            let price = format!("{}.{:02}", cents / 100, cents % 100);
            let (name, data) = (letters(random, 14, 24), data(random));
            let values = [
                item.into(),
                image.into(),
                name.as_str().into(),
                price.as_str().into(),
                data.as_str().into(),
            ];
            batch.row("INSERT INTO item (i_id, i_im_id, i_name, i_price, i_data)", &values)?;
        }
        Ok(())
    }

    fn warehouse(&self, w: u64, batch: &mut Batch<'_>, random: &mut Random) -> Result<(), Failure> {
        let ytd = self.scale().districts * self.scale().customers * 10;
        let (name, address) = (letters(random, 6, 10), address(random));
        let tax = ten_thousandths(random.below(2001));
        let mut values = vec![Value::from(w), name.as_str().into()];
        values.extend(address.iter().map(|part| Value::from(part.as_str())));
        values.extend([Value::from(tax.as_str()), Value::from(ytd)]);
        batch.row(
            "INSERT INTO warehouse (w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, \
             w_tax, w_ytd)",
            &values,
        )
    }

    fn stock(
        &self,
        w: u64,
        part: u64,
        batch: &mut Batch<'_>,
        random: &mut Random,
    ) -> Result<(), Failure> {
        for item in self.item_range(part) {
            let quantity = between(random, 10, 100);
            let distributions: Vec<String> =
                (0..DISTRICT_COLUMNS).map(|_| letters(random, 24, 24)).collect();
            let data = data(random);
            let mut values = vec![item.into(), w.into(), quantity.into()];
            values.extend(distributions.iter().map(|text| Value::from(text.as_str())));
            values.extend([Value::Integer(0), Value::Integer(0), Value::Integer(0)]);
            values.push(data.as_str().into());
            batch.row("INSERT INTO stock", &values)?;
        }
        Ok(())
    }

    fn district(
        &self,
        (w, d): (u64, u64),
        batch: &mut Batch<'_>,
        random: &mut Random,
    ) -> Result<(), Failure> {
        let customers = self.scale().customers;
        let (name, address) = (letters(random, 6, 10), address(random));
        let tax = ten_thousandths(random.below(2001));
        let mut values = vec![Value::from(d), w.into(), name.as_str().into()];
        values.extend(address.iter().map(|part| Value::from(part.as_str())));
        values.push(tax.as_str().into());
        values.extend([customers * 10, customers + 1].map(Value::from));
        batch.row("INSERT INTO district", &values)?;
        self.customers((w, d), batch, random)?;
        self.orders((w, d), batch, random)
    }

    fn customers(
        &self,
        (w, d): (u64, u64),
        batch: &mut Batch<'_>,
        random: &mut Random,
    ) -> Result<(), Failure> {
        let names = self.scale().last_names();
        let constant = self.options.constants().last_name_load;
        let last_names = NonUniform::new(mask(255, 1000, names), constant, 0, names - 1);
        for c in 1..=self.scale().customers {
            let number = if c <= names { c - 1 } else { last_names.draw(random) };
            let (first, last) = (letters(random, 8, 16), last_name(number));
            let (address, phone) = (address(random), digits(random, 16));
            let credit = if random.one_in(10) { "BC" } else { "GC" };
            let discount = ten_thousandths(random.below(5001));
            let data = letters(random, 300, 500);
            let mut values = vec![Value::from(c), d.into(), w.into()];
            values.extend([first.as_str(), "OE", last.as_str()].map(Value::from));
            values.extend(address.iter().map(|part| Value::from(part.as_str())));
            values.extend([phone.as_str(), self.now.as_str(), credit].map(Value::from));
            values.extend([Value::from(50_000u64), Value::from(discount.as_str())]);
            values.extend([-10, 10, 1, 0].map(Value::Integer));
            values.push(data.as_str().into());
            batch.row("INSERT INTO customer", &values)?;
        }
        for c in 1..=self.scale().customers {
            let data = letters(random, 12, 24);
            let numbers = [c, d, w, d, w].map(Value::from);
            let mut values = numbers.to_vec();
            values.extend([
                Value::from(self.now.as_str()),
                Value::Integer(10),
                Value::from(data.as_str()),
            ]);
            batch.row("INSERT INTO history", &values)?;
        }
        Ok(())
    }

    fn orders(
        &self,
        (w, d): (u64, u64),
        batch: &mut Batch<'_>,
        random: &mut Random,
    ) -> Result<(), Failure> {
        let now = Value::from(self.now.as_str());
        let delivered = self.scale().delivered();
        let mut customers: Vec<u64> = (1..=self.scale().customers).collect();
        random.shuffle(&mut customers);
        let counts: Vec<u64> = customers.iter().map(|_| between(random, 5, 15)).collect();
        for ((o, c), count) in (1..).zip(&customers).zip(&counts) {
            let carrier =
                if o <= delivered { Value::from(between(random, 1, 10)) } else { Value::Null };
            let values = [
                o.into(),
                d.into(),
                w.into(),
                (*c).into(),
                now,
                carrier,
                (*count).into(),
                1u64.into(),
            ];
            batch.row("INSERT INTO orders", &values)?;
        }
        for o in delivered + 1..=self.scale().customers {
            batch.row("INSERT INTO new_order", &[o, d, w].map(Value::from))?;
        }
        for (o, count) in (1..).zip(&counts) {
            for number in 1..=*count {
                let item = between(random, 1, self.scale().items);
                let cents = if o <= delivered { 0 } else { between(random, 1, 999_999) };
                let amount = format!("{}.{:02}", cents / 100, cents % 100);
                let date = if o <= delivered { now } else { Value::Null };
                let information = letters(random, 24, 24);
                let mut values = [o, d, w, number, item, w].map(Value::from).to_vec();
                values.extend([date, Value::from(5u64), Value::from(amount.as_str())]);
                values.push(information.as_str().into());
                batch.row("INSERT INTO order_line", &values)?;
            }
        }
        Ok(())
    }
}

impl Loading for Load {
    fn description(&self) -> String {
        let Options { scale, foreign_keys, seed, .. } = &self.options;
        format!("tpcc {scale:?} foreign_keys={foreign_keys} seed={seed} {}", self.form)
    }

    fn begin(&self) -> Vec<String> {
        let drop = format!("DROP TABLE IF EXISTS {}", schema::TABLES.join(", "));
        let mut statements = vec![drop];
        statements.extend(schema::tables(&self.form.options));
        if self.form.keys_first(false) {
            statements.extend(schema::indexes());
        }
        statements
    }

    fn jobs(&self) -> u64 {
        let each = 1 + self.parts() + self.scale().districts;
        self.parts() + self.scale().warehouses * each
    }

    fn job(&self, job: u64, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let mut random = Random::new(self.options.seed.wrapping_mul(1_000_003) ^ job);
        let random = &mut random;
        match self.which(job) {
            Job::Items(part) => self.items(part, batch, random),
            Job::Warehouse(warehouse) => self.warehouse(warehouse, batch, random),
            Job::Stock { warehouse, part } => self.stock(warehouse, part, batch, random),
            Job::District { warehouse, district } => {
                self.district((warehouse, district), batch, random)
            }
        }
    }

    fn finish(&self) -> Vec<Vec<String>> {
        let indexes = if self.form.keys_first(false) { Vec::new() } else { schema::indexes() };
        let groups = std::iter::once(indexes).chain(schema::foreign_keys(&self.options));
        groups.filter(|group| !group.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_cover_everything_once() {
        let scale = Scale { warehouses: 3, districts: 10, customers: 30, items: 25_000 };
        let options = Options { scale, foreign_keys: false, think_times: false, seed: 1 };
        let load = Load::new(options, "", "2020-01-01");
        let (mut items, mut warehouses, mut stock, mut districts) = (0, 0, 0, 0);
        for job in 0..load.jobs() {
            match load.which(job) {
                Job::Items(part) => items += load.item_range(part).count(),
                Job::Warehouse(warehouse) => warehouses += warehouse,
                Job::Stock { part, .. } => stock += load.item_range(part).count(),
                Job::District { district, .. } => districts += district,
            }
        }
        assert_eq!((items, warehouses, stock, districts), (25_000, 6, 75_000, 165));
    }

    #[test]
    fn one_of_ten_data_is_original() {
        let mut random = Random::new(3);
        let texts: Vec<String> = (0..20_000).map(|_| data(&mut random)).collect();
        assert!(texts.iter().all(|text| (26..=50).contains(&text.len())));
        let original = texts.iter().filter(|text| text.contains(ORIGINAL)).count();
        assert!((1800..2200).contains(&original), "{original}");
    }
}
