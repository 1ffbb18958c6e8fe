//! The twelve consistency conditions (TPC-C clause 3.3.2): whether they hold, and are found broken.

use super::{Rows, SCALE};
use crate::Outcome;
use lab::workload::tpcc::{CONDITIONS, Condition};

type Execute<'a> = &'a mut dyn FnMut(&str) -> Result<Rows, String>;

/// Rows that violate a condition.
fn violated(condition: &Condition, execute: Execute<'_>) -> Result<Rows, String> {
    let mut rows = Vec::new();
    for sql in condition.queries(SCALE.delivered()) {
        rows.extend(execute(&sql)?);
    }
    Ok(rows)
}

/// All of them in the transaction that `execute` is in.
pub(crate) fn check(execute: Execute<'_>) -> Outcome {
    for condition in &CONDITIONS {
        let rows = violated(condition, execute)?;
        if let Some(first) = rows.first() {
            let shown: Vec<String> = first.iter().map(sqltest::render::field).collect();
            return Err(format!(
                "condition {} is violated by {} rows, the first: {}",
                condition.number,
                rows.len(),
                shown.join(" ")
            ));
        }
    }
    Ok(())
}

/// Violates each condition in a transaction and looks whether it says so.
pub(crate) fn find_what_is_planted(port: u16) -> Outcome {
    let mut connection = super::connect(port)?;
    let mut execute = |sql: &str| connection.execute(sql).map_err(|e| e.to_string());
    for condition in &CONDITIONS {
        execute("BEGIN")?;
        execute(condition.planted)?;
        let found = violated(condition, &mut execute)?.len();
        execute("ROLLBACK")?;
        if found == 0 {
            return Err(format!("condition {} does not find what violates it", condition.number));
        }
    }
    check(&mut execute)
}
