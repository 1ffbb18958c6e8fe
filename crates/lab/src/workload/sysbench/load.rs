//! Tables and their rows.

use super::Options;
use crate::client::{Connection, Failure, Target};
use crate::distribution::access::Access;
use base::Random;
use runtime::sync::Mutex;
use std::io::Write;
use std::sync::Arc;

/// What rows hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Random digits, as since 0.5.
    Random,
    /// Constants, as in 0.4: extremely compressible, and `k` has one value.
    Constant,
}

/// Rows of an INSERT.
const BATCH_ROWS: u64 = 1000;
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

impl Data {
    /// Appends a row as SQL, without its id.
    fn put_row(self, out: &mut Vec<u8>, access: &Access, random: &mut Random) {
        match self {
            Self::Random => {
                let _infallible = write!(out, "({},'", access.draw(random));
                put_c(out, random);
                out.extend_from_slice(b"','");
                put_pad(out, random);
                out.extend_from_slice(b"')");
            }
            Self::Constant => out
                .extend_from_slice(b"(0,' ','qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt')"),
        }
    }
}

/// Makes the tables that are missing and fills them, several at once; `report` is told of rows
/// that were inserted.
pub fn load(
    target: &Target,
    options: &Options,
    loaders: u32,
    table_options: &str,
    report: impl Fn(u64) + Send + Sync + 'static,
) -> Result<(), Failure> {
    let next = Arc::new(Mutex::new(1..=options.tables));
    let report = Arc::new(report);
    let loader = |_| {
        let (next, report) = (next.clone(), report.clone());
        let (target, options) = (target.clone(), options.clone());
        let table_options = table_options.to_string();
        runtime::spawn("loader", move || {
            let mut connection = Connection::open(&target)?;
            loop {
                let Some(table) = next.lock().next() else { return Ok::<(), Failure>(()) };
                load_table(&mut connection, &options, table, &table_options, &*report)?;
            }
        })
    };
    let fibers: Vec<_> = (0..loaders.clamp(1, options.tables)).map(loader).collect();
    for fiber in fibers {
        fiber.join().map_err(|panic| std::io::Error::other(panic.to_string()))??;
    }
    Ok(())
}

fn load_table(
    connection: &mut Connection,
    options: &Options,
    table: u32,
    table_options: &str,
    report: &dyn Fn(u64),
) -> Result<(), Failure> {
    connection.command(&format!("DROP TABLE IF EXISTS sbtest{table}"))?;
    connection.command(&format!(
        "CREATE TABLE sbtest{table} (id INT NOT NULL AUTO_INCREMENT, k INT DEFAULT 0 NOT NULL, \
         c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) \
         {table_options}"
    ))?;
    let access = Access::new(options.distribution, 1, options.table_size);
    let mut random = Random::new(options.seed.wrapping_mul(1_000_003) ^ u64::from(table));
    let mut done = 0;
    let mut sql = Vec::new();
    while done < options.table_size {
        let rows = BATCH_ROWS.min(options.table_size - done);
        sql.clear();
        let _infallible = write!(sql, "INSERT INTO sbtest{table} (k, c, pad) VALUES ");
        for row in 0..rows {
            if row > 0 {
                sql.push(b',');
            }
            options.data.put_row(&mut sql, &access, &mut random);
        }
        connection.command(&String::from_utf8_lossy(&sql))?;
        done += rows;
        report(rows);
    }
    connection.command(&format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))?;
    Ok(())
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
