//! What a run of `cargo xtask differ` tells.

use super::compare::{Reply, Told};
use super::difference::Difference;
use super::explained::Rule;
use super::statements::Statement;
use crate::Outcome;
use sqltest::client::Answer;
use sqltest::render;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Counts, and each fault once with its smallest statement.
pub struct Report {
    file: PathBuf,
    same: u64,
    errors: u64,
    unknown: u64,
    explained: BTreeMap<&'static str, u64>,
    found: BTreeMap<String, Found>,
}

struct Found {
    count: u64,
    text: String,
    size: usize,
    class: &'static str,
    operators: usize,
}

impl Report {
    /// Without anything; what is found is written to a file of statements.
    pub fn new(file: PathBuf) -> Self {
        let (explained, found) = (BTreeMap::new(), BTreeMap::new());
        Self { file, same: 0, errors: 0, unknown: 0, explained, found }
    }

    /// A statement with the same answers.
    pub fn same(&mut self, theirs: &[Told]) {
        self.same += 1;
        let refused = theirs.first().is_some_and(|told| matches!(told.answer, Answer::Error(_)));
        self.errors += u64::from(refused);
    }

    /// A statement that MariaDB did not answer.
    pub fn nothing_known(&mut self, seed: u64, error: &str) {
        println!("seed {seed}: MariaDB did not answer: {error}");
        self.unknown += 1;
    }

    /// A difference with a reason.
    pub fn explained(&mut self, rule: &Rule) {
        *self.explained.entry(rule.name).or_default() += 1;
    }

    /// A difference without one. It is printed when it comes for the first time.
    pub fn found(
        &mut self,
        seed: u64,
        mode: &str,
        difference: &Difference,
        small: &Statement,
        ours: &Reply,
        theirs: &[Told],
    ) -> Outcome {
        let key = format!("{difference}: {}", small.root.shape());
        let size = small.root.sql().len();
        if let Some(known) = self.found.get_mut(&key) {
            known.count += 1;
            if known.size <= size {
                return Ok(());
            }
        }
        let (sql, prepared) = if small.prepared {
            let (sql, values) = small.root.with_parameters();
            (sql, format!("-- prepared {}\n", values.join("  ")))
        } else {
            (small.root.sql(), String::new())
        };
        let mut text = format!("# seed {seed}: {difference}\n");
        let _ = writeln!(text, "# SET sql_mode = '{mode}';\n{prepared}{sql};");
        for line in answers(ours, theirs).lines() {
            let _ = writeln!(text, "# {line}");
        }
        let known = self.found.entry(key).or_insert_with(|| {
            println!("{text}");
            let class = difference.class();
            Found { count: 1, text: String::new(), size, class, operators: 0 }
        });
        (known.text, known.size, known.operators) = (text, size, small.root.operators());
        self.write()
    }

    /// All faults, the most frequent first.
    fn write(&self) -> Outcome {
        let mut found: Vec<&Found> = self.found.values().collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.count));
        let mut out = String::new();
        for it in found {
            let _ = writeln!(out, "# {} times\n{}", it.count, it.text);
        }
        std::fs::write(&self.file, out).map_err(|e| format!("{}: {e}", self.file.display()))
    }

    /// How many of each class, by the operators that are left of their largest expressions.
    fn print_classes(&self) {
        let mut classes: BTreeMap<(&str, usize), u64> = BTreeMap::new();
        for it in self.found.values() {
            *classes.entry((it.class, it.operators)).or_default() += it.count;
        }
        for ((class, operators), count) in classes {
            println!("{count:>8} {class}, {operators} operators and functions");
        }
    }

    /// The counts; an error if anything is unexplained.
    pub fn finish(&self, elapsed: Duration) -> Outcome {
        let unexplained: u64 = self.found.values().map(|it| it.count).sum();
        let explained: u64 = self.explained.values().sum();
        let all = self.same + explained + unexplained + self.unknown;
        println!("differ: {all} statements in {} s", elapsed.as_secs());
        println!("{} the same, {} of them refused by both", self.same, self.errors);
        println!("{} not answered by MariaDB", self.unknown);
        println!("{explained} explained");
        for (name, count) in &self.explained {
            println!("{count:>8} {name}");
        }
        println!("{unexplained} unexplained, of {} shapes", self.found.len());
        if unexplained == 0 {
            return Ok(());
        }
        self.write()?;
        self.print_classes();
        let mut shapes: Vec<(&String, &Found)> = self.found.iter().collect();
        shapes.sort_by_key(|(shape, it)| (std::cmp::Reverse(it.count), *shape));
        for (shape, it) in shapes {
            println!("{:>8} {shape}", it.count);
        }
        Err(format!("{unexplained} unexplained differences, see {}", self.file.display()))
    }
}

/// Both answers as text: what they share is left out if it is long.
pub fn answers(ours: &Reply, theirs: &[Told]) -> String {
    let ours = match ours {
        Ok(ours) => told(ours),
        Err(error) => format!("{error}\n"),
    };
    let theirs = told(theirs);
    let of_one = |one: &str, other: &str| -> String {
        let is_shared = |line: &&str| other.lines().any(|it| it == *line);
        let mut out = String::new();
        for line in one.lines().collect::<Vec<_>>().chunk_by(|a, b| a == b) {
            if SHARED_LINES >= one.lines().count() || !is_shared(&line[0]) {
                let times =
                    if line.len() > 1 { format!(" ({} times)", line.len()) } else { "".into() };
                let _ = writeln!(out, "{}{times}", line[0]);
            }
        }
        out
    };
    format!("--- MariaDB\n{}--- Gannet\n{}", of_one(&theirs, &ours), of_one(&ours, &theirs))
}

/// Longer answers are shown without the lines that both have.
const SHARED_LINES: usize = 4;

fn told(told: &[Told]) -> String {
    let mut out = String::new();
    for one in told {
        out += &render::packets(&one.answer, false);
        out += &render::warnings(&one.answer, &one.warnings);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::statements::Kind;
    use super::super::tree::{Node, Role};
    use super::*;

    #[test]
    fn a_shape_is_counted_and_its_smallest_statement_kept() {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("gannet-differ-{}.test", std::process::id()));
        let mut report = Report::new(file.clone());
        let statement = |value: &str| {
            let value = Node::leaf(Role::Expression, value);
            let root = Node::new(Role::Fixed, &["SELECT F(", ")"], vec![value]);
            Statement { kind: Kind::Query, root, prepared: false }
        };
        let lost = Err("gone".to_string());
        for value in ["'long'", "1", "22"] {
            let small = statement(value);
            report.found(1, "", &Difference::Null, &small, &lost, &[]).unwrap();
        }
        assert!(report.finish(Duration::ZERO).is_err());
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(text.contains("# 3 times") && text.contains("SELECT F(1);"), "{text}");
        assert!(Report::new(file).finish(Duration::ZERO).is_ok());
    }
}
