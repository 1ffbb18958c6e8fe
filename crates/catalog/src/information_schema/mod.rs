//! information_schema: one virtual table per name in `data/information_schema.tsv` that has a
//! row function here. Columns, their types and their order are MariaDB 10.11's.

mod objects;
mod privileges;
mod server;

use crate::virtual_table::{VirtualTableRef, virtual_column};
use crate::{VirtualContext, VirtualFilter, VirtualTable};
use engine_api::ColumnDefinition;
use std::sync::{Arc, OnceLock};
use types::{CollationId, ColumnType, SqlError, TypeKind, Value};

/// Name of the schema as listed.
pub const INFORMATION_SCHEMA: &str = "information_schema";

/// Receives rows; false ends the table.
type Emit<'a> = dyn FnMut(&[Value]) -> bool + 'a;
type Rows = fn(&VirtualContext<'_>, &VirtualFilter, &mut Emit<'_>) -> Result<(), SqlError>;

struct ComputedTable {
    name: &'static str,
    columns: Vec<ColumnDefinition>,
    rows: Rows,
}

impl VirtualTable for ComputedTable {
    fn name(&self) -> &str {
        self.name
    }

    fn columns(&self) -> &[ColumnDefinition] {
        &self.columns
    }

    fn rows(
        &self,
        context: &VirtualContext<'_>,
        filter: &VirtualFilter,
        emit: &mut dyn FnMut(&[Value]) -> bool,
    ) -> Result<(), SqlError> {
        let width = self.columns.len();
        (self.rows)(context, filter, &mut |row| {
            base::invariant!(row.len() == width, "a row of {} has {} values", self.name, row.len());
            emit(row)
        })
    }
}

/// Tables of objects that this server has none of: views, triggers and so on.
fn nothing(_: &VirtualContext<'_>, _: &VirtualFilter, _: &mut Emit<'_>) -> Result<(), SqlError> {
    Ok(())
}

const TABLES: &[(&str, Rows)] = &[
    ("APPLICABLE_ROLES", nothing),
    ("CHARACTER_SETS", server::character_sets),
    ("CHECK_CONSTRAINTS", nothing),
    ("COLLATIONS", server::collations),
    ("COLLATION_CHARACTER_SET_APPLICABILITY", server::applicability),
    ("COLUMNS", objects::columns),
    ("COLUMN_PRIVILEGES", nothing),
    ("ENABLED_ROLES", nothing),
    ("ENGINES", server::engines),
    ("EVENTS", nothing),
    ("FILES", nothing),
    ("GLOBAL_STATUS", server::global_status),
    ("GLOBAL_VARIABLES", server::global_variables),
    ("INNODB_METRICS", server::innodb_metrics),
    ("INNODB_SYS_COLUMNS", objects::innodb_columns),
    ("INNODB_SYS_FIELDS", objects::innodb_fields),
    ("INNODB_SYS_FOREIGN", nothing),
    ("INNODB_SYS_INDEXES", objects::innodb_indexes),
    ("INNODB_SYS_TABLES", objects::innodb_tables),
    ("INNODB_SYS_TABLESTATS", objects::innodb_tablestats),
    ("KEY_COLUMN_USAGE", objects::key_column_usage),
    ("PARAMETERS", nothing),
    ("PARTITIONS", objects::partitions),
    ("PLUGINS", server::plugins),
    ("PROCESSLIST", server::processlist),
    ("REFERENTIAL_CONSTRAINTS", nothing),
    ("ROUTINES", nothing),
    ("SCHEMATA", objects::schemata),
    ("SCHEMA_PRIVILEGES", privileges::schema_privileges),
    ("SESSION_STATUS", server::session_status),
    ("SESSION_VARIABLES", server::session_variables),
    ("STATISTICS", objects::statistics),
    ("SYSTEM_VARIABLES", server::system_variables),
    ("TABLES", objects::tables),
    ("TABLE_CONSTRAINTS", objects::table_constraints),
    ("TABLE_PRIVILEGES", privileges::table_privileges),
    ("TRIGGERS", nothing),
    ("USER_PRIVILEGES", privileges::user_privileges),
    ("VIEWS", nothing),
];

