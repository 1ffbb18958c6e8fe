//! What must hold of the tables after any step, and after any crash.

use super::Options;
use super::rows::{CUSTOMERS, KEYS, PRODUCTS, REGISTERS, price_max};
use crate::client::{Connection, Failure};
use crate::workload::Violation;

/// Gaps in the ids, rows that are not as they were inserted, keys against the rows.
pub fn verify(connection: &mut Connection, options: &Options) -> Result<Vec<Violation>, Failure> {
    let mut violations = Vec::new();
    for table in 1..=options.tables {
        let mut check = |rule: &str, sql: &str| {
            let rule = format!("purchases{table}: {rule}");
            Violation::check(connection, &rule, sql).map(|found| violations.extend(found))
        };
        check(
            "ids are an interval without gaps",
            &format!(
                "SELECT COUNT(*), MIN(transactionid), MAX(transactionid) FROM purchases{table} \
                 HAVING COUNT(*)=0 OR COUNT(*)<>MAX(transactionid)-MIN(transactionid)+1"
            ),
        )?;
        check(
            "rows are as they were inserted",
            &format!(
                "SELECT transactionid, customerid, data FROM purchases{table} WHERE NOT \
                 (cashregisterid BETWEEN 0 AND {} AND customerid BETWEEN 0 AND {} \
                 AND productid BETWEEN 0 AND {} AND price BETWEEN customerid/100-0.01 AND {} \
                 AND data REGEXP '^[0-9]{{6}}[a-z]{{24}}$' AND LEFT(data, 6)+0=customerid)",
                REGISTERS - 1,
                CUSTOMERS - 1,
                PRODUCTS - 1,
                price_max()
            ),
        )?;
        for (key, _) in KEYS {
            let sums = "COUNT(*) AS entries, SUM(customerid) AS total";
            check(
                &format!("the key {key} has the rows of the table"),
                &format!(
                    "SELECT a.entries, b.entries, a.total, b.total FROM \
                     (SELECT {sums} FROM purchases{table} FORCE INDEX (PRIMARY) \
                     WHERE transactionid>0) a, \
                     (SELECT {sums} FROM purchases{table} FORCE INDEX ({key}) \
                     WHERE price>=0 AND cashregisterid>=0) b \
                     WHERE a.entries<>b.entries OR NOT a.total<=>b.total"
                ),
            )?;
        }
    }
    Ok(violations)
}
