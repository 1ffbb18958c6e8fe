//! LOAD DATA: the lines of a file as rows of an INSERT.

mod fields;

pub use fields::FileInput;

use super::insert::Inserter;
use super::row::{now, zero_of};
use crate::ExecError;
use crate::context::{Exec, RowSink};
use expr::{Coercibility, ResultType, UserVariable};
use fields::Fields;
use plan::physical::{FieldTarget, FileRows, InsertValue};
use types::{SqlError, TypeKind, Value, ValueRef, codes};

/// Inserts a row for each line of the file.
pub fn run(
    exec: &mut Exec<'_>,
    insert: &mut Inserter<'_>,
    rows: &FileRows,
    sink: &mut dyn RowSink,
) -> Result<(), ExecError> {
    let Some(input) = exec.input.take() else {
        return Err(SqlError::new(&codes::UNKNOWN_ERROR, &[]).into());
    };
    let mut file = Fields::new(input, &rows.format, exec.memory);
    for _ in 0..rows.skipped_lines {
        exec.tick()?;
        if file.next_line()?.is_none() {
            break;
        }
    }
    exec.eval.row_number.set(1);
    // What columns without a field get is told once.
    let blank = insert.blank(exec)?;
    loop {
        exec.tick()?;
        let Some(values) = next_row(exec, insert, rows, &blank, &mut file)? else { break };
        let skipped = insert.skipped;
        insert.put(exec, values, sink)?;
        exec.eval.reset_arena();
        let Some(cut) = file.next_line()? else { break };
        if insert.skipped > skipped {
            continue;
        }
        let row = exec.eval.row_number.get();
        if cut {
            exec.eval.warn(&codes::WARN_TOO_MANY_RECORDS, &[&row])?;
        }
        exec.eval.row_number.set(row + 1);
    }
    Ok(())
}

/// The values of a line over those of no line; none if there is none.
fn next_row(
    exec: &Exec<'_>,
    insert: &Inserter<'_>,
    rows: &FileRows,
    blank: &[Value],
    file: &mut Fields<'_, '_>,
) -> Result<Option<Vec<Value>>, ExecError> {
    let mut values = blank.to_vec();
    let mut missing = false;
    for (number, field) in rows.fields.iter().enumerate() {
        if !missing && !file.next_field()? {
            if number == 0 {
                return Ok(None);
            }
            missing = true;
        }
        match field {
            FieldTarget::Column(column) if missing => {
                values[*column] = without_field(exec, insert, *column, &values[*column])?;
            }
            FieldTarget::Column(column) if file.is_null() => {
                values[*column] = null_field(exec, insert, *column)?;
            }
            FieldTarget::Column(column) => {
                let from = text_type(file.field(), rows);
                let value = ValueRef::Bytes(file.field());
                values[*column] = insert.maker.store(exec, *column, value, &from)?;
            }
            FieldTarget::Variable(name) => {
                let known = !missing && !file.is_null();
                let value = known.then(|| file.field());
                set_variable(exec, name, value, rows);
            }
        }
    }
    for (column, value) in &rows.assignments {
        values[*column] = match value {
            InsertValue::Default | InsertValue::Refused(_) => {
                insert.maker.default_value(exec, *column)?
            }
            InsertValue::Expr(expr) => {
                let value = expr.eval(exec.eval, &values)?;
                insert.maker.store(exec, *column, value, &expr.result)?
            }
        };
    }
    Ok(Some(values))
}

fn text_type(text: &[u8], rows: &FileRows) -> ResultType {
    let length = text.len() as u64;
    ResultType::string(length, rows.format.collation, Coercibility::Implicit, false, false)
}

fn set_variable(exec: &Exec<'_>, name: &str, text: Option<&[u8]>, rows: &FileRows) {
    let value = text.map_or(Value::Null, |text| Value::Bytes(text.to_vec()));
    let result = text_type(text.unwrap_or_default(), rows).with_nullable(true);
    let variable = UserVariable { value, result };
    let mut variables = exec.eval.variables.borrow_mut();
    match variables.get_mut(name) {
        Some(known) => *known = variable,
        None => drop(variables.insert(name.to_string(), variable)),
    }
}

/// The zero of a type, for ENUM what is no member.
fn zero_of_field(column_type: &types::ColumnType) -> Value {
    match column_type.kind {
        TypeKind::Enum => Value::Bytes(Vec::new()),
        _ => zero_of(column_type),
    }
}

/// `\N` for a column.
fn null_field(exec: &Exec<'_>, insert: &Inserter<'_>, position: usize) -> Result<Value, ExecError> {
    let column = &insert.maker.definition().columns[position];
    if column.nullable || column.auto_increment {
        return Ok(Value::Null);
    }
    if column.column_type.kind == TypeKind::Timestamp {
        return Ok(now(exec.eval, &column.column_type));
    }
    let row = exec.eval.row_number.get();
    exec.eval.warn(&codes::WARN_NULL_TO_NOTNULL, &[&column.name, &row])?;
    Ok(zero_of_field(&column.column_type))
}

/// What a column gets for which the line has no field: not its default, but zero; NULL stays.
fn without_field(
    exec: &Exec<'_>,
    insert: &Inserter<'_>,
    position: usize,
    initial: &Value,
) -> Result<Value, ExecError> {
    let column = &insert.maker.definition().columns[position];
    let row = exec.eval.row_number.get();
    exec.eval.warn(&codes::WARN_TOO_FEW_RECORDS, &[&row])?;
    Ok(match initial {
        Value::Null => Value::Null,
        _ if column.column_type.kind == TypeKind::Timestamp && !column.nullable => {
            now(exec.eval, &column.column_type)
        }
        _ => zero_of_field(&column.column_type),
    })
}
