//! Views: what their names mean in FROM and as targets of changes, and how they are defined.
//!
//! 1. A view of plain columns of one table (or of such a view) with a condition becomes that
//!    table: its conditions join those of the block, so indexes serve. Every other view is run
//!    like a derived table.
//! 2. Inside of a view names mean what they meant when it was made: its text is fully qualified,
//!    and no table of the statement around it is seen.
//! 3. What a view reads is read with the rights of its definer, or of the reader if it says so.
//!    The reader needs the right on the view only.
//! 4. A view that no longer fits its tables is error 1356, whatever is wrong with it.

use super::table::unqualified_error;
use super::*;
use crate::physical::{QueryPlan, TableSource};
use catalog::{
    Account, Authentication, CheckOption, HostPattern, Privilege, TableEntry, TableRef,
    UserPrivileges, ViewAlgorithm, ViewDefinition,
};
use syntax::ParseOptions;

/// A view that is a part of one table.
#[derive(Clone, Debug)]
pub(crate) struct SimpleView {
    /// Its database and name.
    pub schema: String,
    /// See `schema`.
    pub name: String,
    /// The table.
    pub base: EntryHandle,
    /// Names of the view's columns with the table's positions.
    pub columns: Arc<[(String, usize)]>,
    /// Conditions, those of the innermost view first.
    levels: Vec<Level>,
    /// WITH CHECK OPTION of a merged view, over the table's columns.
    conditions: Vec<Expr>,
}

/// One view of a chain of views.
#[derive(Clone, Debug)]
struct Level {
    /// What its FROM names, and the columns of that.
    alias: String,
    schema: String,
    columns: Arc<[(String, usize)]>,
    filter: Option<ast::Expression>,
    check_option: CheckOption,
    view: (String, String),
}

impl SimpleView {
    /// Columns of one table of a view, without conditions.
    pub(crate) fn of_columns(
        (schema, name): (&str, &str),
        base: EntryHandle,
        columns: Vec<(String, usize)>,
        conditions: Vec<Expr>,
    ) -> Self {
        let (schema, name) = (schema.to_string(), name.to_string());
        Self { schema, name, base, columns: columns.into(), levels: Vec::new(), conditions }
    }
}

/// Columns of a simple view, as names see them.
#[derive(Clone, Debug)]
pub(crate) struct MappedColumns {
    /// The table that has them.
    pub entry: EntryHandle,
    /// Names and positions in the table.
    pub columns: Arc<[(String, usize)]>,
}

/// The query of a view as a tree.
pub(super) fn parsed(view: &ViewDefinition) -> Result<ast::Query> {
    let parsed = syntax::parse(view.query.as_bytes(), &ParseOptions::default());
    match parsed.map(|parsed| parsed.statement) {
        Ok(ast::Statement::Query(query)) => Ok(*query),
        _ => Err(SqlError::new(&codes::PARSE_ERROR, &[])),
    }
}

/// 1356, unless the error is about something else than what the view refers to.
fn invalid(error: SqlError, entry: &TableEntry) -> SqlError {
    let about_references = [
        &codes::NO_SUCH_TABLE,
        &codes::BAD_FIELD_ERROR,
        &codes::BAD_DB_ERROR,
        &codes::TABLEACCESS_DENIED_ERROR,
        &codes::COLUMNACCESS_DENIED_ERROR,
        &codes::SP_DOES_NOT_EXIST,
        &codes::UNKNOWN_TABLE,
    ];
    if !about_references.into_iter().any(|code| error.is(code)) {
        return error;
    }
    let definition = entry.definition();
    SqlError::new(&codes::VIEW_INVALID, &[&definition.schema, &definition.name])
}

/// Table, alias, columns by name, condition.
type SimpleParts =
    (ast::TableName, Option<String>, Vec<(String, ast::ColumnName)>, Option<ast::Expression>);

