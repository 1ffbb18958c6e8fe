//! What of a server would spoil a measurement.

use super::judge::{Asked, Finding, Findings, Gravity};
use crate::account::server_of;
use crate::client::{Connection, Failure, Target};
use crate::experiment::{self, Subject};
use crate::machine::Machine;
use crate::parity::Confines;
use crate::server::Engine;
use runtime::net::Address;
use std::collections::BTreeMap;

const POOL: &str = "innodb_buffer_pool_size";
/// A pool that nobody has chosen.
const POOL_BY_DEFAULT: u64 = 128 << 20;
/// Statements that a client of the largest workload prepares, and some.
const STATEMENTS: u64 = 40;
/// Connections besides the clients'.
const CONNECTIONS: u64 = 8;
const TABLE: &str = "gannet_lab_doctor";

/// Looks at a server; one that cannot be reached is a finding.
pub(super) fn look(
    target: &Target,
    machine: &Machine,
    own: Option<&Confines>,
    asked: &Asked,
) -> Vec<Finding> {
    let place = target.address.to_string();
    let mut findings = Findings::default();
    match ask(target) {
        Ok((version, variables)) => {
            let known = format!("{place}: {version}");
            findings.put(Gravity::Known, known, "");
            settings(&mut findings, &place, &version, &variables, machine, asked);
            if let Err(failure) = may_make_tables(target) {
                let what =
                    format!("{place}: {} may not do what a load does: {failure}", target.user);
                let fix = format!("GRANT ALL ON `{}`.* TO {}", target.database, target.user);
                findings.put(Gravity::Spoils, what, &fix);
            }
            neighbours(&mut findings, target, &place, own);
        }
        Err(failure) => {
            findings.put(Gravity::Spoils, format!("{place}: {}", failure.explained(target)), "");
        }
    }
    findings.0.sort_by_key(|finding| finding.gravity);
    findings.0
}

fn ask(target: &Target) -> Result<(String, BTreeMap<String, String>), Failure> {
    let subject = Subject::running(&target.address.to_string(), target.clone());
    let subject = experiment::describe(&subject)?;
    Ok((subject.version, subject.variables))
}

fn may_make_tables(target: &Target) -> Result<(), Failure> {
    let mut connection = Connection::open(target)?;
    connection.command(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
    connection.command(&format!("CREATE TABLE {TABLE} (a INT PRIMARY KEY, b INT)"))?;
    connection.command(&format!("INSERT INTO {TABLE} VALUES (1, 1)"))?;
    connection.command(&format!("UPDATE {TABLE} SET b = 2 WHERE a = 1"))?;
    connection.command(&format!("CREATE INDEX b ON {TABLE} (b)"))?;
    connection.command(&format!("DROP TABLE {TABLE}")).map(|_| ())
}

/// Server and driver on the same processors take them from each other.
fn neighbours(findings: &mut Findings, target: &Target, place: &str, own: Option<&Confines>) {
    let Address::Tcp(address) = &target.address else { return };
    let Some(id) = server_of(address) else { return };
    let theirs = Confines::of(id).and_then(|confines| confines.processors);
    let ours = own.and_then(|confines| confines.processors.clone());
    let (Some(theirs), Some(ours)) = (theirs, ours) else { return };
    if listed(&theirs).iter().any(|processor| listed(&ours).contains(processor)) {
        findings.put(
            Gravity::Matters,
            format!("{place}: server (processors {theirs}) and driver ({ours}) share some of them"),
            "give the server some with `cpus`, and the driver the others with taskset",
        );
    }
}

/// `0-2,5` as numbers.
fn listed(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse()) {
            found.extend(first..=last);
        }
    }
    found
}

