//! The process list: who is connected and what each does, KILL.
//!
//! Invariants:
//! 1. A [`Process`] is in the list from the greeting until its connection object is dropped.
//! 2. KILL sets the cancel token; a running statement ends at its next scheduling point, an idle
//!    connection is closed at once. KILL QUERY does so only while the statement is running, and
//!    KILL QUERY ID only while that one is: a statement begins, ends and is killed under the lock
//!    of its information, and what was set before its end is forgotten behind it.
//! 3. A statement whose client has closed its socket is interrupted soon, and its connection
//!    ends. Only statements that have run for a while are looked at, by one fiber for all
//!    connections, so the short ones pay nothing.

use catalog::ShownLocks;
use catalog::information_schema::OpenTransaction;
use engine_api::Isolation;
use runtime::net::StreamHandle;
use runtime::sync::Mutex;
use runtime::{CancelReason, CancelToken, Instant, WaitClass};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Which listener a connection came through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// The port and the socket.
    Main,
    /// `extra_port`.
    Extra,
}

/// Statement text kept for SHOW PROCESSLIST, in bytes.
const QUERY_BYTES_MAX: usize = 64 * 1024;

/// A packet with COM_QUIT, which a client sends before it closes.
const FAREWELL: [u8; 5] = [1, 0, 0, 0, 1];

/// What a connection does, as SHOW PROCESSLIST shows it.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// Connection id.
    pub id: u32,
    /// User as logged in, or `unauthenticated user`.
    pub user: String,
    /// `localhost` or address and port.
    pub host: String,
    /// Default database.
    pub database: Option<String>,
    /// `Sleep`, `Query`, `Connect` ...
    pub command: &'static str,
    /// When it began to do so.
    pub since: Instant,
    /// What it waits for; empty while idle.
    pub state: &'static str,
    /// Statement text; empty while idle.
    pub query: Vec<u8>,
    /// Number of the statement.
    pub query_id: u64,
    /// Its transaction of several statements, if one has begun.
    pub transaction: Option<OpenTransaction>,
}

/// What a statement that waits is said to do.
fn state_of_wait(class: WaitClass) -> &'static str {
    match class {
        WaitClass::RowLock => "Waiting for row lock",
        WaitClass::MetadataLock => "Waiting for table metadata lock",
        WaitClass::LogDurable | WaitClass::FileSync => "Waiting for log sync",
        WaitClass::LogSpace => "Waiting for log space",
        WaitClass::PageRead | WaitClass::FileRead => "Waiting for page read",
        WaitClass::FreeFrame => "Waiting for free page",
        WaitClass::FileWrite => "Waiting for file write",
        WaitClass::Network => "Writing to net",
        WaitClass::Sleep => "User sleep",
        WaitClass::Admission => "Waiting in queue",
        WaitClass::Join | WaitClass::Helper => "Waiting for background work",
        WaitClass::Other | WaitClass::FiberMutex | WaitClass::Idle => "Waiting",
    }
}

/// One connection.
pub struct Process {
    id: u32,
    door: Door,
    cancel: CancelToken,
    info: Mutex<ProcessInfo>,
    running: AtomicBool,
    /// See `read_lock`.
    writing: AtomicBool,
    handle: Mutex<Option<StreamHandle>>,
    /// When its transaction of several statements began, in nanoseconds of the clock with the
    /// level in the lowest two bits; 0 for none.
    transaction: AtomicU64,
    metadata_locks: Arc<ShownLocks>,
}

impl Process {
    /// Connection id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The metadata locks that it holds.
    pub fn metadata_locks(&self) -> &Arc<ShownLocks> {
        &self.metadata_locks
    }

    /// The token under which its statements run.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// A copy of what it does.
    pub fn info(&self) -> ProcessInfo {
        let mut info = self.info.lock().clone();
        info.transaction = self.transaction();
        if self.is_running() && !info.query.is_empty() {
            info.state = match self.cancel.wait_class() {
                Some(class) => state_of_wait(class),
                None => exec::phase::name(self.cancel.phase()),
            };
        }
        info
    }

    /// A transaction of several statements has begun, or (none) has ended.
    pub(crate) fn set_transaction(&self, isolation: Option<Isolation>) {
        let level = |isolation| runtime::turn_time().as_nanos() & !3 | isolation as u64;
        self.transaction.store(isolation.map_or(0, level), Ordering::Relaxed);
    }

    fn transaction(&self) -> Option<OpenTransaction> {
        let value = self.transaction.load(Ordering::Relaxed);
        let isolation = match value & 3 {
            0 => Isolation::ReadUncommitted,
            1 => Isolation::ReadCommitted,
            2 => Isolation::RepeatableRead,
            _ => Isolation::Serializable,
        };
        let age = Instant::from_nanos(value).elapsed();
        let age_micros = age.as_micros() as u64;
        (value != 0).then_some(OpenTransaction { age_micros, isolation })
    }

    /// Which listener it came through.
    pub fn door(&self) -> Door {
        self.door
    }

    /// Who it is, once logged in.
    pub fn set_user(&self, user: &str) {
        self.info.lock().user = user.to_owned();
    }

