//! The workloads against a whole Gannet server on a simulated disk and network: they keep their own
//! rules, also when the power fails in the middle, and what breaks a rule is found.

use engine::EngineOptions;
use lab::client::{Connection, Target};
use lab::driver::{self, Plan};
use lab::load::{self, Loading, TableForm, Way};
use lab::workload::insert::{self, Asked, Insert, Step};
use lab::workload::linkbench::{self, Compatibility, LinkBench, Mix};
use lab::workload::storm::{self, Storm, Visit};
use lab::workload::sysbench::{self, Script, Sysbench};
use lab::workload::tpcc::{self, Scale, Tpcc};
use lab::workload::{Violation, Workload};
use runtime::WaitClass;
use runtime::net::{Address, ServeHandle};
use runtime::sim::{CrashKind, SimConfig, SimEnd, Simulation};
use runtime::sync::Event;
use server::options::{self, CommandLine, NoFiles, ServeOptions};
use server::serve::{self, Surroundings};
use std::sync::Arc;
use std::time::Duration;

/// Losses of power of each workload.
const SEEDS: u64 = 2;

/// A small store, so that checkpoints and evictions happen while the workload runs.
struct Small {
    ready: Arc<Event>,
}

impl Surroundings for Small {
    fn tune(&self, options: &mut EngineOptions) {
        options.buffer_pool_bytes = 4 << 20;
        options.max_pages = 1 << 16;
        options.huge_pages = false;
        options.checkpoint_interval = Duration::from_millis(100);
    }

    fn ready(&self, _listeners: &[ServeHandle], _created: bool) {
        self.ready.set();
    }
}

fn serve_options() -> ServeOptions {
    let words = ["serve", "--datadir", "/db", "--port", "3306", "--bind-address", "127.0.0.1"];
    match options::parse(&words.map(str::to_owned), &NoFiles) {
        Ok(CommandLine::Serve(options)) => options,
        other => panic!("the arguments ask for {other:?}"),
    }
}

fn target(database: &str) -> Target {
    Target {
        address: Address::Tcp(([127, 0, 0, 1], 3306).into()),
        user: "root".into(),
        password: String::new(),
        database: database.into(),
        read_timeout: Duration::from_secs(60),
        tls: lab::client::Tls::Off,
    }
}

/// Starts the server; returns when it answers.
fn start() {
    server::log::only_errors();
    let ready = Arc::new(Event::new());
    let surroundings = Small { ready: ready.clone() };
    drop(runtime::spawn("server", move || {
        serve::run_in(&serve_options(), &surroundings).expect("the server starts and stops");
    }));
    ready.wait(WaitClass::Other, None);
}

/// A workload, its rows, its rules and changes that break them.
trait Case: Send + Sync + 'static {
    fn workload(&self) -> Box<dyn Workload>;
    fn loading(&self) -> Arc<dyn Loading>;
    fn verify(&self, connection: &mut Connection) -> Vec<Violation>;
    fn planted(&self) -> Vec<&'static str>;
}

struct Graph(Compatibility, Mix);

impl Graph {
    fn options(&self) -> linkbench::Options {
        let Self(compatibility, mix) = *self;
        linkbench::Options {
            end_id: 301,
            degree_max: 40,
            compatibility,
            mix,
            ..linkbench::Options::default()
        }
    }
}

impl Case for Graph {
    fn workload(&self) -> Box<dyn Workload> {
        Box::new(LinkBench::new(self.options()))
    }

    fn loading(&self) -> Arc<dyn Loading> {
        Arc::new(linkbench::Load::new(self.options(), ""))
    }

    fn verify(&self, connection: &mut Connection) -> Vec<Violation> {
        linkbench::verify(connection, &self.options()).expect("queries")
    }

    fn planted(&self) -> Vec<&'static str> {
        vec![
            "UPDATE counttable SET count=count+1 LIMIT 1",
            "DELETE FROM counttable WHERE count>0 LIMIT 1",
            "DELETE FROM linktable WHERE visibility=1 LIMIT 1",
            "UPDATE linktable SET visibility=2 LIMIT 1",
            "UPDATE nodetable SET type=7 LIMIT 1",
        ]
    }
}

struct Orders;

impl Orders {
    fn options(&self) -> tpcc::Options {
        let scale = Scale { warehouses: 2, districts: 3, customers: 30, items: 100 };
        tpcc::Options { scale, foreign_keys: true, think_times: false, seed: 9 }
    }
}

