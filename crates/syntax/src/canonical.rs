//! Queries in the form in which MariaDB keeps and shows views: words in small letters, names
//! between backticks, parentheses only where they are needed.
//!
//! The text reads back to the same tree, except for what is written in two ways (`a % b` is
//! `a MOD b`, `upper` is `ucase`). Names of columns and tables are printed as they stand in the
//! tree; whoever wants them qualified qualifies the tree first.

use crate::ast::*;
pub use crate::style::{Style, quoted};
use std::fmt::Write;

/// The query as text; what cannot stand in a view is an error that names it.
pub fn query(query: &Query, style: Style<'_>) -> Result<String, &'static str> {
    let mut printer = Printer { out: String::new(), style };
    printer.query(query, true)?;
    Ok(printer.out)
}

/// An expression as text.
pub fn expression(expression: &Expression, style: Style<'_>) -> Result<String, &'static str> {
    let mut printer = Printer { out: String::new(), style };
    printer.expression(expression, 0)?;
    Ok(printer.out)
}

type Done = Result<(), &'static str>;

struct Printer<'a> {
    out: String,
    style: Style<'a>,
}

mod rank {
    pub const OR: u8 = 1;
    pub const XOR: u8 = 2;
    pub const AND: u8 = 3;
    pub const NOT: u8 = 4;
    pub const COMPARE: u8 = 6;
    pub const BIT_OR: u8 = 7;
    pub const BIT_AND: u8 = 8;
    pub const SHIFT: u8 = 9;
    pub const ADD: u8 = 10;
    pub const MULTIPLY: u8 = 11;
    pub const BIT_XOR: u8 = 12;
    pub const UNARY: u8 = 13;
    pub const ATOM: u8 = 20;
}

fn binary_rank(operator: BinaryOperator) -> u8 {
    use BinaryOperator as B;
    match operator {
        B::Xor => rank::XOR,
        B::Equal
        | B::NullSafeEqual
        | B::NotEqual
        | B::Less
        | B::LessOrEqual
        | B::Greater
        | B::GreaterOrEqual
        | B::SoundsLike => rank::COMPARE,
        B::BitOr => rank::BIT_OR,
        B::BitAnd => rank::BIT_AND,
        B::ShiftLeft | B::ShiftRight => rank::SHIFT,
        B::Add | B::Subtract | B::Concat => rank::ADD,
        B::Multiply | B::Divide | B::IntegerDivide | B::Modulo => rank::MULTIPLY,
        B::BitXor => rank::BIT_XOR,
    }
}

fn rank_of(expression: &Expression) -> u8 {
    match expression {
        Expression::Binary(operator, ..) => binary_rank(*operator),
        Expression::Logical(LogicalOperator::And, _) => rank::AND,
        Expression::Logical(LogicalOperator::Or, _) => rank::OR,
        Expression::Unary(UnaryOperator::Not, _) => rank::NOT,
        Expression::Unary(..) | Expression::Collate { .. } => rank::UNARY,
        Expression::In { .. }
        | Expression::InSubquery { .. }
        | Expression::Between { .. }
        | Expression::Like { .. }
        | Expression::Regexp { .. }
        | Expression::Is { .. }
        | Expression::Quantified { .. } => rank::COMPARE,
        Expression::DateArithmetic { .. } => rank::ADD,
        _ => rank::ATOM,
    }
}

/// MariaDB's name of a function that has several.
fn function_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "upper" => "ucase",
        "lower" => "lcase",
        "now" | "localtime" | "localtimestamp" => "current_timestamp",
        "current_date" => "curdate",
        "current_time" => "curtime",
        "substring" | "mid" => "substr",
        "length" => "octet_length",
        "character_length" => "char_length",
        "day" => "dayofmonth",
        "power" => "pow",
        "schema" => "database",
        _ => return name,
    }
    .to_string()
}

