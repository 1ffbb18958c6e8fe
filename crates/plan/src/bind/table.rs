//! A table's name to what the catalog knows of it.

use super::*;
use crate::optimize::merge::Unplanned;
use crate::physical::TableSource;
use catalog::information_schema::SCHEMA_NAME;
use catalog::{Privilege, TableEntry, TableRef};
use engine_api::{ColumnDefault, ColumnDefinition, TableDefinition};
use expr::flags;

/// Columns that are part of some index.
const PART_KEY: u16 = 16384;

/// The type of a table's column: JSON is text that is checked to be.
fn base_type(column: &ColumnDefinition) -> ResultType {
    let mut result = ResultType::column(column.column_type, column.nullable);
    result.is_json = column.check.strip_prefix("json_valid(").is_some_and(|rest| {
        rest.strip_suffix(')') == Some(&catalog::describe::quote_name(&column.name))
    });
    result
}

impl Binder<'_, '_, '_> {
    /// The database of a table name: the one written, or the session's (1046).
    pub(super) fn schema_of(&self, name: &ast::TableName) -> Result<String> {
        match (&name.schema, self.context.database) {
            (Some(schema), _) => Ok(schema.clone()),
            (None, Some(database)) => Ok(database.to_string()),
            (None, None) => Err(SqlError::new(&codes::NO_DB_ERROR, &[])),
        }
    }

    /// Opens a table for `privilege`, with a shared metadata lock.
    pub(super) fn open(
        &mut self,
        name: &ast::TableName,
        alias: &str,
        privilege: Privilege,
    ) -> Result<TableRef> {
        let schema = self.schema_of(name)?;
        let outside = self.inside_views == 0;
        let temporary = self.context.temporary.filter(|_| outside);
        let temporary = temporary.and_then(|known| known.find(&schema, &name.name));
        if let Some(entry) = temporary {
            let entry = entry.clone();
            self.reusable = false;
            self.note_entry(&entry);
            return Ok(TableRef::Base(entry));
        }
        let virtual_schema = schema.eq_ignore_ascii_case(catalog::information_schema::SCHEMA_NAME);
        self.guard = None;
        if !virtual_schema && !self.user().may(privilege, &schema, &name.name) {
            if !outside || !self.may_open(privilege, &schema, &name.name) {
                return Err(self.denied(privilege, &schema, &name.name));
            }
            self.guard = self.guard_of(&schema, &name.name);
        }
        if let Some(locked) = self.context.locked.filter(|_| !virtual_schema && outside) {
            locked.check((&schema, &name.name), alias, privilege != Privilege::Select)?;
        }
        let table = self.context.catalog.open_table(self.context.locks, &schema, &name.name)?;
        if let TableRef::Base(entry) = &table {
            if let Some((inserted, name)) = &self.inserted
                && Arc::ptr_eq(inserted, entry)
                && name.as_str() == alias
            {
                let arguments: [&dyn std::fmt::Display; 2] = [name, &"INSERT"];
                return Err(SqlError::new(&codes::UPDATE_TABLE_USED, &arguments));
            }
            self.note_entry(entry);
        }
        Ok(table)
    }

    /// With whose rights tables are opened.
    pub(super) fn user(&self) -> &catalog::UserPrivileges {
        self.rights.as_deref().unwrap_or(self.context.user)
    }

    /// The plan depends on this table.
    pub(crate) fn note_entry(&mut self, entry: &Arc<TableEntry>) {
        if self.depth > 1 {
            self.inner_entries.push(EntryHandle(entry.clone()));
        }
        if !self.entries.iter().any(|known| Arc::ptr_eq(&known.0, entry)) {
            self.entries.push(EntryHandle(entry.clone()));
        }
    }

    /// The table that rows are changed in through a view (1288, 1471).
    fn open_view_for_change(
        &mut self,
        entry: &Arc<TableEntry>,
        privilege: Privilege,
    ) -> Result<Arc<TableEntry>> {
        self.note_entry(entry);
        self.view_privilege = privilege;
        let simple = self.simple_view(entry);
        self.view_privilege = Privilege::Select;
        let Some(view) = simple? else {
            let (name, word) = (&entry.definition().name, privilege.name());
            let word = word.to_ascii_uppercase();
            let arguments: [&dyn std::fmt::Display; 2] = [name, &word];
            self.wants_merge = entry.view().is_some_and(|view| view.is_updatable);
            return Err(match privilege {
                Privilege::Insert => SqlError::new(&codes::NON_INSERTABLE_TABLE, &arguments),
                _ => SqlError::new(&codes::NON_UPDATABLE_TABLE, &arguments),
            });
        };
        let base = view.base.0.clone();
        self.target_view = Some(Box::new(view));
        Ok(base)
    }

    /// Opens a table that is changed; information_schema cannot be (1044).
    pub(super) fn open_for_change(
        &mut self,
        name: &ast::TableName,
        alias: &str,
        privilege: Privilege,
    ) -> Result<Arc<TableEntry>> {
        match self.open(name, alias, privilege)? {
            TableRef::Base(entry) => Ok(entry),
            TableRef::View(entry) => self.open_view_for_change(&entry, privilege),
            TableRef::Virtual(table) if table.schema != SCHEMA_NAME => {
                let code = match privilege {
                    Privilege::Insert => &codes::NON_INSERTABLE_TABLE,
                    _ => &codes::NON_UPDATABLE_TABLE,
                };
                Err(SqlError::new(code, &[&table.name, &privilege.name()]))
            }
            TableRef::Virtual(_) => {
                let account = &self.context.user.account;
                Err(SqlError::new(
                    &codes::DBACCESS_DENIED_ERROR,
                    &[&account.user, &account.host.0, &"information_schema"],
                ))
            }
        }
    }
}

