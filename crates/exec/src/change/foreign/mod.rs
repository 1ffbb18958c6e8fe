//! Foreign keys while rows change: parents are looked up, children are refused or follow.
//!
//! 1. A parent is looked up under a shared lock before the child's row is written, and the lock
//!    stays; whoever removes a parent holds its row exclusively before it looks for children, and
//!    children that are not yet committed are waited for. So either finds the other: no child is
//!    ever left without its parent.
//! 2. What is asked is what is there now, whatever the transaction's snapshot is
//!    (`Transaction::read_present`). Rows that a cascade changes are read like those of any change.
//! 3. What refuses a change is looked for before the row is written, what follows it is done
//!    afterwards. A failure leaves half the work: the statement's savepoint, or that of one row
//!    with IGNORE, undoes it.
//! 4. Cascades are bounded in depth, and none updates a table that it came from (1451), as in
//!    InnoDB.

mod refusal;

use self::refusal::is_foreign;
use crate::ExecError;
use crate::context::Exec;
use crate::error::in_table;
use catalog::TableEntry;
use engine_api::{
    DuplicateKey, KeyRange, LockMode, LockWait, ReferentialAction, RowBuffer, ScanDirection,
    ScanOptions,
};
use plan::physical::{ChildLink, ForeignKeys, ParentLink};
use types::row::RowView;
use types::{Level, SqlError, TypeKind, Value, ValueRef, Warning};

/// Rows that one change may drag behind it, one after the other.
const DEPTH_MAX: usize = 15;

type Done = Result<(), ExecError>;
/// A duplicate is an outcome that the statement deals with.
type Written = Result<Result<(), DuplicateKey>, ExecError>;

/// The foreign keys of one statement.
#[derive(Clone, Copy)]
pub struct ForeignChecks<'p> {
    keys: &'p ForeignKeys,
}

/// How a change came to a row.
#[derive(Clone, Copy)]
struct Origin<'o> {
    depth: usize,
    /// The foreign key of the table that is being followed: its parent is known.
    followed: Option<usize>,
    /// Table that was updated before, and how that came about.
    updated: Option<(usize, &'o Origin<'o>)>,
}

impl Origin<'_> {
    const STATEMENT: Origin<'static> = Origin { depth: 0, followed: None, updated: None };

    fn has_updated(&self, table: usize) -> bool {
        match self.updated {
            None => false,
            Some((updated, before)) => updated == table || before.has_updated(table),
        }
    }
}

fn restricts(action: ReferentialAction) -> bool {
    matches!(action, ReferentialAction::Restrict | ReferentialAction::NoAction)
}

impl<'p> ForeignChecks<'p> {
    /// Checks of a plan.
    pub fn new(keys: &'p ForeignKeys) -> Self {
        Self { keys }
    }

