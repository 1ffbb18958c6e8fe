//! The first two steps: rows in the order of the primary key, then the secondary keys.

use super::Options;
use super::rows::{self, Row};
use crate::client::Failure;
use crate::load::{Batch, Loading, TableForm};
use base::Random;

/// Rows of a job.
const JOB_ROWS: u64 = 10_000;

/// The tables as rows.
pub struct Load {
    options: Options,
    form: TableForm,
}

impl Load {
    /// For these parameters.
    pub fn new(options: Options, form: TableForm) -> Self {
        Self { options, form }
    }

    fn jobs_of_table(&self) -> u64 {
        self.options.table_size.div_ceil(JOB_ROWS)
    }
}

impl Loading for Load {
    fn description(&self) -> String {
        let Options { tables, table_size, seed, .. } = &self.options;
        format!("insert tables={tables} table_size={table_size} seed={seed} {}", self.form)
    }

    fn begin(&self) -> Vec<String> {
        let behind = self.form.behind("transactionid");
        let make = |table: u32| {
            let create = rows::create(table, self.form.keys_first(false), &behind);
            [format!("DROP TABLE IF EXISTS purchases{table}"), create]
        };
        (1..=self.options.tables).flat_map(make).collect()
    }

    fn jobs(&self) -> u64 {
        self.jobs_of_table() * u64::from(self.options.tables)
    }

    /// Jobs go through the tables side by side, each in the order of its ids.
    fn job(&self, job: u64, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let tables = u64::from(self.options.tables);
        let table = (job % tables + 1).to_string();
        let first = job / tables * JOB_ROWS + 1;
        let end = (first + JOB_ROWS).min(self.options.table_size + 1);
        let mut random = Random::new(self.options.seed.wrapping_mul(1_000_003) ^ job);
        for id in first..end {
            let (row, moment) = (Row::draw(&mut random), rows::moment(id));
            let into = "INSERT INTO purchases# (transactionid, dateandtime, cashregisterid, \
                        customerid, productid, price, data)";
            batch.row_into(into, &table, &row.values(id, &moment))?;
        }
        Ok(())
    }

    fn finish(&self) -> Vec<Vec<String>> {
        match self.form.keys_first(false) {
            true => Vec::new(),
            false => vec![(1..=self.options.tables).map(rows::add_keys).collect()],
        }
    }
}
