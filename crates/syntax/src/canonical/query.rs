//! Queries, their clauses, and what stands in FROM.

use super::{Done, Printer};
use crate::ast::*;

impl Printer<'_> {
    pub(super) fn query(&mut self, query: &Query, named: bool) -> Done {
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

    pub(super) fn limit(&mut self, limit: &Limit) -> Done {
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
}
