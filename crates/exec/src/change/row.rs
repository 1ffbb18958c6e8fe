//! Rows of a table on their way in: defaults, conversion to the columns' types, encoding.

use crate::ExecError;
use crate::context::Exec;
use crate::store::store;
use catalog::TableEntry;
use engine_api::{ColumnDefault, ColumnDefinition, DuplicateKey, RowBuffer, TableDefinition};
use expr::{Coercibility, Columns, EvalContext, ResultType};
use plan::physical::{RowCheck, RowCheckKind, ViewCheck};
use std::cell::OnceCell;
use types::convert::ColumnPlace;
use types::{
    CollationId, ColumnType, Date, DateTime, Decimal, SqlError, SqlMode, Time, Timestamp, TypeKind,
    Value, ValueRef, codes,
};

/// What a column gets when a statement gives no value.
#[derive(Clone, Debug)]
enum Filler {
    /// A constant, already of the column's type.
    Value(Value),
    /// The statement's time.
    Now,
    /// Nothing: error 1364 unless the mode allows the type's zero.
    Missing,
}

/// Makes and converts rows of one table during one statement.
pub struct RowMaker<'t> {
    entry: &'t TableEntry,
    /// What columns get without a value, found out when the first of them needs it.
    fillers: OnceCell<Vec<OnceCell<Filler>>>,
    /// The view that rows come in through.
    pub view: Option<&'t plan::physical::ViewName>,
    /// NULL for a column that takes none is an error even where bad values are not.
    pub refuses_null: bool,
    /// NULL for the AUTO_INCREMENT column asks for a value: rows are inserted.
    pub generates: bool,
}

impl<'t> RowMaker<'t> {
    /// `ignore`: the statement turns errors of rows into warnings.
    pub fn new(exec: &Exec<'_>, entry: &'t TableEntry, ignore: bool) -> Self {
        let strict = exec.eval.settings.sql_mode.is_strict() && !ignore;
        exec.eval.warnings_are_errors.set(strict);
        let fillers = OnceCell::new();
        Self { entry, fillers, view: None, refuses_null: strict, generates: false }
    }

    fn filler(&self, exec: &Exec<'_>, position: usize) -> Result<&Filler, ExecError> {
        let columns = &self.definition().columns;
        let fillers =
            self.fillers.get_or_init(|| columns.iter().map(|_| OnceCell::new()).collect());
        let cell = &fillers[position];
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let found = filler(exec.eval, &columns[position])?;
        Ok(cell.get_or_init(|| found))
    }