    /// Its default database.
    pub fn set_database(&self, database: Option<&str>) {
        self.info.lock().database = database.map(str::to_owned);
    }

    /// The way to close it from elsewhere.
    pub fn set_handle(&self, handle: StreamHandle) {
        *self.handle.lock() = Some(handle);
    }

    /// A command begins.
    pub fn begin(&self, command: &'static str, query: &[u8], query_id: u64) {
        let mut info = self.info.lock();
        info.command = command;
        info.since = runtime::turn_time();
        info.state = "";
        self.cancel.set_phase(exec::phase::INIT);
        info.query.clear();
        info.query.extend_from_slice(&query[..query.len().min(QUERY_BYTES_MAX)]);
        info.query_id = query_id;
        self.running.store(true, Ordering::Release);
    }

    /// The command has been answered.
    pub fn end(&self) {
        let mut info = self.info.lock();
        self.running.store(false, Ordering::Release);
        info.command = "Sleep";
        info.since = runtime::turn_time();
        info.state = "";
        info.query.clear();
        info.query.shrink_to(1024);
    }

    /// KILL QUERY, or with the number of a statement KILL QUERY ID. Returns whether there was one
    /// to kill.
    pub fn kill_query(&self, query_id: Option<u64>) -> bool {
        let info = self.info.lock();
        let is_there = self.running.load(Ordering::Acquire)
            && query_id.is_none_or(|query_id| query_id == info.query_id);
        if is_there {
            self.cancel.cancel(CancelReason::KillQuery);
        }
        is_there
    }

    /// KILL CONNECTION.
    pub fn kill_connection(&self) {
        self.cancel.cancel(CancelReason::KillConnection);
        if !self.running.load(Ordering::Acquire)
            && let Some(handle) = &*self.handle.lock()
        {
            handle.close();
        }
    }

    /// A command that has been executed for this long, and whose client has gone meanwhile, is
    /// interrupted; its connection ends.
    pub(crate) fn interrupt_if_abandoned(&self, age: Duration) {
        if !self.running.load(Ordering::Acquire) || self.info.lock().since.elapsed() < age {
            return;
        }
        let is_abandoned =
            self.handle.lock().as_ref().is_some_and(|handle| handle.is_abandoned(&FAREWELL));
        if is_abandoned {
            self.cancel.cancel(CancelReason::ClientGone);
        }
    }

    /// It is about to change something; ordered before what is read next.
    pub(crate) fn set_writing(&self) {
        self.writing.store(true, Ordering::SeqCst);
    }

    /// It has changed what it wanted to.
    pub(crate) fn end_writing(&self) {
        self.writing.store(false, Ordering::Release);
    }

    /// It changes something now.
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::SeqCst)
    }

    /// A command is being executed.
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }
}

/// A worker's number of statements, alone in its cache lines: all sessions count in it.
#[repr(align(128))]
#[derive(Default)]
struct QueryCount(AtomicU64);

/// All connections.
pub struct ProcessList {
    last_id: AtomicU32,
    /// By worker.
    query_counts: Box<[QueryCount]>,
    most: AtomicU64,
    most_since_micros: AtomicI64,
    main: AtomicUsize,
    extra: AtomicUsize,
    processes: Mutex<BTreeMap<u32, Arc<Process>>>,
}

impl ProcessList {
    /// Nobody yet. Runs in a fiber.
    pub(crate) fn new() -> Self {
        let workers = runtime::worker_count().max(1);
        Self {
            last_id: AtomicU32::new(0),
            query_counts: (0..workers).map(|_| QueryCount::default()).collect(),
            most: AtomicU64::new(0),
            most_since_micros: AtomicI64::new(0),
            main: AtomicUsize::new(0),
            extra: AtomicUsize::new(0),
            processes: Mutex::default(),
        }
    }

    /// A new connection from `host`. Returns it with the number of connections that came through
    /// the same door and are there now.
    pub fn connect(&self, host: &str, door: Door) -> (Arc<Process>, usize) {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let info = ProcessInfo {
            id,
            user: "unauthenticated user".to_owned(),
            host: host.to_owned(),
            database: None,
            command: "Connect",
            since: runtime::now(),
            state: "login",
            query: Vec::new(),
            query_id: 0,
            transaction: None,
        };
        let process = Arc::new(Process {
            id,
            door,
            cancel: CancelToken::new(),
            info: Mutex::new(info),
            running: AtomicBool::new(false),
            writing: AtomicBool::new(false),
            handle: Mutex::new(None),
            transaction: AtomicU64::new(0),
            metadata_locks: Arc::default(),
        });
        let mut processes = self.processes.lock();
        processes.insert(id, process.clone());
        drop(processes);
        let count = self.through(door).fetch_add(1, Ordering::Relaxed) + 1;
        (process, count)
    }

    /// A connection that came is not refused: it counts for the most at one time.
    pub fn admitted(&self) {
        let all = (self.count_through(Door::Main) + self.count_through(Door::Extra)) as u64;
        if self.most.fetch_max(all, Ordering::Relaxed) < all {
            self.most_since_micros.store(runtime::wall_clock_micros(), Ordering::Relaxed);
        }
    }

