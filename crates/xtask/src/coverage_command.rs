//! `cargo xtask coverage`: how many blessed statements use each function and each clause.
//!
//! Statements are those of `tests/sql` and the expressions of `crates/expr/tests/data`; all of
//! them have a live MariaDB's answer. A function counts where its name stands before `(`, a clause
//! where its words stand in a row.

use crate::Outcome;
use std::path::Path;

/// Fewer statements than this are told.
const WANTED: usize = 10;

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
    read(&root.join("tests/sql"), "test", &mut statements)?;
    read(&root.join("crates/expr/tests/data"), "txt", &mut statements)?;
    let mut names = Vec::new();
    read(&root.join("crates/expr/src/functions"), "rs", &mut names)?;
    let names = function_names(&names.concat());
    let functions = few(names.iter().map(|name| (format!("{name}("), &statements)));
    let clauses = few(CLAUSES.iter().map(|clause| ((*clause).to_owned(), &statements)));
    println!(
        "{} statements, {} functions, {} clauses",
        statements.len(),
        names.len(),
        CLAUSES.len()
    );
    for (what, short) in [("functions", &functions), ("clauses", &clauses)] {
        let shown: Vec<String> =
            short.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("{what} in fewer than {WANTED}: {}\n  {}", short.len(), shown.join(", "));
    }
    Ok(())
}

/// Names with the number of statements that have them, if it is small.
fn few<'a>(wanted: impl Iterator<Item = (String, &'a Vec<String>)>) -> Vec<(String, usize)> {
    let counted = wanted.map(|(words, statements)| {
        let count = statements.iter().filter(|statement| uses(statement, &words)).count();
        (words.trim_end_matches('(').to_owned(), count)
    });
    counted.filter(|(_, count)| *count < WANTED).collect()
}

/// Every statement of the files of a folder and those below it, in capitals.
fn read(folder: &Path, extension: &str, statements: &mut Vec<String>) -> Outcome {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.is_dir() {
            read(&path, extension, statements)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            let text = std::fs::read_to_string(&path).map_err(problem)?;
            match extension {
                "test" => statements.extend(text.split(";\n").map(without_comments)),
                "txt" => statements.extend(expressions(&text)),
                _ => statements.push(text),
            }
        }
    }
    Ok(())
}

fn without_comments(statement: &str) -> String {
    let lines = statement.lines().filter(|line| !line.starts_with('#') && !line.starts_with("--"));
    lines.collect::<Vec<_>>().join(" ").to_ascii_uppercase()
}

/// The expressions of a file of `expr/tests/data`: what stands before ` => `.
fn expressions(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with([' ', '#']) && !line.is_empty());
    lines.map(|line| line.split(" => ").next().unwrap_or(line).to_ascii_uppercase()).collect()
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
    fn names_come_from_the_registry() {
        let source = "Function::new(\"abs\", 1, 1, a, b),\nFunction::new(\n    \"mod_\", 2";
        assert_eq!(function_names(source), ["ABS", "MOD_"]);
    }

    #[test]
    fn comments_and_answers_are_no_statements() {
        assert_eq!(without_comments("# ABS(\n-- sorted\nSELECT 1"), "SELECT 1");
        assert_eq!(expressions("# x\nabs(1) => 1 : LONG\n  Warning x\n\n"), ["ABS(1)"]);
    }
}
