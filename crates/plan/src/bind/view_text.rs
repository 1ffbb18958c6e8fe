//! The query of a view with every name written out, as it is kept: `*` becomes columns, columns
//! get their tables, tables their databases.

use super::*;
use catalog::{Catalog, TableRef};

/// A table of FROM by the names that it answers to.
struct ScopeTable {
    /// Database, unless it has an alias.
    schema: Option<String>,
    alias: String,
    columns: Vec<String>,
}

/// A column: the numbers of its table and in it.
type Place = (usize, usize);

/// One block: its tables, and the names of its items with what they are.
#[derive(Default)]
struct Scope {
    tables: Vec<ScopeTable>,
    /// What `*` stands for, and bare names find.
    visible: Vec<Place>,
    aliases: Vec<(String, ast::Expression)>,
}

/// Writes names out.
pub(crate) struct Qualifier<'a> {
    catalog: &'a Catalog,
    database: Option<&'a str>,
    scopes: Vec<Scope>,
    common: Vec<(String, Vec<String>)>,
}

impl<'a> Qualifier<'a> {
    pub(crate) fn new(catalog: &'a Catalog, database: Option<&'a str>) -> Self {
        Self { catalog, database, scopes: Vec::new(), common: Vec::new() }
    }

    /// The query; its column names.
    pub(crate) fn query(&mut self, query: &mut ast::Query) -> Result<Vec<String>> {
        let known = self.common.len();
        if let Some(with) = &mut query.with {
            for table in &mut with.tables {
                let mut columns = self.query(&mut table.query)?;
                if !table.columns.is_empty() {
                    columns.clone_from(&table.columns);
                }
                self.common.push((table.name.clone(), columns));
            }
        }
        let names = match &mut query.body {
            ast::QueryBody::Select(select) => self.select(select, &mut query.order_by)?,
            body => self.body(body)?,
        };
        self.common.truncate(known);
        Ok(names)
    }

    fn body(&mut self, body: &mut ast::QueryBody) -> Result<Vec<String>> {
        match body {
            ast::QueryBody::Select(select) => self.select(select, &mut []),
            ast::QueryBody::Nested(query) => self.query(query),
            ast::QueryBody::Values(rows) => {
                for value in rows.iter_mut().flatten() {
                    self.expression(value)?;
                }
                let count = rows.first().map_or(0, Vec::len);
                Ok((1..=count).map(|number| format!("column_{number}")).collect())
            }
            ast::QueryBody::Set { first, rest } => {
                let names = self.body(first)?;
                rest.iter_mut().try_for_each(|member| self.body(&mut member.body).map(|_| ()))?;
                Ok(names)
            }
        }
    }

    fn select(
        &mut self,
        select: &mut ast::Select,
        order_by: &mut [ast::OrderItem],
    ) -> Result<Vec<String>> {
        let mut scope = Scope::default();
        for reference in &mut select.from {
            let visible = self.reference(reference, &mut scope.tables)?;
            scope.visible.extend(visible);
        }
        self.scopes.push(scope);
        for reference in &mut select.from {
            self.conditions(reference)?;
        }
        let names = self.items(select)?;
        if let Some(filter) = &mut select.filter {
            self.expression(filter)?;
        }
        for item in &mut select.group_by {
            self.expression(&mut item.expression)?;
        }
        if let Some(having) = &mut select.having {
            self.expression_or_alias(having)?;
        }
        for item in order_by {
            self.expression_or_alias(&mut item.expression)?;
        }
        self.scopes.pop();
        Ok(names)
    }

