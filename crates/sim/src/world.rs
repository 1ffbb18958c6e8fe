//! What the fibers of one life share: the engine, the model, the open tables; and what outlives
//! a crash ([`History`]).

use crate::faults::FaultKind;
use crate::knobs::{CODECS, Knobs, UNDO};
use crate::model::{Model, Promise, Resolution};
use crate::reading::{check_table, read_all};
use crate::session::check;
use crate::tables::{GROUP, Layout, TableShape, UNIQUE};
use base::Random;
use engine_api::{
    Engine, EngineError, FlushPolicy, IndexPart, Isolation, Table, TableDefinition, Transaction,
    TransactionOptions,
};
use runtime::WaitClass;
use runtime::sync::Semaphore;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Table slots; the last one comes and goes.
pub const SLOTS: usize = 4;
/// Number of the dictionary among the model's tables.
const DICTIONARY: usize = 0;
/// Power waits so long at most for what it is to cut off; a life waits longer for its end.
const WITHIN_MAX: Duration = Duration::from_millis(900);
/// Between two looks at what is under way.
const LOOK_PAUSE: Duration = Duration::from_micros(20);
/// What `set_compressed` is told; each a codec.
const ALGORITHMS: [&str; 7] = ["zlib", "lz4", "lzo", "lzma", "bzip2", "snappy", "zstd"];
/// A change of a definition takes all of a slot's permits.
const ALL_PERMITS: u64 = 1 << 20;

/// Power fails this long after the planned operation if nobody was told anything until then.
const TELLING_MAX: Duration = Duration::from_millis(200);

/// A version of a table's definition.
#[derive(Clone, Debug)]
struct Definition {
    table: Arc<TableDefinition>,
    /// Where the model keeps its rows.
    model_table: usize,
}

/// What outlives a crash.
#[derive(Debug)]
pub struct History {
    model: Mutex<Model>,
    /// Every definition ever tried, by the number that the dictionary holds.
    definitions: Mutex<BTreeMap<i64, Definition>>,
    next_number: AtomicI64,
    /// Operations still to be done.
    operations: AtomicI64,
}

/// What happened, over all lives.
#[derive(Debug, Default)]
pub struct Counts {
    /// Commits that returned.
    pub commits: AtomicU64,
    /// Changes of definitions that committed.
    pub definition_changes: AtomicU64,
    /// Errors that came from faults of the disk.
    pub errors: AtomicU64,
}

/// A table as a client uses it.
#[derive(Clone)]
pub struct OpenTable {
    /// The engine's.
    pub table: Arc<dyn Table>,
    /// Its shape.
    pub shape: TableShape,
    /// Its layout.
    pub layout: Arc<Layout>,
    /// Its number in the model.
    pub model_table: usize,
    /// The highest number of a row met, where rows have no other key.
    last_row: Arc<AtomicU64>,
}

/// One life of the engine.
pub struct World {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The seed's choices.
    pub knobs: Knobs,
    /// What happened.
    pub counts: Arc<Counts>,
    history: Arc<History>,
    tables: Mutex<Vec<Option<OpenTable>>>,
    gates: Vec<Semaphore>,
    /// The power fails this long after the operation that leaves so many to do.
    crash: Option<(i64, Duration)>,
    /// The power fails when the next client is told what it saw.
    crash_when_told: AtomicBool,
    /// The disk has done something wrong: errors are expected.
    pub has_faults: AtomicBool,
    is_traced: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A violation panics with the model locked; the simulation ends there anyway.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns at a moment when work of this name is under way, or after `limit`.
pub fn wait_until_under_way(name: &str, limit: Duration) {
    let end = runtime::now() + limit;
    while !base::under_way::names().contains(&name) && runtime::now() < end {
        runtime::sleep(LOOK_PAUSE);
    }
}

fn slot_key(slot: usize) -> Vec<u8> {
    format!("slot{slot}").into_bytes()
}

/// An engine call outside the clients, where nothing may fail.
pub fn sure<T>(what: &str, result: engine_api::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("violation: {what} failed without a fault: {error}"))
}

/// How looks at everything are done.
pub fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: Isolation::RepeatableRead,
        snapshot_isolation: true,
        read_only: false,
        lock_wait_timeout: Duration::from_secs(50),
        flush_policy: FlushPolicy::Synchronous,
        connection: 0,
        ends_with_statement: false,
    }
}

