//! Definitions as text: types, defaults, CREATE TABLE and CREATE DATABASE.
//!
//! The texts are MariaDB 10.11's to the letter, since tools parse them (mariadb-dump, ORMs'
//! schema readers).

use crate::Schema;
use engine_api::{ColumnDefault, ColumnDefinition, IndexDefinition, TableDefinition};
use std::fmt::Write;
use types::collation;
use types::{Charset, ColumnType, TypeKind};

/// A name between backticks.
pub fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Text between apostrophes, escaped as SHOW CREATE TABLE does.
pub fn quote_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// The name of a type without its parameters, as DATA_TYPE has it.
pub fn type_name(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Null => "null",
        TypeKind::TinyInt => "tinyint",
        TypeKind::SmallInt => "smallint",
        TypeKind::MediumInt => "mediumint",
        TypeKind::Int => "int",
        TypeKind::BigInt => "bigint",
        TypeKind::Decimal => "decimal",
        TypeKind::Float => "float",
        TypeKind::Double => "double",
        TypeKind::Char => "char",
        TypeKind::VarChar => "varchar",
        TypeKind::Binary => "binary",
        TypeKind::VarBinary => "varbinary",
        TypeKind::TinyText => "tinytext",
        TypeKind::Text => "text",
        TypeKind::MediumText => "mediumtext",
        TypeKind::LongText => "longtext",
        TypeKind::TinyBlob => "tinyblob",
        TypeKind::Blob => "blob",
        TypeKind::MediumBlob => "mediumblob",
        TypeKind::LongBlob => "longblob",
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

/// Display width of an integer type that was declared without one.
fn default_width(column_type: &ColumnType) -> u32 {
    let signed = match column_type.kind {
        TypeKind::TinyInt => 4,
        TypeKind::SmallInt => 6,
        TypeKind::MediumInt => 9,
        TypeKind::Int => 11,
        _ => return 20,
    };
    // Every unsigned type but BIGINT and MEDIUMINT needs one place less: no sign, same digits.
    if column_type.unsigned { signed - 1 } else { signed }
}

/// A type as SHOW COLUMNS has it: `int(11) unsigned`, `varchar(10)`, `decimal(10,2)`.
pub fn type_text(column_type: &ColumnType) -> String {
    let mut text = type_name(column_type.kind).to_string();
    match column_type.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt => {
            let declared = column_type.length;
            let width = if declared == 0 { default_width(column_type) } else { declared };
            let _ = write!(text, "({width})");
        }
        TypeKind::Decimal => {
            let _ = write!(text, "({},{})", column_type.precision, column_type.scale);
        }
        TypeKind::Float | TypeKind::Double if column_type.scale < 31 => {
            let _ = write!(text, "({},{})", column_type.length, column_type.scale);
        }
        TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary => {
            let _ = write!(text, "({})", column_type.length);
        }
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp if column_type.scale > 0 => {
            let _ = write!(text, "({})", column_type.scale);
        }
        TypeKind::Year => text.push_str("(4)"),
        TypeKind::Bit => {
            let _ = write!(text, "({})", column_type.length);
        }
        TypeKind::Enum | TypeKind::Set => text.push_str(&member_list(column_type)),
        _ => {}
    }
    if matches!(column_type.kind, TypeKind::Year | TypeKind::Bit) {
        return text;
    }
    if column_type.unsigned {
        text.push_str(" unsigned");
    }
    if column_type.zerofill {
        text.push_str(" zerofill");
    }
    text
}

/// The members of ENUM and SET: `('a','b')`.
fn member_list(column_type: &ColumnType) -> String {
    let names = column_type.members.map_or(&[][..], |members| members.names());
    let quoted = names.iter().map(|name| {
        let mut text = Vec::new();
        column_type.collation.charset().convert(name, Charset::Utf8mb4, &mut text);
        format!("'{}'", String::from_utf8_lossy(&text).replace('\'', "''"))
    });
    format!("({})", quoted.collect::<Vec<_>>().join(","))
}

/// A bit literal of bytes, without leading zeros: `b'101'`.
fn bit_literal(bytes: &[u8]) -> String {
    let bits = bytes.iter().take(8).fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    format!("b'{bits:b}'")
}

/// Whether the type holds characters.
pub fn is_text(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::Enum
            | TypeKind::Set
    )
}

/// Whether the type is a number.
pub fn is_number(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt
            | TypeKind::Decimal
            | TypeKind::Float
            | TypeKind::Double
            | TypeKind::Year
            | TypeKind::Bit
    )
}

/// CURRENT_TIMESTAMP as it is shown, with the column's fractional digits.
fn current_timestamp(column: &ColumnDefinition) -> String {
    match column.column_type.scale {
        0 => "current_timestamp()".into(),
        scale => format!("current_timestamp({scale})"),
    }
}

