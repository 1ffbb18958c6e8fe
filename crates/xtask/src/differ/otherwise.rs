//! The last proof, tried where no rule explains a difference: MariaDB itself gives Gannet's answer
//! when the same is asked in another way, so its own answer depends on how it executes a statement.
//!
//! 1. A way changes how a statement is executed, not what it means: without indexes, with other
//!    plans, prepared or not, with a table or a subquery that keeps a part, and two of these.
//! 2. Gannet answers both ways alike, and MariaDB answers the other way as Gannet does: in all that
//!    matters as much as what differs, or more. A server that answers one wrong thing in every way
//!    is not explained by another that answers right in every way.
//! 3. A kept part has the type of a column, so types are only proven by ways that keep nothing.
//! 4. Beside a condition that is never true MariaDB no longer looks at those that refuse NULL, if
//!    it sees that before it settles outer joins. So where no row is answered, a column may be said
//!    to be NULL or not as it is without one of the conditions.
//! 5. Ways are tried in a fixed order, at most `FORMS_MAX` of them.

use super::compare::{self, Reply, Told};
use super::difference::Difference;
use super::explained::Rule;
use super::proofs::{Judge, Servers};
use super::statements::Statement;
use super::tree::{Node, Role};
use super::{composed, executed, replaced};
use sqltest::client::Answer;

/// Forms of one statement that are asked at most.
const FORMS_MAX: usize = 400;

/// Switches of the optimizer without which conditions stay where they are written, and tables are
/// read one after the other.
const SWITCHES: &str = "derived_merge=off,semijoin=off,materialization=off,exists_to_in=off,\
    table_elimination=off,condition_pushdown_for_derived=off,condition_pushdown_for_subquery=off,\
    condition_pushdown_from_having=off,subquery_cache=off,extended_keys=off,split_materialized=off";

/// Another way to ask the same.
type Way = fn(&Statement) -> Option<Statement>;

/// Ways that keep nothing in a table.
const PLANS: [Way; 10] = [
    executed::unprepared,
    prepared,
    executed::unindexed,
    unoptimized,
    executed::unmaterialized,
    executed::sorted,
    executed::guarded,
    executed::nullable,
    executed::unordered,
    replaced::limited,
];

/// Ways that write the same in other words.
const WORDS: [Way; 8] = [
    executed::one_by_one,
    executed::swapped,
    executed::stored_as_text,
    replaced::joined,
    replaced::unfolded,
    replaced::member_texts,
    replaced::unicode,
    executed::negated,
];

/// The statement with parameters in place of its literals; none where it has none.
fn prepared(statement: &Statement) -> Option<Statement> {
    let has_parameters = !statement.root.with_parameters().1.is_empty();
    let is_plain = !statement.prepared && has_parameters;
    is_plain.then(|| Statement { prepared: true, ..statement.clone() })
}

/// The query as it is written, without what the optimizer makes of it; none of a change.
fn unoptimized(statement: &Statement) -> Option<Statement> {
    let is_query = statement.root.texts[0].starts_with("SELECT ");
    is_query.then(|| {
        let mut other = statement.clone();
        let head = format!("SET STATEMENT optimizer_switch='{SWITCHES}' FOR ");
        other.root.texts[0].insert_str(0, &head);
        other
    })
}

/// How much a difference matters: what a client computes with, how that is described, what it is
/// told besides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Answer,
    Description,
    Warning,
}

fn weight(difference: &Difference) -> Weight {
    match difference.class() {
        "types and metadata" => Weight::Description,
        "warnings" => Weight::Warning,
        _ => Weight::Answer,
    }
}

/// What explains a difference of this weight.
fn rule(weight: Weight) -> Rule {
    let (name, compat) = match weight {
        Weight::Answer => ("another way of asking, value", "| one question asked in two ways |"),
        Weight::Description => {
            ("another way of asking, type", "| one question asked in two ways, types |")
        }
        Weight::Warning => {
            ("another way of asking, warning", "| one question asked in two ways, warnings |")
        }
    };
    Rule::last_resort(name, compat)
}

/// What explains the nullability of columns of which no row is answered.
fn fewer_conditions() -> Rule {
    let compat = "| NOT NULL of columns beside a condition that is never true |";
    Rule::last_resort("conditions that are never true, nullability", compat)
}

