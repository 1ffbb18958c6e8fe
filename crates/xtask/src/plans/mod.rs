//! `cargo xtask plans`: does the planner choose well? Every query of `tests/plans/queries.sql` is
//! run as it stands and in forced ways: every order of its tables (STRAIGHT_JOIN), every index of
//! each table forced and forbidden, and other forms that stand behind it (lines that begin with
//! `or`). What is compared is work, counted and not timed: see [`work`]. The chosen plan may do
//! at most [`FACTOR`] times the work of the best way known, and [`FREE`] more. The same holds for
//! prepared statements beside the same statements with literals (`prepared.rs`).
//!
//! Work that is counted does not tell a lookup from a probe of a hash table. So the plans of the
//! analytics benchmark, whose queries are timed, must also be those recorded (`crate::analytics`).

mod forms;
mod prepared;
mod work;

use crate::analytics::{self, Shapes};
use crate::process::Server;
use crate::{Outcome, servers};
use sqltest::client::{Connection, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Most work of the chosen plan for the work of the best.
const FACTOR: u64 = 2;
/// Work that is never too much.
const FREE: u64 = 100;
/// A forced way that takes longer is not the best one.
const FORCED_SECONDS: &str = "0.5";
/// The chosen one is given up after so long.
const CHOSEN_SECONDS: &str = "20";

const USAGE: &str = "usage: cargo xtask plans [--release] [--mariadb] [--all] [--bless] [TEXT]
  --bless  records the plans of tests/bench/analytics/queries.sql; read what has changed";

/// What the command line asks for.
#[derive(Default)]
struct Wishes {
    release: bool,
    mariadb: bool,
    all: bool,
    bless: bool,
    name: Option<String>,
}

/// A query with its other forms.
struct Query {
    text: String,
    others: Vec<String>,
}

/// Runs it.
pub fn run(root: &Path, arguments: &[String]) -> Outcome {
    let mut wishes = Wishes::default();
    for argument in arguments {
        match argument.as_str() {
            "--release" => wishes.release = true,
            "--mariadb" => wishes.mariadb = true,
            "--all" => wishes.all = true,
            "--bless" => wishes.bless = true,
            text if !text.starts_with('-') => wishes.name = Some(text.to_string()),
            _ => return Err(USAGE.into()),
        }
    }
    let folder = servers::fresh_folder("plans")?;
    let binary = servers::build_gannet(wishes.release)?;
    let start = Instant::now();
    let mut gannet = servers::start_gannet(&binary, &folder.join("gannet"), 0, &[])?;
    let mut mariadb = match wishes.mariadb {
        true => Some(servers::start_mariadb(&folder, sqltest::port::free_port()?, &[])?),
        false => None,
    };
    let judged = match wishes.bless {
        true => judge_analytics(&wishes, &gannet),
        false => judge(root, &wishes, &gannet, mariadb.as_ref()).and_then(|summary| {
            let analytics = judge_analytics(&wishes, &gannet)?;
            Ok(format!("{summary}, {analytics}"))
        }),
    };
    if let Some(server) = &mut mariadb {
        server.stop();
    }
    let stopped = gannet.stop();
    let summary = judged?;
    println!("plans: {summary}, {} s", start.elapsed().as_secs());
    if !stopped {
        return Err("the server did not stop cleanly".into());
    }
    Ok(())
}

/// A connection to a server that has the tables.
struct Desk {
    connection: Connection,
    /// Names of indexes by table.
    indexes: BTreeMap<String, Vec<String>>,
}

impl Desk {
    fn open(root: &Path, server: &Server) -> Result<Self, String> {
        let connection = Connection::open(&Options::local(server.port));
        let mut desk = Self {
            connection: connection.map_err(|error| error.to_string())?,
            indexes: BTreeMap::new(),
        };
        desk.execute("CREATE DATABASE plans")?;
        desk.execute("USE plans")?;
        for statement in read(root, "tests/plans/tables.sql")?.lines() {
            desk.execute(statement)?;
        }
        for row in desk.execute(
            "SELECT DISTINCT TABLE_NAME, INDEX_NAME FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = 'plans'",
        )? {
            let [table, index] = &row[..] else { continue };
            desk.indexes.entry(table.clone()).or_default().push(index.clone());
        }
        Ok(desk)
    }

    fn execute(&mut self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let rows = self.connection.execute(sql).map_err(|error| format!("{sql}: {error}"))?;
        let text = |field: Option<Vec<u8>>| {
            String::from_utf8_lossy(&field.unwrap_or_default()).into_owned()
        };
        Ok(rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    /// The work of a statement; none if it was given up.
    fn work(&mut self, sql: &str) -> Result<Option<u64>, String> {
        match self.execute(&format!("ANALYZE FORMAT=JSON {sql}")) {
            Ok(rows) => {
                let json = rows.into_iter().flatten().next().unwrap_or_default();
                Ok(Some(work::of_json(&json)))
            }
            Err(error) if error.contains("max_statement_time") || error.contains("1969") => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn limit(&mut self, seconds: &str) -> Outcome {
        self.execute(&format!("SET max_statement_time = {seconds}")).map(|_| ())
    }
}

fn read(root: &Path, name: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
}

fn queries(root: &Path) -> Result<Vec<Query>, String> {
    let mut queries: Vec<Query> = Vec::new();
    for line in read(root, "tests/plans/queries.sql")?.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match (line.strip_prefix("or "), queries.last_mut()) {
            (Some(other), Some(query)) => query.others.push(other.to_string()),
            _ => queries.push(Query { text: line.to_string(), others: Vec::new() }),
        }
    }
    Ok(queries)
}

fn judge(
    root: &Path,
    wishes: &Wishes,
    gannet: &Server,
    mariadb: Option<&Server>,
) -> Result<String, String> {
    let mut desk = Desk::open(root, gannet)?;
    let mut beside = mariadb.map(|server| Desk::open(root, server)).transpose()?;
    let (mut judged, mut forced, mut bad) = (0, 0, Vec::new());
    for query in queries(root)? {
        if wishes.name.as_ref().is_some_and(|name| !query.text.contains(name.as_str())) {
            continue;
        }
        judged += 1;
        desk.limit(CHOSEN_SECONDS)?;
        let chosen = desk.work(&query.text)?;
        desk.limit(FORCED_SECONDS)?;
        let mut best: Option<(u64, String)> = None;
        let forms = forms::of(&query.text, &desk.indexes);
        for form in forms.into_iter().chain(query.others) {
            forced += 1;
            let Some(work) = desk.work(&form)? else { continue };
            if best.as_ref().is_none_or(|(least, _)| work < *least) {
                best = Some((work, form));
            }
        }
        let (least, form) = best.unwrap_or((u64::MAX, String::new()));
        let most = least.saturating_mul(FACTOR).saturating_add(FREE);
        let too_much = chosen.is_none_or(|chosen| chosen > most);
        if too_much || wishes.all {
            let chosen = chosen.map_or("given up".to_string(), |chosen| chosen.to_string());
            println!("{chosen:>9} {least:>9}  {}\n{:21}{form}", query.text, "");
        }
        if let Some(desk) = &mut beside {
            compare_work(&mut desk.connection, &query.text)?;
        }
        if too_much {
            bad.push(query.text);
        }
    }
    let executions = match wishes.name {
        None => prepared::judge(&mut desk, &read(root, "tests/plans/prepared.sql")?)?,
        Some(_) => 0,
    };
    match bad.is_empty() {
        true => Ok(format!(
            "{judged} queries as good as the best of {forced} forced ways, {executions} executions \
             of prepared statements as good as with literals"
        )),
        false => Err(format!(
            "plans: {} of {judged} queries do more than {FACTOR} times the work of the best way",
            bad.len()
        )),
    }
}

/// Compares the plans of the analytics benchmark with those recorded, or records them.
fn judge_analytics(wishes: &Wishes, gannet: &Server) -> Result<String, String> {
    let queries = analytics::queries()?;
    let is_wanted = |query: &&analytics::Query| {
        wishes.name.as_ref().is_none_or(|name| query.sql.contains(name.as_str()))
    };
    let wanted: Vec<&analytics::Query> = queries.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok("no query of the benchmark".to_string());
    }
    let connection = Connection::open(&Options::local(gannet.port));
    let mut connection = connection.map_err(|error| error.to_string())?;
    analytics::load(&mut connection, true)?;
    let mut shapes = Shapes::new();
    for query in &wanted {
        shapes.insert(query.name.clone(), analytics::shape(&mut connection, &query.sql)?);
    }
    if wishes.bless {
        let recorded = analytics::recorded().unwrap_or_default();
        let changed = analytics::differing(&recorded, &shapes);
        let all = recorded.into_iter().chain(shapes).collect();
        analytics::record(&queries, &all)?;
        return Ok(format!("{changed} plans of the analytics benchmark recorded anew"));
    }
    match analytics::differing(&analytics::recorded()?, &shapes) {
        0 => Ok(format!("{} plans of the analytics benchmark as recorded", shapes.len())),
        count => Err(format!(
            "plans: {count} plans of the analytics benchmark are not those recorded; if they are \
             better (cargo xtask bench analytics): cargo xtask plans --bless"
        )),
    }
}

/// Prints the work of MariaDB's plan.
fn compare_work(connection: &mut Connection, sql: &str) -> Outcome {
    let rows = connection.execute(&format!("ANALYZE FORMAT=JSON {sql}"));
    let rows = rows.map_err(|error| format!("MariaDB: {sql}: {error}"))?;
    let json = rows.into_iter().flatten().next().flatten().unwrap_or_default();
    println!("{:>9} by MariaDB's plan  {sql}", work::of_json(&String::from_utf8_lossy(&json)));
    Ok(())
}
