//! Comparisons and logic.

use super::collations::{
    CollationUse, Strength, aggregate_collations, convert_if_safe, is_known_at_start,
};
use super::{Builder, one_column, scalar, text_as_decimal, text_as_double};
use crate::compare::CompareRule;
use crate::expression::{CompareOperator, Expr, ExprKind, Literal, LiteralForm, Test};
use crate::functions::control;
use crate::predicates::put_warning_first;
use crate::result_type::{Coercibility, ResultType};
use crate::whole;
use types::{CollationId, SqlError, TypeKind, Value, codes};

impl Builder<'_> {
    /// `operand IS [NOT] NULL | TRUE | FALSE`.
    pub fn is(&self, operand: Expr, test: Test, negated: bool) -> Result<Expr, SqlError> {
        let operand = match test {
            Test::Null => scalar(operand)?,
            Test::True | Test::False => text_as_double(scalar(operand)?),
        };
        let operand = Box::new(operand);
        let result = ResultType::boolean(false);
        // Tests are never NULL, whatever they test.
        let is_test = matches!(
            operand.kind,
            ExprKind::Is { .. }
                | ExprKind::Compare { operator: CompareOperator::NullSafeEqual, .. }
        );
        let is_never_null = !operand.result.nullable && (is_test || operand.is_constant());
        if test == Test::Null
            && (is_never_null || matches!(operand.kind, ExprKind::CompareRows { .. }))
        {
            // The server takes a comparison of rows to be never NULL here.
            return Ok(self.computed(Value::Int(negated.into()), result));
        }
        Ok(Expr { kind: ExprKind::Is { operand, test, negated }, result })
    }

    /// `left operator right`, scalars or rows of the same width (1241 otherwise).
    pub fn compare(
        &self,
        operator: CompareOperator,
        left: Expr,
        right: Expr,
    ) -> Result<Expr, SqlError> {
        let nullable = operator != CompareOperator::NullSafeEqual
            && (left.result.nullable || right.result.nullable);
        let result = ResultType::boolean(nullable);
        let (mut left, mut right) = (left, right);
        if let Some(rules) = self.row_rules(operator.symbol(), &mut left, &mut right)? {
            let (left, right) = (Box::new(left), Box::new(right));
            let kind = ExprKind::CompareRows { operator, rules, left, right };
            return Ok(Expr { kind, result });
        }
        let rule = self.pair_rule(operator.symbol(), &mut left, &mut right)?;
        let kind =
            ExprKind::Compare { operator, rule, left: Box::new(left), right: Box::new(right) };
        Ok(Expr { kind, result })
    }

    /// The rule for two scalars, which may come back converted.
    fn pair_rule(
        &self,
        operation: &str,
        left: &mut Expr,
        right: &mut Expr,
    ) -> Result<CompareRule, SqlError> {
        self.unquote_json(left, right)?;
        self.unquote_json(right, left)?;
        self.compared_with_column(left, right)?;
        self.compared_with_column(right, left)?;
        let rule = CompareRule::of_pair(left, right);
        let mut pair = [take(left), take(right)];
        let decided = self.decide(operation, rule, &mut pair);
        let [first, second] = pair;
        (*left, *right) = (first, second);
        decided
    }

    /// Makes a constant date or time what a column of years, or of BIGINT, would keep of it.
    pub(crate) fn compared_with_column(
        &self,
        column: &Expr,
        constant: &mut Expr,
    ) -> Result<(), SqlError> {
        self.year_of_constant(column, constant)?;
        self.number_of_constant(column, constant);
        Ok(())
    }

    /// A constant date beside a column of years is its year; a time is none.
    fn year_of_constant(&self, column: &Expr, constant: &mut Expr) -> Result<(), SqlError> {
        let is_column = matches!(column.kind, ExprKind::Column { .. });
        let kind = constant.result.column_type.kind;
        if !is_column
            || column.result.column_type.kind != TypeKind::Year
            || !kind.is_temporal()
            || !constant.is_constant()
        {
            return Ok(());
        }
        let year = match constant.literal() {
            Some(Value::Time(_)) => Some(0),
            Some(Value::Date(date)) => crate::years::year_of(*date),
            Some(Value::DateTime(moment)) => crate::years::year_of(moment.date()),
            _ if kind != TypeKind::Time => {
                *constant = self.call("year", vec![take(constant)])?;
                return Ok(());
            }
            _ => None,
        };
        if let Some(year) = year {
            *constant = self.computed(Value::Int(year), ResultType::bigint(false, false));
        }
        Ok(())
    }

    /// A constant date or time beside a BIGINT column is its number, if it has no fraction.
    fn number_of_constant(&self, column: &Expr, constant: &mut Expr) {
        let is_column = matches!(column.kind, ExprKind::Column { .. });
        if !is_column
            || column.result.column_type.kind != TypeKind::BigInt
            || !constant.result.column_type.kind.is_temporal()
        {
            return;
        }
        let number = match constant.known_value(self.settings()) {
            Some(Value::Date(date)) => date.to_number() as i64,
            Some(Value::DateTime(moment)) if moment.micros() == 0 => moment.to_number() as i64,
            Some(Value::Time(time)) if time.0 % 1_000_000 == 0 => time.to_number(),
            _ => return,
        };
        *constant = self.computed(Value::Int(number), ResultType::bigint(false, false));
    }

    /// A string that JSON_EXTRACT gives is compared with others without its quotes.
    fn unquote_json(&self, side: &mut Expr, other: &Expr) -> Result<(), SqlError> {
        let other = &other.result;
        if side.result.is_json_part && !other.is_json && other.is_string() {
            *side = self.call("json_unquote", vec![take(side)])?;
        }
        Ok(())
    }

    /// Fills in the collation of a text rule and converts constants to what they are
    /// compared as.
    fn decide(
        &self,
        operation: &str,
        rule: CompareRule,
        operands: &mut [Expr],
    ) -> Result<CompareRule, SqlError> {
        if matches!(rule, CompareRule::Text(_)) {
            let (collation, ..) =
                aggregate_collations(self, operation, operands, CollationUse::Compare)?;
            return Ok(CompareRule::Text(collation));
        }
        if let CompareRule::Double | CompareRule::Near(_) = rule
            && let Some(decided) = whole::rule_beside(operation, rule, operands)
        {
            return Ok(decided);
        }
        // Of a table: an aggregate of years is a number.
        let is_year = |e: &Expr| e.result.column_type.kind == TypeKind::Year && e.result.is_column;
        let years = !rule.is_temporal()
            && match operation {
                "case" => false,
                "between" | "in" => operands.first().is_some_and(is_year),
                _ => operands.iter().any(is_year),
            };
        for operand in operands.iter_mut() {
            let taken = take(operand);
            let taken = if years { full_year(taken) } else { taken };
            let taken = match rule {
                rule if rule.is_temporal() => taken,
                CompareRule::Decimal => text_as_decimal(taken),
                _ => text_as_double(taken),
            };
            *operand = rule.prepare_constant(taken);
        }
        Ok(rule)
    }

    /// Rules for two rows, `None` for two scalars.
    fn row_rules(
        &self,
        operation: &str,
        left: &mut Expr,
        right: &mut Expr,
    ) -> Result<Option<Vec<CompareRule>>, SqlError> {
        let Some((a, b)) = two_rows(operation, left, right)? else { return Ok(None) };
        let pairs = a.iter_mut().zip(b);
        pairs.map(|(x, y)| self.pair_rule(operation, x, y)).collect::<Result<_, _>>().map(Some)
    }

    /// `operand [NOT] BETWEEN low AND high`.
    pub fn between(
        &self,
        operand: Expr,
        low: Expr,
        high: Expr,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let mut operands = [scalar(operand)?, scalar(low)?, scalar(high)?];
        let nullable = operands.iter().any(|e| e.result.nullable);
        let rule = CompareRule::of_list(&operands);
        let rule = self.decide("between", rule, &mut operands)?;
        let [operand, low, high] = operands.map(Box::new);
        let kind = ExprKind::Between { operand, low, high, rule, negated };
        Ok(Expr { kind, result: ResultType::boolean(nullable) })
    }

    /// `operand [NOT] IN (list)`.
    pub fn in_list(&self, operand: Expr, list: Vec<Expr>, negated: bool) -> Result<Expr, SqlError> {
        let mut list = list;
        if let [one] = &mut list[..] {
            let operator = if negated { CompareOperator::NotEqual } else { CompareOperator::Equal };
            return self.compare(operator, operand, take(one));
        }
        let mut operand = operand;
        let nullable =
            operand.result.nullable || list.iter().any(|candidate| candidate.result.nullable);
        let rules = if is_row(&operand) || list.iter().any(is_row) {
            self.row_list_rules(&mut operand, &mut list)?
        } else {
            let rules = self.list_rules("in", &mut operand, &mut list)?;
            rules.into_iter().map(|rule| vec![rule]).collect()
        };
        let mut list: Vec<_> = list.into_iter().zip(rules).collect();
        put_warning_first(&mut list);
        let kind = ExprKind::In { operand: Box::new(operand), list, negated };
        Ok(Expr { kind, result: ResultType::boolean(nullable) })
    }

    /// The rules for a row that is compared with a list of rows. In a list of several, each
    /// column has one rule for all rows, and texts are compared as the left one's collation says.
    fn row_list_rules(
        &self,
        operand: &mut Expr,
        list: &mut [Expr],
    ) -> Result<Vec<Vec<CompareRule>>, SqlError> {
        let mut columns: Vec<Vec<Expr>> = Vec::new();
        for candidate in list.iter_mut() {
            let Some((left, right)) = two_rows("in", operand, candidate)? else { continue };
            columns.resize_with(left.len(), Vec::new);
            for ((column, x), y) in columns.iter_mut().zip(left).zip(right) {
                if column.is_empty() {
                    column.push(x.clone());
                }
                column.push(y.clone());
            }
        }
        let common: Vec<_> = columns.iter().map(|column| CompareRule::of_list(column)).collect();
        let mut all = Vec::with_capacity(list.len());
        for candidate in list {
            let mut rules = Vec::new();
            if let Some((left, right)) = two_rows("in", operand, candidate)? {
                for ((x, y), rule) in left.iter_mut().zip(right).zip(&common) {
                    rules.push(self.column_rule(x, y, *rule)?);
                }
            }
            all.push(rules);
        }
        Ok(all)
    }

    /// The rule for one column of rows in a list, where all of that column are compared by
    /// `rule`. `right` comes back converted.
    fn column_rule(
        &self,
        left: &Expr,
        right: &mut Expr,
        rule: CompareRule,
    ) -> Result<CompareRule, SqlError> {
        if matches!(rule, CompareRule::Text(_)) {
            let collation = Strength::of(&left.result).collation;
            convert_if_safe(self, right, collation);
            return Ok(CompareRule::Text(collation));
        }
        let mut pair = [left.clone(), take(right)];
        let decided = self.decide("in", rule, &mut pair);
        let [_, second] = pair;
        *right = second;
        decided
    }

    /// The rules for an operand that is compared with several candidates: texts have one
    /// collation together.
    fn list_rules(
        &self,
        operation: &str,
        operand: &mut Expr,
        list: &mut [Expr],
    ) -> Result<Vec<CompareRule>, SqlError> {
        let pairs: Vec<_> = list.iter().map(|it| CompareRule::of_candidate(operand, it)).collect();
        let is_text = |(rule, candidate): (&CompareRule, &Expr)| {
            matches!(rule, CompareRule::Text(_))
                && candidate.result.column_type.kind != TypeKind::Null
        };
        let mut collation = CollationId::BINARY;
        if pairs.iter().zip(&*list).any(is_text) {
            let mut all = vec![take(operand)];
            all.extend(list.iter_mut().map(take));
            let decided = aggregate_collations(self, operation, &mut all, CollationUse::Compare);
            let mut all = all.into_iter();
            *operand = all.next().unwrap_or_else(|| self.null());
            list.iter_mut().zip(all).for_each(|(place, candidate)| *place = candidate);
            collation = decided?.0;
        }
        let mut rules = Vec::with_capacity(list.len());
        for (rule, candidate) in pairs.into_iter().zip(list) {
            rules.push(match rule {
                CompareRule::Text(_) => CompareRule::Text(collation),
                rule => {
                    let mut pair = [operand.clone(), take(candidate)];
                    let rule = self.decide(operation, rule, &mut pair)?;
                    let [_, second] = pair;
                    *candidate = second;
                    rule
                }
            });
        }
        if rules.iter().all(|rule| *rule == CompareRule::Decimal) {
            *operand = text_as_decimal(take(operand));
        } else if !rules.iter().any(|it| matches!(it, CompareRule::Text(_)) || it.is_temporal()) {
            *operand = text_as_double(take(operand));
        }
        Ok(rules)
    }

    /// `operand [NOT] LIKE pattern ESCAPE escape`; the escape is `\` if `None` (or nothing
    /// under NO_BACKSLASH_ESCAPES), 1210 if it is no constant single character.
    pub fn like(
        &self,
        operand: Expr,
        pattern: Expr,
        escape: Option<Expr>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let mut operands = [scalar(operand)?, scalar(pattern)?];
        let nullable = operands.iter().any(|e| e.result.nullable);
        let (collation, ..) =
            aggregate_collations(self, "like", &mut operands, CollationUse::Compare)?;
        let default = if self.settings.sql_mode.contains(types::SqlMode::NO_BACKSLASH_ESCAPES) {
            None
        } else {
            Some(u32::from('\\'))
        };
        let escape = match escape.as_ref().map(|e| (e, e.literal())) {
            None | Some((_, Some(Value::Null))) => default,
            Some((expr, Some(Value::Bytes(text)))) => {
                let charset = expr.result.collation().charset();
                match charset.character_count(text) {
                    0 => None,
                    1 => charset.decode(text).map(|(code_point, _)| code_point),
                    _ => return Err(SqlError::new(&codes::WRONG_ARGUMENTS, &[&"ESCAPE"])),
                }
            }
            _ => return Err(SqlError::new(&codes::WRONG_ARGUMENTS, &[&"ESCAPE"])),
        };
        let [operand, pattern] = operands.map(Box::new);
        let kind = ExprKind::Like { operand, pattern, escape, collation, negated };
        Ok(Expr { kind, result: ResultType::boolean(nullable) })
    }

    /// The type that the columns of a UNION have together; 1271 where two texts have no collation
    /// together.
    pub fn union_type(&self, types: &[ResultType]) -> Result<ResultType, SqlError> {
        let mut values: Vec<Expr> =
            types.iter().map(|result| self.computed(Value::Null, in_union(*result))).collect();
        let result = control::common_result(self, "UNION", &mut values)?;
        if result.is_string() && result.coercibility == Coercibility::None {
            return Err(SqlError::new(&codes::CANT_AGGREGATE_NCOLLATIONS, &[&"UNION"]));
        }
        if result.column_type.kind == TypeKind::Null {
            let column_type = types::ColumnType::binary(TypeKind::Binary, 0);
            return Ok(ResultType { column_type, ..result });
        }
        let mut result = result;
        result.column_type.unsigned &= !result.is_string();
        Ok(result)
    }

    /// The error of a UNION whose texts cannot be brought to one character set.
    pub fn union_refusal(&self, types: &[ResultType]) -> SqlError {
        let values: Vec<Expr> =
            types.iter().map(|result| self.computed(Value::Null, in_union(*result))).collect();
        super::collations::mix_error("UNION", &values)
    }

    /// CASE.
    pub fn case(
        &self,
        operand: Option<Expr>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Expr>,
    ) -> Result<Expr, SqlError> {
        let all_null = branches.iter().all(|(_, value)| value.is_written_null())
            && otherwise.iter().all(Expr::is_written_null)
            && branches.iter().all(|(when, _)| is_known_at_start(when))
            && operand.iter().all(is_known_at_start);
        if all_null {
            // Nobody asks which NULL it is.
            return Ok(self.null());
        }
        let (mut whens, mut values): (Vec<_>, Vec<_>) = branches.into_iter().unzip();
        let has_else = otherwise.is_some();
        values.extend(otherwise);
        for value in &values {
            one_column(value)?;
        }
        let mut result = control::common_result(self, "case", &mut values)?;
        // Also where it is brought to another character set for it.
        result.nullable |= values.last().is_none_or(|last| !has_else || last.result.nullable)
            || operand.as_ref().is_some_and(|operand| operand.result.nullable)
            || whens.iter().any(|when| when.result.nullable);
        let otherwise = if has_else { values.pop().map(Box::new) } else { None };
        let operand = match operand {
            None => {
                whens = whens.into_iter().map(text_as_double).collect();
                None
            }
            Some(operand) => {
                let mut operand = operand;
                let rules = self.list_rules("case", &mut operand, &mut whens)?;
                Some((Box::new(operand), rules))
            }
        };
        let branches = whens.into_iter().zip(values).collect();
        Ok(Expr { kind: ExprKind::Case { operand, branches, otherwise }, result })
    }
}

