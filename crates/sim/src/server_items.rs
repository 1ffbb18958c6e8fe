//! The rows that belong to one client each: where they are, and the statements that change them.

use crate::server_ledger::Items;
use crate::wire_client::Row;

/// Ids of a client's items begin at its number times this.
pub const ITEM_STRIDE: i64 = 1_000;
/// Items a client has at most.
pub const ITEMS_MAX: u64 = 40;
/// Those in the table without a primary key: few, so that they are changed often.
pub const NOTES_MAX: u64 = 8;
/// Ids of a client's items in the table without a primary key begin so much higher.
pub const NOTES: i64 = ITEM_STRIDE / 2;

/// The changes of an item, for table `item` and for `note`, which has no primary key.
pub struct Changes {
    /// A new one.
    pub insert: &'static str,
    /// Another name and body.
    pub rename: &'static str,
    /// One more in `k`.
    pub count: &'static str,
    /// Away with it.
    pub delete: &'static str,
}

/// Those of `item`.
pub const OF_ITEM: Changes = Changes {
    insert: "INSERT INTO item (id, k, name, body) VALUES (?, ?, ?, ?)",
    rename: "UPDATE item SET name = ?, body = ? WHERE id = ?",
    count: "UPDATE item SET k = k + 1 WHERE id = ?",
    delete: "DELETE FROM item WHERE id = ?",
};

/// Those of `note`.
pub const OF_NOTE: Changes = Changes {
    insert: "INSERT INTO note (id, k, name, body) VALUES (?, ?, ?, ?)",
    rename: "UPDATE note SET name = ?, body = ? WHERE id = ?",
    count: "UPDATE note SET k = k + 1 WHERE id = ?",
    delete: "DELETE FROM note WHERE id = ?",
};

/// Rows of one or both tables of items.
pub const ALL_ITEMS: &str = "SELECT id, k, name FROM item UNION ALL SELECT id, k, name FROM note";

/// A value of a row that must be a number.
pub fn integer(row: &Row, place: usize) -> i64 {
    let text = row.get(place).cloned().flatten();
    let parsed = text.as_deref().and_then(|text| text.parse().ok());
    parsed.unwrap_or_else(|| panic!("violation: no number at {place} of {row:?}"))
}

/// Rows of `SELECT id, k, name`.
pub fn items_of(rows: &[Row]) -> Items {
    let item = |row: &Row| {
        let name = row[2].clone().unwrap_or_default();
        (integer(row, 0), (integer(row, 1), name))
    };
    let items: Items = rows.iter().map(item).collect();
    assert_eq!(items.len(), rows.len(), "violation: a row is there twice: {rows:?}");
    items
}
