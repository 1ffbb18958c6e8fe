//! Data and queries of `cargo xtask bench analytics`, and how the queries are planned.
//!
//! 1. `tests/bench/analytics/data.sql` has the data, `queries.sql` the queries (`name: query`, one
//!    a line), `plans.txt` the shapes of their plans, which `cargo xtask plans --bless` writes.
//! 2. A shape is what EXPLAIN says without its numbers of rows: order of the tables, how each is
//!    reached, how rows are grouped and sorted. A tenth of the data has the shapes of the whole:
//!    the benchmark compares its own with the same file.

use crate::Outcome;
use sqltest::client::Connection;
use std::collections::{BTreeMap, HashSet};

const FOLDER: &str = "tests/bench/analytics";
const PLANS: &str = "tests/bench/analytics/plans.txt";
/// The database of the data.
pub const DATABASE: &str = "analytics";

/// Columns of EXPLAIN that make a shape.
const SHAPE_COLUMNS: [&str; 8] =
    ["id", "select_type", "table", "type", "key", "key_len", "ref", "Extra"];
/// All of them, in EXPLAIN's order.
const COLUMNS: [&str; 10] = [
    "id",
    "select_type",
    "table",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "Extra",
];

/// A query and what it is called.
pub struct Query {
    /// Its name.
    pub name: String,
    /// Its text.
    pub sql: String,
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(crate::root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// All queries.
pub fn queries() -> Result<Vec<Query>, String> {
    let text = read(&format!("{FOLDER}/queries.sql"))?;
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    let named = lines.filter_map(|line| line.split_once(": "));
    Ok(named.map(|(name, sql)| Query { name: name.into(), sql: sql.into() }).collect())
}

/// Makes the database and fills it; with a tenth of the data only the first INSERT of every table
/// is executed.
pub fn load(connection: &mut Connection, is_tenth: bool) -> Outcome {
    let data = read(&format!("{FOLDER}/data.sql"))?;
    let mut execute = |sql: &str| match connection.execute(sql) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{sql}: {error}")),
    };
    execute(&format!("CREATE DATABASE {DATABASE}"))?;
    execute(&format!("USE {DATABASE}"))?;
    let lines: Vec<&str> = data.lines().filter(|line| !line.starts_with("--")).collect();
    let mut filled = HashSet::new();
    for sql in lines.join("\n").split(";\n").map(|sql| sql.trim().trim_end_matches(';')) {
        let table = sql.strip_prefix("INSERT INTO ").and_then(|rest| rest.split(' ').next());
        let is_first = table.is_none_or(|table| filled.insert(table.to_string()));
        if !sql.is_empty() && (is_first || !is_tenth) {
            execute(sql)?;
        }
    }
    Ok(())
}

/// The shape of a query's plan: a line for every table, indented.
pub fn shape(connection: &mut Connection, sql: &str) -> Result<String, String> {
    let rows = connection.execute(&format!("EXPLAIN {sql}"));
    let rows = rows.map_err(|error| format!("EXPLAIN {sql}: {error}"))?;
    let mut text = String::new();
    for row in rows {
        let named = COLUMNS.iter().zip(&row).filter(|(name, _)| SHAPE_COLUMNS.contains(name));
        let cells = named.map(|(_, field)| match field {
            Some(bytes) if !bytes.is_empty() => String::from_utf8_lossy(bytes).into_owned(),
            _ => "-".to_string(),
        });
        text.push_str(&format!("  {}\n", cells.collect::<Vec<_>>().join(" | ")));
    }
    Ok(text)
}

/// Shapes of plans by the names of their queries.
pub type Shapes = BTreeMap<String, String>;

/// The shapes in the file.
pub fn recorded() -> Result<Shapes, String> {
    Ok(parse(&read(PLANS)?))
}

fn parse(text: &str) -> Shapes {
    let (mut shapes, mut name) = (Shapes::new(), String::new());
    for line in text.lines().filter(|line| !line.starts_with("--")) {
        match line.starts_with(' ') {
            true => *shapes.entry(name.clone()).or_default() += &format!("{line}\n"),
            false => name = line.to_string(),
        }
    }
    shapes
}

/// Writes the file, in the order of the queries.
pub fn record(queries: &[Query], shapes: &Shapes) -> Outcome {
    let mut text = format!("-- name, then a line a table: {}\n", SHAPE_COLUMNS.join(" | "));
    for query in queries {
        let shape = shapes.get(&query.name).map_or("", String::as_str);
        text.push_str(&format!("{}\n{shape}", query.name));
    }
    let path = crate::root().join(PLANS);
    std::fs::write(&path, text).map_err(|error| format!("{PLANS}: {error}"))
}

/// Prints the shapes that differ from those wanted; how many do. A query without one differs.
pub fn differing(wanted: &Shapes, found: &Shapes) -> usize {
    let mut count = 0;
    for (name, shape) in found {
        let wanted = wanted.get(name).map_or("", String::as_str);
        if wanted != shape {
            println!("{name} is planned otherwise than in {PLANS}:\n{wanted} now\n{shape}");
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_has_a_recorded_plan() {
        let queries = queries().expect("the file is there");
        assert!(queries.len() >= 27);
        let recorded = recorded().expect("the file is there");
        assert!(queries.iter().map(|query| &query.name).all(|name| recorded.contains_key(name)));
        assert_eq!(recorded.len(), queries.len(), "and no other has one");
    }

    #[test]
    fn shapes_that_differ_are_counted() {
        let wanted = parse("-- head\na\n  1 | t\n  1 | u\nb\n  1 | t\n");
        assert_eq!(wanted["a"], "  1 | t\n  1 | u\n");
        let mut found = wanted.clone();
        assert_eq!(differing(&wanted, &found), 0);
        found.insert("a".into(), "  1 | u\n  1 | t\n".into());
        found.insert("c".into(), "  1 | t\n".into());
        assert_eq!(differing(&wanted, &found), 2);
    }
}
