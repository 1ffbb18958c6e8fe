//! Views that become the tables that they read, so that rows can be changed through them.
//!
//! 1. Only a view in the statement's own FROM is merged, and only where rows are to be changed:
//!    the views that [`super::view::SimpleView`] describes need none of this, and queries run the
//!    others like derived tables.
//! 2. The tables of a merged view have their places in the block and no names in it; the view's
//!    columns are expressions over these places.
//! 3. What stands inside of a view is opened with the rights of its definer, whoever changes rows
//!    through it; the changed table is looked at twice: the view with the reader's rights, the
//!    table with the definer's.

use super::from::From;
use super::view::{SimpleView, parsed};
use super::*;
use crate::physical::ViewCheck;
use catalog::{CheckOption, Privilege, TableEntry, UserPrivileges};
use std::ops::Range;

/// A column of a merged view.
#[derive(Clone, Debug)]
pub(crate) struct MergedColumn {
    /// As names see it.
    pub named: NamedColumn,
    /// What it is over the tables of the view.
    pub value: Expr,
}

/// A view in the FROM of a change, and what it asks of the rows that are written through it.
#[derive(Clone)]
pub(crate) struct ViewSource {
    /// Positions of its tables' columns.
    pub positions: Range<usize>,
    /// Its database.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Rights with which its tables are changed; none are the reader's own.
    pub rights: Option<Arc<UserPrivileges>>,
    /// WITH CHECK OPTION; empty without.
    pub conditions: Vec<Expr>,
}

impl ViewSource {
    /// What rows of a table of this view must fulfil.
    pub(crate) fn check(&self) -> Option<ViewCheck> {
        (!self.conditions.is_empty()).then(|| ViewCheck {
            conditions: self.conditions.clone(),
            schema: self.schema.clone(),
            name: self.name.clone(),
        })
    }
}

/// What a view was taken apart into.
struct Parts {
    columns: Vec<MergedColumn>,
    filter: Vec<Expr>,
    /// Number of the conjuncts of FROM when its WHERE was bound.
    joined: usize,
}

/// Position of a column that is no column of a table.
pub(crate) const NO_POSITION: usize = usize::MAX;

impl Binder<'_, '_, '_> {
    /// Whether a view that is met now is to be merged.
    pub(super) fn merges_here(&self) -> bool {
        self.merges_views && self.blocks.len() == 1
    }

    /// Adds a view to the block as its tables; false if it cannot be.
    pub(super) fn merge_view(
        &mut self,
        entry: &Arc<TableEntry>,
        alias: &str,
        from: &mut From,
    ) -> Result<bool> {
        let Some(view) = entry.view().filter(|view| view.is_updatable) else { return Ok(false) };
        let query = parsed(view)?;
        let ast::QueryBody::Select(select) = &query.body else { return Ok(false) };
        self.enter_view(entry)?;
        let rights = self.view_rights(view);
        let merged = rights.and_then(|rights| {
            let outside = self.rights.clone();
            if rights.is_some() {
                self.rights.clone_from(&rights);
            }
            let merged = self.merge_select(entry, alias, select, from);
            self.rights = outside;
            merged.map(|()| rights)
        });
        self.views.pop();
        let rights = merged.map_err(|error| self.invalid(error, entry))?;
        if let Some(source) = self.block().views.last_mut() {
            source.rights = rights;
        }
        Ok(true)
    }

    fn merge_select(
        &mut self,
        entry: &Arc<TableEntry>,
        alias: &str,
        select: &ast::Select,
        from: &mut From,
    ) -> Result<()> {
        let (first, conjuncts) = (self.block().columns, from.conjuncts.len());
        let views = self.block().views.len();
        let outside = std::mem::take(&mut self.block().tables);
        let orders = std::mem::take(&mut self.block().orders);
        let clause = self.block().clause;
        self.inside_views += 1;
        let parts = self.with_other_text(|binder| binder.merged_parts(entry, alias, select, from));
        self.inside_views -= 1;
        let block = self.block();
        block.clause = clause;
        block.orders = orders;
        let inner = std::mem::replace(&mut block.tables, outside);
        let below = block.views.split_off(views);
        let is_table = |table: &NamedTable| !matches!(table.columns, ColumnList::Merged(_));
        let of_tables = inner.iter().all(is_table);
        block.merged_tables.extend(inner.into_iter().filter(is_table));
        let parts = parts?;
        from.conjuncts.extend(parts.filter.iter().cloned());
        let option = entry.view().map_or(CheckOption::None, |view| view.check_option);
        let mut conditions = Vec::new();
        match option {
            CheckOption::Cascaded => conditions.extend(from.conjuncts[conjuncts..].iter().cloned()),
            CheckOption::Local => {
                conditions.extend(parts.filter);
                if of_tables && below.is_empty() {
                    conditions.extend(from.conjuncts[conjuncts..parts.joined].iter().cloned());
                }
            }
            CheckOption::None => {}
        }
        if option != CheckOption::Cascaded {
            conditions.extend(below.into_iter().flat_map(|view| view.conditions));
        }
        let definition = entry.definition();
        let block = self.block();
        let mut table = NamedTable::new(
            alias.to_string(),
            definition.schema.clone(),
            first,
            ColumnList::Merged(parts.columns),
        );
        table.nullable = false;
        block.tables.push(table);
        block.views.push(ViewSource {
            positions: first..block.columns,
            schema: definition.schema.clone(),
            name: definition.name.clone(),
            rights: None,
            conditions,
        });
        Ok(())
    }
}

