//! LOAD DATA: the lines of a file as rows.

use super::InsertValue;
use types::CollationId;

/// Where the rows of LOAD DATA come from. What the file itself is the executor is told.
#[derive(Clone, Debug)]
pub struct FileRows {
    /// Where the fields of a line go, in their order.
    pub fields: Vec<FieldTarget>,
    /// SET: column and value, over the row as far as it is set.
    pub assignments: Vec<(usize, InsertValue)>,
    /// How the file is written.
    pub format: LineFormat,
    /// Lines skipped at the beginning.
    pub skipped_lines: u64,
}

/// What takes a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldTarget {
    /// A column of the table.
    Column(usize),
    /// A user variable, by its name in lower case.
    Variable(String),
}

/// How lines and fields are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFormat {
    /// Character set of the text.
    pub collation: CollationId,
    /// FIELDS TERMINATED BY.
    pub field_end: Vec<u8>,
    /// FIELDS ENCLOSED BY.
    pub enclosed: Option<u8>,
    /// Only text is enclosed; of meaning for INTO OUTFILE alone.
    pub optionally: bool,
    /// FIELDS ESCAPED BY.
    pub escape: Option<u8>,
    /// LINES STARTING BY.
    pub line_start: Vec<u8>,
    /// LINES TERMINATED BY.
    pub line_end: Vec<u8>,
}
