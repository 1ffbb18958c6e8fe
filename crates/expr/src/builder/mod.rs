//! Builds expressions: decides types, conversions and collations.
//!
//! Operands are moved in; where the operation compares or joins text of different character
//! sets, operands come back wrapped in conversions.

mod cast;
mod collations;
mod conditions;
mod literals;
mod logic;
mod operators;

pub use cast::CastTarget;
pub(crate) use collations::{
    CollationUse, Strength, aggregate_collations, compared_collation, convert_if_safe,
    convert_to_json_text, is_known_at_start,
};
pub(crate) use operators::{Domain, HEX_DIGITS, numbers_of_hex, text_as_decimal};
pub use operators::{number_of_hex, text_as_double};

use crate::context::{EvalContext, NoColumns, Settings, UserVariable};
use crate::expression::{ArithmeticOperator, Expr, ExprKind};
use crate::functions::{self, read_number};
use crate::result_type::{Coercibility, ResultType};
use std::sync::Arc;
use types::temporal::IntervalUnit;
use types::{CollationId, ColumnType, SqlError, TypeKind, Value, ValueRef, codes};

/// Builds expressions under the settings of a session.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'a> {
    settings: &'a Settings,
    statement: Option<&'a EvalContext>,
}

impl<'a> Builder<'a> {
    /// A builder for a session.
    pub fn new(settings: &'a Settings) -> Self {
        Self { settings, statement: None }
    }

    /// A builder for a statement that has begun: variables and the time are known.
    pub fn within(statement: &'a EvalContext) -> Self {
        Self { settings: &statement.settings, statement: Some(statement) }
    }

    /// The value of an expression that is the same for the whole statement, as far as it is known
    /// before it runs; `None` if it is not, or cannot be computed.
    pub(crate) fn value_at_start(&self, expr: &Expr) -> Option<Value> {
        let Some(statement) = self.statement else { return expr.known_value(self.settings) };
        if !is_known_at_start(expr) || expr.has_parameter() {
            return None;
        }
        let before = statement.warning_count();
        let value = expr.eval(statement, &NoColumns).map(|value| value.to_owned());
        statement.drop_warnings_after(before);
        value.ok()
    }

    /// The same, of which a type is made: what reads the clock or the session is none, as a
    /// prepared statement keeps its types. One that reads variables is bound again each time.
    pub(crate) fn settled_value(&self, expr: &Expr) -> Option<Value> {
        if functions::reads_session(expr) { None } else { self.value_at_start(expr) }
    }

    /// The same of a value that is wanted as a whole number; NULL counts as zero.
    pub(crate) fn integer_at_start(&self, expr: &Expr) -> Option<i64> {
        let statement = self.statement?;
        if !is_known_at_start(expr) || expr.has_parameter() || functions::reads_session(expr) {
            return None;
        }
        let before = statement.warning_count();
        let number = read_number::whole(expr, statement, &NoColumns).ok();
        statement.drop_warnings_after(before);
        let bounded = |number: i128| number.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        number.map(|number| number.map_or(0, bounded))
    }

