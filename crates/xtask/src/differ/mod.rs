//! `cargo xtask differ`: random statements to Gannet and to a MariaDB of its own, until their
//! answers differ; each difference is shrunk to a small statement, and either explained by a rule
//! or a fault.

mod compare;
mod composed;
mod explained;
mod expressions;
mod grammar;
mod pair;
mod parts;
mod report;
mod shrink;
mod statements;
mod tree;

use crate::arguments::Arguments;
use crate::{Outcome, servers};
use compare::{Difference, Problem, Reply, Told};
use explained::{Proof, Rule};
use expressions::Generator;
use grammar::Grammar;
use pair::{MODES, Pair};
use parts::Part;
use report::Report;
use sqltest::client::Field;
use statements::{Kind, Statement};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A mode in which what cannot be stored as it is warns.
const LENIENT: &str = "";

/// Statements of one mode behind each other.
const MODE_STATEMENTS: u64 = 64;

/// Runs `differ [--seed N] [--minutes M] [--statements N] [--one SEED] [--lengths]`.
pub fn run(words: &[String]) -> Outcome {
    let options = ["--seed", "--minutes", "--statements", "--one", "--wild"];
    let arguments = Arguments::new(words, &["--release", "--text", "--lengths"], &options)?;
    let grammar = Grammar::load()?;
    let rules = explained::load()?;
    let wild = arguments.number("--wild", 2)?;
    if arguments.has("--text") {
        let first = arguments.number("--seed", 1)?;
        for seed in first..first + arguments.number("--statements", 20)? {
            println!("{};", Generator::new(&grammar, seed, wild).statement().root.sql());
        }
        return Ok(());
    }
    let binary = servers::build_gannet(arguments.has("--release"))?;
    let folder = servers::fresh_folder("differ")?;
    let pair = Pair::start(&binary, &folder)?;
    let lengths = arguments.has("--lengths");
    let mut differ = Differ { grammar, rules, wild, lengths, pair };
    if arguments.value("--one").is_some() {
        return differ.show(arguments.number("--one", 0)?);
    }
    let limit = Duration::from_secs(60 * arguments.number("--minutes", 60)?);
    let most = arguments.number("--statements", u64::MAX)?;
    let mut report = Report::new(folder.join("found.test"));
    let begin = Instant::now();
    let first = arguments.number("--seed", 1)?;
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
    wild: u64,
    lengths: bool,
    pair: Pair,
}

impl Differ {
    fn statement(&self, seed: u64) -> Statement {
        Generator::new(&self.grammar, seed, self.wild).statement()
    }

    /// Asks both; the difference if there is one.
    fn ask(
        &mut self,
        statement: &Statement,
        mode: &'static str,
    ) -> Result<(Option<Difference>, Reply, Vec<Told>), String> {
        let (ours, theirs) = self.pair.ask(statement, mode)?;
        let how = compare::Rules { strict: mode.contains("STRICT"), lengths: self.lengths };
        Ok((compare::difference(statement, how, &ours, &theirs), ours, theirs))
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
        match self.explain(&small, mode, &difference, (&ours, &theirs))? {
            Some(rule) => report.explained(&rule),
            None => report.found(seed, mode, &difference, &small, &ours, &theirs)?,
        }
        Ok(())
    }