    /// The table's definition.
    pub fn definition(&self) -> &'t TableDefinition {
        self.entry.definition()
    }

    /// The default of a column, for DEFAULT and for columns that a statement leaves out.
    pub fn default_value(&self, exec: &Exec<'_>, position: usize) -> Result<Value, ExecError> {
        let column = &self.definition().columns[position];
        match self.filler(exec, position)? {
            Filler::Value(value) => Ok(value.clone()),
            Filler::Now => Ok(now(exec.eval, &column.column_type)),
            Filler::Missing if column.auto_increment => Ok(Value::Null),
            Filler::Missing => {
                match self.view {
                    None => exec.eval.warn(&codes::NO_DEFAULT_FOR_FIELD, &[&column.name])?,
                    Some((schema, name)) => {
                        exec.eval.warn(&codes::NO_DEFAULT_FOR_VIEW_FIELD, &[schema, name])?;
                    }
                }
                Ok(zero_of(&column.column_type))
            }
        }
    }

    /// DEFAULT in an UPDATE: 1364 for a column without, whatever the mode is.
    pub fn default_of_update(&self, exec: &Exec<'_>, position: usize) -> Result<Value, ExecError> {
        let column = &self.definition().columns[position];
        if column.default == ColumnDefault::None && !column.nullable && !column.auto_increment {
            return Err(SqlError::new(&codes::NO_DEFAULT_FOR_FIELD, &[&column.name]).into());
        }
        self.default_value(exec, position)
    }

    /// What a column holds before the statement sets it: its default, or its type's zero.
    pub fn initial_value(&self, exec: &Exec<'_>, position: usize) -> Result<Value, ExecError> {
        let column_type = &self.definition().columns[position].column_type;
        Ok(match self.filler(exec, position)? {
            Filler::Value(value) => value.clone(),
            Filler::Now => now(exec.eval, column_type),
            Filler::Missing => zero_of(column_type),
        })
    }

    /// Converts a value to a column's type.
    pub fn store(
        &self,
        exec: &Exec<'_>,
        position: usize,
        value: ValueRef<'_>,
        from: &ResultType,
    ) -> Result<Value, ExecError> {
        let column = &self.definition().columns[position];
        let place = ColumnPlace {
            schema: &self.definition().schema,
            table: &self.definition().name,
            column: &column.name,
            row: exec.eval.row_number.get(),
        };
        self.store_at(exec, position, value, from, &place)
    }

    /// The same, with another place for what is told about the value.
    pub fn store_at(
        &self,
        exec: &Exec<'_>,
        position: usize,
        value: ValueRef<'_>,
        from: &ResultType,
        place: &ColumnPlace<'_>,
    ) -> Result<Value, ExecError> {
        let column = &self.definition().columns[position];
        if value.is_null() {
            return self.store_null(exec, column);
        }
        Ok(store(value, from, &column.column_type, place, exec.eval)?)
    }

    fn store_null(&self, exec: &Exec<'_>, column: &ColumnDefinition) -> Result<Value, ExecError> {
        if column.nullable || column.auto_increment && self.generates {
            return Ok(Value::Null);
        }
        if column.column_type.kind == TypeKind::Timestamp {
            // NULL for a TIMESTAMP that takes none is the time.
            return Ok(now(exec.eval, &column.column_type));
        }
        if self.refuses_null {
            return Err(SqlError::new(&codes::BAD_NULL_ERROR, &[&column.name]).into());
        }
        exec.eval.warn(&codes::BAD_NULL_ERROR, &[&column.name])?;
        Ok(zero_of(&column.column_type))
    }

    /// Encodes a row of the columns' values.
    pub fn encode(&self, values: &[Value], row: &mut RowBuffer) -> Result<(), ExecError> {
        self.encode_with(|column| values[column].as_ref(), row)
    }

    /// Encodes what becomes of a row: where the table has no primary key, the number that it is
    /// known by stays.
    pub fn encode_changed(
        &self,
        values: &[Value],
        old: &RowBuffer,
        new: &mut RowBuffer,
    ) -> Result<(), ExecError> {
        self.encode(values, new)?;
        if self.definition().hidden_row_id {
            new.key.clone_from(&old.key);
        }
        Ok(())
    }

    /// Encodes a row whose values are asked for by column.
    pub fn encode_with<'v>(
        &self,
        value: impl Fn(usize) -> ValueRef<'v>,
        row: &mut RowBuffer,
    ) -> Result<(), ExecError> {
        let layout = &self.entry.layouts().row;
        Ok(layout.encode_with(value, &mut row.key, &mut row.payload)?)
    }

    /// Error 1062 for the row that was refused.
    pub fn duplicate(&self, exec: &Exec<'_>, values: &[Value], key: &DuplicateKey) -> SqlError {
        duplicate_in(exec.eval, self.definition(), values, key)
    }
}

/// Error 1062 for a row of a table.
pub fn duplicate_in(
    eval: &EvalContext,
    definition: &TableDefinition,
    values: &[Value],
    key: &DuplicateKey,
) -> SqlError {
    let index = &definition.indexes[key.index];
    let mut text = Vec::new();
    for (number, part) in index.parts.iter().enumerate() {
        if number > 0 {
            text.push(b'-');
        }
        let column_type = &definition.columns[part.column].column_type;
        match values[part.column].as_ref() {
            ValueRef::Null => text.extend_from_slice(b"NULL"),
            value => {
                let start = text.len();
                types::text::write_text(value, column_type, eval.settings.time_zone, &mut text);
                if let Some(prefix) = part.prefix {
                    let charset = column_type.collation.charset();
                    let kept = charset.byte_offset(&text[start..], prefix as usize);
                    text.truncate(start + kept);
                }
            }
        }
    }
    let entry = String::from_utf8_lossy(&text).into_owned();
    duplicate_entry(&entry, &index.name)
}

fn filler(eval: &EvalContext, column: &ColumnDefinition) -> Result<Filler, ExecError> {
    Ok(match &column.default {
        ColumnDefault::None if column.nullable => Filler::Value(Value::Null),
        ColumnDefault::None if column.column_type.kind == TypeKind::Enum => {
            let members = column.column_type.members;
            Filler::Value(Value::text(members.and_then(|it| it.name(1)).unwrap_or_default()))
        }
        ColumnDefault::None => Filler::Missing,
        // What follows from the row is put in when the row is there.
        ColumnDefault::Null | ColumnDefault::Expression(_) | ColumnDefault::Generated { .. } => {
            Filler::Value(Value::Null)
        }
        ColumnDefault::CurrentTimestamp => Filler::Now,
        ColumnDefault::Constant(text) => {
            let (length, collation) = (text.len() as u64, CollationId::UTF8MB4_GENERAL_CI);
            let from = ResultType::string(length, collation, Coercibility::Coercible, false, false);
            let place = ColumnPlace { schema: "", table: "", column: &column.name, row: 1 };
            let value = ValueRef::Bytes(text);
            Filler::Value(store(value, &from, &column.column_type, &place, eval)?)
        }
    })
}

