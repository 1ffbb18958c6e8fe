//! Tables and their rows.

use super::Options;
use crate::client::{Failure, Value};
use crate::distribution::access::Access;
use crate::load::{Batch, Loading, TableForm};
use base::Random;
use std::io::Write;

/// What rows hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Random digits, as since 0.5.
    Random,
    /// Constants, as in 0.4: extremely compressible, and `k` has one value.
    Constant,
}

/// Rows of a job.
const JOB_ROWS: u64 = 10_000;
/// Digits of a group; 11 of them are below 10^11.
const GROUP_DIGITS: u64 = 100_000_000_000;

/// Appends groups of eleven digits, joined by hyphens.
fn put_groups(out: &mut Vec<u8>, groups: usize, random: &mut Random) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let _infallible = write!(out, "{:011}", random.below(GROUP_DIGITS));
    }
}

/// Appends a value of `c`: 119 characters.
pub(super) fn put_c(out: &mut Vec<u8>, random: &mut Random) {
    put_groups(out, 10, random);
}

/// Appends a value of `pad`: 59 characters.
pub(super) fn put_pad(out: &mut Vec<u8>, random: &mut Random) {
    put_groups(out, 5, random);
}

/// The tables as rows.
pub struct Load {
    options: Options,
    access: Access,
    form: TableForm,
}

impl Load {
    /// For these parameters.
    pub fn new(options: Options, form: impl Into<TableForm>) -> Self {
        let access = Access::new(options.distribution, 1, options.table_size);
        Self { options, access, form: form.into() }
    }

    fn jobs_of_table(&self) -> u64 {
        self.options.table_size.div_ceil(JOB_ROWS)
    }
}

impl Loading for Load {
    fn description(&self) -> String {
        let Options { tables, table_size, distribution, data, seed, .. } = &self.options;
        format!(
            "sysbench tables={tables} table_size={table_size} {distribution:?} {data:?} \
             seed={seed} {}",
            self.form
        )
    }

    fn begin(&self) -> Vec<String> {
        let behind = self.form.behind("id");
        let make = |table: u32| {
            let key = match self.form.keys_first(false) {
                true => format!(", KEY k_{table} (k)"),
                false => String::new(),
            };
            let create = format!(
                "CREATE TABLE sbtest{table} (id INT NOT NULL AUTO_INCREMENT, k INT DEFAULT 0 NOT \
                 NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY \
                 KEY (id){key}) {behind}"
            );
            [format!("DROP TABLE IF EXISTS sbtest{table}"), create]
        };
        (1..=self.options.tables).flat_map(make).collect()
    }

    fn jobs(&self) -> u64 {
        self.jobs_of_table() * u64::from(self.options.tables)
    }

    fn job(&self, job: u64, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let table = (job / self.jobs_of_table() + 1).to_string();
        let first = job % self.jobs_of_table() * JOB_ROWS + 1;
        let end = (first + JOB_ROWS).min(self.options.table_size + 1);
        let mut random = Random::new(self.options.seed.wrapping_mul(1_000_003) ^ job);
        let (mut c, mut pad) = (Vec::new(), Vec::new());
        for id in first..end {
            let k = match self.options.data {
                Data::Random => {
                    c.clear();
                    pad.clear();
                    put_c(&mut c, &mut random);
                    put_pad(&mut pad, &mut random);
                    self.access.draw(&mut random)
                }
                Data::Constant => {
                    c = b" ".to_vec();
                    pad = b"qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt".to_vec();
                    0
                }
            };
            let values = [id.into(), k.into(), Value::Bytes(&c), Value::Bytes(&pad)];
            batch.row_into("INSERT INTO sbtest# (id, k, c, pad)", &table, &values)?;
        }
        Ok(())
    }

    fn finish(&self) -> Vec<Vec<String>> {
        if self.form.keys_first(false) {
            return Vec::new();
        }
        let index = |table: u32| format!("CREATE INDEX k_{table} ON sbtest{table}(k)");
        vec![(1..=self.options.tables).map(index).collect()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_sysbenchs_shape() {
        let mut random = Random::new(1);
        for (put, groups) in [(put_c as fn(&mut _, &mut _), 10), (put_pad, 5)] {
            let mut out = Vec::new();
            put(&mut out, &mut random);
            let text = String::from_utf8(out).expect("digits");
            let parts: Vec<&str> = text.split('-').collect();
            assert_eq!(parts.len(), groups);
            assert!(parts.iter().all(|p| p.len() == 11 && p.bytes().all(|b| b.is_ascii_digit())));
        }
    }
}