    fn through(&self, door: Door) -> &AtomicUsize {
        match door {
            Door::Main => &self.main,
            Door::Extra => &self.extra,
        }
    }

    /// How many came through this door and are there.
    pub fn count_through(&self, door: Door) -> usize {
        self.through(door).load(Ordering::Relaxed)
    }

    /// The connection is gone.
    pub fn disconnect(&self, id: u32) {
        if let Some(process) = self.processes.lock().remove(&id) {
            self.through(process.door).fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A connection by id.
    pub fn find(&self, id: u64) -> Option<Arc<Process>> {
        let id = u32::try_from(id).ok()?;
        self.processes.lock().get(&id).cloned()
    }

    /// All connections in order of id.
    pub fn all(&self) -> Vec<Arc<Process>> {
        self.processes.lock().values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.processes.lock().len()
    }

    /// How many execute a command.
    pub fn running(&self) -> usize {
        self.processes.lock().values().filter(|process| process.is_running()).count()
    }

    /// How many there were since the start.
    pub fn connections(&self) -> u64 {
        u64::from(self.last_id.load(Ordering::Relaxed))
    }

    /// The most at one time.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// When there were the most, in microseconds since 1970.
    pub fn most_since_micros(&self) -> i64 {
        self.most_since_micros.load(Ordering::Relaxed)
    }

    /// A number for a new statement: no other has it, and on each worker they ascend.
    pub fn next_query_id(&self) -> u64 {
        let workers = self.query_counts.len();
        let worker = runtime::current_worker() % workers;
        let before = self.query_counts[worker].0.fetch_add(1, Ordering::Relaxed);
        before * workers as u64 + worker as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::{Config, Runtime};

    const FIBERS: usize = 12;
    const STATEMENTS: usize = 4_000;

    /// Numbers that the fibers of several workers took at the same time, by fiber.
    fn numbers_of_fibers(workers: usize) -> Vec<Vec<u64>> {
        let config = Config { workers, ..Config::default() };
        let runtime = Runtime::start(config).expect("workers start");
        let numbers = runtime.run(|| {
            let list = Arc::new(ProcessList::new());
            let take = |fiber: usize| {
                let list = list.clone();
                runtime::spawn_on(fiber, "statements", move || {
                    let number = |at: usize| {
                        if at.is_multiple_of(7) {
                            runtime::yield_now();
                        }
                        list.next_query_id()
                    };
                    (0..STATEMENTS).map(number).collect::<Vec<u64>>()
                })
            };
            let fibers: Vec<_> = (0..FIBERS).map(take).collect();
            fibers.into_iter().map(|fiber| fiber.join().expect("no panic")).collect()
        });
        runtime.shutdown();
        numbers
    }

    /// Runs statements until so many of them were killed; returns the numbers of those.
    fn run_until_killed(process: &Process, count: usize) -> Vec<u64> {
        let (mut killed, mut query_id) = (Vec::new(), 0);
        while killed.len() < count {
            query_id += 1;
            process.begin("Query", b"", query_id);
            let early = (0..query_id % 50).any(|_| process.cancel.is_cancelled());
            process.end();
            if early || process.cancel.is_cancelled() {
                killed.push(query_id);
            }
            // As a connection does behind a command.
            process.cancel.rearm();
        }
        killed
    }

    #[test]
    fn a_statement_is_not_killed_in_place_of_another() {
        const KILLED: usize = 300;
        let runtime = Runtime::start(Config { workers: 2, ..Config::default() }).expect("workers");
        let (killed, mut told) = runtime.run(|| {
            let (process, _) = ProcessList::new().connect("localhost", Door::Main);
            let (served, done) = (process.clone(), Arc::new(AtomicBool::new(false)));
            let is_done = done.clone();
            let killer = runtime::spawn_on(1, "killer", move || {
                let mut told = Vec::new();
                while !is_done.load(Ordering::Relaxed) {
                    let number = process.info().query_id;
                    if number % 2 == 1 && process.kill_query(Some(number)) {
                        told.push(number);
                    }
                }
                told
            });
            let statements = runtime::spawn_on(0, "statements", move || {
                let killed = run_until_killed(&served, KILLED);
                done.store(true, Ordering::Relaxed);
                killed
            });
            (statements.join().expect("no panic"), killer.join().expect("no panic"))
        });
        runtime.shutdown();
        told.dedup();
        assert_eq!(killed, told, "those that were to be killed, and no others");
    }

    /// KILL QUERY ID takes the first statement with the number.
    #[test]
    fn no_two_statements_have_the_same_number() {
        for workers in [1, 2, 3] {
            let numbers = numbers_of_fibers(workers);
            for of_fiber in &numbers {
                assert!(of_fiber.is_sorted_by(|one, next| one < next), "{workers} workers");
                assert!(of_fiber[0] > 0, "0 is nobody's");
            }
            let mut all: Vec<u64> = numbers.concat();
            all.sort_unstable();
            assert!(all.is_sorted_by(|one, next| one < next), "{workers} workers: one twice");
            assert_eq!(all.len(), FIBERS * STATEMENTS);
        }
    }
}