impl NamedTable {
    /// A table under a name, from a position on.
    pub(crate) fn new(alias: String, schema: String, first: usize, columns: ColumnList) -> Self {
        let (hidden, guard, partitions) = (Vec::new(), None, Vec::new());
        Self { alias, schema, first, columns, hidden, nullable: false, guard, partitions }
    }

    /// Number of columns.
    pub(crate) fn width(&self) -> usize {
        match &self.columns {
            ColumnList::Base(entry) => entry.0.definition().columns.len(),
            ColumnList::Virtual(table) => table.columns.len(),
            ColumnList::Mapped(mapped) => mapped.columns.len(),
            ColumnList::Listed(columns) => columns.len(),
            ColumnList::Merged(columns) => columns.len(),
        }
    }

    /// Number of positions that its source has.
    pub(crate) fn source_width(&self) -> usize {
        match &self.columns {
            ColumnList::Mapped(mapped) => mapped.entry.0.definition().columns.len(),
            _ => self.width(),
        }
    }

    /// The table of the engine that its columns are in.
    pub(crate) fn entry(&self) -> Option<EntryHandle> {
        match &self.columns {
            ColumnList::Base(entry) => Some(entry.clone()),
            ColumnList::Mapped(mapped) => Some(mapped.entry.clone()),
            _ => None,
        }
    }

    /// Virtual position of a column.
    pub(crate) fn position(&self, offset: usize) -> usize {
        match &self.columns {
            ColumnList::Mapped(mapped) => self.first + mapped.columns[offset].1,
            ColumnList::Merged(columns) => {
                let position = crate::optimize::column_position(&columns[offset].value);
                position.unwrap_or(super::merge::NO_POSITION)
            }
            _ => self.first + offset,
        }
    }

    /// Which of its columns has a virtual position.
    pub(crate) fn offset_of(&self, position: usize) -> Option<usize> {
        let offset = position.checked_sub(self.first)?;
        match &self.columns {
            ColumnList::Mapped(mapped) => mapped.columns.iter().position(|(_, at)| *at == offset),
            ColumnList::Merged(_) => (0..self.width()).find(|at| self.position(*at) == position),
            _ => (offset < self.width()).then_some(offset),
        }
    }

    /// The name of a column.
    pub(super) fn name(&self, offset: usize) -> &str {
        match &self.columns {
            ColumnList::Base(entry) => &entry.0.definition().columns[offset].name,
            ColumnList::Virtual(table) => table.columns[offset].name,
            ColumnList::Mapped(mapped) => &mapped.columns[offset].0,
            ColumnList::Listed(columns) => &columns[offset].name,
            ColumnList::Merged(columns) => &columns[offset].named.name,
        }
    }

    /// The first column of that name from `start` on.
    pub(super) fn find(&self, name: &str, start: usize) -> Option<usize> {
        (start..self.width()).find(|offset| self.name(*offset).eq_ignore_ascii_case(name))
    }

