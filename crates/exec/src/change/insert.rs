//! INSERT and REPLACE.

mod frame;
mod outcome;
mod replace;
mod values;

use super::computed::{compute, compute_generated, refuse_values};
use super::foreign::ForeignChecks;
use super::late::LateSubqueries;
use super::row::{RowMaker, breaks_check, passes_check, zero_generates};
use super::update::changed_row;
use crate::context::{Exec, RowSink};
use crate::error::in_table;
use crate::query::{Flow, LateRow, Once, collect_packed};
use crate::{ExecError, Outcome};
use engine_api::{DuplicateKey, LockMode, LockWait, RowBuffer, Table};
use expr::Expr;
use frame::TwoRows;
use plan::physical::{InsertPlan, InsertRows, InsertValue};
use types::row::RowView;
use types::{Level, SqlError, Value, ValueRef, Warning};

/// Runs an INSERT or REPLACE.
pub fn run(
    exec: &mut Exec<'_>,
    plan: &InsertPlan,
    sink: &mut dyn RowSink,
) -> Result<Outcome, ExecError> {
    let mut insert = Inserter::new(exec, plan)?;
    if plan.replace || !plan.on_duplicate.is_empty() {
        exec.transaction.expect_duplicates();
    }
    if !plan.returning.is_empty() {
        sink.begin(Some(exec.transaction.read_gate()))?;
    }
    match &plan.source {
        InsertRows::Values(rows) => {
            insert.expected = rows.len() as u64;
            for (number, row) in rows.iter().enumerate() {
                exec.tick()?;
                exec.eval.row_number.set(number as u64 + 1);
                let values = insert.values_of_list(exec, row)?;
                insert.put(exec, values, sink)?;
                exec.eval.reset_arena();
            }
        }
        InsertRows::Literals(rows) => {
            insert.expected = rows.count() as u64;
            let mut literals = rows.values();
            for number in 1..=insert.expected {
                exec.tick()?;
                exec.eval.row_number.set(number);
                let values = insert.values_of_literals(exec, &mut literals)?;
                insert.put(exec, values, sink)?;
                exec.eval.reset_arena();
            }
        }
        InsertRows::Query(query) => {
            // The rows are complete before the first is inserted: the query may read the table.
            let rows = collect_packed(exec, query)?;
            let mut before = 0;
            let _ = rows.each_part(exec, |exec, rows| {
                for number in 0..rows.len() {
                    exec.tick()?;
                    exec.eval.row_number.set(before + number as u64 + 1);
                    let mut row = rows.row(number);
                    let columns = query.columns();
                    let values = insert.values_of_query(exec, || row.next_value(), columns)?;
                    let more = columns.len() - plan.columns.len();
                    insert.source_values.clear();
                    insert.source_values.extend((0..more).map(|_| row.next_value().to_owned()));
                    insert.put(exec, values, sink)?;
                    exec.eval.reset_arena();
                }
                before += rows.len() as u64;
                Ok(Flow::Continue(()))
            })?;
        }
        InsertRows::File(rows) => super::load::run(exec, &mut insert, rows, sink)?,
    }
    Ok(insert.outcome(exec))
}

/// Values of the AUTO_INCREMENT counter that the statement has reserved.
#[derive(Default)]
struct Generated {
    next: u64,
    left: u64,
    /// How many the last reservation asked for.
    asked: u64,
    /// The first value given by this statement.
    first: Option<u64>,
    /// The value of the last inserted row, generated or not.
    last: u64,
}

/// Whether a value of a VALUES list reads a column of its row.
fn reads_row(plan: &InsertPlan) -> bool {
    let InsertRows::Values(rows) = &plan.source else {
        return matches!(plan.source, InsertRows::File(_));
    };
    let mut reads = false;
    for value in rows.iter().flatten() {
        if let InsertValue::Expr(expr) = value {
            expr.for_each_column(&mut |_| reads = true);
        }
    }
    reads
}

/// Whether the statement is `INSERT ... VALUES` of one row.
fn is_one_row(plan: &InsertPlan) -> bool {
    matches!(&plan.source, InsertRows::Values(rows) if rows.len() == 1)
}

/// Where the value of a row's AUTO_INCREMENT column comes from.
enum Given {
    /// There is no such column.
    Nothing,
    /// From the counter.
    Generated(u64),
    /// From the statement.
    Explicit(i128),
}

