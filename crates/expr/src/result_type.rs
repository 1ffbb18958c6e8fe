//! The static type of an expression, and what the protocol says of it.

use types::column_type::SCALE_NOT_FIXED;
use types::{CollationId, ColumnType, TypeKind};

/// How strongly an operand insists on its collation; smaller wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Coercibility {
    /// COLLATE was written.
    Explicit,
    /// Two different collations met.
    None,
    /// A column.
    Implicit,
    /// USER(), VERSION().
    SystemConstant,
    /// A literal.
    Coercible,
    /// A number or date.
    Numeric,
    /// NULL.
    Ignorable,
}

/// The static type of an expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResultType {
    /// Type; `length` is the longest text in characters (bytes for binary strings).
    pub column_type: ColumnType,
    /// NULL is possible.
    pub nullable: bool,
    /// Strength of the collation.
    pub coercibility: Coercibility,
    /// Only ASCII characters are possible.
    pub ascii: bool,
    /// A column of a table itself: flagged as the table declares it.
    pub is_column: bool,
    /// Text that is JSON by its making: JSON functions take it as a value, not as a string.
    pub is_json: bool,
    /// Text that JSON_EXTRACT gives: as a number it is what the part of the document is.
    pub is_json_part: bool,
    /// A user variable: its text counts as a number without a word, its DECIMAL values have the
    /// digits that they have.
    pub is_variable: bool,
    /// A literal such as `0x41`: its bytes are an unsigned integer where a number is wanted.
    pub is_hex: bool,
    /// True or false by its making: so JSON shows it.
    pub is_truth: bool,
    /// A column of a derived table whose rows compute it: not a constant, however weak its
    /// collation is.
    pub is_computed: bool,
    /// A part of a date: a number that is signed and never below zero, without a place for a sign.
    pub is_date_part: bool,
}

/// What the column definition packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Protocol type code, e.g. 3 for INT.
    pub type_code: u8,
    /// Longest text in bytes.
    pub length: u32,
    /// Digits after the point, 31 or 39 where that is not fixed.
    pub decimals: u8,
    /// Flags that follow from the type (NOT_NULL, UNSIGNED, BINARY, BLOB, ZEROFILL).
    pub flags: u16,
    /// Collation.
    pub collation: CollationId,
}

/// Column flags of the protocol.
#[allow(missing_docs, reason = "the names are the protocol's")]
pub mod flags {
    pub const NOT_NULL: u16 = 1;
    pub const PRIMARY_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT: u16 = 4096;
    pub const ON_UPDATE_NOW: u16 = 8192;
}

/// `decimals` of a string expression.
pub const STRING_DECIMALS: u8 = 39;

impl ResultType {
    /// A number or date: collation binary, coercibility numeric.
    pub fn of(column_type: ColumnType, nullable: bool) -> Self {
        Self {
            column_type,
            nullable,
            coercibility: Coercibility::Numeric,
            ascii: true,
            is_column: false,
            is_json: false,
            is_json_part: false,
            is_variable: false,
            is_hex: false,
            is_truth: false,
            is_computed: false,
            is_date_part: false,
        }
    }

    /// A column of a table.
    pub fn column(column_type: ColumnType, nullable: bool) -> Self {
        let string = column_type.kind.is_string();
        let coercibility = if string { Coercibility::Implicit } else { Coercibility::Numeric };
        let mut column_type = column_type;
        // What is made of a TIMESTAMP column is unsigned, as the column is flagged.
        column_type.unsigned |= column_type.kind == TypeKind::Timestamp;
        Self {
            column_type,
            nullable,
            coercibility,
            ascii: !string,
            is_column: true,
            is_json: false,
            is_json_part: false,
            is_variable: false,
            is_hex: false,
            is_truth: false,
            is_computed: false,
            is_date_part: false,
        }
    }

    /// NULL.
    pub fn null() -> Self {
        Self {
            column_type: ColumnType::NULL,
            nullable: true,
            coercibility: Coercibility::Ignorable,
            ascii: true,
            is_column: false,
            is_json: false,
            is_json_part: false,
            is_variable: false,
            is_hex: false,
            is_truth: false,
            is_computed: false,
            is_date_part: false,
        }
    }

    /// Result of a comparison or logical operator.
    pub fn boolean(nullable: bool) -> Self {
        let mut column_type = ColumnType::integer(TypeKind::Int, false);
        column_type.length = 1;
        column_type.precision = 1;
        Self { is_truth: true, ..Self::of(column_type, nullable) }
    }

    /// BIGINT with its full width.
    pub fn bigint(unsigned: bool, nullable: bool) -> Self {
        Self::of(ColumnType::integer(TypeKind::BigInt, unsigned), nullable)
    }

