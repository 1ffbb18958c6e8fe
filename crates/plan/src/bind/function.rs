//! Calls of functions and targets of CAST.

use super::expression::interval_unit;
use super::*;
use engine_api::ColumnDefault;
use expr::{CastTarget, ExprKind};
use syntax::ast::TypeNameKind as T;
use types::Value;

impl<'q> Binder<'_, '_, 'q> {
    pub(super) fn bind_function(&mut self, call: &'q ast::FunctionCall) -> Result<Expr> {
        if let Some(schema) = &call.schema {
            let name = format!("{schema}.{}", call.name);
            return Err(SqlError::new(&codes::SP_DOES_NOT_EXIST, &[&"FUNCTION", &name]));
        }
        if let Some(ast::Expression::Unit(unit)) = call.arguments.first() {
            let arguments = &call.arguments[1..];
            let arguments = arguments.iter().map(|a| self.bind_scalar(a)).collect::<Result<_>>()?;
            let name = call.name.to_ascii_lowercase();
            return self.builder().unit_call(&name, interval_unit(*unit), arguments);
        }
        let arguments = call.arguments.iter();
        let arguments = arguments.map(|a| self.bind_scalar(a)).collect::<Result<_>>()?;
        self.call(call, arguments)
    }

    /// A call that is selected, or one of several values of which one is: only functions that
    /// choose say for themselves whether they may be NULL.
    pub(super) fn bind_selected_function(&mut self, call: &'q ast::FunctionCall) -> Result<Expr> {
        let chooses =
            ["coalesce", "ifnull", "nvl"].iter().any(|it| call.name.eq_ignore_ascii_case(it));
        if !chooses || call.schema.is_some() {
            return self.bind_function(call);
        }
        let arguments = call.arguments.iter();
        let arguments = arguments.map(|a| self.bind_selected(a)).collect::<Result<_>>()?;
        self.call(call, arguments)
    }

    fn call(&mut self, call: &'q ast::FunctionCall, arguments: Vec<Expr>) -> Result<Expr> {
        self.builder()
            .call(&call.name, arguments)
            .map_err(|error| self.unknown_function(error, call))
    }

    /// An unknown function is taken for a stored one of the session's database.
    fn unknown_function(&self, error: SqlError, call: &ast::FunctionCall) -> SqlError {
        if !error.is(&codes::SP_DOES_NOT_EXIST) {
            return error;
        }
        match self.context.database {
            Some(database) => {
                let name = format!("{database}.{}", call.name);
                SqlError::new(&codes::SP_DOES_NOT_EXIST, &[&"FUNCTION", &name])
            }
            None => error,
        }
    }

    /// The default value of a column as a constant (1364 if it has none).
    pub(super) fn default_of(&mut self, column: &Expr, name: &ast::ColumnName) -> Result<Expr> {
        let missing = || SqlError::new(&codes::NO_DEFAULT_FOR_FIELD, &[&name.name]);
        let ExprKind::Column { position, .. } = column.kind else { return Err(missing()) };
        let Some((_, named)) = self.block().column_at(position) else { return Err(missing()) };
        let (schema, table, org_name) = (named.schema, named.org_table, named.org_name);
        let found = self.entries.iter().find_map(|entry| {
            let definition = entry.0.definition();
            let same = definition.schema == schema && definition.name == table;
            let position = definition.column_position(&org_name).filter(|_| same)?;
            Some(definition.columns[position].clone())
        });
        let Some(definition) = found else { return Err(missing()) };
        match definition.default {
            ColumnDefault::Null => Ok(self.builder().computed(Value::Null, column.result)),
            ColumnDefault::None if definition.nullable => {
                Ok(self.builder().computed(Value::Null, column.result))
            }
            ColumnDefault::None => Err(missing()),
            ColumnDefault::Constant(text) => {
                let text = self.builder().text(text, None)?;
                self.cast_to_column(text, &definition.column_type)
            }
            ColumnDefault::CurrentTimestamp => self.builder().call("now", Vec::new()),
            ColumnDefault::Generated { .. } => {
                let null = self.builder().null();
                self.cast_to_column(null, &definition.column_type)
            }
            ColumnDefault::Expression(text) => {
                let entry = self.entries.iter().find(|entry| {
                    let definition = entry.0.definition();
                    definition.schema == schema && definition.name == table
                });
                let entry = entry.ok_or_else(missing)?.0.clone();
                let own = entry.definition().column_position(&org_name).ok_or_else(missing)?;
                let first = position.saturating_sub(own);
                let definition = entry.definition();
                let mut bound =
                    crate::computed::default_expression(self.context, definition, &text)?;
                bound.map_columns(&mut |at| at + first);
                let column_type = definition.columns[own].column_type;
                self.cast_to_column(bound, &column_type)
            }
        }
    }

