//! `cargo xtask crash`: kills the server at random moments under a load of bank transfers.
//!
//! The data is several times the buffer pool, so that pages are evicted, flushed and collected
//! meanwhile. What is checked after each restart stands in `bank`.

use crate::arguments::Arguments;
use crate::bank::{Bank, CODECS};
use crate::process::Server;
use crate::random::Random;
use crate::{Outcome, servers};
use sqltest::client::{Connection, Options};
use std::path::Path;
use std::time::{Duration, Instant};

/// Memory for pages.
const POOL: &str = "16M";
/// Items of about 1 kB unless the command line says otherwise.
const ITEMS: u64 = 60_000;

/// Runs `--rounds N` (100) from `--seed S` for each `--codec` (lz4; a name, `all` or `mixed`;
/// several with commas) with the release or (`--debug`) debug build.
pub fn run(arguments: &[String]) -> Outcome {
    let options = ["--rounds", "--seed", "--codec", "--items"];
    let arguments = Arguments::new(arguments, &["--debug"], &options)?;
    let binary = servers::build_gannet(!arguments.has("--debug"))?;
    for codec in codecs(arguments.value("--codec").unwrap_or("lz4")) {
        run_codec(&arguments, &binary, codec)?;
    }
    Ok(())
}

/// The codecs that an argument names.
pub fn codecs(argument: &str) -> Vec<&str> {
    match argument {
        "all" => CODECS.iter().copied().chain(["mixed"]).collect(),
        names => names.split(',').collect(),
    }
}

fn run_codec(arguments: &Arguments, binary: &Path, codec: &str) -> Outcome {
    let rounds = arguments.number("--rounds", 100)?;
    let bank = Bank::new(arguments.number("--items", ITEMS)?, codec)?;
    let folder = servers::fresh_folder("crash")?;
    let datadir = folder.join("data");
    let mut random = Random::new(arguments.number("--seed", 1)?);
    let mut server = start(binary, &datadir)?.0;
    bank.create(server.port)?;
    let mut recoveries = Vec::new();
    let mut total = StoreWork::default();
    let mut rows = 0;
    for round in 0..rounds {
        let delay = Duration::from_millis(100 + random.below(1400));
        let load = bank.start_load(server.port, round, random.next());
        std::thread::sleep(delay);
        let work = StoreWork::of(server.port).unwrap_or_default();
        server.kill();
        load.end();
        let (restarted, recovery) = start(binary, &datadir)?;
        server = restarted;
        recoveries.push(recovery);
        let seen = bank.verify(server.port).map_err(|e| format!("{codec} round {round}: {e}"))?;
        total.add(&work);
        rows = seen.rows;
        println!(
            "{codec} round {round}: killed after {} ms, recovered in {} ms, {} rows right, {} \
             transfers, {} acknowledged; {work}",
            delay.as_millis(),
            recovery.as_millis(),
            seen.rows,
            seen.transfers,
            seen.acknowledged,
        );
    }
    if !server.stop() {
        return Err("the server did not stop cleanly at the end".into());
    }
    check_offline(binary, &datadir)?;
    recoveries.sort();
    println!(
        "crash: {codec}, {rounds} rounds, nothing lost, nothing partial, {rows} rows at the end; \
         recovery median {} ms, longest {} ms; in all {total}",
        recoveries[recoveries.len() / 2].as_millis(),
        recoveries[recoveries.len() - 1].as_millis()
    );
    // Only debug builds have segments so small that all of it must have happened.
    if arguments.has("--debug") { total.require() } else { Ok(()) }
}

fn start(binary: &Path, datadir: &Path) -> Result<(Server, Duration), String> {
    let begin = Instant::now();
    let mut command = std::process::Command::new(binary);
    small_units(&mut command);
    let options = ["--buffer-pool-size", POOL];
    let port = sqltest::port::free_port()?;
    let server = servers::start_gannet_as(command, datadir, port, &options)?;
    Ok((server, begin.elapsed()))
}

/// Builds with debug assertions have segments and log files so small that these data fill many.
pub fn small_units(command: &mut std::process::Command) {
    command.env("GANNET_SEGMENT_BYTES", (2 << 20).to_string());
    command.env("GANNET_LOG_FILE_BYTES", (4 << 20).to_string());
    command.env("GANNET_CHECKPOINT_MS", "100");
}

/// Verifies a data directory that no server uses.
pub fn check_offline(binary: &Path, datadir: &Path) -> Outcome {
    let output = std::process::Command::new(binary)
        .args(["check", "--datadir"])
        .arg(datadir)
        .output()
        .map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("gannet check: {}", String::from_utf8_lossy(&output.stdout)))
}

/// What the store did since the server's start, as SHOW STATUS tells it.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreWork {
    /// Segments emptied.
    pub collections: u64,
    /// Segments used again.
    pub reuses: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Pages read because they had been evicted.
    pub misses: u64,
    /// Copies of pages written.
    pub flushed: u64,
}

impl StoreWork {
    /// Asks the server.
    pub fn of(port: u16) -> std::io::Result<StoreWork> {
        let mut connection = Connection::open(&Options::local(port))?;
        Self::ask(&mut connection)
    }

    /// Asks the server of a connection.
    pub fn ask(connection: &mut Connection) -> std::io::Result<StoreWork> {
        let mut work = StoreWork::default();
        for row in connection.execute("SHOW GLOBAL STATUS LIKE 'Innodb%'")? {
            let text = |place: usize| {
                let field = row.get(place).and_then(|field| field.as_deref()).unwrap_or_default();
                String::from_utf8_lossy(field).into_owned()
            };
            let value = text(1).parse().unwrap_or(0);
            match text(0).as_str() {
                "Innodb_segment_collections" => work.collections = value,
                "Innodb_segment_reuses" => work.reuses = value,
                "Innodb_checkpoints" => work.checkpoints = value,
                "Innodb_buffer_pool_reads" => work.misses = value,
                "Innodb_buffer_pool_pages_flushed" => work.flushed = value,
                _ => {}
            }
        }
        Ok(work)
    }

    /// Adds another life's.
    pub fn add(&mut self, other: &StoreWork) {
        self.collections += other.collections;
        self.reuses += other.reuses;
        self.checkpoints += other.checkpoints;
        self.misses += other.misses;
        self.flushed += other.flushed;
    }

    /// An error unless all of it went on while the servers were killed.
    pub fn require(&self) -> Outcome {
        let parts = [self.collections, self.reuses, self.checkpoints, self.misses, self.flushed];
        if parts.contains(&0) {
            return Err(format!("something that must go on under the load never did: {self}"));
        }
        Ok(())
    }
}

impl std::fmt::Display for StoreWork {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StoreWork { collections, reuses, checkpoints, misses, flushed } = self;
        write!(
            formatter,
            "{collections} collections, {reuses} segments reused, {checkpoints} checkpoints, \
             {misses} pages read, {flushed} written"
        )
    }
}
