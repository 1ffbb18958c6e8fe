//! A client: one fiber that runs transactions and tells the model what it did and saw.

use crate::model::{Moment, Promise};
use crate::session::{Session, Step, Stop, check};
use crate::tables::Row;
use crate::world::{OpenTable, World};
use base::Random;
use engine_api::{
    FlushPolicy, Isolation, KeyRange, LockMode, LockWait, RowBuffer, ScanDirection, ScanOptions,
    TransactionOptions,
};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// Runs transactions until the world's operations are used up.
pub fn run(world: &Arc<World>, mut random: Random) {
    while world.take_operation() {
        let tables = world.choose_tables(&mut random);
        let permits: Vec<_> = tables.iter().map(|&slot| world.share(slot)).collect();
        let open: Vec<OpenTable> = tables.iter().filter_map(|&slot| world.table(slot)).collect();
        if !open.is_empty() {
            one_transaction(world, &open, &mut random);
        }
        drop(permits);
        if random.one_in(6) {
            runtime::sleep(world.knobs.pause(&mut random));
        }
    }
}

fn one_transaction(world: &Arc<World>, tables: &[OpenTable], random: &mut Random) {
    let (policy, promise) = world.knobs.policy(random);
    let isolation = *random.pick(&[
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::RepeatableRead,
    ]);
    let options = TransactionOptions {
        isolation,
        snapshot_isolation: true,
        read_only: false,
        lock_wait_timeout: Duration::from_millis(*random.pick(&[1, 20, 1000])),
        flush_policy: policy,
        connection: 0,
        ends_with_statement: false,
    };
    let mut session = Session::begin(world.clone(), options, promise);
    if world.knobs.is_for_log {
        match session.insert_small(&tables[0], random) {
            true => session.commit(),
            false => session.roll_back(),
        }
        return;
    }
    if world.knobs.is_for_readers {
        match session.write_or_look(&tables[0], random) {
            Ok(()) => session.commit(),
            Err(_) => session.give_back(),
        }
        return;
    }
    let statements = if random.one_in(10) { 25 } else { 1 + random.below(6) };
    for _ in 0..statements {
        if !session.statement(tables, random) {
            session.give_back();
            return;
        }
        if random.one_in(12) {
            runtime::sleep(Duration::from_micros(random.below(5_000)));
        }
        if !world.take_operation() {
            break;
        }
    }
    match random.below(20) {
        0..3 => session.roll_back(),
        3 => session.abandon(),
        _ => session.commit(),
    }
}

impl Session {
    /// One statement; false if the transaction is gone.
    fn statement(&mut self, tables: &[OpenTable], random: &mut Random) -> bool {
        let trx = self.trx.as_deref_mut().expect("present until the end");
        let start = (trx.begin_statement(), self.world.model().savepoint(self.number));
        if self.isolation == Isolation::ReadCommitted {
            self.end_snapshot();
        }
        let table = random.pick(tables);
        let result = match random.below(40) {
            0..6 => self.get(table, random),
            6..11 => self.scan(table, random),
            11..13 => self.locking_scan(table, random),
            13..21 => self.insert(table, table.random_id(random), random),
            21 => self.insert_many(table, random),
            22..31 => self.update(table, random),
            31..34 => self.delete(table, table.random_id(random)),
            34 => self.delete_many(table, random),
            35..38 => self.savepoint(random),
            _ => self.tell(),
        };
        match result {
            Ok(()) => true,
            Err(Stop::Statement) => self.roll_back_to(start).is_ok(),
            Err(Stop::Transaction) => false,
        }
    }

    fn savepoint(&mut self, random: &mut Random) -> Step<()> {
        if let Some(savepoint) = self.savepoint.filter(|_| random.one_in(2)) {
            return self.roll_back_to(savepoint);
        }
        let trx = self.trx.as_deref_mut().expect("present until the end");
        self.savepoint = Some((trx.savepoint(), self.world.model().savepoint(self.number)));
        Ok(())
    }

    /// The answer may leave the server: what was seen is durable.
    fn tell(&mut self) -> Step<()> {
        self.call(|trx| trx.wait_read_durable())?;
        self.note_told();
        self.world.told();
        Ok(())
    }

