//! A recipe from end to end, tiny: its own file, a real Gannet behind a real network, a load, runs,
//! verified data, a report.

use clap::Parser;
use engine::EngineOptions;
use lab::client::{Connection, Target};
use lab::command::{CommandLine, run};
use lab::results::Experiment;
use runtime::net::{Address, ServeHandle};
use runtime::sync::Event;
use runtime::{Config, Runtime, WaitClass};
use server::options::{self, NoFiles, ServeOptions};
use server::serve::{self, Surroundings};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A small store.
struct Small {
    ready: Arc<Event>,
}

impl Surroundings for Small {
    fn tune(&self, options: &mut EngineOptions) {
        options.buffer_pool_bytes = 32 << 20;
        options.max_pages = 1 << 16;
        options.huge_pages = false;
    }

    fn ready(&self, _listeners: &[ServeHandle], _created: bool) {
        self.ready.set();
    }
}

fn serve_options(folder: &Path, port: u16) -> ServeOptions {
    let (data, port) = (folder.join("data").display().to_string(), port.to_string());
    let words = ["serve", "--datadir", &data, "--port", &port, "--bind-address", "127.0.0.1"];
    match options::parse(&words.map(str::to_owned), &NoFiles) {
        Ok(options::CommandLine::Serve(options)) => options,
        other => panic!("the arguments ask for {other:?}"),
    }
}

/// Runs the recipe with a server that lives as long.
fn run_quick(folder: &Path) {
    let port = sqltest::port::free_port().expect("a free port");
    let (options, ready) = (serve_options(folder, port), Arc::new(Event::new()));
    let surroundings = Small { ready: ready.clone() };
    let server = runtime::spawn("server", move || serve::run_in(&options, &surroundings));
    ready.wait(WaitClass::Other, None);
    let target = Target {
        address: Address::Tcp(([127, 0, 0, 1], port).into()),
        user: "root".into(),
        password: String::new(),
        database: String::new(),
        read_timeout: Duration::from_secs(30),
        tls: lab::client::Tls::Off,
    };
    let made = Connection::open(&target).and_then(|mut c| c.command("CREATE DATABASE quick"));
    made.expect("a database");
    let dsn = format!("--dsn=Gannet=mysql://root@127.0.0.1:{port}/quick");
    let output = format!("--output={}", folder.join("results").display());
    let words = ["gannet-lab", "run", "quick", "--scale=0.02", "--rounds=1", "--settle=0"];
    let words = words.into_iter().chain(["--load", "--clients=4", "--quiet", &dsn, &output]);
    run(CommandLine::try_parse_from(words).expect("flags")).expect("the recipe runs");
    // It may answer, or be gone before.
    let _stopped = Connection::open(&target).and_then(|mut last| last.command("SHUTDOWN"));
    server.join().expect("no panic").expect("the server stops");
}

#[test]
fn quick_ends_with_a_report_of_verified_data() {
    let folder = std::env::temp_dir().join(format!("gannet-lab-recipe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let runtime = Runtime::start(Config { workers: 2, ..Config::default() }).expect("threads");
    let below = folder.clone();
    runtime.run(move || run_quick(&below));
    runtime.shutdown();
    let read = |name: &str| {
        let path = folder.join("results").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let experiment = Experiment::read(&read("run.json")).expect("of this schema");
    let completed: u64 = experiment.runs.iter().flat_map(|run| run.completed()).sum();
    assert!(completed > 0, "{:?}", experiment.ended);
    let violations = experiment.subjects[0].violations.as_deref();
    assert!(violations.is_some_and(|found| found.is_empty()), "{violations:?}");
    assert!(read("report.html").contains("VERIFIED"));
    assert!(read("summary.md").contains("oltp_read_write"));
    std::fs::remove_dir_all(&folder).expect("removed");
}