impl History {
    /// The beginning.
    pub fn new(operations: i64) -> Arc<History> {
        Arc::new(History {
            model: Mutex::new(Model::new(DICTIONARY + 1)),
            definitions: Mutex::default(),
            next_number: AtomicI64::new(1),
            operations: AtomicI64::new(operations),
        })
    }

    /// The engine was closed in order: everything committed is there from now on.
    pub fn closed(&self) {
        lock(&self.model).tell_all();
    }

    /// Operations still to be done.
    pub fn operations_left(&self) -> i64 {
        self.operations.load(Ordering::Relaxed)
    }
}

impl OpenTable {
    /// A random id of the table, or number of a row.
    pub fn random_id(&self, random: &mut Random) -> i64 {
        match self.shape.keyless {
            true => random.below(self.last_row.load(Ordering::Relaxed) + 2) as i64,
            false => random.below(self.shape.ids) as i64,
        }
    }

    /// A row was inserted under this key.
    pub fn note_key(&self, key: &[u8]) {
        let number = key.try_into().map_or(0, u64::from_be_bytes);
        self.last_row.fetch_max(number, Ordering::Relaxed);
    }

    /// Whether index `position` is over the GROUP column.
    pub fn is_group_index(&self, position: usize) -> bool {
        let parts = &self.table.definition().indexes[position].parts;
        parts.first().is_some_and(|part| part.column == GROUP)
    }

    /// Whether the UNIQUE column is unique.
    pub fn has_unique_index(&self) -> bool {
        let mut indexes = self.table.definition().indexes.iter();
        let is_over = |part: &IndexPart| part.column == UNIQUE;
        indexes.any(|index| index.unique && index.parts.first().is_some_and(is_over))
    }
}

impl World {
    /// Compares a freshly opened engine with the model, which is resolved by it, and opens the
    /// tables, creating those that are missing.
    pub fn attach(
        engine: Arc<dyn Engine>,
        knobs: Knobs,
        history: Arc<History>,
        counts: Arc<Counts>,
        is_power: bool,
        crash: Option<(i64, Duration)>,
    ) -> (Arc<World>, Resolution) {
        let world = World {
            engine,
            knobs,
            counts,
            history,
            tables: Mutex::new(vec![None; SLOTS]),
            gates: (0..SLOTS)
                .map(|_| Semaphore::new(ALL_PERMITS, WaitClass::MetadataLock))
                .collect(),
            crash,
            crash_when_told: AtomicBool::new(false),
            has_faults: AtomicBool::new(false),
            is_traced: std::env::var_os("GANNET_SIM_TRACE").is_some(),
        };
        let found = world.read_everything();
        let resolution = check(world.model().recovered(&found, is_power));
        world.check_tables();
        for slot in 0..SLOTS {
            if world.table(slot).is_none() && slot + 1 < SLOTS {
                world.create_table(slot, true);
            }
        }
        (Arc::new(world), resolution)
    }