    /// A constant as a value of a column's type, as far as CAST can say it.
    fn cast_to_column(&mut self, text: Expr, column: &types::ColumnType) -> Result<Expr> {
        use types::TypeKind as K;
        let target = match column.kind {
            kind if kind.is_integer() && column.unsigned => CastTarget::Unsigned,
            kind if kind.is_integer() => CastTarget::Signed,
            K::Decimal => CastTarget::Decimal {
                precision: u32::from(column.precision),
                scale: u32::from(column.scale),
            },
            K::Float | K::Double => CastTarget::Double,
            K::Date => CastTarget::Date,
            K::DateTime | K::Timestamp => CastTarget::DateTime(column.scale),
            K::Time => CastTarget::Time(column.scale),
            _ => return Ok(text),
        };
        self.builder().cast(text, target)
    }

    /// What CAST converts to.
    pub(super) fn cast_target(&self, target: &ast::TypeName) -> Result<CastTarget> {
        let narrow = |value: Option<u64>, default: u32| {
            value.map_or(default, |value| u32::try_from(value).unwrap_or(u32::MAX))
        };
        let scale = u8::try_from(narrow(target.length, 0)).unwrap_or(u8::MAX);
        let length = target.length.map(|length| u32::try_from(length).unwrap_or(u32::MAX));
        Ok(match target.kind {
            T::CastSigned => CastTarget::Signed,
            T::CastUnsigned => CastTarget::Unsigned,
            T::Decimal => CastTarget::Decimal {
                precision: narrow(target.length, 10),
                scale: narrow(target.scale, 0),
            },
            T::Double => CastTarget::Double,
            T::Float => CastTarget::Float,
            T::Binary => CastTarget::Binary { length },
            T::Char => {
                let collation = self.cast_collation(target)?;
                CastTarget::Char { length, collation }
            }
            T::Date => CastTarget::Date,
            T::Time => CastTarget::Time(scale),
            T::DateTime => CastTarget::DateTime(scale),
            _ => return Err(unsupported("CAST to this type")),
        })
    }

    fn cast_collation(&self, target: &ast::TypeName) -> Result<Option<types::CollationId>> {
        if target.charset.as_deref() == Some("binary") {
            return Ok(Some(types::CollationId::BINARY));
        }
        if let Some(name) = &target.collation {
            let found = types::collation::by_name(name).map(|collation| collation.id);
            let unknown = || SqlError::new(&codes::UNKNOWN_COLLATION, &[name]);
            return found.map(Some).ok_or_else(unknown);
        }
        let Some(charset) = &target.charset else { return Ok(None) };
        let unknown = || SqlError::new(&codes::UNKNOWN_CHARACTER_SET, &[charset]);
        let set = types::Charset::by_name(charset).ok_or_else(unknown)?;
        let collation = if target.binary {
            types::collation::binary_of(set)
        } else {
            types::collation::default_of(set)
        };
        Ok(Some(collation.id))
    }
}