fn settings(
    findings: &mut Findings,
    place: &str,
    version: &str,
    variables: &BTreeMap<String, String>,
    machine: &Machine,
    asked: &Asked,
) {
    let engine = Engine::in_effect(variables);
    let value = |name: &str| variables.get(engine.variable(name)?);
    let number = |name: &str| value(name).and_then(|value| value.parse::<u64>().ok());
    let is_on = |name: &str| {
        value(name).is_some_and(|value| value.eq_ignore_ascii_case("on") || value == "1")
    };
    let mut put = |gravity, what: String, fix: &str| {
        findings.put(gravity, format!("{place}: {what}"), fix);
    };
    if version.to_ascii_lowercase().contains("debug") {
        put(Gravity::Spoils, "it is a build with checks".into(), "take a release");
    }
    let pool_variable = engine.variable(POOL).unwrap_or(POOL);
    let pool = number(POOL).unwrap_or(0);
    if pool > 0 && pool <= POOL_BY_DEFAULT {
        let what = format!("its pool is {} MiB: it is not set up", pool >> 20);
        put(Gravity::Spoils, what, &format!("{pool_variable}: half of the memory and more"));
    }
    let most = machine.memory_limit.unwrap_or(u64::MAX).min(machine.memory);
    if most > 0 && pool > most / 10 * 9 {
        let what = format!("its pool of {} MiB leaves nothing of {} MiB", pool >> 20, most >> 20);
        put(Gravity::Spoils, what, &format!("a smaller {pool_variable}"));
    }
    let clients = u64::from(asked.clients);
    if number("max_connections").is_some_and(|most| most < clients + CONNECTIONS) {
        let what = format!("it allows fewer than {} connections", clients + CONNECTIONS);
        put(Gravity::Spoils, what, "SET GLOBAL max_connections = ...");
    }
    if number("max_prepared_stmt_count").is_some_and(|most| most < clients * STATEMENTS) {
        let what = format!("{clients} clients may need {} statements", clients * STATEMENTS);
        put(Gravity::Matters, what, "SET GLOBAL max_prepared_stmt_count = 1048576");
    }
    if is_on("read_only") || is_on("super_read_only") || is_on("innodb_read_only") {
        put(Gravity::Spoils, "it is read only".into(), "SET GLOBAL read_only = 0");
    }
    if is_on("general_log") {
        put(Gravity::Spoils, "it logs every statement".into(), "SET GLOBAL general_log = 0");
    }
    if is_on("slow_query_log") {
        put(Gravity::Matters, "it logs slow statements".into(), "SET GLOBAL slow_query_log = 0");
    }
    if number("query_cache_size").unwrap_or(0) > 0
        && variables.get("query_cache_type").is_some_and(|value| value != "OFF")
    {
        put(Gravity::Matters, "it answers from a cache".into(), "SET GLOBAL query_cache_type = 0");
    }
    if is_on("performance_schema") {
        put(Gravity::Known, "performance_schema is on and costs some time".into(), "");
    }
    match number("innodb_flush_log_at_trx_commit") {
        Some(1 | 3) | None => {}
        Some(other) => {
            let what = format!("commits do not wait for the device (flush at commit {other})");
            put(Gravity::Known, what, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted() {
        assert_eq!(listed("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(listed("x,3"), [3]);
    }

    #[test]
    fn settings_that_spoil_are_found() {
        let of = |pairs: &[(&str, &str)], version: &str| {
            let variables = pairs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
            let machine = Machine { memory: 8 << 30, ..Machine::default() };
            let asked = Asked { clients: 100, is_debug: false };
            let mut findings = Findings::default();
            settings(&mut findings, "s", version, &variables, &machine, &asked);
            findings.0
        };
        let good = [
            ("innodb_buffer_pool_size", "4294967296"),
            ("max_connections", "200"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("query_cache_size", "1048576"),
            ("query_cache_type", "OFF"),
        ];
        assert_eq!(of(&good, "10.11"), []);
        let bad = [
            (("innodb_buffer_pool_size", "134217728"), Gravity::Spoils, "not set up"),
            (("innodb_buffer_pool_size", "8589934592"), Gravity::Spoils, "leaves nothing"),
            (("max_connections", "100"), Gravity::Spoils, "connections"),
            (("max_prepared_stmt_count", "3999"), Gravity::Matters, "statements"),
            (("read_only", "ON"), Gravity::Spoils, "read only"),
            (("general_log", "ON"), Gravity::Spoils, "every statement"),
            (("slow_query_log", "1"), Gravity::Matters, "slow"),
            (("performance_schema", "ON"), Gravity::Known, "performance_schema"),
            (("innodb_flush_log_at_trx_commit", "2"), Gravity::Known, "do not wait"),
        ];
        for (pair, gravity, word) in bad {
            let found = of(&[pair], "10.11");
            assert!(found.len() == 1 && found[0].what.contains(word), "{pair:?}: {found:?}");
            assert_eq!(found[0].gravity, gravity);
        }
        assert_eq!(of(&[], "10.11-debug")[0].gravity, Gravity::Spoils);
        let myrocks = [
            ("default_storage_engine", "ROCKSDB"),
            ("innodb_buffer_pool_size", "5242880"),
            ("rocksdb_block_cache_size", "4294967296"),
        ];
        assert_eq!(of(&myrocks, "10.11"), [], "the pool is MyRocks'");
        let small = [myrocks[0], ("rocksdb_block_cache_size", "8388608")];
        assert!(of(&small, "10.11")[0].what.contains("not set up"));
    }
}