    /// One small change, or a look at one row that is told of at once.
    fn write_or_look(&mut self, table: &OpenTable, random: &mut Random) -> Step<()> {
        match random.below(25) {
            0 => {
                self.get(table, random)?;
                self.tell()
            }
            1..12 => self.update(table, random),
            12..15 => self.delete(table, table.random_id(random)),
            _ => self.insert(table, table.random_id(random), random),
        }
    }

    fn get(&mut self, table: &OpenTable, random: &mut Random) -> Step<()> {
        let key = table.layout.key(table.random_id(random));
        let mut row = RowBuffer::default();
        let none = LockMode::None;
        let (begin, found) =
            self.call(|trx| table.table.get(trx, &key, none, LockWait::Wait, &mut row))?;
        let world = self.world.clone();
        let snapshot = self.snapshot(begin);
        let seen = found.then_some(&row.payload[..]);
        check(world.model().observe(snapshot, table.model_table, &key, seen));
        Ok(())
    }

    /// Reads a row under an exclusive lock.
    fn get_locked(&mut self, table: &OpenTable, id: i64) -> Step<Option<RowBuffer>> {
        let key = table.layout.key(id);
        let mut row = RowBuffer::default();
        let mode = LockMode::Exclusive;
        let (begin, found) =
            self.call(|trx| table.table.get(trx, &key, mode, LockWait::Wait, &mut row))?;
        self.met_locked(table, begin, &key, found.then_some(&row.payload[..]));
        Ok(found.then_some(row))
    }

    fn scan_options(table: &OpenTable, lock: LockMode, random: &mut Random) -> ScanOptions {
        let index = random.index(table.table.definition().indexes.len());
        let bound = |random: &mut Random| match index {
            0 => table.random_id(random),
            position if table.is_group_index(position) => random.below(20) as i64,
            _ => random.below(table.shape.ids * 2) as i64,
        };
        let (one, other) = (bound(random), bound(random));
        let prefix = |value| match index {
            0 => table.layout.key(value),
            _ => table.layout.index_prefix(index, value),
        };
        let (low, high) = (prefix(one.min(other)), prefix(one.max(other)));
        let range = match random.below(6) {
            0 => KeyRange::all(),
            1 => KeyRange::prefix(low),
            2 => KeyRange { lower: Bound::Excluded(low), upper: Bound::Excluded(high) },
            _ => KeyRange { lower: Bound::Included(low), upper: Bound::Included(high) },
        };
        let direction = *random.pick(&[ScanDirection::Forward, ScanDirection::Backward]);
        let covering = lock == LockMode::None && index > 0 && random.one_in(3);
        ScanOptions { index, range, direction, lock, lock_wait: LockWait::Wait, covering }
    }

    /// Reads up to `limit` rows; true if the scan came to its end.
    fn rows_of(
        &mut self,
        table: &OpenTable,
        options: &ScanOptions,
        limit: usize,
    ) -> Step<(Moment, Vec<RowBuffer>, bool)> {
        let options = options.clone();
        let (begin, mut cursor) = self.call(|trx| table.table.scan(trx, options))?;
        let mut rows = Vec::new();
        while rows.len() < limit {
            let mut row = RowBuffer::default();
            let next = self.call(|trx| cursor.next(trx, &mut row));
            let (_, found) = next.inspect_err(|_| self.unsure_from(begin))?;
            if !found {
                return Ok((begin, rows, true));
            }
            rows.push(row);
        }
        Ok((begin, rows, false))
    }