/// All tables of information_schema in order of name.
pub fn tables() -> &'static [VirtualTableRef] {
    static BUILT: OnceLock<Vec<VirtualTableRef>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let build = |(name, rows): &(&'static str, Rows)| {
            let columns = columns_of(name);
            Arc::new(ComputedTable { name, columns, rows: *rows }) as VirtualTableRef
        };
        TABLES.iter().map(build).collect()
    })
}

/// A table by name, without regard to case.
pub fn find(name: &str) -> Option<&'static VirtualTableRef> {
    tables().iter().find(|table| table.name().eq_ignore_ascii_case(name))
}

fn columns_of(table: &str) -> Vec<ColumnDefinition> {
    let lines = include_str!("../../data/information_schema.tsv").lines();
    let fields = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    let ours = fields.filter(|fields| fields.first() == Some(&table));
    ours.filter_map(|fields| match fields[..] {
        [_, name, declared, nullable] => {
            Some(virtual_column(name, read_type(declared), nullable == "YES"))
        }
        _ => None,
    })
    .collect()
}

/// Reads the few forms of types that the data file has.
fn read_type(declared: &str) -> ColumnType {
    let (name, rest) = declared.split_once('(').unwrap_or((declared, ""));
    let (parameters, suffix) = rest.split_once(')').unwrap_or((rest, ""));
    let mut numbers = parameters.split(',').map(|n| n.parse::<u32>().unwrap_or(0));
    let (first, second) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let kind = match name {
        "varchar" => TypeKind::VarChar,
        "longtext" => TypeKind::LongText,
        "blob" => TypeKind::Blob,
        "bigint" => TypeKind::BigInt,
        "int" => TypeKind::Int,
        "tinyint" => TypeKind::TinyInt,
        "float" => TypeKind::Float,
        "decimal" => TypeKind::Decimal,
        _ => TypeKind::DateTime,
    };
    let text = matches!(kind, TypeKind::VarChar | TypeKind::LongText);
    ColumnType {
        kind,
        unsigned: suffix.contains("unsigned"),
        zerofill: false,
        length: match kind {
            TypeKind::LongText => u32::MAX,
            TypeKind::Blob => 65_535,
            TypeKind::Float => 12,
            TypeKind::DateTime => 19,
            _ => first,
        },
        precision: if kind == TypeKind::Decimal { first as u8 } else { 0 },
        scale: match kind {
            TypeKind::Decimal => second as u8,
            TypeKind::DateTime => first as u8,
            TypeKind::Float => 31,
            _ => 0,
        },
        collation: if text { CollationId(33) } else { CollationId::BINARY },
    }
}

fn text(text: impl AsRef<[u8]>) -> Value {
    Value::text(text)
}

fn number(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn unsigned(number: u64) -> Value {
    Value::UInt(number)
}

fn optional_text(value: Option<impl AsRef<[u8]>>) -> Value {
    value.map_or(Value::Null, Value::text)
}

fn yes_no(yes: bool) -> Value {
    text(if yes { "YES" } else { "NO" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_columns() {
        for table in tables() {
            assert!(!table.columns().is_empty(), "{}", table.name());
        }
        assert_eq!(find("tables").unwrap().columns().len(), 23);
        assert!(tables().is_sorted_by_key(|table| table.name()));
    }

    #[test]
    fn types_are_read() {
        let unsigned = read_type("bigint(21) unsigned");
        assert_eq!(
            (unsigned.kind, unsigned.length, unsigned.unsigned),
            (TypeKind::BigInt, 21, true)
        );
        let decimal = read_type("decimal(22,3)");
        assert_eq!((decimal.precision, decimal.scale), (22, 3));
        assert_eq!(read_type("datetime").kind, TypeKind::DateTime);
    }
}