/// The one table of a view that can be merged, with its columns and condition.
fn simple_parts(view: &ViewDefinition, query: ast::Query) -> Option<SimpleParts> {
    let plain = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.locking.is_none()
        && view.algorithm != ViewAlgorithm::TemporaryTable;
    let ast::QueryBody::Select(select) = query.body else { return None };
    let select = *select;
    if !plain
        || select.options != ast::SelectOptions::default()
        || !select.group_by.is_empty()
        || select.having.is_some()
        || select.filter.as_ref().is_some_and(has_subquery)
    {
        return None;
    }
    let mut from = select.from.into_iter();
    let Some(ast::TableReference::Table { name, alias, hints, .. }) = from.next() else {
        return None;
    };
    if from.next().is_some() || !hints.is_empty() {
        return None;
    }
    let mut columns = Vec::with_capacity(select.items.len());
    for item in select.items {
        let ast::SelectItem::Expression {
            expression: ast::Expression::Column(column), alias, ..
        } = item
        else {
            return None;
        };
        columns.push((alias.unwrap_or_else(|| column.name.clone()), column));
    }
    Some((name, alias, columns, select.filter))
}

/// Whether an expression has a subquery or something else that is not to be moved.
fn has_subquery(expression: &ast::Expression) -> bool {
    let mut found = false;
    super::view_text::walk(expression, &mut |inner| {
        found |= matches!(
            inner,
            ast::Expression::Subquery(_)
                | ast::Expression::Exists(_)
                | ast::Expression::InSubquery { .. }
                | ast::Expression::Quantified { .. }
        );
    });
    found
}

