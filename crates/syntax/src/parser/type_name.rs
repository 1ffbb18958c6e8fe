//! Names of types.

use super::*;
use Keyword as K;
use TypeNameKind as T;

/// Types that one word names, with their synonyms.
const SIMPLE: [(Keyword, TypeNameKind); 48] = [
    (K::TINYINT, T::TinyInt),
    (K::INT1, T::TinyInt),
    (K::SMALLINT, T::SmallInt),
    (K::INT2, T::SmallInt),
    (K::MEDIUMINT, T::MediumInt),
    (K::INT3, T::MediumInt),
    (K::MIDDLEINT, T::MediumInt),
    (K::INT, T::Int),
    (K::INTEGER, T::Int),
    (K::INT4, T::Int),
    (K::BIGINT, T::BigInt),
    (K::INT8, T::BigInt),
    (K::BOOL, T::Boolean),
    (K::BOOLEAN, T::Boolean),
    (K::DECIMAL, T::Decimal),
    (K::DEC, T::Decimal),
    (K::NUMERIC, T::Decimal),
    (K::FIXED, T::Decimal),
    (K::NUMBER, T::Decimal),
    (K::FLOAT, T::Float),
    (K::FLOAT4, T::Float),
    (K::DOUBLE, T::Double),
    (K::REAL, T::Double),
    (K::FLOAT8, T::Double),
    (K::BIT, T::Bit),
    (K::VARCHAR, T::VarChar),
    (K::VARCHARACTER, T::VarChar),
    (K::BINARY, T::Binary),
    (K::VARBINARY, T::VarBinary),
    (K::TINYTEXT, T::TinyText),
    (K::TEXT, T::Text),
    (K::MEDIUMTEXT, T::MediumText),
    (K::LONGTEXT, T::LongText),
    (K::TINYBLOB, T::TinyBlob),
    (K::BLOB, T::Blob),
    (K::MEDIUMBLOB, T::MediumBlob),
    (K::LONGBLOB, T::LongBlob),
    (K::DATE, T::Date),
    (K::TIME, T::Time),
    (K::DATETIME, T::DateTime),
    (K::TIMESTAMP, T::Timestamp),
    (K::YEAR, T::Year),
    (K::ENUM, T::Enum),
    (K::SET, T::Set),
    (K::JSON, T::Json),
    (K::UUID, T::Uuid),
    (K::INET4, T::Inet4),
    (K::INET6, T::Inet6),
];

/// Geometry types, which are ordinary words.
const GEOMETRY: [&str; 8] = [
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
];