    /// The type of a column.
    pub(super) fn result(&self, offset: usize) -> ResultType {
        let result = match &self.columns {
            ColumnList::Base(entry) => base_type(&entry.0.definition().columns[offset]),
            ColumnList::Virtual(table) => {
                let column = &table.columns[offset];
                ResultType::column(column.kind.column_type(), column.nullable)
            }
            ColumnList::Mapped(mapped) => {
                base_type(&mapped.entry.0.definition().columns[mapped.columns[offset].1])
            }
            ColumnList::Listed(columns) => columns[offset].result,
            ColumnList::Merged(columns) => columns[offset].value.result,
        };
        if self.nullable { result.with_nullable(true) } else { result }
    }

    /// A column as messages print it.
    pub(super) fn printed(&self, offset: usize) -> Arc<str> {
        match &self.columns {
            ColumnList::Listed(columns) => columns[offset].printed.clone(),
            ColumnList::Merged(columns) => columns[offset].named.printed.clone(),
            _ => format!("`{}`.`{}`.`{}`", self.schema, self.alias, self.name(offset)).into(),
        }
    }

    /// Everything about a column.
    pub(crate) fn column(&self, offset: usize) -> NamedColumn {
        let (org_table, flags) = match &self.columns {
            ColumnList::Listed(columns) => {
                let mut column = columns[offset].clone();
                column.result = self.result(offset);
                return column;
            }
            ColumnList::Merged(columns) => {
                let mut column = columns[offset].named.clone();
                column.result = self.result(offset);
                return column;
            }
            ColumnList::Base(entry) => {
                let definition = entry.0.definition();
                let flags = column_flags(definition, offset, &definition.columns[offset]);
                (definition.name.clone(), flags)
            }
            ColumnList::Mapped(mapped) => {
                let (definition, at) = (mapped.entry.0.definition(), mapped.columns[offset].1);
                let flags = column_flags(definition, at, &definition.columns[at]);
                (self.alias.clone(), flags)
            }
            ColumnList::Virtual(table) => (table.name.to_string(), 0),
        };
        NamedColumn {
            name: self.name(offset).to_string(),
            result: self.result(offset),
            printed: self.printed(offset),
            org_name: self.name(offset).to_string(),
            org_table,
            schema: self.schema.clone(),
            flags,
        }
    }
}

/// Flags that MariaDB sends of a column beside those of its type.
pub fn column_flags(
    definition: &TableDefinition,
    position: usize,
    column: &ColumnDefinition,
) -> u16 {
    let mut bits = 0;
    for index in &definition.indexes {
        let Some(part) = index.parts.iter().position(|part| part.column == position) else {
            continue;
        };
        bits |= PART_KEY;
        if index.primary {
            bits |= flags::PRIMARY_KEY;
        }
        if part == 0 && !index.primary {
            let alone = index.unique && index.parts.len() == 1;
            bits |= if alone { flags::UNIQUE_KEY } else { flags::MULTIPLE_KEY };
        }
    }
    if column.auto_increment {
        bits |= flags::AUTO_INCREMENT;
    }
    let timestamp = column.column_type.kind == types::TypeKind::Timestamp;
    let now = column.default == ColumnDefault::CurrentTimestamp || column.on_update_now;
    if timestamp && now {
        bits |= flags::TIMESTAMP;
    }
    if column.on_update_now {
        bits |= flags::ON_UPDATE_NOW;
    }
    if column.default == ColumnDefault::None && !column.nullable && !column.auto_increment {
        bits |= flags::NO_DEFAULT;
    }
    bits
}

/// A table of FROM that is read, before it becomes a step.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// What is read.
    pub table: TableSource,
    /// Alias or name.
    pub alias: String,
    /// First position of its columns.
    pub first: usize,
    /// Number of its columns.
    pub width: usize,
    /// Conditions of ON when it is the right side of a left join.
    pub left_join: Option<Vec<Expr>>,
    /// STRAIGHT_JOIN: it is read after all sources before it.
    pub straight: bool,
    /// Index hints.
    pub hints: Vec<ast::IndexHint>,
    /// The block that a derived table is, before it was planned.
    pub unplanned: Option<Arc<Unplanned>>,
    /// The blocks that a derived table of set operations is, in order, as far as each is one.
    pub branches: Vec<Option<Arc<Unplanned>>>,
}

/// Error 1054.
pub(super) fn unqualified_error(name: &ast::ColumnName, clause: Clause) -> SqlError {
    SqlError::new(&codes::BAD_FIELD_ERROR, &[name, &clause.name()])
}