/// What one INSERT, REPLACE or LOAD DATA keeps while it runs.
pub struct Inserter<'p> {
    plan: &'p InsertPlan,
    table: &'p dyn Table,
    /// Converts values.
    pub maker: RowMaker<'p>,
    foreign: Option<ForeignChecks<'p>>,
    row: RowBuffer,
    /// The values read other columns of their row: until they are set those have their defaults.
    reads_row: bool,
    /// Rows of the VALUES list: the first reservation is for all of them.
    expected: u64,
    generated: Generated,
    /// What ON DUPLICATE KEY UPDATE reads of the row of SELECT.
    source_values: Vec<Value>,
    /// What is known of subqueries in ON DUPLICATE KEY UPDATE and in RETURNING.
    kept: [Vec<(usize, Once)>; 2],
    records: u64,
    inserted: u64,
    /// Rows left out because they break a check.
    pub skipped: u64,
    /// Rows replaced or updated.
    replaced: u64,
    affected: u64,
}

impl<'p> Inserter<'p> {
    fn new(exec: &mut Exec<'_>, plan: &'p InsertPlan) -> Result<Self, ExecError> {
        let mut maker = RowMaker::new(exec, &plan.target.0, plan.ignore);
        maker.view = plan.view.as_deref();
        maker.refuses_null |= !plan.ignore && is_one_row(plan);
        maker.generates = true;
        Ok(Self {
            plan,
            table: plan.target.0.handle()?.as_ref(),
            maker,
            foreign: plan.foreign_keys.as_deref().map(ForeignChecks::new),
            row: RowBuffer::default(),
            reads_row: reads_row(plan),
            expected: 1,
            generated: Generated::default(),
            source_values: Vec::new(),
            kept: Default::default(),
            records: 0,
            inserted: 0,
            skipped: 0,
            replaced: 0,
            affected: 0,
        })
    }

    /// A row of the defaults; columns that are given and that no value reads are NULL until they
    /// are set.
    pub fn blank(&self, exec: &Exec<'_>) -> Result<Vec<Value>, ExecError> {
        let count = self.maker.definition().columns.len();
        let mut values = Vec::with_capacity(count);
        for position in 0..count {
            let given = self.plan.columns.contains(&position);
            values.push(match (given, self.reads_row) {
                // What is missing is told once, not for each row.
                (false, _) if self.records > 0 => self.maker.initial_value(exec, position)?,
                (false, _) => self.maker.default_value(exec, position)?,
                (true, true) => self.maker.initial_value(exec, position)?,
                (true, false) => Value::Null,
            });
        }
        Ok(values)
    }

    /// Inserts one row with all that its duplicates ask for.
    pub fn put(
        &mut self,
        exec: &mut Exec<'_>,
        mut values: Vec<Value>,
        sink: &mut dyn RowSink,
    ) -> Result<(), ExecError> {
        self.records += 1;
        let given = self.generate(exec, &mut values)?;
        let (checks, definition) = (&self.plan.checks, self.maker.definition());
        if let Some(computed) = &self.plan.computed {
            let wants = |column| !self.plan.columns.contains(&column);
            compute(exec.eval, definition, computed, wants, &mut values)?;
        }
        if breaks_check(exec.eval, checks, &values, definition, self.plan.ignore)? {
            self.records -= 1;
            self.skipped += 1;
            return Ok(());
        }
        let mut missing = None;
        if let Some(check) = &self.plan.check
            && !passes_check(exec, check, &values, self.plan.ignore)?
        {
            self.records -= 1;
            self.skipped += 1;
            return Ok(());
        }
        loop {
            self.maker.encode(&values, &mut self.row)?;
            if let Some(foreign) = self.foreign {
                missing = foreign.missing_parent(exec, None, &self.row)?;
            }
            let name = &self.maker.definition().name;
            let inserted = self.table.insert(exec.transaction, &mut self.row);
            let duplicate = match inserted.map_err(|error| in_table(error, name))? {
                Ok(()) => break,
                Err(duplicate) => duplicate,
            };
            if self.plan.replace {
                if self.remove(exec, &values, &duplicate)? {
                    return self.note_replaced_by_itself(exec, &values, given, sink);
                }
            } else if !self.plan.on_duplicate.is_empty() {
                match self.update_existing(exec, &values, &duplicate, sink) {
                    // It is gone: the row is tried again.
                    Ok(false) => {}
                    done => {
                        self.give_back(&given);
                        return done.map(drop);
                    }
                }
            } else {
                self.give_back(&given);
                let error = self.maker.duplicate(exec, &values, &duplicate);
                if !self.plan.ignore {
                    return Err(error.into());
                }
                let warning = Warning { level: Level::Warning, ..Warning::from(&error) };
                exec.eval.push_warning(warning);
                return Ok(());
            }
        }
        if let Some(missing) = missing
            && !self.has_parents_now(exec)?
        {
            return self.refuse(exec, missing);
        }
        self.note_inserted(given)?;
        self.return_row(exec, &values, sink)
    }

