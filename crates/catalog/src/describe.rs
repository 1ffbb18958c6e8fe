//! Definitions as text: column types, defaults, SHOW CREATE TABLE.

use engine_api::{ColumnDefault, ColumnDefinition, IndexDefinition, TableDefinition};
use types::{CollationId, ColumnType, TypeKind};

/// A name between backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Text between single quotes, escaped as SHOW CREATE TABLE does.
pub fn quoted_text(text: &str) -> String {
    let mut quoted = String::from("'");
    for character in text.chars() {
        match character {
            '\'' => quoted.push_str("''"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\0' => quoted.push_str("\\0"),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

/// Name of the type without parameters, as DATA_TYPE shows it.
pub fn data_type(kind: TypeKind) -> &'static str {
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
    }
}

/// The type with its parameters, as COLUMN_TYPE shows it: `int(10) unsigned`.
pub fn column_type_text(column_type: &ColumnType) -> String {
    let name = data_type(column_type.kind);
    let scale_given = column_type.scale != 31;
    let mut text = match column_type.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt
        | TypeKind::Char
        | TypeKind::VarChar
        | TypeKind::Binary
        | TypeKind::VarBinary => format!("{name}({})", column_type.length),
        TypeKind::Decimal => format!("{name}({},{})", column_type.precision, column_type.scale),
        TypeKind::Float | TypeKind::Double if scale_given => {
            format!("{name}({},{})", column_type.length, column_type.scale)
        }
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp if column_type.scale > 0 => {
            format!("{name}({})", column_type.scale)
        }
        TypeKind::Year => "year(4)".to_owned(),
        _ => name.to_owned(),
    };
    if column_type.unsigned && column_type.kind != TypeKind::Year {
        text.push_str(" unsigned");
    }
    if column_type.zerofill {
        text.push_str(" zerofill");
    }
    text
}

/// A text type: it has a character set.
pub fn is_text(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
    )
}

/// A number type: its defaults are shown without quotes.
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
    )
}

fn current_timestamp(column: &ColumnDefinition) -> String {
    match column.column_type.scale {
        0 => "current_timestamp()".to_owned(),
        scale => format!("current_timestamp({scale})"),
    }
}

/// The default as an expression, as information_schema.COLUMNS and SHOW CREATE TABLE show it:
/// `NULL`, `'text'`, `5`, `current_timestamp()`; none without a default.
pub fn default_text(column: &ColumnDefinition) -> Option<String> {
    match &column.default {
        ColumnDefault::None => None,
        ColumnDefault::Null => Some("NULL".to_owned()),
        ColumnDefault::CurrentTimestamp => Some(current_timestamp(column)),
        ColumnDefault::Constant(text) => {
            let text = String::from_utf8_lossy(text);
            Some(match is_number(column.column_type.kind) {
                true => text.into_owned(),
                false => quoted_text(&text),
            })
        }
    }
}

/// The default as DESCRIBE shows it: without quotes.
pub fn default_plain(column: &ColumnDefinition) -> Option<Vec<u8>> {
    match &column.default {
        ColumnDefault::None | ColumnDefault::Null => None,
        ColumnDefault::CurrentTimestamp => Some(current_timestamp(column).into_bytes()),
        ColumnDefault::Constant(text) => Some(text.clone()),
    }
}

/// The Extra column of DESCRIBE.
pub fn extra(column: &ColumnDefinition) -> String {
    match (column.auto_increment, column.on_update_now) {
        (true, _) => "auto_increment".to_owned(),
        (false, true) => format!("on update {}", current_timestamp(column)),
        (false, false) => String::new(),
    }
}

/// The Key column of DESCRIBE: PRI, UNI, MUL or nothing.
pub fn column_key(table: &TableDefinition, position: usize) -> &'static str {
    let first_of =
        |index: &&IndexDefinition| index.parts.first().is_some_and(|part| part.column == position);
    let in_primary = |index: &IndexDefinition| {
        index.primary && index.parts.iter().any(|part| part.column == position)
    };
    if table.indexes.iter().any(in_primary) {
        return "PRI";
    }
    let mut keys = table.indexes.iter().filter(|index| !index.parts.is_empty()).filter(first_of);
    let unique_alone = |index: &IndexDefinition| {
        index.unique && index.parts.len() == 1 && index.parts[0].prefix.is_none()
    };
    match (keys.clone().any(unique_alone), keys.next().is_some()) {
        (true, _) => "UNI",
        (false, true) => "MUL",
        (false, false) => "",
    }
}

fn column_line(table: &TableDefinition, column: &ColumnDefinition) -> String {
    let column_type = &column.column_type;
    let mut line = format!("  {} {}", quoted(&column.name), column_type_text(column_type));
    if is_text(column_type.kind) && column_type.collation != table.collation {
        line.push_str(&charset_clause(column_type.collation, table.collation));
    }
    let bare_null = column_type.kind == TypeKind::Timestamp && column.nullable;
    if !column.nullable {
        line.push_str(" NOT NULL");
    } else if bare_null {
        line.push_str(" NULL");
    }
    let without_default = matches!(
        column_type.kind,
        TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::TinyBlob
            | TypeKind::Blob
            | TypeKind::MediumBlob
            | TypeKind::LongBlob
    ) && column.default == ColumnDefault::None;
    if let Some(default) = default_text(column).filter(|_| !without_default) {
        line.push_str(" DEFAULT ");
        line.push_str(&default);
    }
    if column.on_update_now {
        line.push_str(" ON UPDATE ");
        line.push_str(&current_timestamp(column));
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    }
    if !column.comment.is_empty() {
        line.push_str(" COMMENT ");
        line.push_str(&quoted_text(&column.comment));
    }
    line
}