impl Parser<'_> {
    /// The type of a column.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let mut type_name = TypeName { kind: self.type_kind()?, ..TypeName::default() };
        if matches!(type_name.kind, T::Enum | T::Set) {
            type_name.members = self.parenthesized_list(Self::text_literal)?;
        } else {
            self.type_length(&mut type_name)?;
        }
        self.type_attributes(&mut type_name)?;
        Ok(type_name)
    }

    fn type_kind(&mut self) -> Result<TypeNameKind> {
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        if let Some((_, kind)) = SIMPLE.iter().find(|(word, _)| *word == keyword) {
            self.advance();
            if keyword == K::DOUBLE {
                self.eat(K::PRECISION);
            }
            return Ok(*kind);
        }
        match keyword {
            K::CHAR | K::CHARACTER => {
                self.advance();
                Ok(if self.eat(K::VARYING) { T::VarChar } else { T::Char })
            }
            K::NATIONAL => {
                self.advance();
                if self.eat(K::VARCHAR) || self.eat(K::VARCHARACTER) {
                    return Ok(T::VarChar);
                }
                if !self.eat(K::CHAR) {
                    self.expect(K::CHARACTER)?;
                }
                Ok(if self.eat(K::VARYING) { T::VarChar } else { T::Char })
            }
            K::NCHAR => {
                self.advance();
                let varying = self.eat(K::VARYING) || self.eat(K::VARCHAR);
                Ok(if varying { T::VarChar } else { T::Char })
            }
            K::NVARCHAR => {
                self.advance();
                Ok(T::VarChar)
            }
            K::LONG => {
                self.advance();
                if self.eat(K::VARBINARY) {
                    return Ok(T::MediumBlob);
                }
                if self.eat(K::CHAR) || self.eat(K::CHARACTER) {
                    self.expect(K::VARYING)?;
                } else if !self.eat(K::VARCHAR) {
                    self.eat(K::VARCHARACTER);
                }
                Ok(T::MediumText)
            }
            K::NONE => {
                let word = self.to_utf8_lossy(self.bytes(self.token));
                if !GEOMETRY.contains(&word.to_ascii_lowercase().as_str()) {
                    return Err(Self::unknown_type(&word));
                }
                self.advance();
                Ok(T::Geometry)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn unknown_type(word: &str) -> ParseError {
        ParseError::other(4161, "HY000", format!("Unknown data type: '{word}'"))
    }

    /// `(length)` or `(precision, scale)`, where the type has them.
    fn type_length(&mut self, type_name: &mut TypeName) -> Result<()> {
        let required = matches!(type_name.kind, T::VarChar | T::VarBinary);
        if !self.at(Symbol::LeftParenthesis) {
            return if required { Err(self.unexpected()) } else { Ok(()) };
        }
        let numbers = match type_name.kind {
            T::Decimal | T::Float | T::Double => 2,
            T::TinyText
            | T::MediumText
            | T::LongText
            | T::TinyBlob
            | T::MediumBlob
            | T::LongBlob
            | T::Date
            | T::Json
            | T::Uuid
            | T::Inet4
            | T::Inet6
            | T::Boolean => 0,
            _ => 1,
        };
        if numbers == 0 {
            return Err(self.unexpected());
        }
        self.advance();
        type_name.length = Some(self.number()?);
        if numbers == 2 && self.eat(Symbol::Comma) {
            type_name.scale = Some(self.number()?);
        } else if type_name.kind == T::Double {
            return Err(self.unexpected());
        }
        self.expect(Symbol::RightParenthesis)
    }

    fn type_attributes(&mut self, type_name: &mut TypeName) -> Result<()> {
        let numeric = matches!(
            type_name.kind,
            T::TinyInt
                | T::SmallInt
                | T::MediumInt
                | T::Int
                | T::BigInt
                | T::Decimal
                | T::Float
                | T::Double
                | T::Year
        );
        let text = matches!(
            type_name.kind,
            T::Char
                | T::VarChar
                | T::TinyText
                | T::Text
                | T::MediumText
                | T::LongText
                | T::Enum
                | T::Set
        );
        let mut signed = false;
        loop {
            match self.token.kind {
                Kind::Word(K::UNSIGNED) if numeric && !signed => {
                    self.advance();
                    type_name.unsigned = true;
                }
                Kind::Word(K::SIGNED) if numeric && !type_name.unsigned => {
                    self.advance();
                    signed = true;
                }
                Kind::Word(K::ZEROFILL) if numeric => {
                    self.advance();
                    type_name.zerofill = true;
                    type_name.unsigned = true;
                }
                Kind::Word(K::BINARY) if text => {
                    self.advance();
                    type_name.binary = true;
                }
                Kind::Word(K::ASCII) if text => {
                    self.advance();
                    type_name.charset = Some("latin1".into());
                }
                Kind::Word(K::UNICODE) if text => {
                    self.advance();
                    type_name.charset = Some("ucs2".into());
                }
                Kind::Word(K::BYTE) if text => {
                    self.advance();
                    type_name.charset = Some("binary".into());
                }
                Kind::Word(K::CHARACTER | K::CHARSET | K::CHAR) if text => {
                    self.advance_charset_words()?;
                    type_name.charset = Some(self.charset_name()?);
                }
                _ => return Ok(()),
            }
        }
    }

    /// CHARSET, CHARACTER SET, CHAR SET.
    pub(super) fn advance_charset_words(&mut self) -> Result<()> {
        if self.advance().kind == Kind::Word(K::CHARSET) {
            return Ok(());
        }
        self.expect(K::SET)
    }

    /// Whether CHARSET or CHARACTER SET follows.
    pub(super) fn at_charset_words(&self) -> bool {
        self.at(K::CHARSET) || (self.at_any(&[K::CHARACTER, K::CHAR]) && self.peek_is(K::SET))
    }

    /// The name of a character set in lower case.
    pub(super) fn charset_name(&mut self) -> Result<String> {
        Ok(self.name_or_binary()?.to_ascii_lowercase())
    }

    /// The target of CAST and CONVERT.
    pub(super) fn cast_type(&mut self) -> Result<TypeName> {
        let simple = |kind| TypeName { kind, ..TypeName::default() };
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        let kind = match keyword {
            K::SIGNED | K::UNSIGNED => {
                self.advance();
                if !self.eat(K::INT) {
                    self.eat(K::INTEGER);
                }
                return Ok(simple(if keyword == K::SIGNED {
                    T::CastSigned
                } else {
                    T::CastUnsigned
                }));
            }
            K::INT | K::INTEGER => {
                self.advance();
                return Ok(simple(T::CastSigned));
            }
            K::BINARY => T::Binary,
            K::CHAR | K::CHARACTER | K::NCHAR | K::NATIONAL | K::VARCHAR => self.cast_char()?,
            K::DATE => T::Date,
            K::TIME => T::Time,
            K::DATETIME => T::DateTime,
            K::DECIMAL | K::DEC | K::NUMERIC | K::FIXED | K::NUMBER => T::Decimal,
            K::DOUBLE => T::Double,
            K::FLOAT => T::Float,
            K::UUID => T::Uuid,
            K::INET4 => T::Inet4,
            K::INET6 => T::Inet6,
            K::JSON => T::Json,
            K::NONE => {
                return Err(Self::unknown_type(&self.to_utf8_lossy(self.bytes(self.token))));
            }
            _ => return Err(self.unexpected()),
        };
        if kind != T::Char {
            self.advance();
            if kind == T::Double {
                self.eat(K::PRECISION);
            }
        }
        let mut type_name = simple(kind);
        if self.at(Symbol::LeftParenthesis) {
            self.type_length(&mut type_name)?;
        }
        if kind == T::Char {
            self.type_attributes(&mut type_name)?;
            if self.eat(K::COLLATE) {
                type_name.collation = Some(self.name_or_binary()?);
            }
        }
        Ok(type_name)
    }

    fn cast_char(&mut self) -> Result<TypeNameKind> {
        if self.advance().kind == Kind::Word(K::NATIONAL) && !self.eat(K::CHAR) {
            self.expect(K::CHARACTER)?;
        }
        Ok(T::Char)
    }
}