impl Printer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn name(&mut self, name: &str) {
        let quoted = quoted(name);
        self.push(&quoted);
    }

    fn schema(&mut self, schema: Option<&String>) {
        if let Some(schema) = schema.filter(|s| self.style.hidden_schema != Some(s.as_str())) {
            self.name(schema);
            self.push(".");
        }
    }

    fn column(&mut self, column: &ColumnName) {
        match &column.schema {
            Some(schema) if self.style.shows_schema_of_columns => {
                self.name(schema);
                self.push(".");
            }
            schema => self.schema(schema.as_ref()),
        }
        if let Some(table) = &column.table {
            self.name(table);
            self.push(".");
        }
        self.name(&column.name);
    }

    fn list<T>(
        &mut self,
        items: &[T],
        separator: &str,
        mut each: impl FnMut(&mut Self, &T) -> Done,
    ) -> Done {
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.push(separator);
            }
            each(self, item)?;
        }
        Ok(())
    }

    fn query(&mut self, query: &Query, named: bool) -> Done {
        if query.into.is_some() {
            return Err("INTO");
        }
        if let Some(with) = &query.with {
            self.push(if with.recursive { "with recursive " } else { "with " });
            self.list(&with.tables, ",", |printer, table| {
                printer.push(&table.name);
                if !table.columns.is_empty() {
                    printer.push("(");
                    printer.list(&table.columns, ",", |printer, column| {
                        printer.name(column);
                        Ok(())
                    })?;
                    printer.push(")");
                }
                printer.push(" as (");
                printer.query(&table.query, true)?;
                printer.push(")");
                Ok(())
            })?;
        }
        self.body(&query.body, named)?;
        self.order_by(" order by ", &query.order_by)?;
        if let Some(limit) = &query.limit {
            self.limit(limit)?;
        }
        match &query.locking {
            Some(locking) if locking.exclusive => self.push(" for update"),
            Some(_) => self.push(" lock in share mode"),
            None => {}
        }
        Ok(())
    }

    fn limit(&mut self, limit: &Limit) -> Done {
        if limit.with_ties || limit.rows_examined.is_some() {
            return Err("LIMIT ROWS EXAMINED");
        }
        self.push(" limit ");
        if let Some(offset) = &limit.offset {
            self.expression(offset, 0)?;
            self.push(",");
        }
        match &limit.count {
            Some(count) => self.expression(count, 0),
            None => Ok(()),
        }
    }

    fn order_by(&mut self, words: &str, items: &[OrderItem]) -> Done {
        if items.is_empty() {
            return Ok(());
        }
        self.push(words);
        self.list(items, ",", |printer, item| {
            printer.expression(&item.expression, 0)?;
            printer.push(if item.descending { " desc" } else { "" });
            Ok(())
        })
    }

    fn body(&mut self, body: &QueryBody, named: bool) -> Done {
        match body {
            QueryBody::Select(select) => self.select(select, named),
            QueryBody::Nested(query) => {
                self.push("(");
                self.query(query, named)?;
                self.push(")");
                Ok(())
            }
            QueryBody::Values(rows) => {
                self.push("values ");
                self.list(rows, ",", |printer, row| {
                    printer.push("(");
                    printer.list(row, ",", |printer, value| printer.expression(value, 0))?;
                    printer.push(")");
                    Ok(())
                })
            }
            QueryBody::Set { first, rest } => {
                self.body(first, named)?;
                for member in rest {
                    self.push(match member.operator {
                        SetOperator::Union => " union ",
                        SetOperator::Except => " except ",
                        SetOperator::Intersect => " intersect ",
                    });
                    self.push(if member.all { "all " } else { "" });
                    self.body(&member.body, named)?;
                }
                Ok(())
            }
        }
    }

    fn select(&mut self, select: &Select, named: bool) -> Done {
        if select.into.is_some() || select.procedure.is_some() || !select.windows.is_empty() {
            return Err("INTO, PROCEDURE or WINDOW");
        }
        self.push("select ");
        if select.options.distinct {
            self.push("distinct ");
        }
        if select.options.straight_join {
            self.push("straight_join ");
        }
        self.list(&select.items, ",", |printer, item| printer.item(item, named))?;
        if !select.from.is_empty() {
            self.push(" from ");
            let several = select.from.len() > 1;
            self.push(if several { "(" } else { "" });
            self.list(&select.from, " join ", Self::reference)?;
            self.push(if several { ")" } else { "" });
        }
        if let Some(filter) = &select.filter {
            self.push(" where ");
            self.expression(filter, 0)?;
        }
        self.order_by(" group by ", &select.group_by)?;
        if select.rollup {
            self.push(" with rollup");
        }
        if let Some(having) = &select.having {
            self.push(" having ");
            self.expression(having, 0)?;
        }
        Ok(())
    }

    fn item(&mut self, item: &SelectItem, named: bool) -> Done {
        match item {
            SelectItem::Wildcard => self.push("*"),
            SelectItem::TableWildcard(table) => {
                self.schema(table.schema.as_ref());
                self.name(&table.name);
                self.push(".*");
            }
            SelectItem::Expression { expression, alias, text } => {
                self.expression(expression, 0)?;
                let own = match expression {
                    Expression::Column(column) => column.name.as_str(),
                    _ => text.as_str(),
                };
                if named || alias.is_some() {
                    self.push(" AS ");
                    self.name(alias.as_deref().unwrap_or(own));
                }
            }
        }
        Ok(())
    }

    fn reference(&mut self, reference: &TableReference) -> Done {
        match reference {
            TableReference::Table { name, alias, hints, partitions } => {
                if !partitions.is_empty() {
                    return Err("PARTITION");
                }
                self.schema(name.schema.as_ref());
                self.name(&name.name);
                if let Some(alias) = alias.as_ref().filter(|alias| **alias != name.name) {
                    self.push(" ");
                    self.name(alias);
                }
                hints.iter().try_for_each(|hint| self.hint(hint))
            }
            TableReference::Derived { query, alias } => {
                self.push("(");
                self.query(query, true)?;
                self.push(") ");
                self.name(alias);
                Ok(())
            }
            TableReference::Nested(inner) => {
                let several = inner.len() > 1;
                self.push(if several { "(" } else { "" });
                self.list(inner, " join ", Self::reference)?;
                self.push(if several { ")" } else { "" });
                Ok(())
            }
            TableReference::Join { kind, left, right, condition } => {
                self.push("(");
                // MariaDB keeps only left joins.
                let (left, right) = match kind {
                    JoinKind::Right | JoinKind::NaturalRight => (right, left),
                    _ => (left, right),
                };
                self.reference(left)?;
                self.push(match kind {
                    JoinKind::Inner => " join ",
                    JoinKind::Straight => " straight_join ",
                    JoinKind::Left | JoinKind::Right => " left join ",
                    JoinKind::NaturalInner => " natural join ",
                    JoinKind::NaturalLeft | JoinKind::NaturalRight => " natural left join ",
                });
                self.reference(right)?;
                match condition {
                    JoinCondition::None => {}
                    JoinCondition::On(condition) => {
                        self.push(" on(");
                        self.expression(condition, 0)?;
                        self.push(")");
                    }
                    JoinCondition::Using(names) => {
                        self.push(" using (");
                        self.list(names, ",", |printer, name| {
                            printer.name(name);
                            Ok(())
                        })?;
                        self.push(")");
                    }
                }
                self.push(")");
                Ok(())
            }
        }
    }

    fn hint(&mut self, hint: &IndexHint) -> Done {
        self.push(match hint.kind {
            IndexHintKind::Use => " USE INDEX",
            IndexHintKind::Force => " FORCE INDEX",
            IndexHintKind::Ignore => " IGNORE INDEX",
        });
        self.push(match hint.purpose {
            IndexHintPurpose::All => " (",
            IndexHintPurpose::Join => " FOR JOIN (",
            IndexHintPurpose::OrderBy => " FOR ORDER BY (",
            IndexHintPurpose::GroupBy => " FOR GROUP BY (",
        });
        self.list(&hint.indexes, ",", |printer, name| {
            printer.name(name);
            Ok(())
        })?;
        self.push(")");
        Ok(())
    }

    fn expression(&mut self, expression: &Expression, least: u8) -> Done {
        let parentheses = rank_of(expression) < least;
        self.push(if parentheses { "(" } else { "" });
        self.bare(expression)?;
        self.push(if parentheses { ")" } else { "" });
        Ok(())
    }

    fn bare(&mut self, expression: &Expression) -> Done {
        match expression {
            Expression::Literal(literal) => self.literal(literal),
            Expression::Column(column) => self.column(column),
            Expression::Unary(UnaryOperator::Not, operand) => return self.negated(operand),
            Expression::Unary(operator, operand) => {
                self.push(operator.symbol());
                return self.expression(operand, rank::UNARY);
            }
            Expression::Binary(operator, left, right) => {
                let own = binary_rank(*operator);
                self.expression(left, own)?;
                self.push(&match operator {
                    BinaryOperator::Modulo => " MOD ".to_string(),
                    BinaryOperator::Xor => " xor ".to_string(),
                    other => format!(" {} ", other.symbol()),
                });
                return self.expression(right, own + 1);
            }
            Expression::Logical(operator, operands) => {
                let (own, word) = match operator {
                    LogicalOperator::And => (rank::AND, " and "),
                    LogicalOperator::Or => (rank::OR, " or "),
                };
                return self.list(operands, word, |printer, o| printer.expression(o, own + 1));
            }
            Expression::Case { operand, branches, otherwise } => {
                self.push("case ");
                if let Some(operand) = operand {
                    self.expression(operand, 0)?;
                    self.push(" ");
                }
                for (condition, value) in branches {
                    self.push("when ");
                    self.expression(condition, 0)?;
                    self.push(" then ");
                    self.expression(value, 0)?;
                    self.push(" ");
                }
                if let Some(otherwise) = otherwise {
                    self.push("else ");
                    self.expression(otherwise, 0)?;
                    self.push(" ");
                }
                self.push("end");
            }
            Expression::Cast { operand, target } => {
                self.push("cast(");
                self.expression(operand, 0)?;
                self.push(" as ");
                self.cast_type(target)?;
                self.push(")");
            }
            Expression::ConvertUsing { operand, charset } => {
                self.push("convert(");
                self.expression(operand, 0)?;
                let _ = write!(self.out, " using {charset})");
            }
            Expression::Collate { operand, collation } => {
                self.expression(operand, rank::UNARY)?;
                let _ = write!(self.out, " collate {collation}");
            }
            Expression::Function(call) => return self.function(call),
            Expression::Aggregate(call) => return self.aggregate(call),
            Expression::DateArithmetic { base, amount, unit, subtract } => {
                self.expression(base, rank::ADD)?;
                self.push(if *subtract { " - interval " } else { " + interval " });
                self.expression(amount, rank::ADD + 1)?;
                let _ = write!(self.out, " {}", unit.word().to_ascii_lowercase());
            }
            Expression::Unit(unit) => self.push(&unit.word().to_ascii_lowercase()),
            Expression::Row(items) => {
                self.push("(");
                self.list(items, ",", |printer, item| printer.expression(item, 0))?;
                self.push(")");
            }
            Expression::Subquery(query) => {
                self.push("(");
                self.query(query, false)?;
                self.push(")");
            }
            Expression::Exists(query) => {
                self.push("exists(");
                self.query(query, false)?;
                let is_select = matches!(query.body, QueryBody::Select(_));
                self.push(if query.limit.is_none() && is_select { " limit 1)" } else { ")" });
            }
            Expression::Parameter(_)
            | Expression::UserVariable(_)
            | Expression::AssignUserVariable(..)
            | Expression::SystemVariable(_) => return Err("a variable or parameter"),
            Expression::Window(_) => return Err("a window function"),
            Expression::Match { .. } => return Err("MATCH"),
            Expression::SequenceValue { .. } => return Err("a sequence"),
            Expression::Default(_) | Expression::Values(_) => return Err("DEFAULT or VALUES"),
            predicate => return self.predicate(predicate),
        }
        Ok(())
    }

    fn predicate(&mut self, expression: &Expression) -> Done {
        let not = |negated: bool| if negated { " not" } else { "" };
        match expression {
            Expression::In { operand, list, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} in (", not(*negated));
                self.list(list, ",", |printer, item| printer.expression(item, 0))?;
                self.push(")");
            }
            Expression::InSubquery { operand, query, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} in (", not(*negated));
                self.query(query, false)?;
                self.push(")");
            }
            Expression::Between { operand, low, high, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} between ", not(*negated));
                self.expression(low, rank::COMPARE + 1)?;
                self.push(" and ");
                self.expression(high, rank::COMPARE + 1)?;
            }
            Expression::Like { operand, pattern, escape, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} like ", not(*negated));
                self.expression(pattern, rank::COMPARE + 1)?;
                if let Some(escape) = escape {
                    self.push(" escape ");
                    self.expression(escape, rank::COMPARE + 1)?;
                }
            }
            Expression::Regexp { operand, pattern, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} regexp ", not(*negated));
                self.expression(pattern, rank::COMPARE + 1)?;
            }
            Expression::Is { operand, test, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let word = test.word().to_ascii_lowercase();
                let _ = write!(self.out, " is{} {word}", not(*negated));
            }
            Expression::Quantified { operand, operator, all, query } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let word = if *all { "all" } else { "any" };
                let _ = write!(self.out, " {} {word} (", operator.symbol());
                self.query(query, false)?;
                self.push(")");
            }
            _ => return Err("this expression"),
        }
        Ok(())
    }

    /// NOT, moved into what it stands before where MariaDB does so.
    fn negated(&mut self, operand: &Expression) -> Done {
        use BinaryOperator as B;
        if let Expression::Binary(operator, left, right) = operand {
            let opposite = match operator {
                B::Equal => Some(B::NotEqual),
                B::NotEqual => Some(B::Equal),
                B::Less => Some(B::GreaterOrEqual),
                B::LessOrEqual => Some(B::Greater),
                B::Greater => Some(B::LessOrEqual),
                B::GreaterOrEqual => Some(B::Less),
                _ => None,
            };
            if let Some(opposite) = opposite {
                return self.bare(&Expression::Binary(opposite, left.clone(), right.clone()));
            }
        }
        if let Expression::Column(column) = operand {
            self.column(column);
            self.push(" = 0");
            return Ok(());
        }
        self.push("!");
        self.expression(operand, rank::ATOM)
    }

    fn function(&mut self, call: &FunctionCall) -> Done {
        if call.schema.is_some() {
            return Err("a stored function");
        }
        let name = function_name(&call.name);
        if let ("mod", [left, right]) = (name.as_str(), call.arguments.as_slice()) {
            self.expression(left, rank::MULTIPLY)?;
            self.push(" MOD ");
            return self.expression(right, rank::MULTIPLY + 1);
        }
        self.push(&name);
        self.push("(");
        self.list(&call.arguments, ",", |printer, argument| printer.expression(argument, 0))?;
        self.push(")");
        Ok(())
    }

    fn aggregate(&mut self, call: &AggregateCall) -> Done {
        self.push(call.function.name());
        self.push(if call.distinct { "(distinct " } else { "(" });
        if call.arguments.is_empty() {
            self.push("0");
        }
        self.list(&call.arguments, ",", |printer, argument| printer.expression(argument, 0))?;
        if call.function == AggregateFunction::GroupConcat {
            for (position, item) in call.order_by.iter().enumerate() {
                self.push(if position == 0 { " order by " } else { "," });
                self.expression(&item.expression, 0)?;
                self.push(if item.descending { " DESC" } else { " ASC" });
            }
            self.push(" separator ");
            self.text(call.separator.as_deref().unwrap_or(b","));
            if let Some(limit) = &call.limit {
                self.limit(limit)?;
            }
        }
        self.push(")");
        Ok(())
    }

    fn cast_type(&mut self, target: &TypeName) -> Done {
        use TypeNameKind as T;
        let word = match target.kind {
            T::CastSigned | T::Int | T::BigInt if !target.unsigned => "signed",
            T::CastSigned | T::CastUnsigned | T::Int | T::BigInt => "unsigned",
            T::Char | T::VarChar => "char",
            T::Binary | T::VarBinary => "binary",
            T::Date => "date",
            T::Time => "time",
            T::DateTime | T::Timestamp => "datetime",
            T::Decimal => "decimal",
            T::Double => "double",
            T::Float => "float",
            _ => return Err("this type in CAST"),
        };
        self.push(word);
        match (target.length, target.scale) {
            (Some(length), Some(scale)) => self.push(&format!("({length},{scale})")),
            (Some(length), None) if word == "decimal" => self.push(&format!("({length},0)")),
            (Some(length), None) => self.push(&format!("({length})")),
            (None, _) if word == "decimal" => self.push("(10,0)"),
            _ => {}
        }
        if word == "char" {
            let charset = target.charset.as_deref().unwrap_or("utf8mb4");
            let _ = write!(self.out, " charset {charset}");
        }
        Ok(())
    }

    fn text(&mut self, bytes: &[u8]) {
        self.push("'");
        for c in String::from_utf8_lossy(bytes).chars() {
            match c {
                '\'' => self.push("\\'"),
                '\\' => self.push("\\\\"),
                '\0' => self.push("\\0"),
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\x1a' => self.push("\\Z"),
                c => self.out.push(c),
            }
        }
        self.push("'");
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Null => self.push("NULL"),
            Literal::Boolean(value) => self.push(if *value { "1" } else { "0" }),
            Literal::String { bytes, charset } => {
                if let Some(charset) = charset {
                    let _ = write!(self.out, "_{charset}");
                }
                if std::str::from_utf8(bytes).is_err() {
                    self.push("X'");
                    bytes.iter().for_each(|byte| {
                        let _ = write!(self.out, "{byte:02X}");
                    });
                    self.push("'");
                } else {
                    self.text(bytes);
                }
            }
            other => self.push(&other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseOptions;

    fn printed(sql: &str) -> String {
        let parsed = crate::parse(sql.as_bytes(), &ParseOptions::default()).expect(sql);
        let Statement::Query(tree) = parsed.statement else { panic!("{sql} is no query") };
        query(&tree, Style::default()).expect(sql)
    }

    #[test]
    fn parentheses_stand_only_where_they_are_needed() {
        for (sql, expected) in [
            ("SELECT (a + 1) * 2, a + (1 * 2)", "select (`a` + 1) * 2 AS `x`,`a` + 1 * 2 AS `y`"),
            (
                "SELECT a - (b - c), (a - b) - c",
                "select `a` - (`b` - `c`) AS `x`,`a` - `b` - `c` AS `y`",
            ),
            (
                "SELECT (a = 1 OR b) AND c, NOT a > 1",
                "select (`a` = 1 or `b`) and `c` AS `x`,`a` <= 1 AS `y`",
            ),
        ] {
            let text = printed(sql);
            let mut rest = text.as_str();
            for part in expected.split(" AS `x`,").flat_map(|part| part.split(" AS `y`")) {
                let at = rest.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
                rest = &rest[at + part.len()..];
            }
        }
    }

    #[test]
    fn what_is_printed_reads_back_to_the_same_text() {
        for sql in [
            "SELECT DISTINCT t.a, COUNT(*) FROM d.t AS x WHERE a IN (1, 2) GROUP BY a HAVING 1 > 2",
            "SELECT * FROM a LEFT JOIN b ON a.x = b.x WHERE NOT EXISTS (SELECT 1 FROM c)",
            "SELECT 'it''s \\\\ \n', x'41', 1.5e3, NULL, TRUE, DATE'2020-01-01'",
            "SELECT a FROM t UNION ALL (SELECT b FROM u LIMIT 3) ORDER BY 1 DESC LIMIT 2, 5",
            "SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END, CAST(a AS DECIMAL(5,2)), a % 3, -a, UPPER(b)",
            "SELECT GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR ';') FROM t",
            "SELECT d + INTERVAL 1 DAY, a BETWEEN 1 AND 2, b NOT LIKE 'x%' ESCAPE '|' FROM t",
        ] {
            let once = printed(sql);
            assert_eq!(printed(&once), once, "{sql}");
        }
    }
}