    /// The session's settings.
    pub fn settings(&self) -> &'a Settings {
        self.settings
    }

    /// Collation of literals and of numbers used as text.
    pub fn connection_collation(&self) -> CollationId {
        self.settings.collation
    }

    /// A column of the row. `name` is its printed form for messages, e.g. `` `d`.`t`.`c` ``.
    pub fn column(&self, position: usize, result: ResultType, name: impl Into<Arc<str>>) -> Expr {
        Expr { kind: ExprKind::Column { position, name: name.into() }, result }
    }

    /// A parameter of the prepared statement. `result` is the type of the value bound to it;
    /// bind again when a later execution brings another type.
    pub fn parameter(&self, index: usize, result: ResultType) -> Expr {
        let mut result = result;
        if result.is_string() {
            result.coercibility = Coercibility::Coercible;
        }
        Expr { kind: ExprKind::Parameter(index), result }
    }

    /// `@name`, with the type it has now (`None`: it is not set).
    pub fn user_variable(&self, name: &str, result: Option<ResultType>) -> Expr {
        let is_set = |result: &ResultType| result.coercibility != Coercibility::Ignorable;
        let result = result.filter(is_set).unwrap_or_else(|| {
            let mut unset = ResultType::string(
                16_777_216,
                CollationId::BINARY,
                Coercibility::Implicit,
                false,
                true,
            );
            unset.column_type.kind = types::TypeKind::LongBlob;
            unset
        });
        let mut result = result.with_nullable(true);
        if result.is_string() {
            result.coercibility = Coercibility::Implicit;
        }
        if result.is_string() {
            result.column_type.scale = crate::result_type::STRING_DECIMALS;
            // Whatever it holds now.
            result.ascii = false;
        }
        result.is_variable = true;
        result.is_hex = false;
        Expr { kind: ExprKind::UserVariable(name.to_lowercase()), result }
    }

    /// `@name := value`.
    pub fn assign(&self, name: &str, value: Expr) -> Result<Expr, SqlError> {
        let value = scalar(value)?;
        let mut result = variable_type(value.result);
        if let TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int =
            result.column_type.kind
            && result.text_length() >= 10
        {
            result.column_type.kind = TypeKind::BigInt;
        }
        if result.is_string() {
            result.coercibility = Coercibility::Implicit;
        }
        Ok(Expr { kind: ExprKind::Assign(name.to_lowercase(), Box::new(value)), result })
    }

    /// `(a, b, ...)`.
    pub fn row(&self, elements: Vec<Expr>) -> Expr {
        let nullable = elements.iter().any(|element| element.result.nullable);
        Expr { kind: ExprKind::Row(elements), result: ResultType::boolean(nullable) }
    }

    /// An expression whose value is to be stored into a column: 0x41 and b'1' count as numbers
    /// for numeric columns.
    pub fn for_column(&self, value: Expr, target: &ColumnType) -> Expr {
        let is_number = target.kind.is_number() && target.kind != types::TypeKind::Bit;
        let mut value = if is_number { number_of_hex(value) } else { value };
        if is_number && value.result.is_hex && value.result.is_string() {
            // One of several choices, each of which is such a literal.
            let operand = Box::new(value);
            let result = ResultType::bigint(true, operand.result.nullable);
            let kind = ExprKind::Cast { operand, pads: false, cuts: false, name: None };
            value = Expr { kind, result };
        }
        let is_computed = !matches!(value.kind, ExprKind::Column { .. });
        if target.kind.is_string() && is_computed && value.result.column_type.kind.is_floating() {
            // Its text has the digits that the value has.
            value.result.column_type.scale = types::column_type::SCALE_NOT_FIXED;
        }
        value
    }

    /// A call by name, as written. 1305 for an unknown name, 1582 for a wrong number of
    /// arguments.
    pub fn call(&self, name: &str, arguments: Vec<Expr>) -> Result<Expr, SqlError> {
        if name.eq_ignore_ascii_case("mod") {
            return match <[Expr; 2]>::try_from(arguments) {
                Ok([left, right]) => self.arithmetic(ArithmeticOperator::Modulo, left, right),
                Err(_) => Err(SqlError::new(&codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name])),
            };
        }
        let Some(function) = functions::find(name) else {
            return Err(SqlError::new(&codes::SP_DOES_NOT_EXIST, &[&"FUNCTION", &name]));
        };
        if !function.accepts(arguments.len()) {
            return Err(SqlError::new(&codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name]));
        }
        let mut arguments = arguments;
        for argument in &arguments {
            one_column(argument)?;
        }
        let result = function.resolve(self, &mut arguments)?;
        Ok(Expr { kind: ExprKind::Call { function, arguments }, result })
    }

    /// A call of a function whose first argument is a unit: `extract`, `timestampdiff`,
    /// `timestampadd`.
    pub fn unit_call(
        &self,
        name: &str,
        unit: IntervalUnit,
        arguments: Vec<Expr>,
    ) -> Result<Expr, SqlError> {
        functions::temporal_units::build(self, name, unit, arguments)
    }
}

/// 1241 unless the expression is a scalar.
pub(crate) fn one_column(expr: &Expr) -> Result<(), SqlError> {
    match &expr.kind {
        ExprKind::Row(_) => Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&1])),
        _ => Ok(()),
    }
}

fn scalar(expr: Expr) -> Result<Expr, SqlError> {
    one_column(&expr)?;
    Ok(expr)
}

/// The type that a user variable has after a value of this type was assigned: dates and times are
/// text in it.
pub fn variable_type(result: ResultType) -> ResultType {
    let result = ResultType { is_json: false, is_json_part: false, is_truth: false, ..result };
    let kind = result.column_type.kind;
    if kind == TypeKind::Null {
        let nothing = Coercibility::Ignorable;
        return ResultType::string(0, CollationId::BINARY, nothing, true, true);
    }
    if kind == TypeKind::Float {
        return ResultType::double(result.nullable);
    }
    if !kind.is_temporal() {
        return result;
    }
    let length = u64::from(result.text_length());
    let collation = types::collation::default_of(types::Charset::Latin1).id;
    ResultType::string(length, collation, Coercibility::Implicit, true, result.nullable)
}

/// A value as a user variable keeps it, with its type.
pub fn variable_of(
    value: ValueRef<'_>,
    result: &ResultType,
    zone: types::TimeZone,
) -> UserVariable {
    let kept = match value {
        ValueRef::Float(v) => Value::Double(f64::from(v)),
        _ if !result.column_type.kind.is_temporal() || value.is_null() => value.to_owned(),
        _ => Value::Bytes(types::text::to_text(value, &result.column_type, zone)),
    };
    UserVariable { value: kept, result: variable_type(*result) }
}
