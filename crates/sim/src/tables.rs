//! The tables of the simulation and their rows as bytes.

use base::{IndexId, PageId, Random, TableId, TreeId};
use engine_api::{
    ColumnDefault, ColumnDefinition, IndexDefinition, IndexPart, RowBuffer, TableDefinition,
    TableOptions,
};
use types::row::{IndexLayout, RowLayout, RowView};
use types::{CollationId, ColumnType, TypeKind, ValueRef};

/// Columns of every table, in order.
pub const ID: usize = 0;
/// A column with few values, indexed, may be NULL.
pub const GROUP: usize = 1;
/// A column that is unique where it is indexed as such, may be NULL.
pub const UNIQUE: usize = 2;
/// Number of the version: no two writes have the same.
pub const VERSION: usize = 3;
/// Bytes of any length.
pub const BODY: usize = 4;

/// The index over [`GROUP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupIndex {
    /// None at first; one that is built is as `WithId`.
    None,
    /// Over GROUP alone: the clustered key follows.
    Plain,
    /// Over GROUP and ID: the clustered key is among its own parts.
    WithId,
    /// As `WithId`, and the clustered key follows nevertheless, as it did in earlier versions.
    Repeating,
}

impl GroupIndex {
    /// The index as it is built.
    pub fn definition(self) -> IndexDefinition {
        let columns: &[usize] = if self == GroupIndex::Plain { &[GROUP] } else { &[GROUP, ID] };
        let repeats_key = self == GroupIndex::Repeating;
        IndexDefinition { repeats_key, ..index("by_group", columns, false) }
    }
}

/// What a table is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// No primary key: rows are known by a number that the engine gives them.
    pub keyless: bool,
    /// Index on GROUP.
    pub by_group: GroupIndex,
    /// Unique index on UNIQUE.
    pub unique: bool,
    /// Largest body in bytes.
    pub body_bytes: usize,
    /// Ids are below this.
    pub ids: u64,
    /// Compression codec.
    pub codec: &'static str,
}

/// A row in the clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Primary key, where there is one.
    pub id: i64,
    /// See [`GROUP`].
    pub group: Option<i64>,
    /// See [`UNIQUE`].
    pub unique: Option<i64>,
    /// See [`VERSION`].
    pub version: i64,
    /// See [`BODY`].
    pub body: Vec<u8>,
}

fn column(id: u32, name: &str, kind: TypeKind, nullable: bool, length: u32) -> ColumnDefinition {
    ColumnDefinition {
        id,
        name: name.to_owned(),
        column_type: ColumnType {
            kind,
            unsigned: false,
            zerofill: false,
            length,
            precision: 0,
            scale: 0,
            collation: CollationId::BINARY,
            members: None,
        },
        nullable,
        default: if nullable { ColumnDefault::Null } else { ColumnDefault::None },
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        check: String::new(),
    }
}

fn index(name: &str, columns: &[usize], unique: bool) -> IndexDefinition {
    let part = |&column: &usize| IndexPart { column, prefix: None, descending: false };
    IndexDefinition {
        id: IndexId::ZERO,
        name: name.to_owned(),
        unique,
        primary: name == "PRIMARY",
        generated: false,
        parts: columns.iter().map(part).collect(),
        comment: String::new(),
        tree: TreeId::ZERO,
        root: PageId::ZERO,
        page_class: 0,
        collation_version: 1,
        repeats_key: false,
    }
}

impl TableShape {
    /// The definition to create the table with.
    pub fn definition(&self, name: &str) -> TableDefinition {
        let mut indexes = vec![match self.keyless {
            true => IndexDefinition::hidden(),
            false => index("PRIMARY", &[ID], true),
        }];
        if self.by_group != GroupIndex::None {
            indexes.push(self.by_group.definition());
        }
        if self.unique {
            indexes.push(index("by_unique", &[UNIQUE], true));
        }
        TableDefinition {
            id: TableId::ZERO,
            version: 1,
            schema: "sim".to_owned(),
            name: name.to_owned(),
            columns: vec![
                column(1, "id", TypeKind::BigInt, false, 20),
                column(2, "grp", TypeKind::Int, true, 11),
                column(3, "uni", TypeKind::BigInt, true, 20),
                column(4, "version", TypeKind::BigInt, false, 20),
                column(5, "body", TypeKind::VarBinary, false, 32_000),
            ],
            indexes,
            hidden_row_id: self.keyless,
            collation: CollationId::BINARY,
            foreign_keys: Vec::new(),
            options: TableOptions { codec: self.codec.to_owned(), ..TableOptions::default() },
            created_micros: 0,
        }
    }

    /// A random row with this id and version number.
    pub fn row(&self, random: &mut Random, id: i64, version: i64) -> Row {
        let len = match random.below(12) {
            0 => random.index(self.body_bytes + 1),
            1..4 => random.index(self.body_bytes / 4 + 1),
            _ => random.index(40),
        };
        let mut body = vec![version as u8; len];
        // Half of a body compresses, half does not.
        random.fill(&mut body[len / 2..]);
        let group = (!random.one_in(10)).then(|| random.below(20) as i64);
        let unique = (!random.one_in(4)).then(|| random.below(self.ids * 2) as i64);
        Row { id, group, unique, version, body }
    }
}