    /// The row is in: counts it, and remembers its AUTO_INCREMENT value.
    fn note_inserted(&mut self, given: Given) -> Result<(), ExecError> {
        self.inserted += 1;
        self.affected += 1;
        match given {
            Given::Nothing => {}
            Given::Generated(value) => {
                self.generated.first.get_or_insert(value);
                self.generated.last = value;
            }
            Given::Explicit(value) => {
                self.generated.last = value as u64;
                if let Ok(value) = u64::try_from(value) {
                    self.table.observe_auto_increment(value)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a row that had no parent has one now that it is there: itself.
    fn has_parents_now(&self, exec: &mut Exec<'_>) -> Result<bool, ExecError> {
        let Some(foreign) = self.foreign.filter(ForeignChecks::refers_to_itself) else {
            return Ok(false);
        };
        Ok(foreign.missing_parent(exec, None, &self.row)?.is_none())
    }

    /// A row without a parent is an error, or (IGNORE) taken back with a warning.
    fn refuse(&self, exec: &mut Exec<'_>, missing: SqlError) -> Result<(), ExecError> {
        if !self.plan.ignore {
            return Err(missing.into());
        }
        self.table.delete(exec.transaction, &self.row)?;
        let warning = Warning { level: Level::Warning, ..Warning::from(&missing) };
        exec.eval.push_warning(warning);
        Ok(())
    }

    #[expect(clippy::ptr_arg, reason = "a slice is no `dyn Columns`")]
    fn return_row(
        &mut self,
        exec: &mut Exec<'_>,
        values: &Vec<Value>,
        sink: &mut dyn RowSink,
    ) -> Result<(), ExecError> {
        if self.plan.returning.is_empty() {
            return Ok(());
        }
        if let Some(subqueries) = &self.plan.subqueries {
            let (applies, kept) = (&subqueries.returning, &mut self.kept[1]);
            let mut values = LateRow::new(exec, values.clone(), applies, kept, false)?;
            let mut row = Vec::with_capacity(self.plan.returning.len());
            for expr in &self.plan.returning {
                row.push(expr.eval(exec.eval, &values)?.to_owned());
                values.check_reads()?;
            }
            let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            return Ok(sink.row(&row)?);
        }
        let mut row = Vec::with_capacity(self.plan.returning.len());
        for expr in &self.plan.returning {
            row.push(expr.eval(exec.eval, values)?);
        }
        Ok(sink.row(&row)?)
    }

    /// Fills in the AUTO_INCREMENT column.
    fn generate(&mut self, exec: &Exec<'_>, values: &mut [Value]) -> Result<Given, ExecError> {
        let Some(position) = self.maker.definition().auto_increment_column() else {
            return Ok(Given::Nothing);
        };
        let zero = zero_generates(exec.eval.settings.sql_mode);
        match values[position] {
            Value::Null => {}
            Value::Int(0) | Value::UInt(0) if zero => {}
            Value::Int(value) => return Ok(Given::Explicit(value.into())),
            Value::UInt(value) => return Ok(Given::Explicit(value.into())),
            _ => return Ok(Given::Nothing),
        }
        let value = self.next_generated(exec)?;
        let from = expr::ResultType::bigint(true, false);
        values[position] = self.maker.store(exec, position, ValueRef::UInt(value), &from)?;
        Ok(Given::Generated(value))
    }

    /// The next generated value. A VALUES list reserves one for each of its rows at once; a
    /// query doubles its reservations, so that rows need few visits to the counter.
    fn next_generated(&mut self, exec: &Exec<'_>) -> Result<u64, ExecError> {
        let increment = exec.auto_increment_increment.max(1);
        let state = &mut self.generated;
        if state.left == 0 {
            let first = state.asked == 0;
            let asked = if first { self.expected.max(1) } else { (state.asked * 2).min(65_535) };
            let offset = exec.auto_increment_offset;
            state.next = self.table.reserve_auto_increment(asked, increment, offset)?;
            (state.left, state.asked) = (asked, asked);
        }
        let value = state.next;
        state.next = value.saturating_add(increment);
        state.left -= 1;
        Ok(value)
    }

    /// A generated value that no row took is that of the next row of this statement.
    fn give_back(&mut self, given: &Given) {
        if let Given::Generated(value) = given {
            self.generated.next = *value;
            self.generated.left += 1;
        }
    }

    /// Reads the row that stands in the way, locked.
    fn existing(
        &self,
        exec: &mut Exec<'_>,
        duplicate: &DuplicateKey,
        row: &mut RowBuffer,
    ) -> Result<bool, ExecError> {
        let key = &duplicate.clustered_key;
        let (lock, wait) = (LockMode::Exclusive, LockWait::Wait);
        Ok(self.table.get(exec.transaction, key, lock, wait, row)?)
    }

    /// Changes the row that stands in the way; false if it is gone.
    fn update_existing(
        &mut self,
        exec: &mut Exec<'_>,
        inserted: &[Value],
        duplicate: &DuplicateKey,
        sink: &mut dyn RowSink,
    ) -> Result<bool, ExecError> {
        let mut old = RowBuffer::default();
        if !self.existing(exec, duplicate, &mut old)? {
            return Ok(false);
        }
        let view = RowView::new(&self.plan.target.0.layouts().row, &old.key, &old.payload);
        let present: Vec<Value> = (0..inserted.len()).map(|c| view.get(c).to_owned()).collect();
        let assignments: Vec<(usize, Option<&Expr>)> =
            self.plan.on_duplicate.iter().map(|(column, value)| (*column, Some(value))).collect();
        let mut frame = TwoRows::new(present, inserted, self.source_values.clone());
        let subqueries = self.plan.subqueries.as_ref();
        let subqueries = LateSubqueries {
            of_assignments: subqueries.map_or(&[][..], |them| &them.on_duplicate),
            kept: &mut self.kept[0],
        };
        let (checks, definition) = (&self.plan.checks, self.maker.definition());
        let computed = self.plan.computed.as_deref();
        let refused = computed.into_iter().flat_map(|computed| &computed.refused_on_duplicate);
        refuse_values(exec, definition, refused)?;
        self.maker.generates = false;
        let changed = changed_row(exec, &self.maker, &assignments, subqueries, &mut frame);
        self.maker.generates = true;
        if !changed? {
            self.affected += u64::from(exec.count_matched);
            return self.return_row(exec, &frame.first, sink).map(|()| true);
        }
        compute_generated(exec.eval, definition, computed, &mut frame.first)?;
        if breaks_check(exec.eval, checks, &frame.first, definition, self.plan.ignore)? {
            return Ok(true);
        }
        let mut new = RowBuffer::default();
        if let Some(check) = &self.plan.check
            && !passes_check(exec, check, &frame.first, self.plan.ignore)?
        {
            return Ok(true);
        }
        self.maker.encode_changed(&frame.first, &old, &mut new)?;
        let updated = match self.foreign {
            None => self.table.update(exec.transaction, &old, &new)?,
            Some(foreign) => foreign.update(exec, &old, &new)?,
        };
        if let Err(duplicate) = updated {
            let error = self.maker.duplicate(exec, &frame.first, &duplicate);
            if !self.plan.ignore {
                return Err(error.into());
            }
            let warning = Warning { level: Level::Warning, ..Warning::from(&error) };
            exec.eval.push_warning(warning);
            return Ok(true);
        }
        if let Some(position) = self.maker.definition().auto_increment_column() {
            self.generated.last = match frame.first[position] {
                Value::Int(value) => value as u64,
                Value::UInt(value) => value,
                _ => 0,
            };
        }
        self.replaced += 1;
        self.affected += 2;
        self.return_row(exec, &frame.first, sink).map(|()| true)
    }
}
