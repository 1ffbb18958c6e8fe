//! Queries in the form in which MariaDB keeps and shows views: words in small letters, names
//! between backticks, parentheses only where they are needed.
//!
//! The text reads back to the same tree, except for what is written in two ways (`a % b` is
//! `a MOD b`, `upper` is `ucase`). Names of columns and tables are printed as they stand in the
//! tree; whoever wants them qualified qualifies the tree first.

mod constant;
mod expression;
mod query;

use crate::ast::*;
pub use crate::style::{Style, quoted};

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