    fn scan(&mut self, table: &OpenTable, random: &mut Random) -> Step<()> {
        let options = Self::scan_options(table, LockMode::None, random);
        let limit = if random.one_in(3) { 1 + random.index(10) } else { usize::MAX };
        let (begin, rows, is_complete) = self.rows_of(table, &options, limit)?;
        let world = self.world.clone();
        let snapshot = self.snapshot(begin);
        let index_keys: Vec<Vec<u8>> = rows
            .iter()
            .map(|row| match options.covering {
                true => row.key.clone(),
                false => table.layout.index_key(options.index, &row.key, &row.payload),
            })
            .collect();
        let forward = options.direction == ScanDirection::Forward;
        let is_ordered = index_keys
            .windows(2)
            .all(|pair| if forward { pair[0] < pair[1] } else { pair[0] > pair[1] });
        assert!(is_ordered, "violation: a scan of {options:?} is out of order");
        let model = world.model();
        let mut met = BTreeSet::new();
        for (row, index_key) in rows.iter().zip(&index_keys) {
            let key = match options.covering {
                true => table.layout.clustered_key(options.index, &row.key),
                false => row.key.clone(),
            };
            if options.covering {
                let has_key = |payload: &[u8]| {
                    table.layout.index_key(options.index, &key, payload) == *index_key
                };
                check(model.observe_index_key(snapshot, table.model_table, &key, has_key));
            } else {
                let payload = Some(&row.payload[..]);
                check(model.observe(snapshot, table.model_table, &key, payload));
            }
            assert!(met.insert(key), "violation: a scan met a row twice");
        }
        // Rows that were not met: they are out of what was scanned, or not visible.
        let last = index_keys.last().filter(|_| !is_complete);
        for key in model.keys(table.model_table, Bound::Unbounded, Bound::Unbounded) {
            if met.contains(&key[..]) {
                continue;
            }
            let is_out =
                |candidate: Option<&[u8]>| {
                    let Some(payload) = candidate else { return true };
                    let index_key = table.layout.index_key(options.index, &key, payload);
                    let is_behind = last.is_some_and(|last| {
                        if forward { index_key > *last } else { index_key < *last }
                    });
                    is_behind || !contains(&options.range, &index_key)
                };
            check(model.observe_left_out(snapshot, table.model_table, &key, is_out));
        }
        Ok(())
    }

    fn locking_scan(&mut self, table: &OpenTable, random: &mut Random) -> Step<()> {
        let mode = *random.pick(&[LockMode::Shared, LockMode::Exclusive]);
        let options = Self::scan_options(table, mode, random);
        let (begin, rows, _) = self.rows_of(table, &options, 1 + random.index(5))?;
        for row in &rows {
            let index_key = table.layout.index_key(options.index, &row.key, &row.payload);
            let is_inside = contains(&options.range, &index_key);
            assert!(is_inside, "violation: a locking scan of {options:?} gave {row:?}");
            self.met_locked(table, begin, &row.key, Some(&row.payload));
        }
        Ok(())
    }

    /// A row whose log record has one of few lengths; false if the statement failed.
    pub fn insert_small(&mut self, table: &OpenTable, random: &mut Random) -> bool {
        let version = self.world.next_version();
        let id = table.random_id(random);
        let body = vec![version as u8; 8 * random.index(40)];
        let row = Row { id, group: Some(1), unique: Some(version), version, body };
        self.insert_row(table, &row).is_ok()
    }

    /// Rows side by side: leaves fill up and split.
    fn insert_many(&mut self, table: &OpenTable, random: &mut Random) -> Step<()> {
        let first = table.random_id(random);
        for id in first..first + 5 + random.below(40) as i64 {
            self.insert(table, id, random)?;
        }
        Ok(())
    }

    /// Rows side by side: leaves empty and merge.
    fn delete_many(&mut self, table: &OpenTable, random: &mut Random) -> Step<()> {
        let first = table.random_id(random);
        for id in first..first + 5 + random.below(60) as i64 {
            self.delete(table, id)?;
        }
        Ok(())
    }

    fn insert(&mut self, table: &OpenTable, id: i64, random: &mut Random) -> Step<()> {
        let row = table.shape.row(random, id, self.world.next_version());
        self.insert_row(table, &row)
    }

    fn insert_row(&mut self, table: &OpenTable, row: &Row) -> Step<()> {
        let mut buffer = table.layout.encode(row);
        let (begin, result) = self.call(|trx| table.table.insert(trx, &mut buffer))?;
        match result {
            Ok(()) => {
                table.note_key(&buffer.key);
                self.wrote(table, &buffer.key, None, Some((row, &buffer)));
                Ok(())
            }
            Err(duplicate) => {
                let number = self.number;
                self.world.trace(|| format!("trx {number}: {duplicate:?}"));
                self.check_duplicate(table, begin, row, &duplicate);
                Err(Stop::Statement)
            }
        }
    }

