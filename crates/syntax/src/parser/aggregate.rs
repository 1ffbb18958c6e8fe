//! Aggregates and windows.

use super::*;

impl Parser<'_> {
    /// A call of an aggregate function.
    #[inline(never)]
    pub(super) fn aggregate_call(&mut self, function: AggregateFunction) -> Result<Expression> {
        self.open_call()?;
        let mut call = AggregateCall {
            function,
            distinct: false,
            arguments: Vec::new(),
            order_by: Vec::new(),
            separator: None,
            limit: None,
        };
        if !(function == AggregateFunction::Count && self.eat(Symbol::Star)) {
            call.distinct = self.eat(Keyword::DISTINCT);
            if !call.distinct {
                self.eat(Keyword::ALL);
            }
            let several = matches!(
                function,
                AggregateFunction::GroupConcat
                    | AggregateFunction::JsonArray
                    | AggregateFunction::JsonObject
            ) || (function == AggregateFunction::Count && call.distinct);
            call.arguments.push(self.expression()?);
            while several && self.eat(Symbol::Comma) {
                call.arguments.push(self.expression()?);
            }
        }
        if matches!(function, AggregateFunction::GroupConcat | AggregateFunction::JsonArray) {
            call.order_by = self.order_by()?;
            if self.eat(Keyword::SEPARATOR) {
                call.separator = Some(self.text_literal()?);
            }
            call.limit = self.limit()?;
        }
        self.expect(Symbol::RightParenthesis)?;
        self.over(Expression::Aggregate(Box::new(call)))
    }

    /// OVER behind a call.
    #[inline(never)]
    pub(super) fn over(&mut self, function: Expression) -> Result<Expression> {
        if !self.eat(Keyword::OVER) {
            return Ok(function);
        }
        let (name, window) = if self.at(Symbol::LeftParenthesis) {
            (None, self.window_definition()?)
        } else {
            (Some(self.name()?), WindowDefinition::default())
        };
        Ok(Expression::Window(Box::new(WindowCall { function, name, window })))
    }

    /// `([base] [PARTITION BY ...] [ORDER BY ...] [frame])`.
    #[inline(never)]
    pub(super) fn window_definition(&mut self) -> Result<WindowDefinition> {
        self.expect(Symbol::LeftParenthesis)?;
        let mut window = WindowDefinition::default();
        if self.at_name() {
            window.base = Some(self.name()?);
        }
        if self.eat(Keyword::PARTITION) {
            self.expect(Keyword::BY)?;
            window.partition_by = self.list(Self::expression)?;
        }
        window.order_by = self.order_by()?;
        if self.at_any(&[Keyword::ROWS, Keyword::RANGE]) {
            let start = self.token.start;
            while !self.at(Symbol::RightParenthesis) {
                if self.at(Kind::End) || self.at(Kind::Invalid) {
                    return Err(self.unexpected());
                }
                self.advance();
            }
            window.frame = self.source(start, self.previous_end);
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(window)
    }
}

/// The aggregate function of this name in lower case.
pub(super) fn aggregate(word: &str) -> Option<AggregateFunction> {
    Some(match word {
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "avg" => AggregateFunction::Average,
        "min" => AggregateFunction::Minimum,
        "max" => AggregateFunction::Maximum,
        "group_concat" => AggregateFunction::GroupConcat,
        "std" | "stddev" | "stddev_pop" => AggregateFunction::StandardDeviation,
        "stddev_samp" => AggregateFunction::SampleStandardDeviation,
        "variance" | "var_pop" => AggregateFunction::Variance,
        "var_samp" => AggregateFunction::SampleVariance,
        "bit_and" => AggregateFunction::BitAnd,
        "bit_or" => AggregateFunction::BitOr,
        "bit_xor" => AggregateFunction::BitXor,
        "json_arrayagg" => AggregateFunction::JsonArray,
        "json_objectagg" => AggregateFunction::JsonObject,
        _ => return None,
    })
}