/// A default as an expression: `5`, `'x'`, `NULL`, `current_timestamp()`; none without one.
pub fn default_expression(column: &ColumnDefinition) -> Option<String> {
    match &column.default {
        ColumnDefault::None => None,
        ColumnDefault::Null => Some("NULL".into()),
        ColumnDefault::CurrentTimestamp => Some(current_timestamp(column)),
        ColumnDefault::Expression(text) => Some(text.clone()),
        ColumnDefault::Generated { .. } => None,
        ColumnDefault::Constant(bytes) if column.column_type.kind == TypeKind::Bit => {
            Some(bit_literal(bytes))
        }
        ColumnDefault::Constant(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let bare = is_number(column.column_type.kind);
            Some(if bare { text.into_owned() } else { quote_text(&text) })
        }
    }
}

/// A default as SHOW COLUMNS has it: constants without quotes, none for NULL.
pub fn default_text(column: &ColumnDefinition) -> Option<String> {
    match &column.default {
        ColumnDefault::None | ColumnDefault::Null | ColumnDefault::Generated { .. } => None,
        ColumnDefault::Expression(text) => Some(text.clone()),
        ColumnDefault::CurrentTimestamp => Some(current_timestamp(column)),
        // Defaults of TEXT and BLOB types count as expressions.
        ColumnDefault::Constant(_) if column.column_type.kind.is_large() => {
            default_expression(column)
        }
        ColumnDefault::Constant(bytes) if column.column_type.kind == TypeKind::Bit => {
            Some(bit_literal(bytes))
        }
        ColumnDefault::Constant(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// The Extra column: `auto_increment`, `on update current_timestamp()`.
pub fn extra_text(column: &ColumnDefinition) -> String {
    if let ColumnDefault::Generated { stored, .. } = &column.default {
        if *stored { "STORED GENERATED".into() } else { "VIRTUAL GENERATED".into() }
    } else if column.auto_increment {
        "auto_increment".into()
    } else if column.on_update_now {
        format!("on update {}", current_timestamp(column))
    } else {
        String::new()
    }
}

/// The Key column: PRI, UNI, MUL or nothing.
pub fn key_text(table: &TableDefinition, position: usize) -> &'static str {
    let mut text = "";
    for index in &table.indexes {
        if index.primary && index.parts.iter().any(|p| p.column == position) {
            return "PRI";
        }
        if index.parts.first().is_some_and(|p| p.column == position) {
            if index.unique && index.parts.len() == 1 {
                text = "UNI";
            } else if text.is_empty() {
                text = "MUL";
            }
        }
    }
    text
}

fn column_line(table: &TableDefinition, column: &ColumnDefinition) -> String {
    let mut line = format!("  {} {}", quote_name(&column.name), type_text(&column.column_type));
    let own = column.column_type.collation;
    if is_text(column.column_type.kind) && own != table.collation {
        let _ = write!(line, " CHARACTER SET {} COLLATE {}", own.charset().name(), own.name());
    }
    if let ColumnDefault::Generated { expression, stored } = &column.default {
        let kind = if *stored { "STORED" } else { "VIRTUAL" };
        let _ = write!(line, " GENERATED ALWAYS AS ({expression}) {kind}");
    } else if !column.nullable {
        line.push_str(" NOT NULL");
    } else if column.column_type.kind == TypeKind::Timestamp {
        line.push_str(" NULL");
    }
    if let Some(default) = default_expression(column) {
        let _ = write!(line, " DEFAULT {default}");
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    }
    if column.on_update_now {
        let _ = write!(line, " ON UPDATE {}", current_timestamp(column));
    }
    if !column.comment.is_empty() {
        let _ = write!(line, " COMMENT {}", quote_text(&column.comment));
    }
    if !column.check.is_empty() {
        let _ = write!(line, " CHECK ({})", column.check);
    }
    line
}

fn index_line(table: &TableDefinition, index: &IndexDefinition) -> String {
    let mut line = match (index.primary, index.unique) {
        (true, _) => "  PRIMARY KEY ".to_string(),
        (false, true) => format!("  UNIQUE KEY {} ", quote_name(&index.name)),
        (false, false) => format!("  KEY {} ", quote_name(&index.name)),
    };
    let parts: Vec<String> = index
        .parts
        .iter()
        .map(|part| {
            let mut text = quote_name(&table.columns[part.column].name);
            if let Some(prefix) = part.prefix {
                let _ = write!(text, "({prefix})");
            }
            if part.descending {
                text.push_str(" DESC");
            }
            text
        })
        .collect();
    let _ = write!(line, "({})", parts.join(","));
    if !index.comment.is_empty() {
        let _ = write!(line, " COMMENT {}", quote_text(&index.comment));
    }
    line
}

/// The indexes with their positions in the order in which they are shown: the primary key, unique
/// ones whose columns cannot be NULL, other unique ones (those over whole columns first), the rest;
/// each group in order of creation.
pub fn shown_indexes(table: &TableDefinition) -> Vec<(usize, &IndexDefinition)> {
    let shown = table.indexes.iter().enumerate().filter(|(_, index)| !index.parts.is_empty());
    let mut indexes: Vec<_> = shown.collect();
    let rank = |index: &IndexDefinition| {
        let nullable = index.parts.iter().any(|part| table.columns[part.column].nullable);
        let is_part = index.parts.iter().any(|part| part.prefix.is_some());
        let unique = index.unique;
        (!index.primary, !unique, unique && nullable, unique && is_part)
    };
    indexes.sort_by_key(|(_, index)| rank(index));
    indexes
}

/// The statement that creates a table. `next_auto_increment` is shown when above 1.
pub fn create_table(table: &TableDefinition, next_auto_increment: u64) -> String {
    let mut lines: Vec<String> = table.columns.iter().map(|c| column_line(table, c)).collect();
    lines.extend(shown_indexes(table).into_iter().map(|(_, index)| index_line(table, index)));
    let keys = table.foreign_keys.iter();
    lines.extend(keys.map(|key| format!("  {}", crate::constraint_text(table, key, false))));
    let checks = table.options.checks.iter();
    lines.extend(
        checks.map(|(name, condition)| {
            format!("  CONSTRAINT {} CHECK ({condition})", quote_name(name))
        }),
    );
    let name = quote_name(&table.name);
    let mut text = format!("CREATE TABLE {name} (\n{}\n) ENGINE=InnoDB", lines.join(",\n"));
    if next_auto_increment > 1 && table.auto_increment_column().is_some() {
        let _ = write!(text, " AUTO_INCREMENT={next_auto_increment}");
    }
    let _ = write!(
        text,
        " DEFAULT CHARSET={} COLLATE={}",
        table.collation.charset().name(),
        table.collation.name()
    );
    for (name, value) in table.options.plain() {
        let _ = write!(text, " {name}={value}");
    }
    if !table.options.comment.is_empty() {
        let _ = write!(text, " COMMENT={}", quote_text(&table.options.comment));
    }
    for (name, value) in table.options.quoted() {
        let _ = write!(text, " {}={}", quote_name(name), quote_text(value));
    }
    if let Some(partitions) = crate::Partitions::of(table) {
        text.push_str(&partitions.clause());
    }
    text
}

/// The statement that creates a database.
pub fn create_schema(schema: &Schema, if_not_exists: bool) -> String {
    let collation = schema.options.collation;
    let mut text = "CREATE DATABASE ".to_string();
    if if_not_exists {
        text.push_str("/*!32312 IF NOT EXISTS*/ ");
    }
    let _ = write!(
        text,
        "{} /*!40100 DEFAULT CHARACTER SET {} COLLATE {} */",
        quote_name(&schema.name),
        collation.charset().name(),
        collation.name()
    );
    if !schema.options.comment.is_empty() {
        let _ = write!(text, " COMMENT {}", quote_text(&schema.options.comment));
    }
    text
}

/// What SHOW CHARACTER SET says of a character set.
pub fn charset_description(charset: Charset) -> &'static str {
    match charset {
        Charset::Binary => "Binary pseudo charset",
        Charset::Ascii => "US ASCII",
        Charset::Latin1 => "cp1252 West European",
        Charset::Utf8mb3 | Charset::Utf8mb4 => "UTF-8 Unicode",
    }
}

/// All character sets, each once, with its default collation.
pub fn charsets() -> impl Iterator<Item = &'static collation::Collation> {
    collation::all().iter().filter(|c| c.is_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::CollationId;

    fn of(kind: TypeKind, unsigned: bool, length: u32) -> ColumnType {
        let collation = CollationId::BINARY;
        let precision = 10;
        ColumnType {
            kind,
            unsigned,
            zerofill: false,
            length,
            precision,
            scale: 0,
            collation,
            members: None,
        }
    }

    #[test]
    fn types_as_mariadb_shows_them() {
        let cases = [
            (of(TypeKind::Int, false, 0), "int(11)"),
            (of(TypeKind::Int, true, 0), "int(10) unsigned"),
            (of(TypeKind::MediumInt, false, 0), "mediumint(9)"),
            (of(TypeKind::MediumInt, true, 0), "mediumint(8) unsigned"),
            (of(TypeKind::BigInt, true, 0), "bigint(20) unsigned"),
            (of(TypeKind::TinyInt, false, 1), "tinyint(1)"),
            (of(TypeKind::Decimal, false, 0), "decimal(10,0)"),
            (of(TypeKind::VarChar, false, 7), "varchar(7)"),
            (of(TypeKind::Text, false, 0), "text"),
        ];
        for (column_type, text) in cases {
            assert_eq!(type_text(&column_type), text);
        }
    }

    #[test]
    fn quotes() {
        assert_eq!(quote_name("a`b"), "`a``b`");
        assert_eq!(quote_text("it's\n\\"), "'it''s\\n\\\\'");
    }
}