    /// The model.
    pub fn model(&self) -> MutexGuard<'_, Model> {
        lock(&self.history.model)
    }

    /// Operations still to be done.
    pub fn operations_left(&self) -> i64 {
        self.history.operations_left()
    }

    /// Whether the error is what the faults of this life lead to; counted.
    pub fn expects(&self, error: &EngineError) -> bool {
        let allows = |kind: FaultKind| kind.allows(error);
        let expected =
            self.has_faults.load(Ordering::Relaxed) && self.knobs.fault.is_some_and(allows);
        self.counts.errors.fetch_add(u64::from(expected), Ordering::Relaxed);
        expected
    }

    /// Takes one operation from the budget; false when there is none left. At the operation
    /// planned for it the power fails, a little later or when the next client is told something.
    pub fn take_operation(&self) -> bool {
        let left = self.history.operations.fetch_sub(1, Ordering::Relaxed);
        if let Some((at, delay)) = self.crash
            && at == left
        {
            self.crash_when_told.store(self.knobs.is_for_readers, Ordering::Relaxed);
            let delay = if self.knobs.is_for_readers { TELLING_MAX } else { delay };
            let within = self.knobs.crash_within.filter(|within| *within != UNDO);
            drop(runtime::spawn("power-failure", move || {
                runtime::sleep(delay);
                if let Some(within) = within {
                    wait_until_under_way(within, WITHIN_MAX);
                }
                runtime::sim::crash_now();
            }));
        }
        left > 0
    }

    /// A client was told what it saw: if it is time, the power fails at this moment.
    pub fn told(&self) {
        if self.crash_when_told.load(Ordering::Relaxed) {
            runtime::sim::crash_now();
        }
    }

    /// A number that no row or definition had before.
    pub fn next_version(&self) -> i64 {
        self.history.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// One or two slots for a transaction, in order.
    pub fn choose_tables(&self, random: &mut Random) -> Vec<usize> {
        if self.knobs.is_special() {
            return vec![0];
        }
        let mut slots = vec![random.index(SLOTS), random.index(SLOTS)];
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Prints a line if GANNET_SIM_TRACE is set. Reads no clock, which would change the seed.
    pub fn trace(&self, line: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{}", line());
        }
    }

    /// Keeps the definition of a slot as it is.
    pub fn share(&self, slot: usize) -> runtime::sync::Permits<'_> {
        self.gates[slot].acquire(1, None).expect("nobody cancels a simulated client")
    }

    /// The table in a slot.
    pub fn table(&self, slot: usize) -> Option<OpenTable> {
        lock(&self.tables)[slot].clone()
    }

    /// Opens the tables that are there and reads everything, by the model's table numbers.
    fn read_everything(&self) -> Vec<Option<BTreeMap<Vec<u8>, Vec<u8>>>> {
        let mut trx = self.engine.begin(options());
        let mut dictionary = BTreeMap::new();
        for slot in 0..SLOTS {
            let key = slot_key(slot);
            let value = sure("dictionary_get", self.engine.dictionary_get(&mut *trx, &key));
            if let Some(value) = value {
                lock(&self.tables)[slot] = Some(self.open(slot, number_of(&value)));
                dictionary.insert(key, value);
            }
        }
        let mut found = vec![None; self.model().table_count()];
        found[DICTIONARY] = Some(dictionary);
        for slot in 0..SLOTS {
            if let Some(table) = self.table(slot) {
                found[table.model_table] = Some(read_all(&table, &mut *trx));
            }
        }
        sure("rollback", trx.rollback());
        found
    }

    fn check_tables(&self) {
        (0..SLOTS).filter_map(|slot| self.table(slot)).for_each(|table| check_table(&table));
    }

    fn open(&self, slot: usize, number: i64) -> OpenTable {
        let definition = lock(&self.history.definitions).get(&number).cloned();
        let definition = definition.expect("the dictionary holds numbers that were given");
        self.open_definition(slot, &definition)
    }

    fn open_definition(&self, slot: usize, definition: &Definition) -> OpenTable {
        let keys = match self.knobs.shapes[slot].keyless {
            true => self.model().keys(definition.model_table, Bound::Unbounded, Bound::Unbounded),
            false => Vec::new(),
        };
        let last = keys.last().and_then(|key| key[..].try_into().ok());
        OpenTable {
            last_row: Arc::new(AtomicU64::new(last.map_or(0, u64::from_be_bytes))),
            table: sure("open_table", self.engine.open_table(definition.table.clone())),
            shape: self.knobs.shapes[slot],
            layout: Arc::new(Layout::new(&definition.table)),
            model_table: definition.model_table,
        }
    }

    /// Writes a definition into the dictionary, within a transaction.
    fn note_definition(
        &self,
        trx: &mut dyn Transaction,
        number: usize,
        slot: usize,
        definition: Option<&Definition>,
    ) {
        let key = slot_key(slot);
        let value = definition.map(|definition| {
            let number = self.next_version();
            lock(&self.history.definitions).insert(number, definition.clone());
            number.to_le_bytes().to_vec()
        });
        match &value {
            Some(value) => sure("dictionary_put", self.engine.dictionary_put(trx, &key, value)),
            None => {
                sure("dictionary_delete", self.engine.dictionary_delete(trx, &key));
            }
        }
        self.model().write(number, DICTIONARY, &key, value.as_deref());
    }

    /// Ends a change of definitions; true if it is committed.
    fn finish(&self, trx: Box<dyn Transaction>, number: usize, commit: bool) -> bool {
        if !commit {
            self.model().abort(number);
            sure("rollback", trx.rollback());
            return false;
        }
        self.model().commit_called(number);
        sure("commit", trx.commit());
        crate::session::check(self.model().commit_returned(number));
        self.counts.definition_changes.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn create_table(&self, slot: usize, commit: bool) {
        let number = self.model().begin(Promise::Power);
        let mut trx = self.engine.begin(options());
        let mut table = self.knobs.shapes[slot].definition(&format!("t{slot}"));
        sure("create_table", self.engine.create_table(&mut *trx, &mut table));
        let model_table = self.model().add_table();
        let definition = Definition { table: Arc::new(table), model_table };
        self.note_definition(&mut *trx, number, slot, Some(&definition));
        if self.finish(trx, number, commit) {
            lock(&self.tables)[slot] = Some(self.open_definition(slot, &definition));
        }
    }

    fn drop_table(&self, slot: usize, table: &OpenTable, commit: bool) {
        let number = self.model().begin(Promise::Power);
        let mut trx = self.engine.begin(options());
        sure("drop_table", self.engine.drop_table(&mut *trx, table.table.definition()));
        self.note_definition(&mut *trx, number, slot, None);
        if self.finish(trx, number, commit) {
            lock(&self.tables)[slot] = None;
        }
    }

    /// Builds or drops an index over GROUP.
    fn change_index(&self, slot: usize, table: &OpenTable, commit: bool) {
        let number = self.model().begin(Promise::Power);
        let mut trx = self.engine.begin(options());
        let mut changed = TableDefinition::clone(table.table.definition());
        changed.version += 1;
        let existing = changed.indexes.iter().position(|index| index.name == "by_group");
        match existing {
            Some(position) => {
                let former = table.table.definition();
                sure("drop_index", self.engine.drop_index(&mut *trx, former, position));
                changed.indexes.remove(position);
            }
            None => {
                changed.indexes.push(self.knobs.shapes[slot].by_group.definition());
                let position = changed.indexes.len() - 1;
                let built = self.engine.build_index(&mut *trx, &mut changed, position);
                let built = sure("build_index", built);
                assert!(built.is_ok(), "violation: an index that is not unique has duplicates");
            }
        }
        let definition = Definition { table: Arc::new(changed), model_table: table.model_table };
        self.note_definition(&mut *trx, number, slot, Some(&definition));
        if self.finish(trx, number, commit) {
            let open = self.open_definition(slot, &definition);
            check_table(&open);
            lock(&self.tables)[slot] = Some(open);
        }
    }

    /// Another codec for the pages that are written from now on; or what "compressed" means.
    fn change_codec(&self, slot: usize, table: &OpenTable, random: &mut Random, commit: bool) {
        if random.one_in(4) {
            let (algorithm, level) = (*random.pick(&ALGORITHMS), random.below(10) as i32);
            return self.engine.set_compressed(algorithm, level);
        }
        let number = self.model().begin(Promise::Power);
        let mut trx = self.engine.begin(options());
        let mut changed = TableDefinition::clone(table.table.definition());
        changed.version += 1;
        changed.options.codec = (*random.pick(&CODECS)).to_owned();
        sure("change_options", self.engine.change_options(&mut *trx, &changed));
        let definition = Definition { table: Arc::new(changed), model_table: table.model_table };
        self.note_definition(&mut *trx, number, slot, Some(&definition));
        if self.finish(trx, number, commit) {
            base::probe!("sim.codec_changed");
            lock(&self.tables)[slot] = Some(self.open_definition(slot, &definition));
        }
    }

    /// One change of a definition, with everybody else kept out of the slot.
    pub fn change_definition(&self, random: &mut Random) {
        let slot = if random.one_in(2) { SLOTS - 1 } else { random.index(SLOTS) };
        let gate = &self.gates[slot];
        let permits = gate.acquire(ALL_PERMITS, None).expect("nobody cancels");
        let commit = !random.one_in(5);
        match self.table(slot) {
            None => self.create_table(slot, commit),
            Some(table) if slot == SLOTS - 1 && random.one_in(2) => {
                self.drop_table(slot, &table, commit);
            }
            Some(table) if random.one_in(2) => self.change_codec(slot, &table, random, commit),
            Some(table) => self.change_index(slot, &table, commit),
        }
        drop(permits);
    }

    /// At a clean end: everything is as the model says, tables and indexes agree. The model goes
    /// on as it is: what was committed lazily can be lost until the engine is closed.
    pub fn check_all(&self) {
        let found = self.read_everything();
        let mut model = self.model().clone();
        model.tell_all();
        check(model.recovered(&found, false));
        self.check_tables();
    }
}

fn number_of(value: &[u8]) -> i64 {
    let bytes = value.try_into().expect("the dictionary holds numbers of 8 bytes");
    i64::from_le_bytes(bytes)
}
