//! Definitions of tables as engines, planner and catalog share them.

use base::{IndexId, PageId, TableId, TreeId};
use types::row::{IndexLayout, KeyPart, LayoutColumn, RowLayout};
use types::{CollationId, ColumnType};

/// A table: columns, indexes and where the engine put them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    /// Stable id, never reused. Zero until the engine has created the table.
    pub id: TableId,
    /// Raised by every change of the definition; cached plans compare it.
    pub version: u64,
    /// Database name.
    pub schema: String,
    /// Table name.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<ColumnDefinition>,
    /// `indexes[0]` is the clustered one: the primary key, or the hidden row id when there is
    /// none (`hidden_row_id`), in which case its `parts` are empty.
    pub indexes: Vec<IndexDefinition>,
    /// The clustered key is an 8 byte row id that the engine hands out.
    pub hidden_row_id: bool,
    /// Default collation for new columns.
    pub collation: CollationId,
    /// Foreign keys of which this is the child, in order of their names.
    pub foreign_keys: Vec<ForeignKeyDefinition>,
    /// Options as given.
    pub options: TableOptions,
    /// Creation time, microseconds since 1970 UTC.
    pub created_micros: i64,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Stable id within the table, never reused, from 1.
    pub id: u32,
    /// Name as declared.
    pub name: String,
    /// Type.
    pub column_type: ColumnType,
    /// NULL allowed.
    pub nullable: bool,
    /// Value when an INSERT gives none.
    pub default: ColumnDefault,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// COMMENT.
    pub comment: String,
    /// CHECK of the column as SHOW CREATE TABLE has it; empty without.
    pub check: String,
}

impl ColumnDefinition {
    /// A column of a name and type, and nothing else.
    pub fn plain(id: u32, name: &str, column_type: ColumnType) -> Self {
        Self {
            id,
            name: name.to_owned(),
            column_type,
            nullable: true,
            default: ColumnDefault::Null,
            on_update_now: false,
            auto_increment: false,
            comment: String::new(),
            check: String::new(),
        }
    }
}

impl IndexDefinition {
    /// The clustered index of a table without a primary key.
    pub fn hidden() -> Self {
        Self {
            id: IndexId(0),
            name: String::new(),
            unique: true,
            primary: false,
            generated: false,
            parts: Vec::new(),
            comment: String::new(),
            tree: TreeId(0),
            root: PageId(0),
            page_class: 0,
            collation_version: types::collation::COLLATION_VERSION,
            repeats_key: false,
        }
    }
}

/// The default of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnDefault {
    /// No default: strict mode refuses an INSERT without a value (1364).
    None,
    /// DEFAULT NULL.
    Null,
    /// A constant, as text that converts to the column's type.
    Constant(Vec<u8>),
    /// CURRENT_TIMESTAMP with the column's fractional digits.
    CurrentTimestamp,
    /// An expression, perhaps over other columns, as SHOW CREATE TABLE has it.
    Expression(String),
    /// The column is generated: its value always follows from the other columns of its row.
    Generated {
        /// From what, as SHOW CREATE TABLE has it.
        expression: String,
        /// STORED as opposed to VIRTUAL. The values of both are in the rows.
        stored: bool,
    },
}

impl ColumnDefinition {
    /// Whether its value is generated.
    pub fn is_generated(&self) -> bool {
        matches!(self.default, ColumnDefault::Generated { .. })
    }

    /// The expression that it is computed by: of a generated column, or as its default.
    pub fn computed_by(&self) -> Option<&str> {
        match &self.default {
            ColumnDefault::Expression(expression) | ColumnDefault::Generated { expression, .. } => {
                Some(expression)
            }
            _ => None,
        }
    }
}

/// One index: its own tree whose keys are the parts followed, for a secondary one, by what the
/// clustered key says more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Stable id.
    pub id: IndexId,
    /// Name; `PRIMARY` for the primary key.
    pub name: String,
    /// UNIQUE or PRIMARY.
    pub unique: bool,
    /// PRIMARY KEY.
    pub primary: bool,
    /// Made because a foreign key needs it: gives way to a written index that serves as well.
    pub generated: bool,
    /// Columns in key order.
    pub parts: Vec<IndexPart>,
    /// COMMENT.
    pub comment: String,
    /// Tree that holds it; set by the engine.
    pub tree: TreeId,
    /// Root page of the tree, fixed for its life; set by the engine.
    pub root: PageId,
    /// Page class of the tree (log2 of the page size in bytes); set by the engine.
    pub page_class: u8,
    /// Version of the collation tables its keys were made with.
    pub collation_version: u16,
    /// Of a secondary index: the whole clustered key follows the parts, also what they say already.
    /// No index is made so any more; those of earlier versions stay as they are.
    pub repeats_key: bool,
}