    fn items(&mut self, select: &mut ast::Select) -> Result<Vec<String>> {
        let mut items = Vec::with_capacity(select.items.len());
        for item in std::mem::take(&mut select.items) {
            match item {
                ast::SelectItem::Wildcard => {
                    let scope = self.scopes.last().expect("pushed by select");
                    items.extend(scope.visible.iter().map(|place| scope.item(*place)));
                }
                ast::SelectItem::TableWildcard(name) => {
                    let scope = self.scopes.last().expect("pushed by select");
                    let own = scope.tables.iter().position(|table| table.alias == name.name);
                    let own =
                        own.ok_or_else(|| SqlError::new(&codes::BAD_TABLE_ERROR, &[&name]))?;
                    let columns = 0..scope.tables[own].columns.len();
                    items.extend(columns.map(|column| scope.item((own, column))));
                }
                item => items.push(item),
            }
        }
        let mut names = Vec::with_capacity(items.len());
        for item in &mut items {
            let ast::SelectItem::Expression { expression, alias, text } = item else { continue };
            self.expression(expression)?;
            let name = match (&alias, &expression) {
                (Some(alias), _) => alias.clone(),
                (None, ast::Expression::Column(column)) => column.name.clone(),
                (None, _) => text.clone(),
            };
            let scope = self.scopes.last_mut().expect("pushed by select");
            scope.aliases.push((name.clone(), expression.clone()));
            names.push(name);
        }
        select.items = items;
        Ok(names)
    }

    fn reference(
        &mut self,
        reference: &mut ast::TableReference,
        tables: &mut Vec<ScopeTable>,
    ) -> Result<Vec<Place>> {
        let whole = |tables: &[ScopeTable]| {
            let table = tables.len() - 1;
            (0..tables[table].columns.len()).map(|column| (table, column)).collect()
        };
        match reference {
            ast::TableReference::Table { name, alias, .. } => {
                let common = self.common.iter().rev().find(|(known, _)| *known == name.name);
                if let Some((_, columns)) = common.filter(|_| name.schema.is_none()) {
                    let alias = alias.clone().unwrap_or_else(|| name.name.clone());
                    let columns = columns.clone();
                    tables.push(ScopeTable { schema: None, alias, columns });
                    return Ok(whole(tables));
                }
                let database = self.database.map(str::to_owned);
                let schema = name.schema.clone().or(database);
                let schema = schema.ok_or_else(|| SqlError::new(&codes::NO_DB_ERROR, &[]))?;
                let columns = match self.catalog.find(&schema, &name.name)? {
                    TableRef::Base(entry) | TableRef::View(entry) => {
                        entry.definition().columns.iter().map(|c| c.name.clone()).collect()
                    }
                    TableRef::Virtual(table) => {
                        table.columns.iter().map(|column| column.name.to_string()).collect()
                    }
                };
                name.schema = Some(schema.clone());
                tables.push(ScopeTable {
                    schema: alias.is_none().then_some(schema),
                    alias: alias.clone().unwrap_or_else(|| name.name.clone()),
                    columns,
                });
                Ok(whole(tables))
            }
            ast::TableReference::Derived { query, alias } => {
                let outside = std::mem::take(&mut self.scopes);
                let columns = self.query(query);
                self.scopes = outside;
                let columns = columns?;
                tables.push(ScopeTable { schema: None, alias: alias.clone(), columns });
                Ok(whole(tables))
            }
            ast::TableReference::Nested(inner) => {
                let mut visible = Vec::new();
                for reference in inner {
                    visible.extend(self.reference(reference, tables)?);
                }
                Ok(visible)
            }
            ast::TableReference::Join { kind, left, right, condition } => {
                let left = self.reference(left, tables)?;
                let right = self.reference(right, tables)?;
                let merged = merge_columns(kind, condition, (left, right), tables);
                let (visible, on) = merged;
                if let Some(on) = on {
                    *condition = ast::JoinCondition::On(on);
                }
                Ok(visible)
            }
        }
    }