impl Case for Orders {
    fn workload(&self) -> Box<dyn Workload> {
        Box::new(Tpcc::new(self.options()))
    }

    fn loading(&self) -> Arc<dyn Loading> {
        Arc::new(tpcc::Load::new(self.options(), "", "2024-01-01 00:00:00"))
    }

    fn verify(&self, connection: &mut Connection) -> Vec<Violation> {
        tpcc::violations(connection, &self.options().scale).expect("queries")
    }

    fn planted(&self) -> Vec<&'static str> {
        tpcc::CONDITIONS.iter().map(|condition| condition.planted).collect()
    }
}

struct Rows(Script);

impl Rows {
    fn options(&self) -> sysbench::Options {
        sysbench::Options { tables: 2, table_size: 500, ..sysbench::Options::new(self.0) }
    }
}

impl Case for Rows {
    fn workload(&self) -> Box<dyn Workload> {
        Box::new(Sysbench::new(self.options()))
    }

    fn loading(&self) -> Arc<dyn Loading> {
        Arc::new(sysbench::Load::new(self.options(), ""))
    }

    fn verify(&self, connection: &mut Connection) -> Vec<Violation> {
        sysbench::verify(connection, &self.options()).expect("queries")
    }

    fn planted(&self) -> Vec<&'static str> {
        vec![
            "DELETE FROM sbtest1 WHERE id=77",
            "UPDATE sbtest2 SET c='damaged' WHERE id=5",
            "INSERT INTO sbtest2 (k, c, pad) VALUES (1, 'x', 'y')",
        ]
    }
}

struct Purchases(Step);

impl Purchases {
    fn options(&self) -> insert::Options {
        insert::Options { tables: 2, table_size: 600, step: self.0, seed: 2 }
    }
}

impl Case for Purchases {
    fn workload(&self) -> Box<dyn Workload> {
        Box::new(Insert::new(self.options()))
    }

    fn loading(&self) -> Arc<dyn Loading> {
        Arc::new(insert::Load::new(self.options(), TableForm::default()))
    }

    fn verify(&self, connection: &mut Connection) -> Vec<Violation> {
        insert::verify(connection, &self.options()).expect("queries")
    }

    fn planted(&self) -> Vec<&'static str> {
        vec![
            "DELETE FROM purchases1 WHERE transactionid=300",
            "UPDATE purchases2 SET customerid=customerid+1 LIMIT 1",
            "UPDATE purchases2 SET price=-1 LIMIT 1",
            "UPDATE purchases1 SET data='damaged' LIMIT 1",
        ]
    }
}

struct Visits;

impl Visits {
    fn options(&self) -> storm::Options {
        storm::Options { visit: Visit::Update, table_size: 20, seed: 3 }
    }
}

impl Case for Visits {
    fn workload(&self) -> Box<dyn Workload> {
        Box::new(Storm::new(self.options()))
    }

    fn loading(&self) -> Arc<dyn Loading> {
        Arc::new(storm::Load::new(self.options(), TableForm::default()))
    }

    fn verify(&self, connection: &mut Connection) -> Vec<Violation> {
        storm::verify(connection, &self.options()).expect("queries")
    }

    fn planted(&self) -> Vec<&'static str> {
        vec!["DELETE FROM storm WHERE id=7", "UPDATE storm SET seen=seen+1 WHERE id=1"]
    }
}

fn plan(database: &str, measured: Duration) -> Plan {
    Plan { clients: 6, measured, seed: 4, ..Plan::new(target(database)) }
}

fn load_case(case: &dyn Case, resume: bool) -> load::Progress {
    Connection::open(&target(""))
        .expect("login")
        .command("CREATE DATABASE IF NOT EXISTS lab")
        .expect("made");
    let way = Way { resume, ..Way::new(3) };
    load::load(&target("lab"), case.loading(), &way, |_| ()).expect("loaded")
}

fn assert_clean(case: &dyn Case) {
    let mut connection = Connection::open(&target("lab")).expect("login");
    assert_eq!(case.verify(&mut connection), []);
}

