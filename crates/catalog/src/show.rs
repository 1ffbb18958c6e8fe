//! SHOW statements that are answered from the definitions: the rows of information_schema under
//! other column names.

use crate::information_schema::{self, Row, Scope, VirtualType};
use crate::{CatalogError, Result, TableEntry, TableRef, describe};
use VirtualType::{BigInt, BigIntUnsigned, DateTime, IntUnsigned, LongText, Varchar};
use engine_api::ColumnDefinition;
use std::sync::Arc;
use types::{CollationId, Value, collation};

/// Columns and rows of an answer.
#[derive(Clone, Debug)]
pub struct ShowAnswer {
    /// Name, type, NULL possible.
    pub columns: Vec<(String, VirtualType, bool)>,
    /// Rows.
    pub rows: Vec<Row>,
}

/// Which columns of an information_schema table a SHOW gives, under which names.
type Picks = &'static [(&'static str, &'static str)];

impl ShowAnswer {
    fn pick(table: &str, picks: Picks, scope: &Scope<'_>) -> Result<Self> {
        let Some(table) = information_schema::find(table) else {
            return Ok(Self { columns: Vec::new(), rows: Vec::new() });
        };
        let position = |name: &str| table.columns.iter().position(|c| c.name == name);
        let positions: Vec<usize> = picks.iter().filter_map(|(name, _)| position(name)).collect();
        let column = |(&at, (_, label)): (&usize, &(&str, &str))| {
            let column = &table.columns[at];
            (label.to_string(), column.kind, column.nullable)
        };
        let columns = positions.iter().zip(picks).map(column).collect();
        let mut rows = table.rows(scope)?;
        for row in &mut rows {
            *row = positions.iter().map(|&at| std::mem::take(&mut row[at])).collect();
        }
        Ok(Self { columns, rows })
    }

    /// Keeps the rows whose column `position` is LIKE the pattern.
    fn like(mut self, position: usize, pattern: Option<&[u8]>) -> Self {
        let Some(pattern) = pattern else { return self };
        let rules = CollationId::UTF8MB4_GENERAL_CI.info();
        self.rows.retain(|row| match &row[position] {
            Value::Bytes(name) => collation::like(rules, name, pattern, Some(u32::from('\\'))),
            _ => false,
        });
        self
    }

    fn sorted(mut self) -> Self {
        self.rows.sort_by(|a, b| match (&a[0], &b[0]) {
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            _ => std::cmp::Ordering::Equal,
        });
        self
    }
}

/// The label of the name column: the pattern stands behind it.
fn label(name: &str, pattern: Option<&[u8]>) -> String {
    match pattern {
        None => name.to_string(),
        Some(pattern) => format!("{name} ({})", String::from_utf8_lossy(pattern)),
    }
}

/// SHOW DATABASES.
pub fn databases(scope: &Scope<'_>, like: Option<&[u8]>) -> Result<ShowAnswer> {
    let mut answer = ShowAnswer::pick("SCHEMATA", &[("SCHEMA_NAME", "Database")], scope)?;
    answer.columns[0].0 = label("Database", like);
    Ok(answer.like(0, like).sorted())
}

/// SHOW [FULL] TABLES; `scope.schema` says of which database.
pub fn tables(scope: &Scope<'_>, full: bool, like: Option<&[u8]>) -> Result<ShowAnswer> {
    let schema = existing_schema(scope)?;
    let picks: Picks = &[("TABLE_NAME", ""), ("TABLE_TYPE", "Table_type")];
    let picks = if full { picks } else { &picks[..1] };
    let mut answer = ShowAnswer::pick("TABLES", picks, scope)?;
    answer.columns[0].0 = label(&format!("Tables_in_{schema}"), like);
    Ok(answer.like(0, like).sorted())
}

/// SHOW TABLE STATUS.
pub fn table_status(scope: &Scope<'_>, like: Option<&[u8]>) -> Result<ShowAnswer> {
    existing_schema(scope)?;
    let picks: Picks = &[
        ("TABLE_NAME", "Name"),
        ("ENGINE", "Engine"),
        ("VERSION", "Version"),
        ("ROW_FORMAT", "Row_format"),
        ("TABLE_ROWS", "Rows"),
        ("AVG_ROW_LENGTH", "Avg_row_length"),
        ("DATA_LENGTH", "Data_length"),
        ("MAX_DATA_LENGTH", "Max_data_length"),
        ("INDEX_LENGTH", "Index_length"),
        ("DATA_FREE", "Data_free"),
        ("AUTO_INCREMENT", "Auto_increment"),
        ("CREATE_TIME", "Create_time"),
        ("UPDATE_TIME", "Update_time"),
        ("CHECK_TIME", "Check_time"),
        ("TABLE_COLLATION", "Collation"),
        ("CHECKSUM", "Checksum"),
        ("CREATE_OPTIONS", "Create_options"),
        ("TABLE_COMMENT", "Comment"),
        ("MAX_INDEX_LENGTH", "Max_index_length"),
        ("TEMPORARY", "Temporary"),
    ];
    Ok(ShowAnswer::pick("TABLES", picks, scope)?.like(0, like).sorted())
}