/// The statement without one of the conditions that AND combines, for each of them.
fn of_fewer_conditions(statement: &Statement) -> Vec<Statement> {
    let root = &statement.root;
    let without = |path: Vec<usize>| {
        let node = root.at(&path)?;
        let [left, right] = &node.children[..] else { return None };
        let is_and = node.role == Role::Expression && node.texts[1] == " AND ";
        let one =
            |kept: &Node| Statement { root: root.with(&path, kept.clone()), ..statement.clone() };
        is_and.then(|| [one(left), one(right)])
    };
    root.paths().into_iter().filter_map(without).flatten().collect()
}

/// Whether a query is answered without a row.
fn is_empty(told: &[Told]) -> bool {
    matches!(&told, [Told { answer: Answer::Rows { rows, .. }, .. }] if rows.is_empty())
}

/// The forms of a statement, those nearest to it first.
fn forms(statement: &Statement, weight: Weight) -> Vec<Statement> {
    let ways: Vec<Way> = match weight {
        Weight::Description => PLANS.to_vec(),
        _ => PLANS.into_iter().chain(WORDS).collect(),
    };
    let by_ways =
        |from: &Statement| -> Vec<Statement> { ways.iter().filter_map(|way| way(from)).collect() };
    let first = by_ways(statement);
    let kept = match weight {
        Weight::Description => Vec::new(),
        _ => composed::computed_first(statement),
    };
    let second: Vec<Statement> = first.iter().flat_map(by_ways).collect();
    let of_kept: Vec<Statement> = kept.iter().flat_map(by_ways).collect();
    let mut all: Vec<Statement> = Vec::new();
    for form in first.into_iter().chain(kept).chain(second).chain(of_kept) {
        if form != *statement && !all.contains(&form) {
            all.push(form);
        }
    }
    all.truncate(FORMS_MAX);
    all
}

impl<S: Servers> Judge<'_, S> {
    /// The explanation of a difference by another way of asking; see the head of the file.
    pub(super) fn otherwise(
        &mut self,
        small: &Statement,
        mode: &'static str,
        difference: &Difference,
        (answered, theirs): (&Reply, &[Told]),
    ) -> Result<Option<Rule>, String> {
        if *difference == Difference::Lost {
            return Ok(None);
        }
        let weight = weight(difference);
        for form in forms(small, weight) {
            let (here, there) = self.servers.ask(&form, mode)?;
            if self.are_one((&form, mode), weight, answered, (&here, &there)) {
                return Ok(Some(rule(weight)));
            }
        }
        if let Difference::Column("nullability", _) = difference
            && self.is_of_fewer_conditions(small, mode, (answered, theirs))?
        {
            return Ok(Some(fewer_conditions()));
        }
        Ok(None)
    }

    /// Whether no row is answered, and without one of the conditions both describe the columns
    /// alike, Gannet as before.
    fn is_of_fewer_conditions(
        &mut self,
        small: &Statement,
        mode: &'static str,
        (answered, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let Ok([own]) = answered.as_deref() else { return Ok(false) };
        if !is_empty(std::slice::from_ref(own)) || !is_empty(theirs) {
            return Ok(false);
        }
        let how = compare::Rules { strict: true, ..self.how(mode) };
        for form in of_fewer_conditions(small) {
            let (Ok(here), there) = self.servers.ask(&form, mode)? else { continue };
            let ([here], [there]) = (&here[..], &there[..]) else { continue };
            let is_same = |one: &Told, other: &Told| {
                compare::columns(&one.answer, &other.answer, how).is_none()
            };
            if is_same(own, here) && is_same(here, there) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether both answer a form alike, and as Gannet answered before, as far as a weight goes.
    fn are_one(
        &self,
        (form, mode): (&Statement, &str),
        weight: Weight,
        answered: &Reply,
        (ours, theirs): (&Reply, &[Told]),
    ) -> bool {
        let Ok(here) = ours else { return false };
        let how = self.how(mode);
        let matters =
            |found: Option<Difference>| found.is_some_and(|it| self::weight(&it) <= weight);
        let is_same = |answered: &Reply, others: &[Told]| {
            let answered = executed::with_names_of(answered, others);
            !matters(compare::difference(form, how, &answered, others))
        };
        is_same(answered, here) && is_same(ours, theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_explains_points_at_lines_of_compat() {
        let compat = include_str!("../../../../COMPAT.md");
        let weights = [Weight::Answer, Weight::Description, Weight::Warning];
        for rule in weights.map(rule).into_iter().chain([fewer_conditions()]) {
            assert!(compat.lines().any(|line| line.starts_with(rule.compat)), "{}", rule.compat);
        }
    }
}
