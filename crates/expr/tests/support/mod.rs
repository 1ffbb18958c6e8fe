//! Reads expressions for tests: a small parser of its own, so that this room's tests need no
//! other room, and a table with one row.
#![allow(dead_code, reason = "each test uses a part")]

mod parser;

pub use parser::parse;

use expr::{EvalContext, Metadata, ResultType, flags};
use types::convert::{StoreSettings, store};
use types::{
    CollationId, ColumnType, SqlMode, TimeZone, Timestamp, TypeKind, Value, ValueRef, collation,
};

/// Columns of `data/table.sql` with the row's values as text.
pub struct Fixture {
    pub names: Vec<String>,
    pub results: Vec<ResultType>,
    pub values: Vec<Value>,
}

pub fn settings_of_store(mode: SqlMode) -> StoreSettings {
    StoreSettings {
        sql_mode: mode,
        time_zone: TimeZone::Fixed(0),
        now: Timestamp(1_600_000_000_123_456),
    }
}

/// A column type as written in SQL.
pub fn column_type(text: &str) -> ColumnType {
    let text = text.trim();
    let (head, collation_name) = match text.split_once(" collate ") {
        Some((head, name)) => (head, Some(name)),
        None => (text, None),
    };
    let (head, charset) = match head.split_once(" character set ") {
        Some((head, name)) => (head, Some(name)),
        None => (head, None),
    };
    let unsigned = head.contains(" unsigned");
    let head = head.split(' ').next().expect("a type has a name");
    let (name, arguments) = match head.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')')),
        None => (head, ""),
    };
    let mut numbers = arguments.split(',').filter_map(|n| n.parse::<u32>().ok());
    let (first, second) = (numbers.next(), numbers.next());
    let collation = match (collation_name, charset) {
        (Some(name), _) => collation::by_name(name).expect("a known collation").id,
        (_, Some(name)) => {
            let charset = types::Charset::by_name(name).expect("a known character set");
            collation::default_of(charset).id
        }
        _ => CollationId::UTF8MB4_GENERAL_CI,
    };
    let length = first.unwrap_or(1);
    let scale = first.unwrap_or(0) as u8;
    match name {
        "tinyint" => ColumnType::integer(TypeKind::TinyInt, unsigned),
        "smallint" => ColumnType::integer(TypeKind::SmallInt, unsigned),
        "mediumint" => ColumnType::integer(TypeKind::MediumInt, unsigned),
        "int" => ColumnType::integer(TypeKind::Int, unsigned),
        "bigint" => ColumnType::integer(TypeKind::BigInt, unsigned),
        "decimal" => ColumnType::decimal(length as u8, second.unwrap_or(0) as u8, unsigned),
        "float" | "double" => {
            let mut column_type =
                if name == "float" { ColumnType::float() } else { ColumnType::double() };
            column_type.unsigned = unsigned;
            if let (Some(precision), Some(scale)) = (first, second) {
                column_type.precision = precision as u8;
                column_type.scale = scale as u8;
                column_type.length = precision;
            }
            column_type
        }
        "char" => ColumnType::text(TypeKind::Char, length, collation),
        "varchar" => ColumnType::text(TypeKind::VarChar, length, collation),
        "tinytext" => ColumnType::large(TypeKind::TinyText, collation),
        "text" => ColumnType::large(TypeKind::Text, collation),
        "binary" => ColumnType::binary(TypeKind::Binary, length),
        "varbinary" => ColumnType::binary(TypeKind::VarBinary, length),
        "blob" => ColumnType::large(TypeKind::Blob, CollationId::BINARY),
        "date" => ColumnType::date(),
        "time" => ColumnType::temporal(TypeKind::Time, scale),
        "datetime" => ColumnType::temporal(TypeKind::DateTime, scale),
        "timestamp" => ColumnType::temporal(TypeKind::Timestamp, scale),
        "year" => ColumnType::year(),
        other => panic!("unknown type {other}"),
    }
}

const COLUMNS: &[(&str, &str, bool, Option<&str>)] = &[
    ("ti", "tinyint", true, Some("-5")),
    ("tu", "tinyint unsigned", false, Some("200")),
    ("si", "smallint", true, Some("-300")),
    ("mi", "mediumint", true, Some("70000")),
    ("i", "int", false, Some("7")),
    ("iu", "int unsigned", true, Some("4000000000")),
    ("b", "bigint", true, Some("-9223372036854775808")),
    ("bu", "bigint unsigned", true, Some("18446744073709551615")),
    ("d", "decimal(10,2)", true, Some("123.45")),
    ("du", "decimal(5,0) unsigned", true, Some("99999")),
    ("dd", "decimal(30,10)", false, Some("1.0000000001")),
    ("f", "float", true, Some("1.5")),
    ("g", "double", true, Some("2.25")),
    ("gf", "double(10,3)", true, Some("3.125")),
    ("c", "char(10)", true, Some("Abc")),
    ("v", "varchar(20)", false, Some("Hello")),
    ("vb", "varchar(20) collate utf8mb4_bin", true, Some("World")),
    ("bi", "binary(4)", true, Some("bin")),
    ("bv", "varbinary(10)", true, Some("x\0y")),
    ("x", "text", true, Some("some text")),
    ("bl", "blob", true, Some("blob")),
    ("l1", "varchar(10) character set latin1", true, Some("café")),
    ("da", "date", true, Some("2020-02-29")),
    ("ti0", "time", true, Some("-12:34:56")),
    ("ti3", "time(3)", true, Some("01:02:03.456")),
    ("dt", "datetime", true, Some("2021-03-04 05:06:07")),
    ("dt6", "datetime(6)", false, Some("1999-12-31 23:59:59.999999")),
    ("ts", "timestamp", true, Some("2020-09-13 12:26:40")),
    ("y", "year", true, Some("2024")),
    ("n", "int", true, None),
];