    fn entry(&self, table: usize) -> &'p TableEntry {
        &self.keys.tables[table].entry.0
    }

    /// Whether a row of the statement's table can be its own parent.
    pub fn refers_to_itself(&self) -> bool {
        let parents = &self.keys.tables[0].parents;
        parents.iter().any(|link| matches!(link.parent, Some((0, _))))
    }

    /// Looks the parents of a new row up and locks them; the error if one is missing. `old` is
    /// what the row was: values that have not changed are not looked up.
    pub fn missing_parent(
        &self,
        exec: &mut Exec<'_>,
        old: Option<&RowBuffer>,
        new: &RowBuffer,
    ) -> Result<Option<SqlError>, ExecError> {
        self.missing_parent_of(exec, 0, old, new, None)
    }

    fn missing_parent_of(
        &self,
        exec: &mut Exec<'_>,
        table: usize,
        old: Option<&RowBuffer>,
        new: &RowBuffer,
        followed: Option<usize>,
    ) -> Result<Option<SqlError>, ExecError> {
        let layout = &self.entry(table).layouts().row;
        let view = RowView::new(layout, &new.key, &new.payload);
        // A row that moves to another clustered key comes in anew.
        let stays = old.filter(|old| old.key == new.key);
        let before = stays.map(|old| RowView::new(layout, &old.key, &old.payload));
        for link in &self.keys.tables[table].parents {
            let values: Vec<ValueRef<'_>> = link.columns.iter().map(|at| view.get(*at)).collect();
            let same = before.as_ref().is_some_and(|before| {
                link.columns.iter().zip(&values).all(|(at, value)| before.get(*at) == *value)
            });
            if same || followed == Some(link.key) || values.iter().any(|value| value.is_null()) {
                continue;
            }
            let found = match link.parent {
                None => false,
                Some((parent, index)) => {
                    self.present(exec, (parent, index), &values, LockMode::Shared)?
                }
            };
            if !found {
                return Ok(Some(self.no_parent(table, link)));
            }
        }
        Ok(None)
    }

    /// Whether there is a row with these leading key values now.
    fn present(
        &self,
        exec: &mut Exec<'_>,
        (table, index): (usize, usize),
        values: &[ValueRef<'_>],
        lock: LockMode,
    ) -> Result<bool, ExecError> {
        exec.transaction.read_present(true);
        let found = self.first_of(exec, (table, index), values, lock);
        exec.transaction.read_present(false);
        found
    }

    fn first_of(
        &self,
        exec: &mut Exec<'_>,
        (table, index): (usize, usize),
        values: &[ValueRef<'_>],
        lock: LockMode,
    ) -> Result<bool, ExecError> {
        let entry = self.entry(table);
        let layout = &entry.layouts().indexes[index];
        let mut key = Vec::with_capacity(16);
        layout.push_values(values, &mut key)?;
        let handle = entry.handle()?;
        let mut row = RowBuffer::default();
        if index == 0 && values.len() == layout.parts().len() {
            return Ok(handle.get(exec.transaction, &key, lock, LockWait::Wait, &mut row)?);
        }
        let mut cursor = handle.scan(exec.transaction, scan(index, key, lock))?;
        Ok(cursor.next(exec.transaction, &mut row)?)
    }

    /// Deletes a row of the statement's table with what follows from it.
    pub fn delete(&self, exec: &mut Exec<'_>, row: &RowBuffer) -> Done {
        self.delete_from(exec, 0, row, Origin::STATEMENT)
    }

    /// As [`ForeignChecks::delete`]; false if IGNORE left the row, with a warning, since its
    /// children need it.
    pub fn delete_unless_ignored(
        &self,
        exec: &mut Exec<'_>,
        row: &RowBuffer,
        ignore: bool,
    ) -> Result<bool, ExecError> {
        let savepoint = ignore.then(|| exec.transaction.savepoint());
        match (self.delete(exec, row), savepoint) {
            (Err(error), Some(savepoint)) if is_foreign(&error) => {
                exec.transaction.rollback_to(savepoint)?;
                let warning = Warning { level: Level::Warning, ..Warning::from(&error.sql) };
                exec.eval.push_warning(warning);
                Ok(false)
            }
            (done, _) => done.map(|()| true),
        }
    }

    /// As [`ForeignChecks::update`]; none if IGNORE left the row as it was.
    pub fn update_unless_ignored(
        &self,
        exec: &mut Exec<'_>,
        (old, new): (&RowBuffer, &RowBuffer),
        ignore: bool,
    ) -> Result<Option<Result<(), DuplicateKey>>, ExecError> {
        let savepoint = ignore.then(|| exec.transaction.savepoint());
        match (self.update(exec, old, new), savepoint) {
            (Err(error), Some(savepoint)) if is_foreign(&error) => {
                exec.transaction.rollback_to(savepoint)?;
                Ok(None)
            }
            (updated, _) => updated.map(Some),
        }
    }

    fn delete_from(
        &self,
        exec: &mut Exec<'_>,
        table: usize,
        row: &RowBuffer,
        origin: Origin<'_>,
    ) -> Done {
        self.refuse(exec, table, row, None)?;
        let entry = self.entry(table);
        let deleted = entry.handle()?.delete(exec.transaction, row);
        deleted.map_err(|error| in_table(error, &entry.definition().name))?;
        self.follow(exec, table, row, None, origin)
    }

    /// Replaces a row of the statement's table, with what follows from it.
    pub fn update(&self, exec: &mut Exec<'_>, old: &RowBuffer, new: &RowBuffer) -> Written {
        self.update_in(exec, 0, (old, new), Origin::STATEMENT)
    }

    fn update_in(
        &self,
        exec: &mut Exec<'_>,
        table: usize,
        (old, new): (&RowBuffer, &RowBuffer),
        origin: Origin<'_>,
    ) -> Written {
        let missing = self.missing_parent_of(exec, table, Some(old), new, origin.followed)?;
        let own = |link: &ParentLink| matches!(link.parent, Some((parent, _)) if parent == table);
        let again = missing.is_some() && self.keys.tables[table].parents.iter().any(own);
        if let Some(error) = missing.filter(|_| !again) {
            return Err(error.into());
        }
        self.refuse(exec, table, old, Some(new))?;
        let entry = self.entry(table);
        let updated = entry.handle()?.update(exec.transaction, old, new);
        if let Err(duplicate) = updated.map_err(|e| in_table(e, &entry.definition().name))? {
            return Ok(Err(duplicate));
        }
        // A row may have become its own parent.
        if again
            && let Some(error) =
                self.missing_parent_of(exec, table, Some(old), new, origin.followed)?
        {
            return Err(error.into());
        }
        self.follow(exec, table, old, Some(new), origin)?;
        Ok(Ok(()))
    }

    /// The values by which the children of a row are found: none if it has none, or (with `new`)
    /// if they stay as they are.
    fn values_of<'r>(
        &'r self,
        table: usize,
        link: &ChildLink,
        old: &'r RowBuffer,
        new: Option<&RowBuffer>,
    ) -> Option<Vec<ValueRef<'r>>> {
        let layout = &self.entry(table).layouts().row;
        let view = RowView::new(layout, &old.key, &old.payload);
        let values: Vec<_> = link.parent_columns.iter().map(|at| view.get(*at)).collect();
        let same = new.is_some_and(|new| {
            let after = RowView::new(layout, &new.key, &new.payload);
            link.parent_columns.iter().zip(&values).all(|(at, value)| after.get(*at) == *value)
        });
        (!same && !values.iter().any(|value| value.is_null())).then_some(values)
    }

    /// Error 1451 if a child refuses that the row goes or gets another key.
    fn refuse(
        &self,
        exec: &mut Exec<'_>,
        table: usize,
        old: &RowBuffer,
        new: Option<&RowBuffer>,
    ) -> Done {
        for link in &self.keys.tables[table].children {
            if !restricts(action_of(link, new)) {
                continue;
            }
            let Some(values) = self.values_of(table, link, old, new) else { continue };
            if self.present(exec, (link.table, link.index), &values, LockMode::Shared)? {
                return Err(self.has_child(link).into());
            }
        }
        Ok(())
    }

    /// Changes the children of a row that is gone or has another key.
    fn follow(
        &self,
        exec: &mut Exec<'_>,
        table: usize,
        old: &RowBuffer,
        new: Option<&RowBuffer>,
        origin: Origin<'_>,
    ) -> Done {
        for link in &self.keys.tables[table].children {
            let action = action_of(link, new);
            if restricts(action) {
                continue;
            }
            let Some(values) = self.values_of(table, link, old, new) else { continue };
            let next = Origin {
                depth: origin.depth + 1,
                followed: Some(link.key),
                updated: match new {
                    Some(_) => Some((table, &origin)),
                    None => origin.updated,
                },
            };
            let children = self.rows_of(exec, link, &values)?;
            for child in children {
                exec.tick()?;
                self.follow_row(exec, (table, link), new, child, action, next)?;
            }
        }
        Ok(())
    }

    fn follow_row(
        &self,
        exec: &mut Exec<'_>,
        (table, link): (usize, &ChildLink),
        new: Option<&RowBuffer>,
        child: RowBuffer,
        action: ReferentialAction,
        origin: Origin<'_>,
    ) -> Done {
        if origin.depth >= DEPTH_MAX {
            exec.eval.push_warning(Warning {
                level: Level::Warning,
                code: 152,
                message: "InnoDB: Cannot delete/update rows with cascading foreign key \
                          constraints that exceed max depth of 15. Please drop extra constraints \
                          and try again"
                    .into(),
            });
            return Err(self.too_deep(link).into());
        }
        if origin.has_updated(link.table) {
            return Err(self.has_child(link).into());
        }
        // Another way may have led to the row since it was found.
        let entry = self.entry(link.table);
        let mut now = RowBuffer::default();
        let (lock, wait) = (LockMode::Exclusive, LockWait::Wait);
        if !entry.handle()?.get(exec.transaction, &child.key, lock, wait, &mut now)? {
            return Ok(());
        }
        if action == ReferentialAction::Cascade && new.is_none() {
            return self.delete_from(exec, link.table, &now, origin);
        }
        let changed = self.changed_child(exec.eval, (table, link), new, &now, action)?;
        let Some(changed) = changed else { return Err(self.has_child(link).into()) };
        if let Err(duplicate) = self.update_in(exec, link.table, (&now, &changed), origin)? {
            return Err(self.duplicate_child(exec, (table, link), new, &duplicate).into());
        }
        Ok(())
    }

    /// The child with the parent's new values, or NULLs; none if its columns cannot hold them.
    fn changed_child(
        &self,
        eval: &expr::EvalContext,
        (table, link): (usize, &ChildLink),
        new: Option<&RowBuffer>,
        now: &RowBuffer,
        action: ReferentialAction,
    ) -> Result<Option<RowBuffer>, ExecError> {
        let entry = self.entry(link.table);
        let definition = entry.definition();
        let layout = &entry.layouts().row;
        let view = RowView::new(layout, &now.key, &now.payload);
        let mut values: Vec<Value> =
            (0..definition.columns.len()).map(|at| view.get(at).to_owned()).collect();
        let parent_layout = &self.entry(table).layouts().row;
        let parent = new.map(|new| RowView::new(parent_layout, &new.key, &new.payload));
        for (column, parent_column) in link.columns.iter().zip(&link.parent_columns) {
            let value = match (action, &parent) {
                (ReferentialAction::Cascade, Some(parent)) => parent.get(*parent_column),
                _ => ValueRef::Null,
            };
            let target = &definition.columns[*column];
            let too_long = match value {
                ValueRef::Null => !target.nullable,
                ValueRef::Bytes(bytes) => is_too_long(bytes, &target.column_type),
                _ => false,
            };
            if too_long {
                return Ok(None);
            }
            values[*column] = value.to_owned();
        }
        let computed = self.keys.tables[link.table].computed.as_deref();
        super::computed::compute_generated(eval, definition, computed, &mut values)?;
        let mut row = RowBuffer::default();
        layout.encode_with(|at| values[at].as_ref(), &mut row.key, &mut row.payload)?;
        if definition.hidden_row_id {
            row.key.clone_from(&now.key);
        }
        Ok(Some(row))
    }

    /// The children of a row, locked.
    fn rows_of(
        &self,
        exec: &mut Exec<'_>,
        link: &ChildLink,
        values: &[ValueRef<'_>],
    ) -> Result<Vec<RowBuffer>, ExecError> {
        let entry = self.entry(link.table);
        let mut key = Vec::with_capacity(16);
        entry.layouts().indexes[link.index].push_values(values, &mut key)?;
        let options = scan(link.index, key, LockMode::Exclusive);
        let mut cursor = entry.handle()?.scan(exec.transaction, options)?;
        let (mut rows, mut row) = (Vec::new(), RowBuffer::default());
        while cursor.next(exec.transaction, &mut row)? {
            exec.tick()?;
            exec.charge(row.key.len() + row.payload.len() + size_of::<RowBuffer>())?;
            rows.push(std::mem::take(&mut row));
        }
        Ok(rows)
    }
}

fn action_of(link: &ChildLink, new: Option<&RowBuffer>) -> ReferentialAction {
    if new.is_some() { link.on_update } else { link.on_delete }
}

fn scan(index: usize, key: Vec<u8>, lock: LockMode) -> ScanOptions {
    ScanOptions {
        index,
        range: KeyRange::prefix(key),
        direction: ScanDirection::Forward,
        lock,
        lock_wait: LockWait::Wait,
        covering: false,
    }
}

/// Whether text of the parent is too long for the child's column.
fn is_too_long(bytes: &[u8], column_type: &types::ColumnType) -> bool {
    let limit = column_type.length as usize;
    match column_type.kind {
        TypeKind::Char | TypeKind::VarChar => {
            bytes.len() > limit && String::from_utf8_lossy(bytes).chars().count() > limit
        }
        TypeKind::Binary | TypeKind::VarBinary => bytes.len() > limit,
        _ => false,
    }
}
