//! How the rows of one step are found, and bound in the frame one after the other.

use super::block::{BlockRun, FrameTarget, column_count, count, is_true};
use super::grace::{self, BuildFiles, Grace};
use super::hash::{HashTable, Kept};
use super::rows::PackedRows;
use super::{Flow, collect_packed};
use crate::ExecError;
use crate::context::Exec;
use crate::error::in_table;
use crate::frame::BatchLayout;
use crate::key::KeySource;
use crate::spill::Partitions;
use catalog::information_schema::{Scope, VirtualTable};
use engine_api::{KeyRange, LockMode, ScanDirection, ScanOptions, Table};
use expr::Expr;
use plan::physical::{Access, EntryHandle, RangePlan, TableSource, TableStep};
use std::sync::Arc;
use types::{Value, ValueRef};

/// Binds every row of step `depth` in the frame and calls `body`.
pub fn each_row<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    let plan = run.plan;
    let step = &plan.tables[depth];
    match (&step.source, &step.access) {
        (_, Access::Hash { build, build_condition, keys }) => {
            if run.steps[depth].hash.is_none() && run.steps[depth].grace.is_none() {
                build_hash(exec, run, depth, build, build_condition, keys)?;
            }
            probe(exec, run, depth, keys, body)
        }
        (TableSource::Base(entry), access) => base_rows(exec, run, depth, entry, access, body),
        (TableSource::Virtual { table, schema, name }, _) => {
            let rows = match run.steps[depth].rows.clone() {
                Some(rows) => rows,
                None => Arc::new(virtual_rows(exec, run, table, schema, name)?),
            };
            run.steps[depth].rows = Some(rows.clone());
            value_rows(exec, run, depth, &rows, body)
        }
        (TableSource::Recursive { id, .. }, _) => {
            let rows = exec.recursions.rows(*id)?;
            rows.each_part(exec, |exec, rows| derived_rows(exec, run, depth, rows, body))
        }
        (TableSource::Derived(query), _) => {
            let rows = match run.steps[depth].derived.clone() {
                Some(rows) => rows,
                None => Arc::new(collect_packed(exec, query)?),
            };
            run.steps[depth].derived = Some(rows.clone());
            rows.each_part(exec, |exec, rows| derived_rows(exec, run, depth, rows, body))
        }
    }
}

/// Rows of a derived table that are grouped at once.
const DERIVED_ROWS: usize = 1024;

fn derived_rows<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    rows: &Arc<PackedRows>,
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    let slot = run.steps[depth].slot;
    let mut done = 0;
    let takes_batches = exec.profile.is_none() && !run.steps[depth].builds;
    if takes_batches && run.plan.tables[depth].tested.is_none() {
        // A number of a row must fit 32 bits.
        let known = rows.len().min(u32::MAX as usize);
        while done < known {
            exec.tick()?;
            let some: Vec<u32> =
                (done..known.min(done + DERIVED_ROWS)).map(|row| row as u32).collect();
            run.frame.set_packed(slot, rows, done);
            if !run.take_batch(exec, depth, &some)? {
                break;
            }
            done += some.len();
        }
    }
    for row in done..rows.len() {
        run.frame.set_packed(slot, rows, row);
        if body(exec, run)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
    Ok(Flow::Continue(()))
}

fn value_rows<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    rows: &[Vec<Value>],
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    let slot = run.steps[depth].slot;
    for row in rows {
        run.frame.set_values(slot, row.clone());
        if body(exec, run)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
    Ok(Flow::Continue(()))
}

fn virtual_rows(
    exec: &Exec<'_>,
    run: &BlockRun<'_>,
    table: &VirtualTable,
    schema: &Option<Expr>,
    name: &Option<Expr>,
) -> Result<Vec<Vec<Value>>, ExecError> {
    let text = |expr: &Option<Expr>| -> Result<Option<String>, ExecError> {
        let Some(expr) = expr else { return Ok(None) };
        Ok(match expr.eval(exec.eval, &run.frame)? {
            ValueRef::Bytes(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        })
    };
    let (schema, name) = (text(schema)?, text(name)?);
    let scope = Scope {
        catalog: exec.catalog,
        user: exec.user,
        session: exec.session,
        schema: schema.as_deref(),
        table: name.as_deref(),
        temporary: None,
    };
    Ok(table.rows(&scope)?)
}

fn open<'p>(
    run: &mut BlockRun<'p>,
    depth: usize,
    entry: &'p EntryHandle,
) -> Result<&'p dyn Table, ExecError> {
    if let Some(table) = run.steps[depth].table {
        return Ok(table);
    }
    let table = entry.0.handle()?.as_ref();
    run.steps[depth].table = Some(table);
    Ok(table)
}

