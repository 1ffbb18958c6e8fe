//! Sorts, groups, distinct rows and hash joins of ten times and more of their budget: the answers
//! are those of a session without a budget, and the memory charged stays within it.

use crate::{World, start_server};
use runtime::sim::{SimConfig, Simulation};
use session::ServerState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of every operator of the narrow session.
const BUDGET_BYTES: u64 = 512 << 10;
/// A session's account asks the server's for so much at a time, and keeps what it had.
const GRANTS_BYTES: u64 = 2 * (256 << 10);

/// Statements with how many operators hold memory at the same time. Each sorts, groups or joins
/// more than ten times the budget.
const STATEMENTS: &[(u64, &str)] = &[
    (1, "SELECT id, pad FROM big ORDER BY pad, id"),
    (1, "SELECT pad, id FROM big ORDER BY k DESC, id LIMIT 20 OFFSET 29000"),
    (2, "SELECT pad, COUNT(*), SUM(k), MIN(id) FROM big GROUP BY pad"),
    (3, "SELECT COUNT(*) FROM (SELECT k, pad, MAX(id) AS m FROM big GROUP BY pad, k) x"),
    (2, "SELECT id, MAX(pad), COUNT(*) FROM big GROUP BY id"),
    (2, "SELECT DISTINCT pad, k FROM big ORDER BY pad, k"),
    (2, "SELECT DISTINCT pad, k DIV 500 FROM big ORDER BY id"),
    (2, "SELECT DISTINCT pad FROM other WHERE id > 100 ORDER BY id DESC LIMIT 50 OFFSET 29000"),
    (2, "SELECT DISTINCT CONCAT(pad, k DIV 2) AS p FROM big ORDER BY p DESC"),
    (2, "SELECT COUNT(*), SUM(k), MIN(pad) FROM (SELECT DISTINCT pad, k FROM big) x"),
    (
        2,
        "SELECT COUNT(*), SUM(LENGTH(pad)), SUM(k) FROM (SELECT id, k, pad FROM big LIMIT 100000) x",
    ),
    (
        2,
        "SELECT COUNT(*), SUM(a.id), SUM(b.id), MAX(b.pad) FROM big a JOIN other b ON a.pad = b.pad",
    ),
    (
        2,
        "SELECT COUNT(*), SUM(a.id), SUM(b.id), COUNT(b.id) FROM big a LEFT JOIN other b \
      ON a.pad = b.pad AND b.k < 500",
    ),
    (
        3,
        "SELECT a.id, b.id FROM big a LEFT JOIN other b ON a.pad = b.pad AND b.k % 3 = 0 \
      ORDER BY a.id, b.id LIMIT 1000",
    ),
    (
        3,
        "SELECT COUNT(*), SUM(a.id), SUM(c.id) FROM big a JOIN other b ON a.pad = b.pad \
      JOIN big c ON c.code = b.code",
    ),
    (2, "SELECT COUNT(*) FROM big WHERE pad IN (SELECT pad FROM other WHERE k > 100)"),
    (
        3,
        "SELECT COUNT(*), SUM(a.id) FROM big a WHERE EXISTS (SELECT 1 FROM other b \
      WHERE b.pad = a.pad AND b.k > 100)",
    ),
    (
        3,
        "SELECT COUNT(*), SUM(a.id) FROM big a WHERE NOT EXISTS (SELECT 1 FROM other b \
      WHERE b.pad = a.pad AND b.k > 100)",
    ),
    (2, "SELECT COUNT(*) FROM (SELECT pad FROM big UNION SELECT pad FROM other) x"),
    (
        4,
        "SELECT COUNT(*), SUM(LENGTH(pad)), MIN(k) FROM (SELECT pad, k FROM big \
      EXCEPT SELECT pad, k FROM other WHERE id < 20000) x",
    ),
    (
        4,
        "SELECT COUNT(*), SUM(LENGTH(pad)), MAX(k) FROM (SELECT pad, k FROM big \
      INTERSECT SELECT pad, k FROM other WHERE id < 20000) x",
    ),
    (
        4,
        "SELECT COUNT(*), MIN(pad), MAX(k) FROM (SELECT pad, k FROM big UNION ALL \
      SELECT pad, k FROM other EXCEPT SELECT pad, k FROM other WHERE k > 300) x",
    ),
    (3, "SELECT pad FROM big UNION SELECT pad FROM other ORDER BY pad LIMIT 5 OFFSET 29500"),
    (
        1,
        "SELECT a.id, b.k FROM big a STRAIGHT_JOIN other b ON a.code = b.code \
      ORDER BY a.id LIMIT 50",
    ),
];