/// One part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// Position in `TableDefinition::columns`.
    pub column: usize,
    /// Only the first so many characters (bytes for binary types).
    pub prefix: Option<u32>,
    /// DESC.
    pub descending: bool,
}

/// A foreign key, as its child knows it. The parent is a name: it need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyDefinition {
    /// Name of the constraint, unique within the database.
    pub name: String,
    /// [`ColumnDefinition::id`] of the child's columns.
    pub columns: Vec<u32>,
    /// Database of the parent.
    pub parent_schema: String,
    /// The parent.
    pub parent_table: String,
    /// Names of the parent's columns.
    pub parent_columns: Vec<String>,
    /// What becomes of child rows whose parent is deleted.
    pub on_delete: ReferentialAction,
    /// What becomes of child rows whose parent changes its key.
    pub on_update: ReferentialAction,
}

/// What a foreign key does about the rows of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferentialAction {
    /// The change of the parent is refused.
    Restrict,
    /// The child follows.
    Cascade,
    /// The child's columns become NULL.
    SetNull,
    /// As `Restrict`; only written differently.
    NoAction,
}

/// Name in [`TableOptions::other`] of what PARTITION BY says, as it is shown.
pub const PARTITION_BY: &str = "PARTITION BY";
/// Name in [`TableOptions::other`] of the number of partitions.
pub const PARTITION_COUNT: &str = "PARTITIONS";
/// Name in [`TableOptions::other`] of the names of partitions, with NUL between them.
pub const PARTITION_NAMES: &str = "PARTITION NAMES";
/// Name in [`TableOptions::other`] of the VALUES of RANGE and LIST.
pub const PARTITION_VALUES: &str = "PARTITION VALUES";
/// Name in [`TableOptions::other`] of the comments of partitions.
pub const PARTITION_COMMENTS: &str = "PARTITION COMMENTS";

/// In [`TableOptions::codec`]: with the algorithm of `innodb_compression_algorithm`.
pub const COMPRESSED: &str = "compressed";

/// Options of CREATE TABLE that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// COMMENT.
    pub comment: String,
    /// How the table's pages are compressed: empty for what the store does unless told otherwise,
    /// [`COMPRESSED`], or the name of a codec; each of the last two may be followed by a colon and
    /// a level from 1 to 9.
    pub codec: String,
    /// Other accepted options as written, for SHOW CREATE TABLE.
    pub other: Vec<(String, String)>,
    /// CHECK constraints of the table: names and conditions as SHOW CREATE TABLE has them.
    pub checks: Vec<(String, String)>,
}

/// Options in [`TableOptions::other`] by name, in the order in which MariaDB shows them.
pub const PLAIN_OPTIONS: [&str; 9] = [
    "MIN_ROWS",
    "MAX_ROWS",
    "AVG_ROW_LENGTH",
    "STATS_PERSISTENT",
    "STATS_AUTO_RECALC",
    "STATS_SAMPLE_PAGES",
    "CHECKSUM",
    "ROW_FORMAT",
    "KEY_BLOCK_SIZE",
];

/// What KEY_BLOCK_SIZE may be.
pub const COMPRESSED_BLOCKS_KIB: [u64; COMPRESSED_BLOCK_CLASSES] = [1, 2, 4, 8, 16];
/// How many that are.
pub const COMPRESSED_BLOCK_CLASSES: usize = 5;
/// What `ROW_FORMAT=COMPRESSED` means without one: half of InnoDB's pages of 16 KiB.
const DEFAULT_BLOCK_CLASS: usize = 3;