/// A constant that is compared with a YEAR: below 100 it stands for a year of 1970 to 2069.
fn full_year(mut expr: Expr) -> Expr {
    let is_computed = !matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Converted { .. })
        && is_known_at_start(&expr);
    match &mut expr.kind {
        kind if is_computed || matches!(kind, ExprKind::Parameter(_)) => {
            let result = expr.result;
            let kind = ExprKind::Converted {
                original: std::sync::Arc::new(expr),
                value: None,
                rule: CompareRule::Year,
            };
            Expr { kind, result: ResultType::decimal(65, 30, false, result.nullable) }
        }
        ExprKind::Literal(literal) => {
            if let Some(year) = crate::years::full_year(literal.value.as_ref()) {
                literal.value = Value::Int(year);
                expr.result = ResultType::bigint(false, false);
            }
            expr
        }
        _ => expr,
    }
}

/// The type of a value in a UNION, whose column does not know of variables.
fn in_union(result: ResultType) -> ResultType {
    ResultType { is_variable: false, ..result }
}

fn is_row(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Row(_))
}

/// The elements of two rows, which must be as many scalars (4078, 1241); none of two scalars.
fn two_rows<'r>(
    operation: &str,
    left: &'r mut Expr,
    right: &'r mut Expr,
) -> Result<Option<(&'r mut [Expr], &'r mut [Expr])>, SqlError> {
    if !is_row(left) && !is_row(right) {
        return Ok(None);
    }
    let name = |expr: &Expr| if is_row(expr) { "row" } else { expr.result.type_name() };
    let names = [name(left), name(right)];
    let (ExprKind::Row(a), ExprKind::Row(b)) = (&mut left.kind, &mut right.kind) else {
        return Err(SqlError::new(
            &codes::ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION,
            &[&names[0], &names[1], &operation],
        ));
    };
    if a.len() != b.len() {
        return Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&a.len()]));
    }
    for element in a.iter().chain(b.iter()) {
        one_column(element)?;
    }
    Ok(Some((a, b)))
}

/// Takes an expression out, leaving NULL.
fn take(expr: &mut Expr) -> Expr {
    let literal = Literal::new(Value::Null, LiteralForm::Plain);
    std::mem::replace(expr, Expr { kind: ExprKind::Literal(literal), result: ResultType::null() })
}