    /// The rule that explains a difference of a shrunk statement.
    fn explain(
        &mut self,
        small: &Statement,
        mode: &'static str,
        difference: &Difference,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<Option<Rule>, String> {
        let (name, sql) = (difference.to_string(), small.root.sql());
        let fitting: Vec<Rule> = explained::find(&self.rules, &name, &sql).cloned().collect();
        let mut proven: Vec<(Proof, bool)> = vec![(Proof::None, true)];
        for rule in fitting {
            let is_proven = match proven.iter().find(|(proof, _)| *proof == rule.proof) {
                Some((_, known)) => *known,
                None => {
                    let shown = match rule.proof {
                        Proof::Errors => self.is_of_two_parts(small, mode, (ours, theirs))?,
                        Proof::Selected => self.is_selected(small, mode, ours)?,
                        Proof::Composed => self.is_composed(small, mode, ours)?,
                        Proof::Lenient => self.is_lenient(small, (ours, theirs))?,
                        Proof::Readable => self.is_readable(small, mode, difference)?,
                        Proof::Named => composed::are_named_alike(small, ours, theirs),
                        Proof::Untabled => self.is_untabled(small, mode, ours)?,
                        _ => self.is_of_parts(small, mode, (ours, theirs))?,
                    };
                    proven.push((rule.proof, shown));
                    shown
                }
            };
            if is_proven {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// Whether Gannet answers as many rows as both servers find the condition of a plain query true
    /// for when it is selected.
    fn is_selected(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(query) = parts::condition_selected(small) else { return Ok(false) };
        let (ours, theirs) = self.pair.ask(&query, mode)?;
        let rows = compare::rows_of(answered);
        let is_true = |row: &Vec<Field>| row.first() == Some(&Some(b"1".to_vec()));
        let wanted =
            compare::rows_of(&ours).map(|rows| rows.iter().filter(|it| is_true(it)).count());
        let is_same = compare::has_same_values(&query, &ours, &theirs);
        Ok(is_same && wanted.is_some() && rows.map(<[_]>::len) == wanted)
    }

    /// Whether Gannet answers what both answer when a part of the query is computed first.
    fn is_composed(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        for query in composed::computed_first(small) {
            let (ours, theirs) = self.pair.ask(&query, mode)?;
            if composed::are_alike(small, answered, (&ours, &theirs)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether both do and warn of the same outside of strict modes, and what Gannet refuses is
    /// among that.
    fn is_lenient(
        &mut self,
        small: &Statement,
        (refused, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let Some([own, _]) = compare::refusals(small, refused, theirs) else { return Ok(false) };
        let (found, ours, theirs) = self.ask(small, LENIENT)?;
        Ok(found.is_none() && compare::common(small, &ours, &theirs).contains(&own))
    }

    /// Whether a query has casts to dates that both cannot read, and with others in their place
    /// both answer the same: the same rows, where these differ, else the same altogether.
    fn is_readable(
        &mut self,
        small: &Statement,
        mode: &'static str,
        difference: &Difference,
    ) -> Result<bool, String> {
        let Some((query, casts)) = composed::readable(small) else { return Ok(false) };
        for cast in casts {
            let (ours, theirs) = self.pair.ask(&cast, mode)?;
            if !composed::is_unreadable((&ours, &theirs)) {
                return Ok(false);
            }
        }
        let (found, ours, theirs) = self.ask(&query, mode)?;
        let is_of_rows =
            matches!(difference, Difference::Value(_) | Difference::Null | Difference::Count);
        let is_same = composed::have_same_rows(&query, &ours, &theirs);
        Ok(found.is_none() || is_of_rows && is_same)
    }

    /// Whether both answer Gannet's rows where nothing is put into a temporary table.
    fn is_untabled(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let mut answers = Vec::new();
        for query in composed::without_temporary_table(small) {
            let (ours, theirs) = self.pair.ask(&query, mode)?;
            answers.push((query, ours, theirs));
        }
        Ok(composed::are_among(answered, &answers))
    }

    /// Whether both refuse, each with what both say of a part: they only begin at another one.
    fn is_of_two_parts(
        &mut self,
        small: &Statement,
        mode: &'static str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let Some(wanted) = compare::refusals(small, ours, theirs) else { return Ok(false) };
        let mut known = Vec::new();
        for part in parts::parts(small) {
            let (ours, theirs) = self.pair.ask(&part.query, mode)?;
            if let Some([here, there]) = compare::refusals(&part.query, &ours, &theirs)
                && here == there
            {
                known.push(here);
            }
        }
        Ok(wanted.iter().all(|refusal| known.contains(refusal)))
    }

    /// Whether what only one of the servers complains of is what both say of the statement's
    /// parts, or, of a change, what the other one warns of in a mode without strictness. The parts
    /// have the same values, and differ in nothing but what both say of parts of theirs.
    fn is_of_parts(
        &mut self,
        small: &Statement,
        mode: &'static str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let mut known: BTreeSet<Problem> = BTreeSet::new();
        for Part { query, is_own } in parts::parts(small) {
            let (ours, theirs) = self.pair.ask(&query, mode)?;
            let complaints = compare::complaints(&query, &ours, &theirs);
            let is_known = complaints.iter().all(|it| compare::is_known(&known, it));
            if compare::has_same_values(&query, &ours, &theirs) && is_known {
                known.extend(compare::common(&query, &ours, &theirs));
            } else if is_own {
                return Ok(false);
            }
        }
        if small.kind == Kind::Change {
            let (ours, theirs) = self.pair.ask(small, LENIENT)?;
            known.extend(compare::common(small, &ours, &theirs));
        }
        let complaints = compare::complaints(small, ours, theirs);
        Ok(!complaints.is_empty() && complaints.iter().all(|it| compare::is_known(&known, it)))
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
        match self.explain(&small, mode, &difference, (&ours, &theirs))? {
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