    fn conditions(&mut self, reference: &mut ast::TableReference) -> Result<()> {
        match reference {
            ast::TableReference::Nested(inner) => {
                inner.iter_mut().try_for_each(|reference| self.conditions(reference))
            }
            ast::TableReference::Join { left, right, condition, .. } => {
                self.conditions(left)?;
                self.conditions(right)?;
                match condition {
                    ast::JoinCondition::On(condition) => self.expression(condition),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// HAVING and ORDER BY: a bare name is first of all a select item's.
    fn expression_or_alias(&mut self, expression: &mut ast::Expression) -> Result<()> {
        if let ast::Expression::Column(name) = expression
            && name.table.is_none()
        {
            return self.alias_or_column(name);
        }
        let mut result = Ok(());
        for_each_child(expression, &mut |child| {
            if result.is_ok() {
                result = self.expression_or_alias(child);
            }
        });
        result?;
        self.queries(expression)
    }

    fn alias_or_column(&mut self, name: &mut ast::ColumnName) -> Result<()> {
        let scope = self.scopes.last().expect("pushed by select");
        let alias = scope.aliases.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name.name));
        match alias {
            Some((_, ast::Expression::Column(column))) => {
                *name = column.clone();
                Ok(())
            }
            Some(_) => Ok(()),
            None => self.column(name),
        }
    }

    fn expression(&mut self, expression: &mut ast::Expression) -> Result<()> {
        if let ast::Expression::Column(name) = expression {
            return self.column(name);
        }
        let mut result = Ok(());
        for_each_child(expression, &mut |child| {
            if result.is_ok() {
                result = self.expression(child);
            }
        });
        result?;
        self.queries(expression)
    }

    /// Subqueries directly in an expression.
    fn queries(&mut self, expression: &mut ast::Expression) -> Result<()> {
        match expression {
            ast::Expression::Subquery(query)
            | ast::Expression::Exists(query)
            | ast::Expression::InSubquery { query, .. }
            | ast::Expression::Quantified { query, .. } => self.query(query).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Gives a column its table. One that is not found is left for the binder to complain about.
    fn column(&mut self, name: &mut ast::ColumnName) -> Result<()> {
        for scope in self.scopes.iter().rev() {
            if name.table.is_none() {
                let is_it = |(table, column): &&Place| {
                    scope.tables[*table].columns[*column].eq_ignore_ascii_case(&name.name)
                };
                if let Some(place) = scope.visible.iter().find(is_it) {
                    *name = scope.column(*place);
                    return Ok(());
                }
                continue;
            }
            let found = scope.tables.iter().find_map(|table| {
                let answers = name.table.as_ref().is_none_or(|alias| *alias == table.alias);
                let columns = table.columns.iter();
                let mut same = columns.filter(|column| column.eq_ignore_ascii_case(&name.name));
                same.next().filter(|_| answers).map(|column| (table, column.clone()))
            });
            if let Some((table, column)) = found {
                name.schema.clone_from(&table.schema);
                name.table = Some(table.alias.clone());
                name.name = column;
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The columns of a join that bare names find, and the condition that USING or NATURAL comes to.
/// The join becomes one without NATURAL.
fn merge_columns(
    kind: &mut ast::JoinKind,
    condition: &ast::JoinCondition,
    (left, right): (Vec<Place>, Vec<Place>),
    tables: &[ScopeTable],
) -> (Vec<Place>, Option<ast::Expression>) {
    use ast::JoinKind as J;
    let name = |place: &Place| tables[place.0].columns[place.1].as_str();
    let of = |places: &[Place], wanted: &str| {
        places.iter().copied().find(|place| name(place).eq_ignore_ascii_case(wanted))
    };
    let natural = matches!(kind, J::NaturalInner | J::NaturalLeft | J::NaturalRight);
    let wanted = |column: &str| match condition {
        ast::JoinCondition::Using(names) => names.iter().any(|n| n.eq_ignore_ascii_case(column)),
        _ => natural,
    };
    let mut pairs = Vec::new();
    if natural || matches!(condition, ast::JoinCondition::Using(_)) {
        for place in left.iter().filter(|place| wanted(name(place))) {
            pairs.extend(of(&right, name(place)).map(|other| (*place, other)));
        }
    }
    *kind = match *kind {
        J::NaturalInner => J::Inner,
        J::NaturalLeft => J::Left,
        J::NaturalRight => J::Right,
        kind => kind,
    };
    if pairs.is_empty() {
        return ([left, right].concat(), None);
    }
    let from_right = *kind == J::Right;
    let mut visible: Vec<Place> = match from_right {
        true => right.iter().filter(|p| pairs.iter().any(|(_, r)| r == *p)).copied().collect(),
        false => pairs.iter().map(|(left, _)| *left).collect(),
    };
    let is_merged = |place: &Place| pairs.iter().any(|(l, r)| l == place || r == place);
    let (first, second) = if from_right { (right, left) } else { (left, right) };
    visible.extend(first.into_iter().chain(second).filter(|place| !is_merged(place)));
    let column = |place: &Place| Box::new(ast::Expression::Column(column_of(tables, *place)));
    let mut equal: Vec<ast::Expression> = pairs
        .iter()
        .map(|(left, right)| {
            ast::Expression::Binary(ast::BinaryOperator::Equal, column(left), column(right))
        })
        .collect();
    let on = match equal.len() {
        1 => equal.remove(0),
        _ => ast::Expression::Logical(ast::LogicalOperator::And, equal),
    };
    (visible, Some(on))
}

fn column_of(tables: &[ScopeTable], (table, column): Place) -> ast::ColumnName {
    let table = &tables[table];
    ast::ColumnName {
        schema: table.schema.clone(),
        table: Some(table.alias.clone()),
        name: table.columns[column].clone(),
    }
}

impl Scope {
    fn column(&self, place: Place) -> ast::ColumnName {
        column_of(&self.tables, place)
    }

    fn item(&self, place: Place) -> ast::SelectItem {
        let column = self.column(place);
        let name = column.name.clone();
        let expression = ast::Expression::Column(column);
        ast::SelectItem::Expression { expression, alias: Some(name.clone()), text: name }
    }
}

/// Calls `each` for the expression and all inside of it that stand outside of subqueries.
pub(crate) fn walk(expression: &ast::Expression, each: &mut dyn FnMut(&ast::Expression)) {
    each(expression);
    // The walk over children is written once, for changes.
    let mut copy = expression.clone();
    for_each_child(&mut copy, &mut |child| walk(child, each));
}

/// Calls `each` for the expressions directly inside of one.
fn for_each_child(expression: &mut ast::Expression, each: &mut dyn FnMut(&mut ast::Expression)) {
    use ast::Expression as E;
    match expression {
        E::Unary(_, operand)
        | E::AssignUserVariable(_, operand)
        | E::Cast { operand, .. }
        | E::ConvertUsing { operand, .. }
        | E::Collate { operand, .. }
        | E::Is { operand, .. }
        | E::InSubquery { operand, .. }
        | E::Quantified { operand, .. } => each(operand),
        E::Binary(_, left, right) => {
            each(left);
            each(right);
        }
        E::Logical(_, operands) | E::Row(operands) => operands.iter_mut().for_each(each),
        E::In { operand, list, .. } => {
            each(operand);
            list.iter_mut().for_each(each);
        }
        E::Between { operand, low, high, .. } => {
            [operand, low, high].into_iter().for_each(|e| each(e))
        }
        E::Like { operand, pattern, escape, .. } => {
            each(operand);
            each(pattern);
            if let Some(escape) = escape {
                each(escape);
            }
        }
        E::Regexp { operand, pattern, .. } => {
            each(operand);
            each(pattern);
        }
        E::Case { operand, branches, otherwise } => {
            if let Some(operand) = operand {
                each(operand);
            }
            for (condition, value) in branches {
                each(condition);
                each(value);
            }
            if let Some(otherwise) = otherwise {
                each(otherwise);
            }
        }
        E::Function(call) => call.arguments.iter_mut().for_each(each),
        E::Aggregate(call) => {
            call.arguments.iter_mut().for_each(&mut *each);
            call.order_by.iter_mut().for_each(|item| each(&mut item.expression));
        }
        E::DateArithmetic { base, amount, .. } => {
            each(base);
            each(amount);
        }
        _ => {}
    }
}