fn base_rows<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    entry: &'p EntryHandle,
    access: &Access,
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    match access {
        Access::Point { key } => point_row(exec, run, depth, entry, key, body),
        Access::Scan { index, direction, covering } => {
            let scan = IndexScan { index: *index, direction: *direction, covering: *covering };
            scan_range(exec, run, depth, entry, scan, KeyRange::all(), body)
        }
        Access::Ranges { index, ranges, direction, covering } => {
            let scan = IndexScan { index: *index, direction: *direction, covering: *covering };
            let mut ranges = key_ranges(exec, run, entry, *index, ranges)?;
            if *direction == ScanDirection::Backward {
                ranges.reverse();
            }
            for range in ranges {
                if scan_range(exec, run, depth, entry, scan, range, body)?.is_break() {
                    return Ok(Flow::Break(()));
                }
            }
            Ok(Flow::Continue(()))
        }
        Access::Hash { build, .. } => base_rows(exec, run, depth, entry, build, body),
    }
}

fn key_ranges(
    exec: &Exec<'_>,
    run: &BlockRun<'_>,
    entry: &EntryHandle,
    index: usize,
    ranges: &[RangePlan],
) -> Result<Vec<KeyRange>, ExecError> {
    let layouts = entry.0.layouts();
    let source = KeySource {
        eval: exec.eval,
        row: &run.frame,
        parts: layouts.indexes[index].parts(),
        columns: layouts.row.columns(),
    };
    source.key_ranges(ranges, run.plan.lock != LockMode::None)
}

/// How a range of an index is read.
#[derive(Clone, Copy)]
struct IndexScan {
    index: usize,
    direction: ScanDirection,
    covering: bool,
}

fn point_row<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    entry: &'p EntryHandle,
    values: &[Expr],
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    let layouts = entry.0.layouts();
    let mut key = std::mem::take(&mut run.steps[depth].key);
    let source = KeySource {
        eval: exec.eval,
        row: &run.frame,
        parts: layouts.row.clustered_key(),
        columns: layouts.row.columns(),
    };
    let found = source.point(values, &mut key)?;
    if found == Some(false) {
        run.steps[depth].key = key;
        return Ok(Flow::Continue(()));
    }
    if found.is_none() {
        let scan = IndexScan { index: 0, direction: ScanDirection::Forward, covering: false };
        return scan_range(exec, run, depth, entry, scan, KeyRange::all(), body);
    }
    let table = open(run, depth, entry)?;
    let (lock, wait) = (run.plan.tables[depth].lock, run.plan.lock_wait);
    let state = &mut run.steps[depth];
    let buffer = run.frame.row_buffer(state.slot, &layouts.row);
    let remembers = depth > 0 && lock == LockMode::None;
    if remembers {
        state.remembered.begin(exec.memory, || table.statistics().rows);
    }
    let found = match state.remembered.find(&key, buffer) {
        Some(found) => found,
        None => {
            let found = table
                .get(exec.transaction, &key, lock, wait, buffer)
                .map_err(|error| in_table(error, &entry.0.definition().name))?;
            state.remembered.add(&key, found.then_some(&*buffer));
            found
        }
    };
    state.key = key;
    if found { body(exec, run) } else { Ok(Flow::Continue(())) }
}

