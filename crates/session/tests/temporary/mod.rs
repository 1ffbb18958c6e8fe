//! Temporary tables beside other connections, kept plans and a server that ends without a word.

use crate::client::CAPABILITIES;
use crate::{World, start_server_on};
use catalog::Catalog;
use engine::memory::MemoryEngine;
use engine_api::{Engine, FlushPolicy, Isolation, TransactionOptions};
use runtime::sim::{SimConfig, Simulation};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Records of temporary tables in the dictionary.
fn records(engine: &MemoryEngine) -> usize {
    let mut transaction = engine.begin(TransactionOptions {
        isolation: Isolation::ReadCommitted,
        snapshot_isolation: false,
        read_only: true,
        lock_wait_timeout: Duration::ZERO,
        flush_policy: FlushPolicy::Synchronous,
        connection: 0,
        ends_with_statement: false,
    });
    engine.dictionary_scan(&mut *transaction, b"x").unwrap().len()
}

fn check(engine: Arc<MemoryEngine>) {
    let (address, _state) = start_server_on(engine.clone());
    let mut world = World { address, clients: BTreeMap::new(), capabilities: CAPABILITIES };
    for name in ["a", "b"] {
        let answer = world.connect(name, "root", "", "test");
        assert!(answer.starts_with("ok"), "{answer}");
    }
    let mut expect = |name: &str, text: &str, wanted: &str| {
        let answer = world.step(name, text);
        assert!(answer.contains(wanted), "{name}: {text}\n{answer}");
    };
    expect("a", "CREATE TABLE t (x INT)", "ok");
    expect("a", "INSERT INTO t VALUES (11)", "ok");
    expect("a", "PREPARE s FROM 'SELECT x FROM t'", "ok");
    for _ in 0..3 {
        expect("a", "SELECT x FROM t", "11");
        expect("b", "SELECT x FROM t", "11");
        expect("a", "EXECUTE s", "11");
    }
    expect("a", "CREATE TEMPORARY TABLE t (x INT)", "ok");
    expect("a", "INSERT INTO t VALUES (77)", "ok");
    for _ in 0..3 {
        expect("a", "SELECT x FROM t", "77");
        expect("b", "SELECT x FROM t", "11");
        expect("a", "EXECUTE s", "77");
    }
    assert_eq!(records(&engine), 1);
    expect("a", "DROP TEMPORARY TABLE t", "ok");
    assert_eq!(records(&engine), 0);
    expect("a", "SELECT x FROM t", "11");
    expect("a", "EXECUTE s", "11");
    // Dropped within the transaction that has changed it: the rollback still needs its tree.
    expect("a", "CREATE TEMPORARY TABLE u (x INT)", "ok");
    expect("a", "BEGIN", "ok");
    expect("a", "INSERT INTO u VALUES (5)", "ok");
    expect("a", "DROP TEMPORARY TABLE u", "ok");
    expect("a", "ROLLBACK", "ok");
    expect("a", "SELECT x FROM u", "1146");
    // A prepared branch would outlive the table that it has changed.
    expect("a", "CREATE TEMPORARY TABLE u (x INT)", "ok");
    expect("a", "XA START 'branch'", "ok");
    expect("a", "INSERT INTO u VALUES (5)", "ok");
    expect("a", "XA END 'branch'", "ok");
    expect("a", "XA PREPARE 'branch'", "1235");
    expect("a", "XA ROLLBACK 'branch'", "ok");
    expect("a", "SELECT COUNT(*) FROM u", "0");
    expect("a", "DROP TEMPORARY TABLE u", "ok");
    // A connection that ends leaves nothing.
    expect("b", "CREATE TEMPORARY TABLE v (x INT)", "ok");
    expect("b", "\\leave", "");
    runtime::sleep(Duration::from_secs(1));
    expect("a", "CREATE TEMPORARY TABLE w (x INT)", "ok");
    assert_eq!(records(&engine), 1, "that of w");
    // The server ends without a word; the next one drops what is left.
    Catalog::open(engine.clone()).unwrap();
    assert_eq!(records(&engine), 0);
}

#[test]
fn they_hide_tables_for_one_connection_and_leave_nothing() {
    let ended = Simulation::new(SimConfig::new(5)).run(|| check(Arc::new(MemoryEngine::new())));
    ended.unwrap_or_else(|end| panic!("{end:?}"));
}