/// Loads and verifies; breaks the rules one after the other, each in a transaction that is rolled
/// back; runs, and verifies again.
fn keeps_and_finds(case: impl Case) {
    let mut simulation = Simulation::new(SimConfig::new(3));
    let ended = simulation.run(move || {
        start();
        load_case(&case, false);
        assert_clean(&case);
        let mut connection = Connection::open(&target("lab")).expect("login");
        connection.command("SET foreign_key_checks=0").expect("set");
        for planted in case.planted() {
            connection.command("BEGIN").expect("begun");
            let done = connection.command(planted).expect(planted);
            assert!(done.affected_rows > 0, "nothing was planted: {planted}");
            assert_ne!(case.verify(&mut connection), [], "{planted}");
            connection.command("ROLLBACK").expect("ended");
        }
        let measured = driver::run(&*case.workload(), plan("lab", Duration::from_secs(1)));
        let measured = measured.expect("a run");
        assert_eq!(measured.given_up, None);
        assert!(measured.record.errors.is_empty(), "{:?}", measured.record.errors);
        // The rarest come once in 200 operations.
        let idle = measured.record.operations.iter().filter(|o| o.latency.is_empty());
        let idle: Vec<&str> = idle.map(|operation| operation.name).collect();
        assert!(idle.len() <= 1, "never done: {idle:?}");
        assert_clean(&case);
    });
    ended.expect("the simulation ends");
}

/// The power fails while the workload runs; the next life has data that keep the rules.
fn survives(make: impl Fn() -> Box<dyn Case>) {
    for seed in 0..SEEDS {
        let mut simulation = Simulation::new(SimConfig::new(seed));
        let case = make();
        let ended = simulation.run(move || {
            start();
            load_case(&*case, false);
            drop(runtime::spawn("power", move || {
                runtime::sleep(Duration::from_millis(200 + 130 * seed));
                runtime::sim::crash_now();
            }));
            drop(driver::run(&*case.workload(), plan("lab", Duration::from_secs(60))));
        });
        assert!(matches!(ended, Err(SimEnd::Crashed)), "seed {seed}: {ended:?}");
        let disk = simulation.crash(CrashKind::Power);
        let mut simulation = Simulation::with_disk(SimConfig::new(seed + 100), disk);
        let case = make();
        let ended = simulation.run(move || {
            start();
            assert_clean(&*case);
        });
        ended.unwrap_or_else(|end| panic!("seed {seed}: {end}"));
    }
}

#[test]
fn linkbench_keeps_its_rules() {
    keeps_and_finds(Graph(Compatibility::Quirks, Mix::Original));
}

#[test]
fn orders_keep_the_twelve_conditions() {
    keeps_and_finds(Orders);
}

#[test]
fn sysbench_keeps_its_rows() {
    keeps_and_finds(Rows(Script::ReadWrite));
}

#[test]
fn the_insert_benchmark_keeps_its_intervals() {
    keeps_and_finds(Purchases(Step::Insert { rows: 5 }));
    keeps_and_finds(Purchases(Step::Query { asked: Asked::Ranges, rate: 100 }));
    keeps_and_finds(Purchases(Step::Query { asked: Asked::Points, rate: 100 }));
}

#[test]
fn a_storm_of_connections_changes_rows_whole() {
    keeps_and_finds(Visits);
}

#[test]
fn the_insert_benchmark_survives_a_loss_of_power() {
    survives(|| Box::new(Purchases(Step::Insert { rows: 50 })));
}

#[test]
fn linkbench_survives_a_loss_of_power() {
    survives(|| Box::new(Graph(Compatibility::Quirks, Mix::Original)));
}

#[test]
fn orders_survive_a_loss_of_power() {
    survives(|| Box::new(Orders));
}

#[test]
fn sysbench_survives_a_loss_of_power() {
    survives(|| Box::new(Rows(Script::WriteOnly)));
}

#[test]
fn a_storm_of_connections_survives_a_loss_of_power() {
    survives(|| Box::new(Visits));
}

#[test]
fn a_load_that_is_asked_to_stop_goes_on_later() {
    let mut simulation = Simulation::new(SimConfig::new(5));
    let ended = simulation.run(|| {
        start();
        // A connection makes the database.
        drop(load::connect(&target("lab")).expect("login"));
        let way = Way::new(3);
        let stop = way.stop.clone();
        let report = move |progress: load::Progress| {
            if progress.jobs_done == 2 {
                stop.ask();
            }
        };
        let stopped = load::load(&target("lab"), Orders.loading(), &way, report).expect("stopped");
        assert!(!stopped.is_whole() && stopped.jobs_done < stopped.jobs, "{stopped:?}");
        let way = Way { resume: true, ..Way::new(3) };
        let whole = load::load(&target("lab"), Orders.loading(), &way, |_| ()).expect("loaded");
        assert!(whole.is_whole(), "{whole:?}");
        assert_eq!(whole.jobs_before, stopped.jobs_done);
        assert_clean(&Orders);
    });
    ended.expect("the simulation ends");
}