impl Binder<'_, '_, '_> {
    /// See [`invalid`]. The view that is being defined is not there, wherever it is named.
    pub(super) fn invalid(&self, error: SqlError, entry: &TableEntry) -> SqlError {
        match self.defines_view && error.is(&codes::NO_SUCH_TABLE) {
            true => error,
            false => invalid(error, entry),
        }
    }

    /// The rights with which a view reads: those of its definer (1449 if there is none), or none
    /// for the reader's own.
    pub(super) fn view_rights(&self, view: &ViewDefinition) -> Result<Option<Arc<UserPrivileges>>> {
        if view.invoker {
            return Ok(None);
        }
        let (user, host) = &view.definer;
        let account = Account { user: user.clone(), host: HostPattern(host.clone()) };
        if self.context.user.account == account && self.rights.is_none() {
            return Ok(None);
        }
        let known = self.context.catalog.user(&account);
        known.map(Some).ok_or_else(|| self.no_definer(user, host))
    }

    /// 1449 for administrators, 1045 for all others.
    fn no_definer(&self, user: &str, host: &str) -> SqlError {
        let reader = self.context.user;
        if reader.global.has(Privilege::Super) {
            return SqlError::new(&codes::NO_SUCH_USER, &[&user, &host]);
        }
        let using = match reader.authentication {
            Authentication::NoPassword => "NO",
            _ => "YES",
        };
        let account = &reader.account;
        let arguments: [&dyn std::fmt::Display; 3] = [&account.user, &account.host.0, &using];
        SqlError::new(&codes::ACCESS_DENIED_ERROR, &arguments)
    }

    /// What a simple view comes down to; none if it is not simple.
    pub(crate) fn simple_view(&mut self, entry: &Arc<TableEntry>) -> Result<Option<SimpleView>> {
        self.enter_view(entry)?;
        let simple = self.resolve_simple(entry);
        self.views.pop();
        simple.map_err(|error| self.invalid(error, entry))
    }

    /// Error 1462 if the view is being looked at already.
    pub(super) fn enter_view(&mut self, entry: &TableEntry) -> Result<()> {
        let definition = entry.definition();
        let name = (definition.schema.clone(), definition.name.clone());
        if self.views.first() == Some(&name) && self.defines_view {
            return Err(SqlError::new(&codes::NO_SUCH_TABLE, &[&name.0, &name.1]));
        }
        if self.views.contains(&name) {
            return Err(SqlError::new(&codes::VIEW_RECURSIVE, &[&name.0, &name.1]));
        }
        self.views.push(name);
        Ok(())
    }

    fn resolve_simple(&mut self, entry: &Arc<TableEntry>) -> Result<Option<SimpleView>> {
        let Some(view) = entry.view() else { return Ok(None) };
        let Some((name, alias, items, filter)) = simple_parts(view, parsed(view)?) else {
            return Ok(None);
        };
        let rights = self.view_rights(view)?;
        let user = rights.as_deref().unwrap_or(self.user());
        let schema = self.schema_of(&name)?;
        for privilege in [Privilege::Select, self.view_privilege] {
            if user.may(privilege, &schema, &name.name) {
                continue;
            }
            // Single columns are asked for where the view is planned by itself.
            if user.may_some_column(privilege, &schema, &name.name) {
                return Ok(None);
            }
            return Err(self.denied(privilege, &schema, &name.name));
        }
        let found = self.context.catalog.open_table(self.context.locks, &schema, &name.name)?;
        let (base, below, levels) = match found {
            TableRef::Base(base) => {
                self.note_entry(&base);
                let columns = base.definition().columns.iter().enumerate();
                let columns: Vec<_> = columns.map(|(at, c)| (c.name.clone(), at)).collect();
                (EntryHandle(base), columns.into(), Vec::new())
            }
            TableRef::View(inner) => {
                self.note_entry(&inner);
                let Some(simple) = self.simple_view(&inner)? else { return Ok(None) };
                (simple.base, simple.columns, simple.levels)
            }
            TableRef::Virtual(_) => return Ok(None),
        };
        let below: Arc<[(String, usize)]> = below;
        let mut columns = Vec::with_capacity(items.len());
        for (shown, column) in items {
            let found = below.iter().find(|(name, _)| name.eq_ignore_ascii_case(&column.name));
            let (_, at) = found.ok_or_else(|| unqualified_error(&column, Clause::Select))?;
            columns.push((shown, *at));
        }
        let definition = entry.definition();
        let mut levels = levels;
        levels.push(Level {
            alias: alias.unwrap_or(name.name),
            schema,
            columns: below,
            filter,
            check_option: view.check_option,
            view: (definition.schema.clone(), definition.name.clone()),
        });
        Ok(Some(SimpleView {
            schema: definition.schema.clone(),
            name: definition.name.clone(),
            base,
            columns: columns.into(),
            levels,
            conditions: Vec::new(),
        }))
    }

    /// The conditions of a simple view whose table's columns begin at `first`.
    pub(crate) fn view_conditions(
        &mut self,
        view: &SimpleView,
        first: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Expr>> {
        let mut conditions = Vec::new();
        for (number, level) in view.levels.iter().enumerate() {
            let Some(filter) = level.filter.as_ref().filter(|_| wanted(number)) else { continue };
            let columns =
                MappedColumns { entry: view.base.clone(), columns: level.columns.clone() };
            let columns = ColumnList::Mapped(columns);
            let table = NamedTable::new(level.alias.clone(), level.schema.clone(), first, columns);
            let outside = std::mem::replace(&mut self.block().tables, vec![table]);
            let bound = self.with_other_text(|binder| binder.bind_conjuncts(filter, Clause::Where));
            self.block().tables = outside;
            let invalid_view = |error: SqlError| match error.is(&codes::BAD_FIELD_ERROR) {
                true => SqlError::new(&codes::VIEW_INVALID, &[&level.view.0, &level.view.1]),
                false => error,
            };
            conditions.extend(bound.map_err(invalid_view)?);
        }
        Ok(conditions)
    }

    /// Lets a binder of another text go on in the block that is being bound.
    pub(super) fn with_other_text<'v, T>(
        &mut self,
        bind: impl FnOnce(&mut Binder<'_, '_, 'v>) -> Result<T>,
    ) -> Result<T> {
        let mut other: Binder<'_, '_, 'v> = Binder::new(self.context);
        other.blocks = std::mem::take(&mut self.blocks);
        other.entries = std::mem::take(&mut self.entries);
        other.inner_entries = std::mem::take(&mut self.inner_entries);
        other.views = std::mem::take(&mut self.views);
        other.defines_view = self.defines_view;
        other.depth = self.depth;
        other.merges_views = self.merges_views;
        other.inside_views = self.inside_views;
        other.rights.clone_from(&self.rights);
        let bound = bind(&mut other);
        let Binder { blocks, entries, inner_entries, views, reusable, described, .. } = other;
        self.blocks = blocks;
        self.entries = entries;
        self.inner_entries = inner_entries;
        self.views = views;
        self.reusable &= reusable;
        self.described |= described;
        bound
    }

    /// The conditions that rows written through a view must pass, and the view that asks.
    pub(crate) fn check_condition(
        &mut self,
        view: &SimpleView,
        first: usize,
    ) -> Result<Option<Vec<Expr>>> {
        if !view.conditions.is_empty() {
            return Ok(Some(view.conditions.clone()));
        }
        // A view's own option counts its own condition; a cascaded one all below, too.
        let mut cascaded = false;
        let mut checked = vec![false; view.levels.len()];
        for (number, level) in view.levels.iter().enumerate().rev() {
            checked[number] = cascaded || level.check_option != CheckOption::None;
            cascaded |= level.check_option == CheckOption::Cascaded;
        }
        if !checked.contains(&true) {
            return Ok(None);
        }
        self.view_conditions(view, first, |number| checked[number]).map(Some)
    }

    /// A view that is not simple, as a plan of its own.
    pub(crate) fn bind_view_query(&mut self, entry: &Arc<TableEntry>) -> Result<QueryPlan> {
        self.enter_view(entry)?;
        let plan = self.plan_view(entry);
        self.views.pop();
        plan.map_err(|error| self.invalid(error, entry))
    }

    fn plan_view(&mut self, entry: &Arc<TableEntry>) -> Result<QueryPlan> {
        let Some(view) = entry.view() else { return Err(unsupported("a view without a query")) };
        let query = parsed(view)?;
        let rights = self.view_rights(view)?;
        let mut context = PlanContext {
            catalog: self.context.catalog,
            locks: &mut *self.context.locks,
            user: rights.as_deref().or(self.rights.as_deref()).unwrap_or(self.context.user),
            database: Some(&entry.definition().schema),
            eval: self.context.eval,
            variables: self.context.variables,
            stat_tables: self.context.stat_tables,
            parameters: &[],
            values: &[],
            temporary: None,
            locked: None,
        };
        let mut binder = Binder::new(&mut context);
        binder.views = self.views.clone();
        binder.defines_view = self.defines_view;
        binder.depth = self.depth;
        let plan = binder.bind_query(&query)?;
        let Binder { entries, reusable, unplanned, branches, .. } = binder;
        self.unplanned = unplanned;
        self.branches = branches;
        for entry in entries {
            self.note_entry(&entry.0);
            self.inner_entries.push(entry);
        }
        self.reusable &= reusable;
        Ok(plan)
    }

    /// A view in FROM.
    pub(super) fn bind_view(
        &mut self,
        entry: &Arc<TableEntry>,
        alias: &str,
        from: &mut super::from::From,
    ) -> Result<()> {
        self.note_entry(entry);
        let schema = entry.definition().schema.clone();
        let Some(view) = self.simple_view(entry)? else {
            if self.merges_here() && self.merge_view(entry, alias, from)? {
                return Ok(());
            }
            let plan = self.bind_view_query(entry)?;
            self.add_derived(plan, alias, from);
            if let Some(table) = self.block().tables.last_mut() {
                table.schema = schema;
            }
            return Ok(());
        };
        let first = self.block().columns;
        let columns = MappedColumns { entry: view.base.clone(), columns: view.columns.clone() };
        let source = TableSource::Base(view.base.clone());
        let columns = ColumnList::Mapped(columns);
        self.add_source(source, alias.to_string(), schema, columns, Vec::new(), from);
        let clause = self.block().clause;
        let conditions = self.view_conditions(&view, first, |_| true)?;
        self.block().clause = clause;
        from.conjuncts.extend(conditions);
        if self.merges_here() {
            self.note_view(entry, &view, first)?;
        }
        Ok(())
    }

    /// Remembers what changes through a simple view are to know.
    fn note_view(&mut self, entry: &TableEntry, view: &SimpleView, first: usize) -> Result<()> {
        let clause = self.block().clause;
        let conditions = self.check_condition(view, first)?.unwrap_or_default();
        let rights = entry.view().map(|view| self.view_rights(view)).transpose()?;
        let block = self.block();
        block.clause = clause;
        block.views.push(super::merge::ViewSource {
            positions: first..block.columns,
            schema: view.schema.clone(),
            name: view.name.clone(),
            rights: rights.flatten(),
            conditions,
        });
        Ok(())
    }
}