    /// INT or BIGINT of so many characters, as functions like LENGTH give: BIGINT from 10 up.
    pub fn integer_of_length(length: u32, unsigned: bool, nullable: bool) -> Self {
        let kind = if length >= 10 { TypeKind::BigInt } else { TypeKind::Int };
        let mut column_type = ColumnType::integer(kind, unsigned);
        column_type.length = length;
        column_type.precision = (length - u32::from(!unsigned && length > 1)).min(21) as u8;
        Self::of(column_type, nullable)
    }

    /// DECIMAL, digits cut to what is allowed; the length counts all digits asked for.
    pub fn decimal(precision: u32, scale: u32, unsigned: bool, nullable: bool) -> Self {
        let scale = scale.min(u32::from(types::decimal::SCALE_MAX)) as u8;
        let kept = precision.clamp(1, u32::from(types::decimal::PRECISION_MAX)) as u8;
        let mut column_type = ColumnType::decimal(kept.max(scale), scale, unsigned);
        column_type.length += precision.saturating_sub(u32::from(column_type.precision));
        Self::of(column_type, nullable)
    }

    /// DOUBLE without fixed digits.
    pub fn double(nullable: bool) -> Self {
        let mut column_type = ColumnType::double();
        column_type.length = 23;
        Self::of(column_type, nullable)
    }

    /// DOUBLE with so many digits after the point, 31 for any number.
    pub fn double_of_scale(scale: u8, nullable: bool) -> Self {
        let mut result = Self::double(nullable);
        if scale < SCALE_NOT_FIXED {
            result.column_type.scale = scale;
            result.column_type.length = 17 + u32::from(scale);
        }
        result
    }

    /// A string of so many characters; LONGTEXT beyond what VARCHAR can name.
    pub fn string(
        characters: u64,
        collation: CollationId,
        coercibility: Coercibility,
        ascii: bool,
        nullable: bool,
    ) -> Self {
        let binary = collation == CollationId::BINARY;
        let bytes = characters.saturating_mul(u64::from(collation.charset().max_bytes()));
        let kind = match (bytes, binary) {
            (0..0x1_0000, true) => TypeKind::VarBinary,
            (0..0x1_0000, false) => TypeKind::VarChar,
            (0x1_0000..0x100_0000, true) => TypeKind::MediumBlob,
            (0x1_0000..0x100_0000, false) => TypeKind::MediumText,
            (_, true) => TypeKind::LongBlob,
            (_, false) => TypeKind::LongText,
        };
        let length = characters.min(u64::from(u32::MAX)) as u32;
        let mut column_type = ColumnType::text(kind, length, collation);
        column_type.scale = STRING_DECIMALS;
        Self { coercibility, ascii, ..Self::of(column_type, nullable) }
    }

    /// Whether values are of type DECIMAL.
    pub fn is_decimal(&self) -> bool {
        self.column_type.kind == TypeKind::Decimal
    }

    /// Whether values are strings.
    pub fn is_string(&self) -> bool {
        self.column_type.kind.is_string()
    }

    /// Collation when used as text; numbers and dates have none of their own.
    pub fn collation(&self) -> CollationId {
        self.column_type.collation
    }

    /// Digits before the point when used as a DECIMAL.
    pub fn integer_digits(&self) -> u32 {
        let scale = u32::from(self.decimal_scale());
        self.decimal_precision().saturating_sub(scale)
    }

    /// Digits after the point that a value has at most, [`STRING_DECIMALS`] or
    /// [`SCALE_NOT_FIXED`] where that is not fixed: what
    /// results of functions take over. Numbers of text have any, but of text that some functions
    /// make, and of NULL, none.
    pub fn decimals(&self) -> u8 {
        match self.column_type.kind {
            TypeKind::Enum | TypeKind::Set | TypeKind::Null => 0,
            kind if kind.is_string() && self.is_column => STRING_DECIMALS,
            _ => self.column_type.scale,
        }
    }