/// How rows and keys of a table are laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    row: RowLayout,
    indexes: Vec<IndexLayout>,
    keyless: bool,
}

impl Layout {
    /// The layout of a definition.
    pub fn new(definition: &TableDefinition) -> Layout {
        let row = definition.row_layout();
        let positions = 0..definition.indexes.len();
        let indexes = positions.map(|at| definition.index_layout(&row, at)).collect();
        Layout { row, indexes, keyless: definition.hidden_row_id }
    }

    /// Encodes a row. Without a primary key it has no key yet.
    pub fn encode(&self, row: &Row) -> RowBuffer {
        let int = |value: Option<i64>| value.map_or(ValueRef::Null, ValueRef::Int);
        let values = [
            ValueRef::Int(row.id),
            int(row.group),
            int(row.unique),
            ValueRef::Int(row.version),
            ValueRef::Bytes(&row.body),
        ];
        let mut buffer = RowBuffer::default();
        self.row
            .encode(&values, &mut buffer.key, &mut buffer.payload)
            .expect("the values have the columns' types");
        buffer
    }

    /// Decodes a row.
    pub fn decode(&self, key: &[u8], payload: &[u8]) -> Row {
        let view = RowView::new(&self.row, key, payload);
        let int = |column| match view.get(column) {
            ValueRef::Int(value) => Some(value),
            _ => None,
        };
        Row {
            id: int(ID).unwrap_or(i64::MIN),
            group: int(GROUP),
            unique: int(UNIQUE),
            version: int(VERSION).unwrap_or(i64::MIN),
            body: view.get(BODY).bytes().unwrap_or_default().to_vec(),
        }
    }

    /// The clustered key of an id, or of a row's number.
    pub fn key(&self, id: i64) -> Vec<u8> {
        match self.keyless {
            true => id.to_be_bytes().to_vec(),
            false => self.index_prefix(0, id),
        }
    }

    /// The clustered key of the row that a key of index `position` is of.
    pub fn clustered_key(&self, position: usize, key: &[u8]) -> Vec<u8> {
        let mut clustered_key = Vec::new();
        let found = self.indexes[position].push_clustered_key(key, &mut clustered_key);
        found.expect("the engine gives keys of the index");
        clustered_key
    }

    /// The UNIQUE column of a row.
    pub fn unique_of(&self, payload: &[u8]) -> Option<i64> {
        match RowView::new(&self.row, &[], payload).get(UNIQUE) {
            ValueRef::Int(value) => Some(value),
            _ => None,
        }
    }

    /// What keys of index `position` begin with whose first column has this value.
    pub fn index_prefix(&self, position: usize, value: i64) -> Vec<u8> {
        let mut key = Vec::new();
        self.indexes[position]
            .push_values(&[ValueRef::Int(value)], &mut key)
            .expect("the value has the column's type");
        key
    }

    /// The key of a row in index `position`.
    pub fn index_key(&self, position: usize, key: &[u8], payload: &[u8]) -> Vec<u8> {
        if position == 0 {
            return key.to_vec();
        }
        let mut index_key = Vec::new();
        self.indexes[position]
            .push_key(&RowView::new(&self.row, key, payload), key, &mut index_key)
            .expect("the row has the columns' types");
        index_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: TableShape = TableShape {
        keyless: false,
        by_group: GroupIndex::None,
        unique: false,
        body_bytes: 300,
        ids: 50,
        codec: "lz4",
    };

    #[test]
    fn rows_without_a_key_come_back() {
        let shape = TableShape { keyless: true, by_group: GroupIndex::WithId, ..PLAIN };
        let layout = Layout::new(&shape.definition("t"));
        let mut random = Random::new(3);
        for version in 0..50 {
            let row = shape.row(&mut random, version % 5, version);
            let mut buffer = layout.encode(&row);
            assert_eq!(buffer.key, []);
            buffer.key = layout.key(version);
            assert_eq!(layout.decode(&buffer.key, &buffer.payload), row);
            let by_group = layout.index_key(1, &buffer.key, &buffer.payload);
            assert_eq!(layout.clustered_key(1, &by_group), buffer.key);
        }
    }

    #[test]
    fn rows_come_back() {
        for by_group in [GroupIndex::Plain, GroupIndex::WithId, GroupIndex::Repeating] {
            come_back(TableShape { by_group, unique: true, ..PLAIN });
        }
    }

    fn come_back(shape: TableShape) {
        let layout = Layout::new(&shape.definition("t"));
        let mut random = Random::new(3);
        for version in 0..200 {
            let row = shape.row(&mut random, version % 50, version);
            let buffer = layout.encode(&row);
            assert_eq!(layout.decode(&buffer.key, &buffer.payload), row);
            assert_eq!(buffer.key, layout.key(row.id));
            let by_group = layout.index_key(1, &buffer.key, &buffer.payload);
            if let Some(group) = row.group {
                assert!(by_group.starts_with(&layout.index_prefix(1, group)));
            }
            assert!(by_group.ends_with(&buffer.key), "ID is last in all of them");
            assert_eq!(layout.clustered_key(1, &by_group), buffer.key);
        }
    }
}