/// SHOW [FULL] COLUMNS and DESCRIBE; `scope` names the table.
pub fn columns(scope: &Scope<'_>, full: bool, like: Option<&[u8]>) -> Result<ShowAnswer> {
    if scope.temporary.is_none() {
        scope.catalog.find(scope.schema.unwrap_or_default(), scope.table.unwrap_or_default())?;
    }
    let picks: Picks = if full {
        &[
            ("COLUMN_NAME", "Field"),
            ("COLUMN_TYPE", "Type"),
            ("COLLATION_NAME", "Collation"),
            ("IS_NULLABLE", "Null"),
            ("COLUMN_KEY", "Key"),
            ("COLUMN_DEFAULT", "Default"),
            ("EXTRA", "Extra"),
            ("PRIVILEGES", "Privileges"),
            ("COLUMN_COMMENT", "Comment"),
        ]
    } else {
        &[
            ("COLUMN_NAME", "Field"),
            ("COLUMN_TYPE", "Type"),
            ("IS_NULLABLE", "Null"),
            ("COLUMN_KEY", "Key"),
            ("COLUMN_DEFAULT", "Default"),
            ("EXTRA", "Extra"),
        ]
    };
    let mut answer = ShowAnswer::pick("COLUMNS", picks, scope)?;
    show_bare_defaults(scope, &mut answer)?;
    Ok(answer.like(0, like))
}

/// information_schema gives defaults as expressions, SHOW COLUMNS as bare values.
fn show_bare_defaults(scope: &Scope<'_>, answer: &mut ShowAnswer) -> Result<()> {
    let default = answer.columns.iter().position(|(name, _, _)| name == "Default");
    let (Some(schema), Some(table), Some(default)) = (scope.schema, scope.table, default) else {
        return Ok(());
    };
    let found = match scope.temporary {
        Some(temporary) => TableRef::Base(temporary.clone()),
        None => scope.catalog.find(schema, table)?,
    };
    if let TableRef::Base(entry) | TableRef::View(entry) = found {
        let columns = &entry.definition().columns;
        for row in &mut answer.rows {
            // Columns that the reader may not use are left out.
            let is_named = |column: &&ColumnDefinition| match &row[0] {
                Value::Bytes(name) => column.name.as_bytes() == &**name,
                _ => false,
            };
            let Some(column) = columns.iter().find(is_named) else { continue };
            let text = describe::default_text(column);
            row[default] = text.map_or(Value::Null, Value::text);
        }
    }
    Ok(())
}

/// SHOW INDEX; `scope` names the table.
pub fn indexes(scope: &Scope<'_>) -> Result<ShowAnswer> {
    existing_table(scope)?;
    let picks: Picks = &[
        ("TABLE_NAME", "Table"),
        ("NON_UNIQUE", "Non_unique"),
        ("INDEX_NAME", "Key_name"),
        ("SEQ_IN_INDEX", "Seq_in_index"),
        ("COLUMN_NAME", "Column_name"),
        ("COLLATION", "Collation"),
        ("CARDINALITY", "Cardinality"),
        ("SUB_PART", "Sub_part"),
        ("PACKED", "Packed"),
        ("NULLABLE", "Null"),
        ("INDEX_TYPE", "Index_type"),
        ("COMMENT", "Comment"),
        ("INDEX_COMMENT", "Index_comment"),
        ("IGNORED", "Ignored"),
    ];
    ShowAnswer::pick("STATISTICS", picks, scope)
}

/// SHOW CREATE TABLE; `scope` names the table.
pub fn create_table(scope: &Scope<'_>) -> Result<ShowAnswer> {
    let entry = existing_table(scope)?;
    let definition = entry.definition();
    let next = match definition.auto_increment_column() {
        Some(_) => entry.handle()?.next_auto_increment(),
        None => 0,
    };
    let mut text = describe::create_table(definition, next);
    if entry.is_temporary() {
        text = text.replacen("CREATE TABLE", "CREATE TEMPORARY TABLE", 1);
    }
    Ok(ShowAnswer {
        columns: vec![
            ("Table".into(), Varchar(64), false),
            ("Create Table".into(), Varchar(text.len().max(1024) as u32), false),
        ],
        rows: vec![vec![Value::text(&definition.name), Value::text(text)]],
    })
}

