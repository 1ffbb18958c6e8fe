//! `cargo xtask differ`: random statements to Gannet and to a MariaDB of its own, until their
//! answers differ; each difference is shrunk to a small statement, and either explained by a rule
//! or a fault.

mod alike;
mod compare;
mod composed;
mod difference;
mod digits;
mod executed;
mod explained;
mod expressions;
mod grammar;
mod grid;
mod otherwise;
mod pair;
mod parts;
#[cfg(test)]
mod planted_equal_tests;
#[cfg(test)]
mod planted_executed_tests;
#[cfg(test)]
mod planted_forms_tests;
#[cfg(test)]
mod planted_otherwise_tests;
#[cfg(test)]
mod planted_tests;
mod products;
mod proofs;
mod replaced;
mod report;
mod shrink;
mod statements;
mod tree;

use crate::arguments::Arguments;
use crate::{Outcome, servers};
use compare::{Reply, Told};
use difference::Difference;
use explained::Rule;
use expressions::Generator;
use grammar::Grammar;
use pair::{MODES, Pair};
use proofs::Judge;
use report::Report;
use statements::Statement;
use std::time::{Duration, Instant};

/// Statements of one mode behind each other.
const MODE_STATEMENTS: u64 = 64;

/// Operators and functions that an expression has at most unless `--size` or `--deep` says
/// otherwise.
const EVERYDAY_SIZE: u32 = 3;

/// Runs `differ [--seed N] [--minutes M] [--statements N] [--size N | --deep] [--one SEED]
/// [--wild] [--lengths]`. Expressions are typed, with `--wild` types are combined in any way.
/// `differ --grid [--statements N] [--lengths]` puts functions and operands together in order.
pub fn run(words: &[String]) -> Outcome {
    let options = ["--seed", "--minutes", "--statements", "--one", "--size"];
    const SWITCHES: [&str; 6] = ["--release", "--text", "--lengths", "--deep", "--wild", "--grid"];
    let arguments = Arguments::new(words, &SWITCHES, &options)?;
    let size = match arguments.has("--deep") {
        true => None,
        false => Some(arguments.number("--size", u64::from(EVERYDAY_SIZE))? as u32),
    };
    let grammar = Grammar::load(arguments.has("--wild"))?;
    let rules = explained::load()?;
    if arguments.has("--text") {
        let first = arguments.number("--seed", 1)?;
        for seed in first..first + arguments.number("--statements", 20)? {
            println!("{};", Generator::new(&grammar, seed, size).statement().root.sql());
        }
        return Ok(());
    }
    let binary = servers::build_gannet(arguments.has("--release"))?;
    let kind = match (arguments.has("--grid"), arguments.has("--wild")) {
        (true, _) => "grid",
        (_, true) => "wild",
        _ => "typed",
    };
    // What one seed does is looked at while a long run goes on.
    let one = if arguments.value("--one").is_some() { "-one" } else { "" };
    let folder = servers::fresh_folder(&format!("differ-{kind}{one}"))?;
    let pair = Pair::start(&binary, &folder)?;
    let lengths = arguments.has("--lengths");
    let mut differ = Differ { grammar, rules, size, lengths, pair };
    if arguments.value("--one").is_some() {
        return differ.show(arguments.number("--one", 0)?);
    }
    let limit = Duration::from_secs(60 * arguments.number("--minutes", 60)?);
    let most = arguments.number("--statements", u64::MAX)?;
    let mut report = Report::new(folder.join("found.test"));
    let begin = Instant::now();
    if arguments.has("--grid") {
        grid::run(&mut |statement, mode| differ.ask(statement, mode), most, &mut report)?;
        return report.finish(begin.elapsed());
    }
    let first = arguments.number("--seed", 1)?;
    let most_of_one = size.map_or("any number of".into(), |size| format!("at most {size}"));
    println!("differ: {kind} expressions of {most_of_one} operators, seeds from {first} on");
    let mut seed = first;
    while begin.elapsed() < limit && seed - first < most {
        differ.try_one(seed, &mut report)?;
        seed += 1;
    }
    report.finish(begin.elapsed())
}

/// The mode of a seed's statement.
fn mode(seed: u64) -> &'static str {
    MODES[(seed / MODE_STATEMENTS) as usize % MODES.len()]
}

struct Differ {
    grammar: Grammar,
    rules: Vec<Rule>,
    size: Option<u32>,
    lengths: bool,
    pair: Pair,
}

impl Differ {
    fn statement(&self, seed: u64) -> Statement {
        Generator::new(&self.grammar, seed, self.size).statement()
    }

    fn judge(&mut self) -> Judge<'_, Pair> {
        Judge { servers: &mut self.pair, rules: &self.rules, lengths: self.lengths }
    }

    /// Asks both; the difference if there is one.
    fn ask(
        &mut self,
        statement: &Statement,
        mode: &'static str,
    ) -> Result<(Option<Difference>, Reply, Vec<Told>), String> {
        self.judge().ask(statement, mode)
    }

    /// The statement of a seed; what differs is shrunk and put into the report.
    fn try_one(&mut self, seed: u64, report: &mut Report) -> Outcome {
        let statement = self.statement(seed);
        let mode = mode(seed);
        let (found, theirs) = match self.ask(&statement, mode) {
            Ok((found, _, theirs)) => (found, theirs),
            Err(error) => {
                report.nothing_known(seed, &error);
                return Ok(());
            }
        };
        let Some(difference) = found else {
            report.same(&theirs);
            return Ok(());
        };
        let small = self.shrink(&statement, mode, &difference);
        let (_, ours, theirs) = self.ask(&small, mode)?;
        match self.judge().explain(&small, mode, &difference, (&ours, &theirs))? {
            Some(rule) => report.explained(&rule),
            None => report.found(seed, mode, &difference, &small, &ours, &theirs)?,
        }
        Ok(())
    }

    fn shrink(&mut self, from: &Statement, mode: &'static str, wanted: &Difference) -> Statement {
        shrink::shrink(from, &mut |trial| {
            let asked = self.ask(trial, mode);
            asked.is_ok_and(|(found, ..)| found.as_ref() == Some(wanted))
        })
    }

    /// Everything about the statement of one seed.
    fn show(&mut self, seed: u64) -> Outcome {
        let statement = self.statement(seed);
        let mode = mode(seed);
        println!("# sql_mode '{mode}'\n{};", statement.root.sql());
        let (found, ours, theirs) = self.ask(&statement, mode)?;
        println!("{}", report::answers(&ours, &theirs));
        let Some(difference) = found else {
            println!("no difference");
            return Ok(());
        };
        let small = self.shrink(&statement, mode, &difference);
        let (_, ours, theirs) = self.ask(&small, mode)?;
        println!("# {difference}; shrunk:\n{};", small.root.sql());
        println!("{}", report::answers(&ours, &theirs));
        match self.judge().explain(&small, mode, &difference, (&ours, &theirs))? {
            Some(rule) => {
                println!("explained by '{}': {}", rule.name, rule.compat);
                Ok(())
            }
            None => Err("a difference".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_modes_come() {
        let modes: std::collections::HashSet<&str> = (0..1_000).map(mode).collect();
        assert_eq!(modes.len(), MODES.len());
    }
}