/// Table `a` of `data/table.sql`, whose rows aggregates are taken over.
pub const GROUPED: &[(&str, &str, bool)] = &[
    ("i", "int", true),
    ("d", "decimal(10,2)", true),
    ("f", "double", true),
    ("s", "varchar(10)", true),
    ("dt", "datetime", true),
    ("b", "bigint", false),
    ("n", "int", true),
];

/// Its rows.
pub const GROUPED_ROWS: &[[&str; 7]] = &[
    ["3", "1.50", "0.5", "b", "2020-01-01 00:00:00", "9223372036854775807", "NULL"],
    ["1", "-2.25", "1.25", "A", "2021-06-30 12:00:00", "9223372036854775807", "NULL"],
    ["3", "10.00", "1e10", "a", "NULL", "-1", "NULL"],
    ["NULL", "NULL", "NULL", "NULL", "1999-12-31 23:59:59", "5", "NULL"],
    ["12", "0.01", "-7.125", "c", "2020-01-01 00:00:00", "0", "NULL"],
];

impl Fixture {
    /// A row of `GROUPED_ROWS`.
    pub fn grouped(row: usize) -> Self {
        let columns: Vec<_> = GROUPED
            .iter()
            .zip(GROUPED_ROWS[row])
            .map(|((name, declared, nullable), value)| {
                (*name, *declared, *nullable, (value != "NULL").then_some(value))
            })
            .collect();
        Self::of(&columns)
    }

    pub fn new() -> Self {
        Self::of(COLUMNS)
    }

    fn of(columns: &[(&str, &str, bool, Option<&str>)]) -> Self {
        let settings = settings_of_store(SqlMode::DEFAULT);
        let text = ColumnType::text(TypeKind::VarChar, 100, CollationId::UTF8MB4_GENERAL_CI);
        let mut fixture = Self { names: Vec::new(), results: Vec::new(), values: Vec::new() };
        for (name, declared, nullable, value) in columns {
            let target = column_type(declared);
            fixture.names.push((*name).to_string());
            fixture.results.push(ResultType::column(target, *nullable));
            let value = value.map_or(ValueRef::Null, |v| ValueRef::Bytes(v.as_bytes()));
            let stored = store(value, &text, &target, &settings);
            assert_eq!(stored.issue, None, "{name}");
            fixture.values.push(stored.value.into_owned());
        }
        fixture
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }
}

/// A context as `bless.py` sets the session up.
pub fn context() -> EvalContext {
    let mut context = EvalContext::new();
    context.settings.time_zone = TimeZone::Fixed(0);
    context.facts.database = Some("sbtest".to_string());
    context.facts.user = "root@localhost".to_string();
    context.facts.current_user = "root@localhost".to_string();
    context.facts.version = "10.11.19-MariaDB-0+deb12u1".to_string();
    context.facts.connection_id = 7;
    context.facts.found_rows = 1;
    context.facts.row_count = -1;
    context.begin_statement(Timestamp(1_600_000_000_123_456));
    context
}

/// As the client prints a value in batch mode.
pub fn printed(value: ValueRef<'_>, result: &ResultType, context: &EvalContext) -> String {
    if value.is_null() {
        return "NULL".to_string();
    }
    let column_type = &result.column_type;
    let mut bytes = types::text::to_text(value, column_type, context.settings.time_zone);
    let charset = result.collation().charset();
    if column_type.kind.is_string() && charset != types::Charset::Binary {
        let mut converted = Vec::new();
        charset.convert(&bytes, types::Charset::Utf8mb4, &mut converted);
        bytes = converted;
    }
    escaped(&bytes)
}

/// Bytes as the client and the script write them.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\0' => out.push_str("\\0"),
                other => out.push(other),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Metadata as the client's --column-type-info shows it.
pub fn shown_metadata(metadata: &Metadata) -> String {
    let kind = match metadata.type_code {
        1 => "TINY",
        2 => "SHORT",
        3 => "LONG",
        4 => "FLOAT",
        5 => "DOUBLE",
        6 => "NULL",
        7 => "TIMESTAMP",
        8 => "LONGLONG",
        9 => "INT24",
        10 => "DATE",
        11 => "TIME",
        12 => "DATETIME",
        13 => "YEAR",
        246 => "NEWDECIMAL",
        249 => "TINY_BLOB",
        250 => "MEDIUM_BLOB",
        251 => "LONG_BLOB",
        252 => "BLOB",
        253 => "VAR_STRING",
        _ => "STRING",
    };
    let names = [
        (flags::NOT_NULL, "NOT_NULL"),
        (flags::BLOB, "BLOB"),
        (flags::UNSIGNED, "UNSIGNED"),
        (flags::ZEROFILL, "ZEROFILL"),
        (flags::BINARY, "BINARY"),
    ];
    let mut set: Vec<_> =
        names.iter().filter(|(bit, _)| metadata.flags & bit != 0).map(|(_, n)| *n).collect();
    // The client adds this one by itself.
    if matches!(metadata.type_code, 0..=6 | 8 | 9 | 13 | 246) {
        set.push("NUM");
    }
    format!(
        "{kind} {} {} {} {}",
        metadata.length,
        metadata.decimals,
        metadata.collation.0,
        set.join("|")
    )
}