impl TableOptions {
    /// Of a table with compressed rows, which `ROW_FORMAT=COMPRESSED` and a KEY_BLOCK_SIZE alone
    /// ask for: the binary logarithm of the KEY_BLOCK_SIZE. That is where InnoDB counts the
    /// compression of its pages; that they are of this size is not so here.
    pub fn compressed_block_class(&self) -> Option<usize> {
        let of = |name: &str| self.other.iter().find(|(known, _)| known == name);
        let block = of("KEY_BLOCK_SIZE").and_then(|(_, kib)| kib.parse().ok());
        let class = block.and_then(|kib: u64| COMPRESSED_BLOCKS_KIB.iter().position(|&k| k == kib));
        match of("ROW_FORMAT").map(|(_, format)| format.as_str()) {
            Some("COMPRESSED") => Some(class.unwrap_or(DEFAULT_BLOCK_CLASS)),
            None | Some("DEFAULT") => class,
            Some(_) => None,
        }
    }

    /// Those of [`PLAIN_OPTIONS`] that the table has.
    pub fn plain(&self) -> impl Iterator<Item = &(String, String)> {
        let of = |name: &&str| self.other.iter().find(move |(known, _)| known == *name);
        PLAIN_OPTIONS.iter().filter_map(of)
    }

    /// Options that MariaDB leaves to its engines: shown as written, with quotes.
    pub fn quoted(&self) -> impl Iterator<Item = &(String, String)> {
        let is_plain = |name: &str| PLAIN_OPTIONS.contains(&name) || name.starts_with("PARTITION");
        self.other.iter().filter(move |(name, _)| !is_plain(name))
    }
}

impl TableDefinition {
    /// Names and conditions of all CHECK constraints; those of columns are named `table.column`.
    pub fn checks(&self) -> Vec<(String, &str)> {
        let of_column = |column: &ColumnDefinition| format!("{}.{}", self.name, column.name);
        let columns = self.columns.iter().filter(|column| !column.check.is_empty());
        let columns = columns.map(|column| (of_column(column), column.check.as_str()));
        let own = self.options.checks.iter();
        columns.chain(own.map(|(name, text)| (name.clone(), text.as_str()))).collect()
    }

    /// Whether there are CHECK constraints, or partitions that not all rows have a place in.
    pub fn has_checks(&self) -> bool {
        let is_partitioned = |(name, by): &(String, String)| {
            name == PARTITION_BY && (by.starts_with("RANGE") || by.starts_with("LIST"))
        };
        !self.options.checks.is_empty()
            || self.columns.iter().any(|it| !it.check.is_empty())
            || self.options.other.iter().any(is_partitioned)
    }

    /// Position of a column by name, compared without regard to case.
    pub fn column_position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// Position of a column by its stable id.
    pub fn column_of_id(&self, id: u32) -> Option<usize> {
        self.columns.iter().position(|c| c.id == id)
    }

    /// Positions of a foreign key's own columns; fewer if the definition is damaged.
    pub fn foreign_key_columns(&self, key: &ForeignKeyDefinition) -> Vec<usize> {
        key.columns.iter().filter_map(|id| self.column_of_id(*id)).collect()
    }

    /// Position of the first index that begins with exactly these columns, whole, in this order.
    pub fn index_over(&self, columns: &[usize]) -> Option<usize> {
        self.indexes.iter().position(|index| {
            index.parts.len() >= columns.len()
                && index
                    .parts
                    .iter()
                    .zip(columns)
                    .all(|(part, column)| part.column == *column && part.prefix.is_none())
        })
    }

    /// How the rows of this table are laid out: the one way for all rooms.
    pub fn row_layout(&self) -> RowLayout {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|it| LayoutColumn { column_type: it.column_type, nullable: it.nullable })
            .collect();
        RowLayout::new(&columns, &self.key_parts(0), 0)
    }

    /// How the keys of the index at `position` are laid out; `row` is [`Self::row_layout`].
    pub fn index_layout(&self, row: &RowLayout, position: usize) -> IndexLayout {
        let repeats_key = self.indexes.get(position).is_some_and(|index| index.repeats_key);
        match position {
            0 => IndexLayout::clustered(row),
            _ if repeats_key => IndexLayout::repeating(row, &self.key_parts(position)),
            _ => IndexLayout::new(row, &self.key_parts(position)),
        }
    }

    fn key_parts(&self, position: usize) -> Vec<KeyPart> {
        let part = |it: &IndexPart| KeyPart {
            column: it.column,
            prefix: it.prefix,
            descending: it.descending,
        };
        self.indexes
            .get(position)
            .map_or(Vec::new(), |index| index.parts.iter().map(part).collect())
    }

    /// Position of the AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.auto_increment)
    }
}
