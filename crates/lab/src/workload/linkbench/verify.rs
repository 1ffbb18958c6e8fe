//! What must hold after any run, and after any crash.

use super::Options;
use crate::client::{Connection, Failure};
use crate::workload::Violation;

/// Counts that are not those of the visible links, from either side, and impossible nodes.
pub fn verify(connection: &mut Connection, options: &Options) -> Result<Vec<Violation>, Failure> {
    let visible = "SELECT id1, link_type, COUNT(*) AS links FROM linktable WHERE visibility=1 \
                   GROUP BY id1, link_type";
    let checks = [
        (
            "the count of an id and type is that of its visible links",
            format!(
                "SELECT c.id, c.link_type, c.count, COALESCE(v.links, 0) FROM counttable c LEFT \
                 JOIN ({visible}) v ON v.id1=c.id AND v.link_type=c.link_type \
                 WHERE c.count<>COALESCE(v.links, 0)"
            ),
        ),
        (
            "every id and type with visible links has a count",
            format!(
                "SELECT v.id1, v.link_type, v.links FROM ({visible}) v LEFT JOIN counttable c \
                 ON c.id=v.id1 AND c.link_type=v.link_type WHERE c.id IS NULL"
            ),
        ),
        (
            "links are visible or hidden, and lead to ids above",
            "SELECT id1, id2, link_type, visibility FROM linktable WHERE visibility NOT IN (0, 1) \
             OR id2<id1"
                .into(),
        ),
        (
            "nodes have the type and the ids of the load and after it",
            format!(
                "SELECT id, type, version FROM nodetable WHERE type<>{} OR id<{} \
                 OR version NOT IN (1, 2)",
                super::NODE_TYPE,
                options.first_id
            ),
        ),
    ];
    let mut violations = Vec::new();
    for (rule, sql) in checks {
        violations.extend(Violation::check(connection, rule, &sql)?);
    }
    Ok(violations)
}