/// As loaders of a real server meet it whose inserts lock gaps.
#[test]
fn a_load_that_meets_a_conflict_tries_that_job_again() {
    let mut simulation = Simulation::new(SimConfig::new(10));
    let ended = simulation.run(|| {
        start();
        let mut other = load::connect(&target("lab")).expect("login");
        other.command("SET GLOBAL innodb_lock_wait_timeout=1").expect("set");
        let way = Way::new(1);
        let stop = way.stop.clone();
        let report = move |_| stop.ask();
        let first = load::load(&target("lab"), Orders.loading(), &way, report).expect("stopped");
        assert!(!first.is_whole());
        // The last job cannot be marked as done before this is gone.
        other.command("BEGIN").expect("begun");
        let mark = format!("INSERT INTO gannet_lab_load (job) VALUES ({})", first.jobs - 1);
        other.command(&mark).expect("inserted");
        drop(runtime::spawn("other", move || {
            runtime::sleep(Duration::from_millis(3500));
            other.command("ROLLBACK").expect("ended");
        }));
        let way = Way { resume: true, ..Way::new(3) };
        let progress = load::load(&target("lab"), Orders.loading(), &way, |_| ()).expect("loaded");
        assert!(progress.is_whole(), "{progress:?}");
        assert_clean(&Orders);
    });
    ended.expect("the simulation ends");
}

#[test]
fn a_load_that_lost_power_goes_on_where_it_was() {
    let mut simulation = Simulation::new(SimConfig::new(8));
    let ended = simulation.run(|| {
        start();
        drop(runtime::spawn("power", || {
            runtime::sleep(Duration::from_millis(1500));
            runtime::sim::crash_now();
        }));
        load_case(&Orders, false);
        runtime::sleep(Duration::from_secs(60));
    });
    assert!(matches!(ended, Err(SimEnd::Crashed)), "{ended:?}");
    let disk = simulation.crash(CrashKind::Power);
    let mut simulation = Simulation::with_disk(SimConfig::new(9), disk);
    let progress = simulation.run(|| {
        start();
        let progress = load_case(&Orders, true);
        assert_clean(&Orders);
        progress
    });
    let progress = progress.expect("the simulation ends");
    assert!(progress.jobs_before > 0, "{progress:?}");
    assert_eq!(progress.jobs_done, progress.jobs);
}

/// The disk has room for so many bytes more.
fn leave_room(bytes: Option<u64>) {
    let disk = runtime::sim::disk().expect("a simulation has one");
    disk.set_quota(bytes.map(|bytes| disk.used_bytes() + bytes));
}

#[test]
fn a_disk_that_fills_up_ends_the_run_and_breaks_no_rule() {
    let mut simulation = Simulation::new(SimConfig::new(6));
    let ended = simulation.run(|| {
        start();
        let case = Rows(Script::Insert);
        load_case(&case, false);
        leave_room(Some(8 << 20));
        let plan = plan("lab", Duration::from_secs(600));
        let measured = driver::run(&*case.workload(), plan).expect("a run");
        let why = measured.given_up.expect("it is given up");
        assert!(why.contains("free some space"), "{why}");
        let completed: u64 = measured.record.completed_per_second().iter().sum();
        assert!(completed > 1000, "what was measured before is kept: {completed}");
        assert_clean(&case);
    });
    ended.expect("the simulation ends");
}

#[test]
fn a_load_that_filled_the_disk_goes_on_when_there_is_room() {
    let mut simulation = Simulation::new(SimConfig::new(7));
    let ended = simulation.run(|| {
        start();
        drop(load::connect(&target("lab")).expect("login"));
        leave_room(Some(2 << 20));
        let failed = load::load(&target("lab"), Orders.loading(), &Way::new(3), |_| ());
        let why = failed.expect_err("no room").explained(&target("lab"));
        assert!(why.contains("free some space"), "{why}");
        leave_room(None);
        let progress = load_case(&Orders, true);
        assert_eq!(progress.jobs_done, progress.jobs);
        assert_clean(&Orders);
    });
    ended.expect("the simulation ends");
}