fn charset_clause(collation: CollationId, table: CollationId) -> String {
    let info = collation.info();
    let mut clause = String::new();
    if collation.charset() != table.charset() || info.is_default {
        clause.push_str(&format!(" CHARACTER SET {}", info.charset.name()));
    }
    clause.push_str(&format!(" COLLATE {}", info.name));
    clause
}

fn index_line(table: &TableDefinition, index: &IndexDefinition) -> String {
    let parts = index.parts.iter().map(|part| {
        let name = table.columns.get(part.column).map_or("?", |column| &column.name);
        let prefix = part.prefix.map_or(String::new(), |length| format!("({length})"));
        let order = if part.descending { " DESC" } else { "" };
        format!("{}{prefix}{order}", quoted(name))
    });
    let parts = parts.collect::<Vec<_>>().join(",");
    let mut line = match (index.primary, index.unique) {
        (true, _) => format!("  PRIMARY KEY ({parts})"),
        (false, true) => format!("  UNIQUE KEY {} ({parts})", quoted(&index.name)),
        (false, false) => format!("  KEY {} ({parts})", quoted(&index.name)),
    };
    if !index.comment.is_empty() {
        line.push_str(&format!(" COMMENT {}", quoted_text(&index.comment)));
    }
    line
}

/// SHOW CREATE TABLE. `next_auto_increment` above 1 is shown.
pub fn show_create_table(table: &TableDefinition, next_auto_increment: Option<u64>) -> String {
    let mut lines: Vec<_> = table.columns.iter().map(|c| column_line(table, c)).collect();
    let mut indexes: Vec<_> = table.indexes.iter().filter(|i| !i.parts.is_empty()).collect();
    indexes.sort_by_key(|index| (!index.primary, !index.unique));
    lines.extend(indexes.into_iter().map(|index| index_line(table, index)));
    let mut text =
        format!("CREATE TABLE {} (\n{}\n) ENGINE=InnoDB", quoted(&table.name), lines.join(",\n"));
    if let Some(next) = next_auto_increment.filter(|next| *next > 1) {
        text.push_str(&format!(" AUTO_INCREMENT={next}"));
    }
    let info = table.collation.info();
    text.push_str(&format!(" DEFAULT CHARSET={} COLLATE={}", info.charset.name(), info.name));
    if !table.options.comment.is_empty() {
        text.push_str(&format!(" COMMENT={}", quoted_text(&table.options.comment)));
    }
    for (name, value) in &table.options.other {
        text.push_str(&format!(" {name}={value}"));
    }
    text
}

/// SHOW CREATE DATABASE.
pub fn show_create_schema(name: &str, collation: CollationId, comment: &str) -> String {
    let info = collation.info();
    let mut text = format!(
        "CREATE DATABASE {} /*!40100 DEFAULT CHARACTER SET {} COLLATE {} */",
        quoted(name),
        info.charset.name(),
        info.name
    );
    if !comment.is_empty() {
        text.push_str(&format!(" COMMENT {}", quoted_text(comment)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::tests::sample_table;

    #[test]
    fn a_table_is_shown_as_mariadb_shows_it() {
        let mut table = sample_table("s", "t");
        table.options.other.clear();
        assert_eq!(
            show_create_table(&table, Some(5)),
            "CREATE TABLE `t` (\n  `id` int(10) unsigned NOT NULL AUTO_INCREMENT COMMENT 'ä',\n  \
             `name` varchar(30) DEFAULT 'x' COMMENT 'ä',\n  PRIMARY KEY (`id`),\n  KEY `name` \
             (`name`(7))\n) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 \
             COLLATE=utf8mb4_general_ci COMMENT='c'"
        );
        assert_eq!(column_key(&table, 0), "PRI");
        assert_eq!(column_key(&table, 1), "MUL");
    }

    #[test]
    fn types_are_shown_with_their_parameters() {
        let base = sample_table("s", "t").columns[0].column_type;
        let shown = |kind, length, precision, scale, unsigned| {
            column_type_text(&ColumnType { kind, length, precision, scale, unsigned, ..base })
        };
        assert_eq!(shown(TypeKind::BigInt, 20, 0, 0, true), "bigint(20) unsigned");
        assert_eq!(shown(TypeKind::Decimal, 0, 12, 2, false), "decimal(12,2)");
        assert_eq!(shown(TypeKind::Double, 22, 0, 31, false), "double");
        assert_eq!(shown(TypeKind::Float, 7, 0, 3, false), "float(7,3)");
        assert_eq!(shown(TypeKind::DateTime, 0, 0, 6, false), "datetime(6)");
        assert_eq!(shown(TypeKind::Text, 65_535, 0, 0, false), "text");
        assert_eq!(quoted_text("it's\n"), "'it''s\\n'");
    }
}