/// Whether a row passes what WITH CHECK OPTION asks; a failure is error 1369, or with IGNORE a
/// warning.
pub fn passes_check(
    exec: &Exec<'_>,
    check: &ViewCheck,
    values: &dyn Columns,
    ignore: bool,
) -> Result<bool, ExecError> {
    for condition in &check.conditions {
        if condition.eval_bool(exec.eval, values)? == Some(true) {
            continue;
        }
        let error = SqlError::new(&codes::VIEW_CHECK_FAILED, &[&check.schema, &check.name]);
        if !ignore {
            return Err(error.into());
        }
        let warning = types::Warning::from(&error);
        exec.eval.push_warning(types::Warning { level: types::Level::Warning, ..warning });
        return Ok(false);
    }
    Ok(true)
}

/// 4025 if a row breaks a constraint, 1526 if no partition takes it: true with a warning where
/// that only leaves the row out.
pub fn breaks_check(
    eval: &EvalContext,
    checks: &[RowCheck],
    row: &dyn Columns,
    table: &TableDefinition,
    ignore: bool,
) -> Result<bool, ExecError> {
    for check in checks {
        if check.condition.eval_bool(eval, row)? == Some(false) {
            let error = broken(eval, check, row, table)?;
            if !ignore {
                return Err(error.into());
            }
            let warning = types::Warning::from(&error);
            eval.push_warning(types::Warning { level: types::Level::Warning, ..warning });
            return Ok(true);
        }
    }
    Ok(false)
}

/// The error for a row that breaks a check.
fn broken(
    eval: &EvalContext,
    check: &RowCheck,
    row: &dyn Columns,
    table: &TableDefinition,
) -> Result<SqlError, SqlError> {
    Ok(match &check.kind {
        RowCheckKind::Constraint(name) => {
            SqlError::new(&codes::CONSTRAINT_FAILED, &[name, &table.schema, &table.name])
        }
        RowCheckKind::PartitionSet => {
            SqlError::new(&codes::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET, &[])
        }
        RowCheckKind::NoPartition(None) => {
            SqlError::new(&codes::NO_PARTITION_FOR_GIVEN_VALUE, &[&"from column_list"])
        }
        RowCheckKind::NoPartition(Some(value)) => {
            let column_type = value.result.column_type;
            let value = value.eval(eval, row)?;
            let mut text = b"NULL".to_vec();
            if !value.is_null() {
                text.clear();
                types::text::write_text(value, &column_type, eval.settings.time_zone, &mut text);
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            SqlError::new(&codes::NO_PARTITION_FOR_GIVEN_VALUE, &[&text])
        }
    })
}

/// Error 1062 with the text that names the index.
pub fn duplicate_entry(entry: &str, index: &str) -> SqlError {
    let message = codes::DUP_ENTRY_WITH_KEY_NAME.message(&[&entry, &index]);
    SqlError::with_message(&codes::DUP_ENTRY, message)
}

/// What existing rows get in a column that is added: its default, or the zero of its type.
pub fn column_filler(eval: &EvalContext, column: &ColumnDefinition) -> Result<Value, ExecError> {
    Ok(match filler(eval, column)? {
        Filler::Value(value) => value,
        Filler::Now => now(eval, &column.column_type),
        Filler::Missing => zero_of(&column.column_type),
    })
}

/// The statement's time as a value of a temporal column.
pub fn now(eval: &EvalContext, column_type: &ColumnType) -> Value {
    match column_type.kind {
        TypeKind::Timestamp => Value::Timestamp(eval.now.truncated(column_type.scale)),
        TypeKind::Date => Value::Date(eval.local_now().date()),
        _ => Value::DateTime(eval.local_now().truncated(column_type.scale)),
    }
}

/// The zero of a type: what non-strict mode puts where a value is missing.
pub fn zero_of(column_type: &ColumnType) -> Value {
    let kind = column_type.kind;
    match kind {
        _ if kind.is_integer() && !column_type.unsigned => Value::Int(0),
        _ if kind.is_integer() || matches!(kind, TypeKind::Year | TypeKind::Bit) => Value::UInt(0),
        TypeKind::Decimal => Value::Decimal(Decimal::new(0, column_type.scale)),
        TypeKind::Float => Value::Float(0.0),
        TypeKind::Double => Value::Double(0.0),
        TypeKind::Date => Value::Date(Date(0)),
        TypeKind::DateTime => Value::DateTime(DateTime(0)),
        TypeKind::Timestamp => Value::Timestamp(Timestamp(0)),
        TypeKind::Time => Value::Time(Time(0)),
        TypeKind::Null => Value::Null,
        TypeKind::Enum => {
            Value::text(column_type.members.and_then(|it| it.name(1)).unwrap_or_default())
        }
        _ => Value::Bytes(Vec::new()),
    }
}

/// Whether zero in an AUTO_INCREMENT column asks for a generated value.
pub fn zero_generates(mode: SqlMode) -> bool {
    !mode.contains(SqlMode::NO_AUTO_VALUE_ON_ZERO)
}