fn fill(world: &mut World) {
    let mut run = |text: &str| {
        let answer = world.step("load", text);
        assert!(!answer.contains("ERROR"), "{text}: {answer}");
    };
    run("CREATE DATABASE d");
    run("USE d");
    run("CREATE TABLE digits (d INT PRIMARY KEY)");
    run("INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)");
    for (table, thousands) in [("big", "d5.d < 3"), ("other", "d5.d < 3")] {
        run(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, k INT, code INT, pad VARCHAR(250))"
        ));
        run(&format!(
            "INSERT INTO {table} SELECT n, n * 7919 % 1000, n * 31 % 30000, \
             CONCAT(LPAD(n * 101 % 29989, 6, '0'), REPEAT('x', 190)) FROM (SELECT d1.d + 10 * d2.d \
             + 100 * d3.d + 1000 * d4.d + 10000 * d5.d AS n FROM digits d1, digits d2, digits d3, \
             digits d4, digits d5 WHERE {thousands}) AS numbers"
        ));
    }
}

fn status(world: &mut World, name: &str) -> u64 {
    let answer = world.step("narrow", &format!("SHOW SESSION STATUS LIKE '{name}'"));
    let words: Vec<&str> = answer.split_whitespace().collect();
    let at = words.iter().position(|word| *word == name).expect("the counter is there");
    words[at + 1].parse().expect("it is a number")
}

fn compare(world: &mut World, state: &Arc<ServerState>) {
    for session in ["wide", "narrow"] {
        world.step(session, "USE d");
        for variable in ["sort_buffer_size", "join_buffer_size", "max_heap_table_size"] {
            let bytes = if session == "wide" { 1 << 30 } else { BUDGET_BYTES };
            let answer = world.step(session, &format!("SET {variable} = {bytes}"));
            assert!(!answer.contains("ERROR"), "{answer}");
        }
    }
    for (operators, text) in STATEMENTS {
        let expected = world.step("wide", text);
        assert!(!expected.contains("ERROR"), "{text}: {expected}");
        state.memory.restart_high_water();
        let before = state.memory.high_water_bytes();
        let files = status(world, "Created_tmp_files");
        assert_eq!(world.step("narrow", text), expected, "{text}");
        let most = state.memory.high_water_bytes() - before;
        let allowed = operators * BUDGET_BYTES + GRANTS_BYTES;
        assert!(most <= allowed, "{text}: {most} bytes of {allowed}");
        assert!(status(world, "Created_tmp_files") > files, "{text}: it did not spill");
    }
    assert!(status(world, "Sort_merge_passes") > 0);
    assert!(status(world, "Created_tmp_disk_tables") > 0);
}

#[test]
fn what_is_ten_times_the_budget_stays_within_it() {
    let ended = Simulation::new(SimConfig::new(7)).run(|| {
        let (address, state) = start_server();
        let mut world =
            World { address, clients: BTreeMap::new(), capabilities: crate::CAPABILITIES };
        fill(&mut world);
        compare(&mut world, &state);
        let left = runtime::fs::read_dir("/tmp").expect("the directory was made");
        assert!(left.is_empty(), "files have no names: {left:?}");
    });
    ended.expect("the simulation ends by itself");
}