/// SHOW CREATE DATABASE; `scope` names it.
pub fn create_database(scope: &Scope<'_>, if_not_exists: bool) -> Result<ShowAnswer> {
    let name = existing_schema(scope)?;
    let schema = scope.catalog.schema(name);
    let schema = schema.ok_or_else(|| CatalogError::UnknownDatabase(name.to_string()))?;
    let text = describe::create_schema(&schema, if_not_exists);
    Ok(ShowAnswer {
        columns: vec![
            ("Database".into(), Varchar(64), false),
            ("Create Database".into(), Varchar(1024), false),
        ],
        rows: vec![vec![Value::text(&schema.name), Value::text(text)]],
    })
}

/// SHOW ENGINES.
pub fn engines(scope: &Scope<'_>) -> Result<ShowAnswer> {
    let picks: Picks = &[
        ("ENGINE", "Engine"),
        ("SUPPORT", "Support"),
        ("COMMENT", "Comment"),
        ("TRANSACTIONS", "Transactions"),
        ("XA", "XA"),
        ("SAVEPOINTS", "Savepoints"),
    ];
    ShowAnswer::pick("ENGINES", picks, scope)
}

/// SHOW COLLATION.
pub fn collations(scope: &Scope<'_>, like: Option<&[u8]>) -> Result<ShowAnswer> {
    let picks: Picks = &[
        ("COLLATION_NAME", "Collation"),
        ("CHARACTER_SET_NAME", "Charset"),
        ("ID", "Id"),
        ("IS_DEFAULT", "Default"),
        ("IS_COMPILED", "Compiled"),
        ("SORTLEN", "Sortlen"),
    ];
    Ok(ShowAnswer::pick("COLLATIONS", picks, scope)?.like(0, like))
}

/// SHOW CHARACTER SET.
pub fn character_sets(scope: &Scope<'_>, like: Option<&[u8]>) -> Result<ShowAnswer> {
    let picks: Picks = &[
        ("CHARACTER_SET_NAME", "Charset"),
        ("DESCRIPTION", "Description"),
        ("DEFAULT_COLLATE_NAME", "Default collation"),
        ("MAXLEN", "Maxlen"),
    ];
    Ok(ShowAnswer::pick("CHARACTER_SETS", picks, scope)?.like(0, like))
}

/// SHOW TRIGGERS, EVENTS, PROCEDURE STATUS and so on: Gannet has none of them yet, and tools
/// (mariadb-dump) ask to be told so.
pub fn triggers() -> ShowAnswer {
    let names = ["Trigger", "Event", "Table", "Statement", "Timing", "Created", "sql_mode"];
    let more = ["Definer", "character_set_client", "collation_connection", "Database Collation"];
    let column = |name: &&str| match *name {
        "Statement" => (name.to_string(), LongText, false),
        "Created" => (name.to_string(), DateTime(2), true),
        _ => (name.to_string(), Varchar(64), false),
    };
    ShowAnswer { columns: names.iter().chain(&more).map(column).collect(), rows: Vec::new() }
}

/// SHOW OPEN TABLES: tables are open as long as they exist.
pub fn open_tables(scope: &Scope<'_>, like: Option<&[u8]>) -> Result<ShowAnswer> {
    let picks: Picks = &[("TABLE_SCHEMA", "Database"), ("TABLE_NAME", "Table")];
    let mut answer = ShowAnswer::pick("TABLES", picks, scope)?.like(1, like);
    answer.columns.push(("In_use".into(), BigInt(1), false));
    answer.columns.push(("Name_locked".into(), BigInt(4), false));
    for row in &mut answer.rows {
        row.extend([Value::Int(0), Value::Int(0)]);
    }
    Ok(answer)
}

/// SHOW WARNINGS and SHOW ERRORS have these columns.
pub fn diagnostics_columns() -> Vec<(String, VirtualType, bool)> {
    vec![
        ("Level".into(), Varchar(7), false),
        ("Code".into(), IntUnsigned(4), false),
        ("Message".into(), Varchar(512), false),
    ]
}

/// SHOW COUNT(*) WARNINGS: one number.
pub fn count(name: &str, value: u64) -> ShowAnswer {
    ShowAnswer {
        columns: vec![(name.to_string(), BigIntUnsigned(21), false)],
        rows: vec![vec![Value::UInt(value)]],
    }
}

fn existing_schema<'a>(scope: &Scope<'a>) -> Result<&'a str> {
    let name = scope.schema.unwrap_or_default();
    let is_virtual = name.eq_ignore_ascii_case(information_schema::SCHEMA_NAME);
    if is_virtual || scope.catalog.schema(name).is_some() {
        return Ok(name);
    }
    Err(CatalogError::UnknownDatabase(name.to_string()))
}

fn existing_table(scope: &Scope<'_>) -> Result<Arc<TableEntry>> {
    if let Some(temporary) = scope.temporary {
        return Ok(temporary.clone());
    }
    let (schema, table) = (scope.schema.unwrap_or_default(), scope.table.unwrap_or_default());
    scope.catalog.find(schema, table)?.base()
}