    fn update(&mut self, table: &OpenTable, random: &mut Random) -> Step<()> {
        let Some(old) = self.get_locked(table, table.random_id(random))? else { return Ok(()) };
        let former = table.layout.decode(&old.key, &old.payload);
        let id = if random.one_in(20) { table.random_id(random) } else { former.id };
        let mut row = table.shape.row(random, id, self.world.next_version());
        if random.one_in(2) {
            (row.group, row.unique) = (former.group, former.unique);
        }
        let mut new = table.layout.encode(&row);
        if table.shape.keyless {
            new.key.clone_from(&old.key);
        }
        let (begin, result) = self.call(|trx| table.table.update(trx, &old, &new))?;
        match result {
            Ok(()) => {
                self.wrote(table, &new.key, Some(&old), Some((&row, &new)));
                Ok(())
            }
            Err(duplicate) => {
                let number = self.number;
                self.world.trace(|| format!("trx {number}: {duplicate:?}"));
                self.check_duplicate(table, begin, &row, &duplicate);
                Err(Stop::Statement)
            }
        }
    }

    fn delete(&mut self, table: &OpenTable, id: i64) -> Step<()> {
        let Some(old) = self.get_locked(table, id)? else { return Ok(()) };
        self.call(|trx| table.table.delete(trx, &old))?;
        self.wrote(table, &old.key, Some(&old), None);
        Ok(())
    }

    /// Tells the model of a write, after checking that it was possible.
    fn wrote(
        &mut self,
        table: &OpenTable,
        key: &[u8],
        old: Option<&RowBuffer>,
        new: Option<(&Row, &RowBuffer)>,
    ) {
        let (number, model_table) = (self.number, table.model_table);
        self.world.trace(|| {
            let old = old.map(|old| &old.key);
            let unique = new.and_then(|(row, _)| row.unique);
            let version = new.map(|(row, _)| row.version);
            format!(
                "trx {number}: wrote table {model_table} {old:02x?} -> {key:02x?} version \
                 {version:?} unique {unique:?}"
            )
        });
        let mut model = self.world.model();
        let moved = old.filter(|old| new.is_some_and(|(_, new)| new.key != old.key));
        let under_key = old.filter(|old| old.key == key).map(|old| &old.payload[..]);
        check(model.observe_locked(number, Moment::MAX, model_table, key, under_key));
        if let Some(old) = moved {
            let payload = Some(&old.payload[..]);
            check(model.observe_locked(number, Moment::MAX, model_table, &old.key, payload));
            model.write(number, model_table, &old.key, None);
        }
        model.write(number, model_table, key, new.map(|(_, buffer)| &buffer.payload[..]));
        let unique = new.and_then(|(row, _)| row.unique);
        if let Some(unique) = unique.filter(|_| table.has_unique_index()) {
            let is_same = |payload: &[u8]| table.layout.unique_of(payload) == Some(unique);
            let other = model.find_newest(number, model_table, key, &is_same);
            assert!(other.is_none(), "violation: {unique} is not unique, {other:?} has it too");
        }
    }

    fn check_duplicate(
        &self,
        table: &OpenTable,
        begin: Moment,
        row: &Row,
        duplicate: &engine_api::DuplicateKey,
    ) {
        let key = &duplicate.clustered_key;
        let is_taken =
            |payload: &[u8]| duplicate.index == 0 || table.layout.unique_of(payload) == row.unique;
        check(self.world.model().observe_duplicate(begin, table.model_table, key, &is_taken));
    }
}

/// Whether an index key lies in a range (bounds are prefixes).
pub fn contains(range: &KeyRange, key: &[u8]) -> bool {
    let above = match &range.lower {
        Bound::Unbounded => true,
        Bound::Included(low) => key >= &low[..],
        Bound::Excluded(low) => key > &low[..] && !key.starts_with(low),
    };
    let below = match &range.upper {
        Bound::Unbounded => true,
        Bound::Included(high) => key < &high[..] || key.starts_with(high),
        Bound::Excluded(high) => key < &high[..],
    };
    above && below
}

/// The promise of a commit under a policy.
pub fn promise_of(policy: FlushPolicy) -> Promise {
    match policy {
        FlushPolicy::Synchronous => Promise::Power,
        FlushPolicy::WriteOnly => Promise::Process,
        FlushPolicy::EverySecond => Promise::Nothing,
    }
}
