//! INSERTs whose text is large: their rows are packed when they are parsed, and made when they are
//! inserted. Answers, warnings and rows are those of the same statement with a short text.

use crate::client::CAPABILITIES;
use crate::{World, start_server};
use runtime::sim::{SimConfig, Simulation};
use std::collections::BTreeMap;

/// Where the text is made long.
const PLACE: &str = "VALUES ";
/// Longer than any text whose rows are not packed.
const COMMENT_BYTES: usize = 70_000;

const STATEMENTS: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a TINYINT, b DECIMAL(6,2), c VARCHAR(5), \
     d DOUBLE, e ENUM('x','y'), f DATE)",
    "INSERT INTO t (a,b,c,d,e,f) VALUES (1, 1.5, 'abc', 1e3, 'x', '2020-01-01'), \
     (-5, 7, 'it''s', 2.25, 2, '2021-02-03'), (NULL, NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO t (a,b) VALUES (1, 2), (1)",
    "INSERT INTO t (a,b) VALUES (1), (2)",
    "INSERT INTO t (id,a) VALUES (50, 1), (1, 2)",
    "INSERT IGNORE INTO t (id,a) VALUES (1, 1), (101, 300), (102, -300)",
    "INSERT INTO t (a) VALUES (1), (2), (300)",
    "INSERT INTO t (c) VALUES ('x'), ('abcdefg')",
    "INSERT INTO t (f) VALUES ('2020-01-01'), ('2020-02-30')",
    "REPLACE INTO t (id,a) VALUES (1, 9), (2, 8)",
    "INSERT INTO t (id,a) VALUES (1, 9), (2, 8) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1",
    "INSERT INTO t (a,b) VALUES (1, 2), (2, DEFAULT), (3, 1 + 1)",
    "INSERT INTO t (id,a) VALUES (0, 1), (NULL, 2), (500, 3), (0, 4)",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO t (a,b) VALUES (1, 2), (3, 4) RETURNING id, a, b",
    "INSERT INTO t (b,d,c) VALUES (1, 12345678901234567890123, 7), (-2, -9223372036854775808, 1e2)",
    "INSERT INTO t (e) VALUES (1), ('y'), (-1)",
    "INSERT INTO t (a) VALUES (7)",
    "EXPLAIN INSERT INTO t (a) VALUES (1), (2)",
    "CREATE TABLE g (a INT, s INT GENERATED ALWAYS AS (a + 1) STORED, b VARCHAR(10))",
    "INSERT INTO g VALUES (1, NULL, 'x'), (2, NULL, 'y')",
    "INSERT INTO g VALUES (1, NULL, 'x'), (2, 5, 'y')",
    "INSERT IGNORE INTO g VALUES (3, NULL, 'x'), (4, 5, 'y')",
    "SELECT * FROM g ORDER BY a",
];

/// The answers to all statements, each with what followed it.
fn answers(comment: &str) -> Vec<String> {
    let comment = comment.to_owned();
    let run = move || {
        let (address, _state) = start_server();
        let mut world = World { address, clients: BTreeMap::new(), capabilities: CAPABILITIES };
        let answer = world.connect("a", "root", "", "test");
        assert!(answer.starts_with("ok"), "{answer}");
        let mut answers = Vec::new();
        for statement in STATEMENTS {
            let text = statement.replace(PLACE, &format!("{PLACE}{comment}"));
            let answer = world.step("a", &text);
            let warnings = world.step("a", "SHOW WARNINGS");
            let rows = world.step("a", "SELECT * FROM t ORDER BY id");
            answers.push(format!("{statement}\n{answer}\n{warnings}\n{rows}"));
        }
        answers
    };
    Simulation::new(SimConfig::new(1)).run(run).unwrap()
}

#[test]
fn a_large_insert_does_what_a_small_one_does() {
    let comment = format!("/*{}*/", "x".repeat(COMMENT_BYTES));
    let (small, large) = (answers(""), answers(&comment));
    let told = small.iter().filter(|answer| answer.contains("ok")).count();
    assert!(told >= 10, "{small:#?}");
    for (small, large) in small.iter().zip(&large) {
        assert_eq!(small, large);
    }
}
