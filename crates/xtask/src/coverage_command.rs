//! `cargo xtask coverage`: how many blessed statements use each function and each clause.
//!
//! 1. Statements are those of `tests/sql` and the expressions of `crates/expr/tests/data`; all of
//!    them have a live MariaDB's answer. A function counts where its name stands before `(`, a
//!    clause where its words stand in a row.
//! 2. Of statements of one shape at most [`OF_ONE_SHAPE`] count, of all and of each function and
//!    clause: see `shape.rs`.
//! 3. It fails when fewer than [`STATEMENTS_WANTED`] statements count.

mod shape;

use crate::Outcome;
use std::collections::HashMap;
use std::path::Path;

/// Fewer statements than this are told.
const WANTED: usize = 10;
/// Most statements of one shape that count.
const OF_ONE_SHAPE: usize = 5;
/// Least statements of `tests/sql` and expressions that count.
const STATEMENTS_WANTED: usize = 3000;

/// Functions of the registry that are written otherwise: as operators, or with words inside.
const OPERATORS: &[&str] = &["REGEXP", "TRIM_LEADING", "TRIM_TRAILING"];

/// Clauses, in capitals.
const CLAUSES: &[&str] = &[
    "ADD COLUMN",
    "ADD CONSTRAINT",
    "ADD INDEX",
    "ADD KEY",
    "ADD UNIQUE",
    "ALTER TABLE",
    "ANALYZE",
    "ANY",
    "AUTO_INCREMENT",
    "BETWEEN",
    "CASCADE",
    "CASE",
    "CHANGE",
    "CHECK",
    "COLLATE",
    "COUNT(DISTINCT",
    "CREATE INDEX",
    "CREATE TABLE",
    "CREATE TEMPORARY TABLE",
    "CREATE UNIQUE",
    "CREATE VIEW",
    "CROSS JOIN",
    "DEFAULT",
    "DELETE FROM",
    "DISTINCT",
    "DROP COLUMN",
    "DROP INDEX",
    "DROP TABLE",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FOR UPDATE",
    "FORCE INDEX",
    "FOREIGN KEY",
    "GRANT",
    "GROUP BY",
    "GROUP_CONCAT",
    "HAVING",
    "IGNORE INDEX",
    "IN",
    "INSERT IGNORE",
    "INSERT INTO",
    "INTERSECT",
    "INTERVAL",
    "IS NULL",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "LOAD DATA",
    "LOCK IN SHARE MODE",
    "LOCK TABLES",
    "MODIFY",
    "NATURAL",
    "NOT EXISTS",
    "NOT IN",
    "OFFSET",
    "ON DELETE",
    "ON DUPLICATE KEY UPDATE",
    "ON UPDATE",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "PREPARE",
    "REGEXP",
    "RENAME",
    "REPLACE INTO",
    "RETURNING",
    "RIGHT JOIN",
    "ROLLBACK",
    "SAVEPOINT",
    "SHOW COLUMNS",
    "SHOW CREATE TABLE",
    "SHOW INDEX",
    "SHOW VARIABLES",
    "SHOW WARNINGS",
    "SKIP LOCKED",
    "STRAIGHT_JOIN",
    "TRUNCATE",
    "UNION",
    "UNION ALL",
    "UPDATE",
    "USE INDEX",
    "USING",
    "VALUES",
    "WHERE",
    "WITH",
    "WITH RECURSIVE",
    "WITH ROLLUP",
];

/// Counts, and tells what has too few.
pub fn run(root: &Path) -> Outcome {
    let mut statements = Vec::new();
    read_texts(&root.join("tests/sql"), "test", &mut |text| {
        statements.extend(text.split(";\n").map(Statement::of));
    })?;
    statements.retain(|statement| !statement.text.is_empty());
    let in_files = counted(statements.iter());
    read_texts(&root.join("crates/expr/tests/data"), "txt", &mut |text| {
        statements.extend(expressions(text));
    })?;
    let mut names = Vec::new();
    read_texts(&root.join("crates/expr/src/functions"), "rs", &mut |text| {
        names.push(text.to_owned());
    })?;
    let mut names = function_names(&names.concat());
    names.retain(|name| !OPERATORS.contains(&name.as_str()));
    let functions = few(names.iter().map(|name| (format!("{name}("), &statements)));
    let clauses = few(CLAUSES.iter().map(|clause| ((*clause).to_owned(), &statements)));
    println!(
        "{} statements, {} functions, {} clauses",
        statements.len(),
        names.len(),
        CLAUSES.len()
    );
    println!(
        "{in_files} statements of tests/sql count with at most {OF_ONE_SHAPE} of one shape, {} \
         with the expressions",
        counted(statements.iter())
    );
    for (what, short) in [("functions", &functions), ("clauses", &clauses)] {
        let shown: Vec<String> =
            short.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("{what} in fewer than {WANTED}: {}\n  {}", short.len(), shown.join(", "));
    }
    if in_files < STATEMENTS_WANTED {
        return Err(format!("only {in_files} statements count, {STATEMENTS_WANTED} are wanted"));
    }
    Ok(())
}

