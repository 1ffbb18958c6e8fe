//! The values of a row: of a list, of packed literals, of a query.

use super::Inserter;
use crate::ExecError;
use crate::change::computed::refuse_values;
use crate::context::Exec;
use expr::Builder;
use plan::physical::{InsertValue, ResultColumn, packed_literal};
use syntax::ast::PackedLiteral;
use types::{Value, ValueRef};

impl Inserter<'_> {
    pub(super) fn values_of_list(
        &self,
        exec: &Exec<'_>,
        row: &[InsertValue],
    ) -> Result<Vec<Value>, ExecError> {
        let mut values = self.blank(exec)?;
        for (&position, value) in self.plan.columns.iter().zip(row) {
            values[position] = match value {
                InsertValue::Default => self.maker.default_value(exec, position)?,
                InsertValue::Refused(refused) => {
                    refuse_values(exec, self.maker.definition(), [refused])?;
                    Value::Null
                }
                InsertValue::Expr(expr) => {
                    let value = expr.eval_stored(exec.eval, &values)?;
                    self.maker.store(exec, position, value, &expr.result)?
                }
            };
        }
        Ok(values)
    }

    pub(super) fn values_of_literals<'r>(
        &self,
        exec: &Exec<'_>,
        literals: &mut impl Iterator<Item = PackedLiteral<'r>>,
    ) -> Result<Vec<Value>, ExecError> {
        let mut values = self.blank(exec)?;
        let builder = Builder::new(&exec.eval.settings);
        for (&position, literal) in self.plan.columns.iter().zip(literals) {
            let column_type = &self.maker.definition().columns[position].column_type;
            let expr = packed_literal(&builder, literal, column_type)?;
            let value = expr.eval(exec.eval, &values)?;
            values[position] = self.maker.store(exec, position, value, &expr.result)?;
        }
        Ok(values)
    }

    pub(super) fn values_of_query<'r>(
        &self,
        exec: &Exec<'_>,
        mut next: impl FnMut() -> ValueRef<'r>,
        columns: &[ResultColumn],
    ) -> Result<Vec<Value>, ExecError> {
        let mut values = self.blank(exec)?;
        for (&position, column) in self.plan.columns.iter().zip(columns) {
            let value = next();
            if self.refuses(exec, position)? {
                continue;
            }
            values[position] = self.maker.store(exec, position, value, &column.result)?;
        }
        Ok(values)
    }

    /// Whether a query's values for a column are not taken, since it is generated.
    fn refuses(&self, exec: &Exec<'_>, position: usize) -> Result<bool, ExecError> {
        let Some(computed) = &self.plan.computed else { return Ok(false) };
        let refused = computed.refused.iter().find(|refused| refused.column == position);
        refuse_values(exec, self.maker.definition(), refused)?;
        Ok(refused.is_some())
    }
}
