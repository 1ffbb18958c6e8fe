//! The declared type of a column or of an expression's result.

/// A collation by its number in the protocol (45 is utf8mb4_general_ci, 46 utf8mb4_bin,
/// 63 binary). The character set follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct CollationId(pub u16);

impl CollationId {
    /// utf8mb4_general_ci, the default of tables and connections.
    pub const UTF8MB4_GENERAL_CI: Self = Self(45);
    /// utf8mb4_bin: compares code points.
    pub const UTF8MB4_BIN: Self = Self(46);
    /// Bytes without a character set.
    pub const BINARY: Self = Self(63);
}

/// The family of a type, one variant per type that SHOW COLUMNS names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// The type of a bare NULL.
    Null,
    /// 1 byte integer.
    TinyInt,
    /// 2 byte integer.
    SmallInt,
    /// 3 byte integer.
    MediumInt,
    /// 4 byte integer.
    Int,
    /// 8 byte integer.
    BigInt,
    /// Exact decimal with `precision` digits, `scale` of them after the point.
    Decimal,
    /// 4 byte IEEE number.
    Float,
    /// 8 byte IEEE number.
    Double,
    /// Fixed length characters (`length` in characters), padded for comparison.
    Char,
    /// Up to `length` characters.
    VarChar,
    /// Fixed length bytes.
    Binary,
    /// Up to `length` bytes.
    VarBinary,
    /// Up to 255 bytes of text.
    TinyText,
    /// Up to 65,535 bytes of text.
    Text,
    /// Up to 2^24 - 1 bytes of text.
    MediumText,
    /// Up to 2^32 - 1 bytes of text.
    LongText,
    /// Up to 255 bytes.
    TinyBlob,
    /// Up to 65,535 bytes.
    Blob,
    /// Up to 2^24 - 1 bytes.
    MediumBlob,
    /// Up to 2^32 - 1 bytes.
    LongBlob,
    /// Calendar day.
    Date,
    /// Duration or time of day, `scale` fractional digits.
    Time,
    /// Day and time without a zone, `scale` fractional digits.
    DateTime,
    /// Instant in UTC, shown in the session's zone, `scale` fractional digits.
    Timestamp,
    /// Year.
    Year,
}

/// A declared type with its parameters. Shape only; no name, no default.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColumnType {
    /// Family.
    pub kind: TypeKind,
    /// UNSIGNED.
    pub unsigned: bool,
    /// ZEROFILL (implies unsigned).
    pub zerofill: bool,
    /// Characters for character types, bytes for binary ones, display width for integers.
    pub length: u32,
    /// Total digits of a DECIMAL.
    pub precision: u8,
    /// Digits after the point of a DECIMAL, fractional second digits of temporal types;
    /// 31 for a floating type without a declared scale.
    pub scale: u8,
    /// Collation of character types; `BINARY` otherwise.
    pub collation: CollationId,
}