/// A statement in capitals, and its shape.
struct Statement {
    text: String,
    shape: String,
}

impl Statement {
    fn of(text: &str) -> Self {
        let text = without_comments(text);
        Self { shape: shape::of(&text), text: text.to_ascii_uppercase() }
    }
}

/// How many statements count.
fn counted<'s>(statements: impl Iterator<Item = &'s Statement>) -> usize {
    let mut shapes: HashMap<&str, usize> = HashMap::new();
    statements.for_each(|statement| *shapes.entry(&statement.shape).or_default() += 1);
    shapes.values().map(|count| (*count).min(OF_ONE_SHAPE)).sum()
}

/// Names with the number of statements that have them, if it is small.
fn few<'a>(wanted: impl Iterator<Item = (String, &'a Vec<Statement>)>) -> Vec<(String, usize)> {
    let counted = wanted.map(|(words, statements)| {
        let count = counted(statements.iter().filter(|it| uses(&it.text, &words)));
        (words.trim_end_matches('(').to_owned(), count)
    });
    counted.filter(|(_, count)| *count < WANTED).collect()
}

/// Gives the texts of the files of a folder and those below it.
fn read_texts(folder: &Path, extension: &str, take: &mut dyn FnMut(&str)) -> Outcome {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.is_dir() {
            read_texts(&path, extension, take)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            take(&std::fs::read_to_string(&path).map_err(problem)?);
        }
    }
    Ok(())
}

fn without_comments(statement: &str) -> String {
    let lines = statement.lines().filter(|line| !line.starts_with('#') && !line.starts_with("--"));
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// The expressions of a file of `expr/tests/data`: what stands before ` => `.
fn expressions(text: &str) -> Vec<Statement> {
    let lines = text.lines().filter(|line| !line.starts_with([' ', '#']) && !line.is_empty());
    lines.map(|line| Statement::of(line.split(" => ").next().unwrap_or(line))).collect()
}

/// The names that sources of the registry declare, in capitals.
fn function_names(source: &str) -> Vec<String> {
    let declared = source.split("Function::new(").skip(1);
    let mut names: Vec<String> = declared
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        .map(str::to_ascii_uppercase)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Whether words stand in a statement, not as parts of longer ones.
fn uses(statement: &str, words: &str) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = statement.as_bytes();
    statement.match_indices(words).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + words.len());
        !is_word(before) && (words.ends_with('(') || !is_word(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole() {
        assert!(uses("SELECT ABS(1)", "ABS("));
        assert!(!uses("SELECT XABS(1)", "ABS("));
        assert!(uses("SELECT 1 GROUP BY A", "GROUP BY"));
        assert!(!uses("SELECT INDEXES", "INDEX") && !uses("SELECT ABS", "ABS("));
    }

    #[test]
    fn statements_of_one_shape_count_a_few_times() {
        let statements: Vec<Statement> =
            (0..40).map(|number| Statement::of(&format!("SELECT a + {number} FROM t"))).collect();
        assert_eq!(counted(statements.iter()), OF_ONE_SHAPE);
        let other = Statement::of("SELECT a - 1 FROM t");
        assert_eq!(counted(statements.iter().chain([&other])), OF_ONE_SHAPE + 1);
    }

    #[test]
    fn names_come_from_the_registry() {
        let source = "Function::new(\"abs\", 1, 1, a, b),\nFunction::new(\n    \"mod_\", 2";
        assert_eq!(function_names(source), ["ABS", "MOD_"]);
    }

    #[test]
    fn comments_and_answers_are_no_statements() {
        assert_eq!(without_comments("# ABS(\n-- sorted\nSELECT 1"), "SELECT 1");
        let found = expressions("# x\nabs(1) => 1 : LONG\n  Warning x\n\n");
        assert_eq!(found.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["ABS(1)"]);
    }
}
