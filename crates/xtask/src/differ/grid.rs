//! `differ --grid`: every function over every operand, in order and in each mode, where random
//! statements meet each pair of two by chance only. Nothing is shrunk, and differences are
//! explained by the rules of `tests/differ/grid_explained.txt` alone, whose patterns name them.

use super::compare::{Reply, Told};
use super::difference::Difference;
use super::explained::{self, Rule};
use super::pair::MODES;
use super::report::Report;
use super::statements::{Kind, Statement};
use super::tree::{Node, Role};
use crate::Outcome;

const GRID: &str = include_str!("../../../../tests/differ/grid.txt");

/// What a line of the file is about.
fn lines<'a>(word: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    GRID.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
}

/// A function with its operands in place of `{0}` and `{1}`.
fn applied(function: &str, operands: [&str; 2]) -> Node {
    let (mut texts, mut children) = (vec![String::new()], Vec::new());
    let mut rest = function;
    while let Some(open) = rest.find("{0}").into_iter().chain(rest.find("{1}")).min() {
        texts.last_mut().expect("there is one").push_str(&rest[..open]);
        let which = usize::from(&rest[open..open + 3] == "{1}");
        children.push(Node::leaf(Role::Expression, operands[which]));
        texts.push(String::new());
        rest = &rest[open + 3..];
    }
    texts.last_mut().expect("there is one").push_str(rest);
    Node::new(Role::Expression, &texts, children)
}

fn query(items: Vec<Node>, after: &str) -> Statement {
    let root = Node::new(Role::Fixed, &["SELECT ", after], vec![Node::list(items)]);
    Statement { kind: Kind::Query, root, prepared: false }
}

/// Each row is a group.
const GROUPED: &str = " GROUP BY a1.id";

/// All statements.
pub(super) fn statements() -> Vec<Statement> {
    let mut all = Vec::new();
    let functions =
        || lines("one").map(|it| (it, "")).chain(lines("group").map(|it| (it, GROUPED)));
    for (function, group) in functions() {
        for operand in lines("both").chain(lines("operand")) {
            all.push(query(vec![applied(function, [operand, ""])], ""));
        }
        for (table, column) in columns() {
            let from = format!(" FROM {table} AS a1{group}");
            all.push(query(vec![id(), applied(function, [&column, ""])], &from));
        }
    }
    for function in lines("two") {
        for first in lines("both") {
            let pairs = lines("both").map(|second| applied(function, [first, second]));
            all.extend(pairs.map(|value| query(vec![value], "")));
        }
        for (table, column) in columns() {
            let from = format!(" FROM {table} AS a1");
            let pairs = lines("beside").map(|second| applied(function, [&column, second]));
            all.extend(pairs.map(|value| query(vec![id(), value], &from)));
        }
    }
    all
}

/// The columns, each with its table.
fn columns() -> impl Iterator<Item = (&'static str, String)> {
    lines("column").flat_map(|line| {
        let (table, names) = line.split_once(' ').unwrap_or((line, ""));
        names.split(' ').map(move |name| (table, format!("a1.{name}")))
    })
}

fn id() -> Node {
    Node::leaf(Role::Fixed, "a1.id")
}

/// What both answer to a statement, and in what that differs.
type Asked = Result<(Option<Difference>, Reply, Vec<Told>), String>;

/// Asks all statements in all modes, at most so many.
pub(super) fn run(
    ask: &mut dyn FnMut(&Statement, &'static str) -> Asked,
    most: u64,
    report: &mut Report,
) -> Outcome {
    let rules: Vec<Rule> = explained::load_grid()?;
    let all = statements();
    println!("differ: a grid of {} statements in {} modes", all.len(), MODES.len());
    let each = MODES.iter().flat_map(|mode| all.iter().map(move |statement| (*mode, statement)));
    for (number, (mode, statement)) in (0..most).zip(each) {
        let (found, ours, theirs) = ask(statement, mode)?;
        let Some(difference) = found else {
            report.same(&theirs);
            continue;
        };
        let (kind, sql) = (difference.to_string(), statement.root.sql());
        match explained::find(&rules, &kind, &sql).next() {
            Some(rule) => report.explained(rule),
            None => report.found(number, mode, &difference, statement, &ours, &theirs)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_stand_in_their_places() {
        let text = applied("CASE {0} WHEN {1} THEN 'x' ELSE {0} END", ["a", "b"]).sql();
        assert_eq!(text, "CASE a WHEN b THEN 'x' ELSE a END");
        assert_eq!(applied("F({1})", ["a", "b"]).sql(), "F(b)");
    }

    #[test]
    fn every_line_of_the_grid_has_a_meaning() {
        let words = ["one", "group", "two", "operand", "both", "beside", "column"];
        for line in GRID.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let word = line.split(' ').next().unwrap_or_default();
            assert!(words.contains(&word), "{line}");
        }
        let (ones, both) = (lines("one").count() + lines("group").count(), lines("both").count());
        let of_one = ones * (both + lines("operand").count() + columns().count());
        let pairs = both * both + columns().count() * lines("beside").count();
        assert_eq!(statements().len(), of_one + lines("two").count() * pairs);
    }
}