impl<'q> Binder<'_, '_, 'q> {
    /// Binds FROM, WHERE and the items of a view.
    fn merged_parts(
        &mut self,
        entry: &TableEntry,
        alias: &str,
        select: &'q ast::Select,
        from: &mut From,
    ) -> Result<Parts> {
        for reference in &select.from {
            self.bind_reference(reference, from)?;
        }
        self.check_unique_aliases()?;
        let joined = from.conjuncts.len();
        let filter = match &select.filter {
            Some(filter) => self.bind_conjuncts(filter, Clause::Where)?,
            None => Vec::new(),
        };
        let mut columns = Vec::with_capacity(select.items.len());
        let schema = &entry.definition().schema;
        for item in &select.items {
            let ast::SelectItem::Expression { expression, alias: name, text } = item else {
                return Err(unsupported("this view as the target of a change"));
            };
            self.block().clause = Clause::Select;
            let value = self.bind_scalar(expression)?;
            let name = name.clone().unwrap_or_else(|| text.clone());
            let named = NamedColumn {
                result: value.result,
                printed: format!("`{schema}`.`{alias}`.`{name}`").into(),
                org_name: name.clone(),
                org_table: alias.to_string(),
                schema: schema.clone(),
                flags: 0,
                name,
            };
            columns.push(MergedColumn { named, value });
        }
        Ok(Parts { columns, filter, joined })
    }

    /// The table of the block whose columns have a position, merged views taken apart.
    pub(super) fn table_at(&mut self, position: usize) -> Option<NamedTable> {
        let block = self.block();
        let holds = |table: &&NamedTable| {
            !matches!(table.columns, ColumnList::Merged(_))
                && (table.first..table.first + table.source_width()).contains(&position)
        };
        block.tables.iter().chain(&block.merged_tables).find(holds).cloned()
    }

    /// The view through which the columns at a position are seen.
    pub(super) fn view_at(&mut self, position: usize) -> Option<ViewSource> {
        self.block().views.iter().find(|view| view.positions.contains(&position)).cloned()
    }

    /// INSERT into a view that joins tables: the one that all columns named belong to.
    pub(super) fn open_joined_target(
        &mut self,
        insert: &'q ast::Insert,
    ) -> Result<Arc<TableEntry>> {
        let name = &insert.table.name;
        let catalog::TableRef::View(entry) = self.open(name, &name.name, Privilege::Insert)? else {
            return Err(SqlError::new(&codes::NON_INSERTABLE_TABLE, &[&name.name, &"INSERT"]));
        };
        self.push_block()?;
        self.merges_views = true;
        let found = self.joined_target(&entry, insert);
        self.merges_views = false;
        self.pop_block();
        let (base, view) = found?;
        self.target_view = Some(Box::new(view));
        Ok(base)
    }

    fn joined_target(
        &mut self,
        entry: &Arc<TableEntry>,
        insert: &'q ast::Insert,
    ) -> Result<(Arc<TableEntry>, SimpleView)> {
        let definition = entry.definition();
        let (schema, name) = (&definition.schema, &definition.name);
        let refused =
            || SqlError::new(&codes::NON_INSERTABLE_TABLE, &[&insert.table.name.name, &"INSERT"]);
        let mut from = From::default();
        if !self.merge_view(entry, name, &mut from)? {
            return Err(refused());
        }
        let columns = match self.block().tables.first().map(|table| &table.columns) {
            Some(ColumnList::Merged(columns)) => columns.clone(),
            _ => return Err(refused()),
        };
        let positions = columns.iter().map(|c| crate::optimize::column_position(&c.value));
        let positions: Vec<usize> = positions.map(|at| at.unwrap_or(NO_POSITION)).collect();
        let Some(written) = insert.columns.as_ref().filter(|names| !names.is_empty()) else {
            return Err(match from.sources.len() {
                1 => refused(),
                _ => SqlError::new(&codes::VIEW_NO_INSERT_FIELD_LIST, &[schema, name]),
            });
        };
        let mut target: Option<NamedTable> = None;
        for column in written {
            let at = columns.iter().position(|c| c.named.name.eq_ignore_ascii_case(&column.name));
            let at = at.ok_or_else(|| {
                SqlError::new(&codes::BAD_FIELD_ERROR, &[column, &Clause::InsertInto.name()])
            })?;
            let table = self.table_at(positions[at]).ok_or_else(refused)?;
            if target.as_ref().is_some_and(|known| known.first != table.first) {
                return Err(SqlError::new(&codes::VIEW_MULTIUPDATE, &[schema, name]));
            }
            target = Some(table);
        }
        let target = target.ok_or_else(refused)?;
        let base = target.entry().ok_or_else(refused)?;
        let own = target.first..target.first + target.source_width();
        let own = columns.iter().zip(&positions).filter(|(_, at)| own.contains(at));
        let own: Vec<(String, usize)> =
            own.map(|(c, at)| (c.named.name.clone(), at - target.first)).collect();
        let mut conditions = self.view_at(target.first).map_or(Vec::new(), |it| it.conditions);
        if !conditions.is_empty() && from.sources.len() > 1 {
            // A new row has no partners in the other tables.
            conditions = vec![self.builder().boolean(false)];
        }
        let mut outside = false;
        let mut note = |position: usize| outside |= position >= target.source_width();
        conditions.iter().for_each(|condition| condition.for_each_column(&mut note));
        if outside {
            return Err(unsupported("INSERT through this view WITH CHECK OPTION"));
        }
        let view = SimpleView::of_columns((schema, name), base.clone(), own, conditions);
        Ok((base.0, view))
    }
}