    /// Digits after the point when used as a DECIMAL.
    pub fn decimal_scale(&self) -> u8 {
        match self.column_type.kind {
            TypeKind::Decimal => self.column_type.scale,
            TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
                self.column_type.scale.min(6)
            }
            kind if kind.is_integer() => 0,
            TypeKind::Year | TypeKind::Bit | TypeKind::Date | TypeKind::Null => 0,
            TypeKind::Enum | TypeKind::Set => 0,
            _ if self.is_hex => 0,
            TypeKind::Float | TypeKind::Double if self.column_type.scale < SCALE_NOT_FIXED => {
                self.column_type.scale
            }
            _ => types::decimal::SCALE_MAX,
        }
    }

    /// Digits in all when used as a DECIMAL.
    pub fn decimal_precision(&self) -> u32 {
        match self.column_type.kind {
            TypeKind::Decimal | TypeKind::Year => u32::from(self.column_type.precision),
            TypeKind::Bit => self.text_length(),
            kind if kind.is_integer() => u32::from(self.column_type.precision.max(1)),
            TypeKind::Date => 8,
            TypeKind::Time => 7 + u32::from(self.decimal_scale()),
            TypeKind::DateTime | TypeKind::Timestamp => 14 + u32::from(self.decimal_scale()),
            TypeKind::Null => 0,
            _ if self.is_hex => {
                u32::from(crate::builder::HEX_DIGITS[self.text_length().min(8) as usize])
            }
            _ => self.text_length().min(u32::from(types::decimal::PRECISION_MAX)),
        }
    }

    /// Longest text in characters.
    pub fn text_length(&self) -> u32 {
        self.column_type.length
    }

    /// The same type as that of an expression, not of a column itself.
    pub fn of_expression(mut self) -> Self {
        if self.is_column && self.is_string() {
            self.column_type.scale = STRING_DECIMALS;
        }
        if self.column_type.members.take().is_some() {
            self.column_type.kind = TypeKind::VarChar;
        }
        self.column_type.zerofill = false;
        if self.is_column && self.column_type.kind.is_integer() {
            self.column_type.length = self.characters() as u32;
        }
        Self {
            is_column: false,
            is_variable: false,
            is_hex: false,
            is_json_part: false,
            is_computed: false,
            ..self
        }
    }

    /// Longest text in characters; a TEXT column may have as many as its bytes would be of the
    /// longest character.
    pub fn characters(&self) -> u64 {
        let characters = u64::from(self.text_length());
        if self.is_column && self.column_type.kind.is_integer() {
            // A display width is no limit.
            let usual = ColumnType::integer(self.column_type.kind, self.column_type.unsigned);
            return characters.max(u64::from(usual.length));
        }
        if self.column_type.kind.is_large() && self.is_column {
            characters * u64::from(self.collation().charset().max_bytes())
        } else {
            characters
        }
    }

    /// The same with a place for the sign that a part of a date does not have.
    pub fn signed_characters(&self) -> u64 {
        self.characters() + u64::from(self.is_date_part)
    }

    /// Name of the type for messages: text and bytes are called alike.
    pub fn type_name(&self) -> &'static str {
        match self.column_type.kind {
            _ if self.is_truth => "boolean",
            TypeKind::VarChar | TypeKind::VarBinary if self.is_json => "varchar/json",
            TypeKind::MediumText | TypeKind::MediumBlob if self.is_json => "mediumblob/json",
            TypeKind::LongText | TypeKind::LongBlob if self.is_json => "longblob/json",
            TypeKind::Null => "null",
            TypeKind::TinyInt => "tinyint",
            TypeKind::SmallInt => "smallint",
            TypeKind::MediumInt => "mediumint",
            TypeKind::Int => "int",
            TypeKind::BigInt => "bigint",
            TypeKind::Decimal => "decimal",
            TypeKind::Float => "float",
            TypeKind::Double => "double",
            TypeKind::Char | TypeKind::Binary => "char",
            TypeKind::VarChar | TypeKind::VarBinary => "varchar",
            TypeKind::TinyText | TypeKind::TinyBlob => "tinyblob",
            TypeKind::Text | TypeKind::Blob => "blob",
            TypeKind::MediumText | TypeKind::MediumBlob => "mediumblob",
            TypeKind::LongText | TypeKind::LongBlob => "longblob",
            TypeKind::Date => "date",
            TypeKind::Time => "time",
            TypeKind::DateTime => "datetime",
            TypeKind::Timestamp => "timestamp",
            TypeKind::Year => "year",
            TypeKind::Enum => "enum",
            TypeKind::Set => "set",
            TypeKind::Bit => "bit",
        }
    }

    /// The same type, of an exact number with as many digits as its length has room for: one
    /// character is the sign's, one the point's.
    pub fn with_digits_of_length(mut self) -> Self {
        let own = &mut self.column_type;
        let sign = u32::from(!own.unsigned && !self.is_date_part);
        if own.kind.is_integer() {
            own.precision = own.length.saturating_sub(sign).clamp(1, 21) as u8;
        } else if own.kind == TypeKind::Decimal {
            let point = u32::from(own.scale > 0);
            let digits = own.length.saturating_sub(sign + point);
            let fewest = u32::from(own.scale.max(1));
            own.precision = digits.clamp(fewest, u32::from(types::decimal::PRECISION_MAX)) as u8;
        }
        self
    }

    /// The same type, of a value that a subquery or a recursive table gives: a whole number that
    /// is computed is as long as its digits and a sign, a DECIMAL has the digits of its length.
    pub fn with_length_of_digits(mut self) -> Self {
        let own = &mut self.column_type;
        if own.kind.is_integer() && !self.is_column {
            own.length = u32::from(own.precision) + u32::from(!own.unsigned);
            own.precision += u8::from(self.is_date_part);
        } else if own.kind == TypeKind::Decimal {
            return self.with_digits_of_length();
        }
        self
    }

    /// The same type, of a column that is stored: with a place for the sign of a part of a date, a
    /// DECIMAL as long as its digits are, and no more digits of a moment than are kept.
    pub fn stored_in_column(mut self) -> Self {
        let own = &mut self.column_type;
        match own.kind {
            TypeKind::Decimal => {
                own.length = ColumnType::decimal(own.precision, own.scale, own.unsigned).length
            }
            kind if kind.is_temporal() => own.scale = own.scale.min(6),
            _ if self.is_date_part => own.length += 1,
            _ => {}
        }
        Self { is_date_part: false, ..self }
    }

    /// The same type, of a whole number that is kept: its digits and a sign have room.
    pub fn with_room_for_sign(mut self) -> Self {
        if self.column_type.kind.is_integer() && !self.is_column {
            let needed =
                u32::from(self.column_type.precision) + u32::from(!self.column_type.unsigned);
            self.column_type.length = self.column_type.length.max(needed);
        }
        self
    }

    /// The same type, NULL possible or not.
    pub fn with_nullable(self, nullable: bool) -> Self {
        Self { nullable, ..self }
    }

    /// What the protocol says; strings are sent in `results` (character_set_results'
    /// collation), a DOUBLE has at most as many decimals as one where they are not fixed.
    pub fn metadata(&self, results: CollationId) -> Metadata {
        let column_type = &self.column_type;
        let kind = column_type.kind;
        let string = kind.is_string();
        let binary = column_type.collation == CollationId::BINARY;
        let collation = if string && !binary { results } else { CollationId::BINARY };
        let type_code = self.type_code();
        let mut bits = 0;
        let mut set = |condition: bool, flag: u16| bits |= if condition { flag } else { 0 };
        set(!self.nullable, flags::NOT_NULL);
        set(column_type.unsigned, flags::UNSIGNED);
        set(column_type.zerofill, flags::ZEROFILL);
        let number = (kind.is_number() && kind != TypeKind::Bit) || kind == TypeKind::Null;
        set(
            column_type.collation.info().compares_code_points() && !(number && self.is_column),
            flags::BINARY,
        );
        set(kind.is_large() && self.is_column, flags::BLOB);
        set(kind == TypeKind::Enum, flags::ENUM);
        set(kind == TypeKind::Set, flags::SET);
        let characters = u64::from(column_type.length);
        let length = if string && !binary {
            characters * u64::from(results.charset().max_bytes())
        } else {
            characters
        };
        let most = if kind == TypeKind::Double { SCALE_NOT_FIXED } else { u8::MAX };
        let decimals = column_type.scale.min(most);
        let length = length.min(u64::from(u32::MAX)) as u32;
        Metadata { type_code, length, decimals, flags: bits, collation }
    }

    /// Protocol type code. Columns of all TEXT and BLOB types are BLOB.
    fn type_code(&self) -> u8 {
        match self.column_type.kind {
            TypeKind::Decimal => 246,
            TypeKind::TinyInt => 1,
            TypeKind::SmallInt => 2,
            TypeKind::Int => 3,
            TypeKind::Float => 4,
            TypeKind::Double => 5,
            TypeKind::Null => 6,
            TypeKind::Timestamp => 7,
            TypeKind::BigInt => 8,
            TypeKind::MediumInt => 9,
            TypeKind::Date => 10,
            TypeKind::Time => 11,
            TypeKind::DateTime => 12,
            TypeKind::Year => 13,
            TypeKind::Bit => 16,
            TypeKind::Enum | TypeKind::Set => 254,
            TypeKind::VarChar | TypeKind::VarBinary => 253,
            TypeKind::Char | TypeKind::Binary => 254,
            _ if self.is_column => 252,
            TypeKind::TinyText | TypeKind::TinyBlob => 249,
            TypeKind::MediumText | TypeKind::MediumBlob => 250,
            TypeKind::LongText | TypeKind::LongBlob => 251,
            _ => 252,
        }
    }
}