fn scan_range<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    entry: &'p EntryHandle,
    scan: IndexScan,
    range: KeyRange,
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    let table = open(run, depth, entry)?;
    let layouts = entry.0.layouts();
    let failed = |error| in_table(error, &entry.0.definition().name);
    let lock = run.plan.tables[depth].lock;
    let options = ScanOptions {
        index: scan.index,
        range,
        direction: scan.direction,
        lock,
        lock_wait: run.plan.lock_wait,
        covering: scan.covering,
    };
    let slot = run.steps[depth].slot;
    let locks = lock != LockMode::None;
    let mut cursor = table.scan(exec.transaction, options).map_err(failed)?;
    if locks && !scan.covering {
        loop {
            let buffer = run.frame.row_buffer(slot, &layouts.row);
            if !cursor.next(exec.transaction, buffer).map_err(failed)? {
                return Ok(Flow::Continue(()));
            }
            if body(exec, run)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
    }
    let layout = match scan.covering {
        true => BatchLayout::Keys(&layouts.indexes[scan.index]),
        false => BatchLayout::Rows(&layouts.row),
    };
    loop {
        let rows = run.frame.batch(slot, layout);
        if !cursor.next_rows(exec.transaction, rows).map_err(failed)? {
            return Ok(Flow::Continue(()));
        }
        if run.pass_batch(exec, depth, body)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
}

/// The statement does not want the row it has locked: READ COMMITTED gives the lock back.
pub fn release_row(exec: &mut Exec<'_>, run: &mut BlockRun<'_>, depth: usize) {
    if run.plan.tables[depth].lock == LockMode::None {
        return;
    }
    let state = &run.steps[depth];
    if let (Some(table), Some(row)) = (state.table, run.frame.row(state.slot)) {
        table.unlock_row(exec.transaction, row);
    }
}

/// Where the rows for a hash table are.
enum Build {
    Table(HashTable),
    /// They do not fit.
    Files(Partitions),
}

impl Build {
    fn add(&mut self, exec: &Exec<'_>, key: &[u8], row: Kept) -> Result<(), ExecError> {
        let budget = exec.spill.budgets().join;
        let row = match self {
            Self::Table(table) => match table.add(key, row, budget / 4 * 3) {
                Ok(()) => return Ok(()),
                Err(row) => row,
            },
            Self::Files(files) => {
                return files.push_with(files.of(key), |out| row.write(key, out));
            }
        };
        let mut files = Partitions::new(exec.spill, exec.memory, budget, 0);
        if let Self::Table(table) = self {
            for (key, row) in table.all() {
                runtime::yield_if_due();
                files.push_with(files.of(key), |out| row.write(key, out))?;
            }
        }
        files.push_with(files.of(key), |out| row.write(key, out))?;
        *self = Self::Files(files);
        Ok(())
    }
}

fn build_hash(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'_>,
    depth: usize,
    build: &Access,
    condition: &Option<Expr>,
    keys: &[(Expr, Expr)],
) -> Result<(), ExecError> {
    let step: &TableStep = &run.plan.tables[depth];
    let columns = column_count(&step.source);
    let mut kept_rows = Build::Table(HashTable::new(exec.memory));
    let mut holds_values = false;
    run.steps[depth].builds = true;
    let mut keep = |exec: &mut Exec<'_>, run: &mut BlockRun<'_>| -> Result<Flow, ExecError> {
        exec.tick()?;
        if exec.profile.is_some() {
            count(exec, step, |counts| counts.built += 1);
        }
        if is_true(condition, exec, &run.frame)? {
            let inner = keys.iter().map(|(_, inner)| inner);
            let key = HashTable::key(inner, exec.eval, &run.frame)?;
            if let Some(key) = key {
                let kept = match run.frame.row_ref(run.steps[depth].slot) {
                    Some(row) => Kept::Row(row.to_buffer()),
                    None => Kept::Values(run.frame.copy_table(step.first_position, columns)),
                };
                holds_values |= matches!(kept, Kept::Values(_));
                kept_rows.add(exec, &key, kept)?;
            }
            exec.eval.reset_arena();
        }
        Ok(Flow::Continue(()))
    };
    let _ = match &step.source {
        TableSource::Base(entry) => base_rows(exec, run, depth, entry, build, &mut keep)?,
        TableSource::Virtual { table, schema, name } => {
            let rows = virtual_rows(exec, run, table, schema, name)?;
            value_rows(exec, run, depth, &rows, &mut keep)?
        }
        TableSource::Recursive { id, .. } => {
            let rows = exec.recursions.rows(*id)?;
            rows.each_part(exec, |exec, rows| derived_rows(exec, run, depth, rows, &mut keep))?
        }
        TableSource::Derived(query) => {
            let rows = collect_packed(exec, query)?;
            rows.each_part(exec, |exec, rows| derived_rows(exec, run, depth, rows, &mut keep))?
        }
    };
    run.steps[depth].builds = false;
    match kept_rows {
        Build::Table(table) => run.steps[depth].hash = Some(Arc::new(table)),
        Build::Files(files) => {
            let files = BuildFiles::new(files, holds_values.then_some(columns))?;
            run.steps[depth].grace = Some(Box::new(Grace::new(exec, run.plan, depth, files)));
        }
    }
    Ok(())
}

fn probe<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    keys: &[(Expr, Expr)],
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    let outer = keys.iter().map(|(outer, _)| outer);
    let Some(key) = HashTable::key(outer, exec.eval, &run.frame)? else {
        return Ok(Flow::Continue(()));
    };
    match run.steps[depth].hash.clone() {
        Some(hash) => probe_table(exec, run, depth, &hash, &key, body),
        None => grace::probe(exec, run, depth, &key, |exec, run, hash| {
            probe_table(exec, run, depth, hash, &key, body)
        }),
    }
}

/// Binds the rows of a hash table that have the key.
fn probe_table<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    hash: &HashTable,
    key: &[u8],
    body: &mut FrameTarget<'_, 'p>,
) -> Result<Flow, ExecError> {
    let slot = run.steps[depth].slot;
    for kept in hash.rows(key) {
        match (kept, &run.plan.tables[depth].source) {
            (Kept::Row(row), TableSource::Base(entry)) => {
                run.frame.row_buffer(slot, &entry.0.layouts().row).clone_from(row);
            }
            (Kept::Row(_), _) => {}
            (Kept::Values(values), _) => run.frame.set_values(slot, values.clone()),
        }
        if body(exec, run)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
    Ok(Flow::Continue(()))
}
