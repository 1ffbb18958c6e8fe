//! The declared type of a column or of an expression's result.

use crate::members::Members;

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
    /// One of the members, or none of them ('', number 0). The value is the member's text.
    Enum,
    /// Some of at most 64 members. The value is their texts with commas, in declared order.
    Set,
    /// `length` bits (1 to 64); the value is an unsigned number.
    Bit,
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
    /// Characters for character types, bytes for binary ones, longest text for all others
    /// (display width of an integer, `precision + 2` of a signed DECIMAL with a fraction).
    pub length: u32,
    /// Total digits of a DECIMAL; most digits an integer can have.
    pub precision: u8,
    /// Digits after the point of a DECIMAL, fractional second digits of temporal types;
    /// 31 for a floating type without a declared scale.
    pub scale: u8,
    /// Collation of character types; `BINARY` otherwise.
    pub collation: CollationId,
    /// Members of ENUM and SET.
    pub members: Option<&'static Members>,
}

/// `scale` of a floating type without a declared number of digits.
pub const SCALE_NOT_FIXED: u8 = 31;

impl TypeKind {
    /// TINYINT to BIGINT.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::TinyInt | Self::SmallInt | Self::MediumInt | Self::Int | Self::BigInt)
    }

    /// FLOAT or DOUBLE.
    pub fn is_floating(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    /// Any number, YEAR and BIT included.
    pub fn is_number(self) -> bool {
        self.is_integer()
            || self.is_floating()
            || matches!(self, Self::Decimal | Self::Year | Self::Bit)
    }

    /// DATE, TIME, DATETIME, TIMESTAMP.
    pub fn is_temporal(self) -> bool {
        matches!(self, Self::Date | Self::Time | Self::DateTime | Self::Timestamp)
    }

    /// Character or binary type of any kind.
    pub fn is_string(self) -> bool {
        !self.is_number() && !self.is_temporal() && self != Self::Null
    }

    /// TEXT and BLOB types.
    pub fn is_large(self) -> bool {
        matches!(
            self,
            Self::TinyText
                | Self::Text
                | Self::MediumText
                | Self::LongText
                | Self::TinyBlob
                | Self::Blob
                | Self::MediumBlob
                | Self::LongBlob
        )
    }

    /// Bytes of an integer type; 0 for others.
    pub fn integer_bytes(self) -> u32 {
        match self {
            Self::TinyInt => 1,
            Self::SmallInt => 2,
            Self::MediumInt => 3,
            Self::Int => 4,
            Self::BigInt => 8,
            _ => 0,
        }
    }
}

impl ColumnType {
    /// A type with nothing but its kind; the other constructors fill in the rest.
    const fn plain(kind: TypeKind, length: u32) -> Self {
        Self {
            kind,
            unsigned: false,
            zerofill: false,
            length,
            precision: 0,
            scale: 0,
            collation: CollationId::BINARY,
            members: None,
        }
    }

    /// The type of NULL.
    pub const NULL: Self = Self::plain(TypeKind::Null, 0);

    /// An integer type with its default display width.
    pub fn integer(kind: TypeKind, unsigned: bool) -> Self {
        let (signed_width, unsigned_width) = match kind {
            TypeKind::TinyInt => (4, 3),
            TypeKind::SmallInt => (6, 5),
            TypeKind::MediumInt => (9, 8),
            TypeKind::Int => (11, 10),
            _ => (20, 20),
        };
        let length = if unsigned { unsigned_width } else { signed_width };
        let precision = length as u8 - u8::from(!unsigned);
        Self { unsigned, precision, ..Self::plain(kind, length) }
    }

    /// DECIMAL(precision, scale).
    pub fn decimal(precision: u8, scale: u8, unsigned: bool) -> Self {
        let length = u32::from(precision) + u32::from(scale > 0) + u32::from(!unsigned);
        Self { unsigned, precision, scale, ..Self::plain(TypeKind::Decimal, length) }
    }

    /// DOUBLE.
    pub fn double() -> Self {
        Self { scale: SCALE_NOT_FIXED, ..Self::plain(TypeKind::Double, 22) }
    }

    /// FLOAT.
    pub fn float() -> Self {
        Self { scale: SCALE_NOT_FIXED, ..Self::plain(TypeKind::Float, 12) }
    }

    /// CHAR or VARCHAR of so many characters.
    pub fn text(kind: TypeKind, characters: u32, collation: CollationId) -> Self {
        Self { collation, ..Self::plain(kind, characters) }
    }

    /// BINARY or VARBINARY of so many bytes.
    pub fn binary(kind: TypeKind, bytes: u32) -> Self {
        Self::plain(kind, bytes)
    }

    /// A TEXT or BLOB type; `length` is its limit in bytes.
    pub fn large(kind: TypeKind, collation: CollationId) -> Self {
        let length = match kind {
            TypeKind::TinyText | TypeKind::TinyBlob => 255,
            TypeKind::Text | TypeKind::Blob => 65_535,
            TypeKind::MediumText | TypeKind::MediumBlob => (1 << 24) - 1,
            _ => u32::MAX,
        };
        Self { collation, ..Self::plain(kind, length) }
    }

    /// DATE.
    pub fn date() -> Self {
        Self::plain(TypeKind::Date, 10)
    }

    /// YEAR.
    pub fn year() -> Self {
        Self { unsigned: true, zerofill: true, precision: 4, ..Self::plain(TypeKind::Year, 4) }
    }

    /// BIT of so many bits.
    pub fn bit(bits: u32) -> Self {
        let precision = [1, 3, 5, 8, 10, 13, 15, 17, 20][bits.min(64).div_ceil(8) as usize];
        Self { unsigned: true, precision, ..Self::plain(TypeKind::Bit, bits) }
    }

    /// ENUM or SET of members in the collation's character set; `length` is the longest value.
    pub fn of_members(kind: TypeKind, members: &'static Members, collation: CollationId) -> Self {
        let characters = |name: &[u8]| collation.charset().character_count(name) as u32;
        let lengths = members.names().iter().map(|name| characters(name));
        let length = match kind {
            TypeKind::Set => lengths.sum::<u32>() + members.names().len() as u32 - 1,
            _ => lengths.max().unwrap_or(0),
        };
        Self { collation, members: Some(members), ..Self::plain(kind, length) }
    }

    /// The number of a value of ENUM (position from 1) or SET (a bit a member) as it counts in
    /// numeric context; `None` for another type. Text that is no value counts as 0.
    pub fn member_number(&self, text: &[u8]) -> Option<u64> {
        let members = self.members?;
        Some(match self.kind {
            TypeKind::Set => members.bits_of(text, self.collation).0,
            _ => members.number_of(text, self.collation).unwrap_or(0),
        })
    }

    /// TIME, DATETIME or TIMESTAMP with so many fractional digits.
    pub fn temporal(kind: TypeKind, scale: u8) -> Self {
        let whole = if kind == TypeKind::Time { 10 } else { 19 };
        let fraction = if scale > 0 { u32::from(scale) + 1 } else { 0 };
        Self { scale, ..Self::plain(kind, whole + fraction) }
    }

    /// Character or binary type without a character set.
    pub fn is_binary_string(&self) -> bool {
        self.kind.is_string() && self.collation == CollationId::BINARY
    }

    /// Most bytes that a value of a character or binary type has.
    pub fn max_bytes(&self) -> u64 {
        if self.kind.is_large() {
            return u64::from(self.length);
        }
        u64::from(self.length) * u64::from(self.collation.charset().max_bytes())
    }
}
