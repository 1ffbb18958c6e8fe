//! Tables and their rows.

use super::{Options, Script, Version, bulk};
use crate::client::{Failure, Value};
use crate::distribution::access::Access;
use crate::load::{Batch, Loading, TableForm};
use base::Random;
use std::io::Write;

/// What rows of 0.4 hold.
pub(super) const CONSTANT_C: &str = " ";
pub(super) const CONSTANT_PAD: &str = "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt";
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

    fn keys_first(&self) -> bool {
        self.form.keys_first(self.options.version == Version::V04)
    }

    fn create(&self, number: u32, behind: &str) -> [String; 2] {
        let version = self.options.version;
        let (table, key) = (version.table(number), version.key(number));
        let key = if self.keys_first() { format!(", KEY {key} (k)") } else { String::new() };
        let integer = if version == Version::V10 { "INT" } else { "INT UNSIGNED" };
        let create = format!(
            "CREATE TABLE {table} (id {integer} NOT NULL AUTO_INCREMENT, k {integer} DEFAULT 0 NOT \
             NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY \
             (id){key}) {behind}"
        );
        [format!("DROP TABLE IF EXISTS {table}"), create]
    }
}

impl Loading for Load {
    fn description(&self) -> String {
        let Options { tables, table_size, distribution, version, seed, script, .. } = &self.options;
        if *script == Script::BulkInsert {
            return format!("sysbench bulk_insert tables={tables} {}", self.form);
        }
        format!(
            "sysbench tables={tables} table_size={table_size} {distribution:?} {version:?} \
             seed={seed} {}",
            self.form
        )
    }

    fn begin(&self) -> Vec<String> {
        let behind = self.form.behind("id");
        let make = |table: u32| match self.options.script {
            Script::BulkInsert => bulk::create(table, &behind),
            _ => self.create(table, &behind),
        };
        (1..=self.options.tables).flat_map(make).collect()
    }

    fn jobs(&self) -> u64 {
        match self.options.script {
            Script::BulkInsert => 0,
            _ => self.jobs_of_table() * u64::from(self.options.tables),
        }
    }

    fn job(&self, job: u64, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let table = self.options.version.table((job / self.jobs_of_table() + 1) as u32);
        let first = job % self.jobs_of_table() * JOB_ROWS + 1;
        let end = (first + JOB_ROWS).min(self.options.table_size + 1);
        let mut random = Random::new(self.options.seed.wrapping_mul(1_000_003) ^ job);
        let (mut c, mut pad) = (Vec::new(), Vec::new());
        for id in first..end {
            c.clear();
            pad.clear();
            let k = match self.options.version {
                Version::V05 | Version::V10 => {
                    put_c(&mut c, &mut random);
                    put_pad(&mut pad, &mut random);
                    self.access.draw(&mut random)
                }
                Version::V04 => {
                    c.extend_from_slice(CONSTANT_C.as_bytes());
                    pad.extend_from_slice(CONSTANT_PAD.as_bytes());
                    0
                }
            };
            let values = [id.into(), k.into(), Value::Bytes(&c), Value::Bytes(&pad)];
            batch.row_into("INSERT INTO # (id, k, c, pad)", &table, &values)?;
        }
        Ok(())
    }

    fn finish(&self) -> Vec<Vec<String>> {
        if self.keys_first() || self.options.script == Script::BulkInsert {
            return Vec::new();
        }
        let version = self.options.version;
        let index = |table: u32| {
            format!("CREATE INDEX {} ON {}(k)", version.key(table), version.table(table))
        };
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

    #[test]
    fn tables_are_those_of_the_version() {
        let made = |version| {
            let options = Options { version, ..Options::new(Script::PointSelect) };
            let load = Load::new(options, "");
            (load.begin().remove(1), load.finish().concat())
        };
        let (table, keys) = made(Version::V10);
        assert!(table.starts_with("CREATE TABLE sbtest1 (id INT NOT NULL"), "{table}");
        assert_eq!(keys, ["CREATE INDEX k_1 ON sbtest1(k)"]);
        let (table, keys) = made(Version::V04);
        assert!(table.starts_with("CREATE TABLE sbtest (id INT UNSIGNED NOT NULL"), "{table}");
        assert!(table.contains("PRIMARY KEY (id), KEY k (k))") && keys.is_empty(), "{table}");
        let (table, keys) = made(Version::V05);
        assert!(table.contains("k INT UNSIGNED") && keys.len() == 1, "{table}");
    }
}
