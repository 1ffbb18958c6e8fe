//! What must hold of the tables of a script that keeps its rows.

use super::{Options, Script, bulk};
use crate::client::{Connection, Failure};
use crate::workload::Violation;

/// Rows that are missing, doubled or of another shape; the index on `k` against the rows.
pub fn verify(connection: &mut Connection, options: &Options) -> Result<Vec<Violation>, Failure> {
    let mut violations = Vec::new();
    for number in 1..=options.tables {
        let (table, key) = (options.version.table(number), options.version.key(number));
        let mut check = |rule: &str, sql: &str| {
            let rule = format!("{table}: {rule}");
            Violation::check(connection, &rule, sql).map(|found| violations.extend(found))
        };
        if options.script == Script::BulkInsert {
            bulk::rules(number).iter().try_for_each(|(rule, sql)| check(rule, sql))?;
            continue;
        }
        if !matches!(options.script, Script::Insert | Script::Delete) {
            let size = options.table_size;
            check(
                "every row of the load is there once, and no other",
                &format!(
                    "SELECT COUNT(*), MIN(id), MAX(id) FROM {table} \
                     HAVING COUNT(*)<>{size} OR MIN(id)<>1 OR MAX(id)<>{size}"
                ),
            )?;
        }
        check(
            "c and pad have groups of digits, or the constants of 0.4",
            &format!(
                "SELECT id, c, pad FROM {table} WHERE NOT \
                 (c REGEXP '^([0-9]{{11}}-){{9}}[0-9]{{11}}$' AND \
                 pad REGEXP '^([0-9]{{11}}-){{4}}[0-9]{{11}}$' OR pad LIKE 'qqqqqqqqqqww%' OR \
                 pad LIKE 'aaaaaaaaaaff%')"
            ),
        )?;
        check(
            "the index on k has the rows of the table",
            &format!(
                "SELECT a.entries, b.entries, a.total, b.total FROM \
                 (SELECT COUNT(*) AS entries, SUM(k) AS total FROM {table} \
                 FORCE INDEX (PRIMARY) WHERE id>0) a, \
                 (SELECT COUNT(*) AS entries, SUM(k) AS total FROM {table} \
                 FORCE INDEX ({key}) WHERE k>=0) b \
                 WHERE a.entries<>b.entries OR NOT a.total<=>b.total"
            ),
        )?;
    }
    Ok(violations)
}
