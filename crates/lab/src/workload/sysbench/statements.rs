//! The statements, one of each kind for each table.

use super::Version;

/// A kind of statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    Insert,
    /// With a generated key.
    InsertNew,
    RandomPoints,
    RandomRanges,
}

const KINDS: [Statement; 12] = [
    Statement::PointSelect,
    Statement::SimpleRange,
    Statement::SumRange,
    Statement::OrderRange,
    Statement::DistinctRange,
    Statement::UpdateIndex,
    Statement::UpdateNonIndex,
    Statement::Delete,
    Statement::Insert,
    Statement::InsertNew,
    Statement::RandomPoints,
    Statement::RandomRanges,
];

/// Values of `k IN`, and ranges of `k`, of the two scripts that read by `k`.
pub(super) const RANDOM_VALUES: usize = 10;

/// What a transaction begins and ends with; sysbench prepares these as well.
pub(super) const BEGIN: usize = 0;
pub(super) const COMMIT: usize = 1;
/// They come first.
const OF_NO_TABLE: [&str; 2] = ["BEGIN", "COMMIT"];

/// Numbers of the statements of so many tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statements {
    pub(super) tables: u32,
    pub(super) version: Version,
}

impl Statements {
    /// The number of a statement; tables are numbered from 1.
    pub(super) fn number(self, kind: Statement, table: u32) -> usize {
        OF_NO_TABLE.len() + kind as usize * self.tables as usize + table as usize - 1
    }

    /// The texts, by number.
    pub(super) fn texts(self) -> Vec<String> {
        let named = |table| self.version.table(table);
        let of_kind = |kind| (1..=self.tables).map(move |table| text(kind, &named(table)));
        let of_no_table = OF_NO_TABLE.into_iter().map(String::from);
        of_no_table.chain(KINDS.into_iter().flat_map(of_kind)).collect()
    }
}

fn text(kind: Statement, table: &str) -> String {
    let range = "WHERE id BETWEEN ? AND ?";
    match kind {
        Statement::PointSelect => format!("SELECT c FROM {table} WHERE id=?"),
        Statement::SimpleRange => format!("SELECT c FROM {table} {range}"),
        Statement::SumRange => format!("SELECT SUM(k) FROM {table} {range}"),
        Statement::OrderRange => format!("SELECT c FROM {table} {range} ORDER BY c"),
        Statement::DistinctRange => {
            format!("SELECT DISTINCT c FROM {table} {range} ORDER BY c")
        }
        Statement::UpdateIndex => format!("UPDATE {table} SET k=k+1 WHERE id=?"),
        Statement::UpdateNonIndex => format!("UPDATE {table} SET c=? WHERE id=?"),
        Statement::Delete => format!("DELETE FROM {table} WHERE id=?"),
        Statement::Insert => {
            format!("INSERT INTO {table} (id, k, c, pad) VALUES (?, ?, ?, ?)")
        }
        Statement::InsertNew => {
            format!("INSERT INTO {table} (id, k, c, pad) VALUES (0, ?, ?, ?)")
        }
        Statement::RandomPoints => {
            let values = ["?"; RANDOM_VALUES].join(", ");
            format!("SELECT id, k, c, pad FROM {table} WHERE k IN ({values})")
        }
        Statement::RandomRanges => {
            let ranges = ["k BETWEEN ? AND ?"; RANDOM_VALUES].join(" OR ");
            format!("SELECT count(k) FROM {table} WHERE {ranges}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_texts() {
        let statements = Statements { tables: 3, version: Version::V10 };
        let texts = statements.texts();
        assert_eq!(texts.len(), 2 + 3 * KINDS.len());
        assert_eq!((texts[BEGIN].as_str(), texts[COMMIT].as_str()), ("BEGIN", "COMMIT"));
        for kind in KINDS {
            for table in 1..=3 {
                let wanted = text(kind, &format!("sbtest{table}"));
                assert_eq!(texts[statements.number(kind, table)], wanted);
            }
        }
    }
}
