//! Whether a difference of a shrunk statement is explained: by the rule that fits, if what the rule
//! wants to be shown besides is shown by the answers to other statements.

use super::compare::{self, Problem, Reply, Told};
use super::difference::Difference;
use super::explained::{self, Proof, Rule};
use super::parts::{self, Part};
use super::statements::{Kind, Statement};
use super::{composed, executed, replaced};
use sqltest::client::Field;
use std::collections::BTreeSet;

/// A mode in which what cannot be stored as it is warns.
const LENIENT: &str = "";

/// Gannet and MariaDB, which are asked the same.
pub trait Servers {
    /// What both answer to a statement in a mode. An error is one of MariaDB's side.
    fn ask(
        &mut self,
        statement: &Statement,
        mode: &'static str,
    ) -> Result<(Reply, Vec<Told>), String>;
}

/// Compares answers, and explains differences by rules.
pub struct Judge<'a, S> {
    /// The servers.
    pub servers: &'a mut S,
    /// The rules of `tests/differ`.
    pub rules: &'a [Rule],
    /// Whether lengths of computed columns are compared.
    pub lengths: bool,
}

impl<S: Servers> Judge<'_, S> {
    /// How replies are compared in a mode.
    pub(super) fn how(&self, mode: &str) -> compare::Rules {
        compare::Rules { strict: mode.contains("STRICT"), lengths: self.lengths }
    }

    /// Asks both; the difference if there is one.
    pub fn ask(
        &mut self,
        statement: &Statement,
        mode: &'static str,
    ) -> Result<(Option<Difference>, Reply, Vec<Told>), String> {
        let (ours, theirs) = self.servers.ask(statement, mode)?;
        let found = compare::difference(statement, self.how(mode), &ours, &theirs);
        Ok((found, ours, theirs))
    }

    /// The rule that explains a difference of a shrunk statement.
    pub fn explain(
        &mut self,
        small: &Statement,
        mode: &'static str,
        difference: &Difference,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<Option<Rule>, String> {
        let (name, sql) = (difference.to_string(), small.root.sql());
        let fitting: Vec<Rule> = explained::find(self.rules, &name, &sql).cloned().collect();
        let mut proven: Vec<(Proof, bool)> = vec![(Proof::None, true)];
        for rule in fitting {
            let is_proven = match proven.iter().find(|(proof, _)| *proof == rule.proof) {
                Some((_, known)) => *known,
                None => {
                    let asked = (ours, theirs);
                    let shown = self.is_proven(rule.proof, small, mode, difference, asked)?;
                    proven.push((rule.proof, shown));
                    shown
                }
            };
            if is_proven {
                return Ok(Some(rule));
            }
        }
        self.otherwise(small, mode, difference, (ours, theirs))
    }

    /// Whether what a rule wants to be shown besides is shown.
    fn is_proven(
        &mut self,
        proof: Proof,
        small: &Statement,
        mode: &'static str,
        difference: &Difference,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        Ok(match proof {
            Proof::Errors => self.is_of_two_parts(small, mode, (ours, theirs))?,
            Proof::Selected => self.is_selected(small, mode, ours)?,
            Proof::Composed => self.is_composed(small, mode, ours)?,
            Proof::Lenient => self.is_lenient(small, (ours, theirs))?,
            Proof::Readable => self.is_readable(small, mode, difference)?,
            Proof::Named => composed::are_named_alike(small, ours, theirs),
            Proof::Untabled => self.is_untabled(small, mode, ours)?,
            Proof::Summed => self.is_near(replaced::summed(small), mode, ours)?,
            Proof::Rounded => self.is_rounded(small, mode, ours)?,
            Proof::Begun => self.is_answered(replaced::begun(small), mode, ours)?,
            Proof::Decided => self.agree_on(replaced::decided(small), mode)?,
            Proof::Grouped => self.agree_on(replaced::grouped(small), mode)?,
            Proof::Written => self.is_written(small, mode, ours)?,
            Proof::Limited => self.agree_on(replaced::limited(small), mode)?,
            Proof::Padded => {
                self.is_same_without(small, mode, (ours, theirs), replaced::without_padding)
            }
            Proof::Broken => self.is_broken(small, mode, (ours, theirs))?,
            Proof::Unprepared => self.is_unprepared(small, mode, difference, (ours, theirs))?,
            _ => self.is_proven_otherwise(proof, small, mode, (ours, theirs))?,
        })
    }

    /// The same for proofs by executing a statement in another way, and by forms of it.
    fn is_proven_otherwise(
        &mut self,
        proof: Proof,
        small: &Statement,
        mode: &'static str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        Ok(match proof {
            Proof::Unindexed => self.is_executed(executed::unindexed(small), mode, ours)?,
            Proof::Sorted => self.is_executed(executed::sorted(small), mode, ours)?,
            Proof::Unordered => self.is_described(small, mode, ours)?,
            Proof::Distinct => self.is_distinct(small, mode, ours)?,
            Proof::Exact => self.is_near(replaced::exact(small), mode, ours)?,
            Proof::Bits => self.is_of_bits(small, mode, ours)?,
            Proof::Joined => self.is_answered(replaced::joined(small), mode, ours)?,
            Proof::Unicode => self.is_answered(replaced::unicode(small), mode, ours)?,
            Proof::Satisfied => self.is_refused(replaced::satisfied(small), mode, ours)?,
            Proof::Surrogates => self.is_halved(small, mode, (ours, theirs)),
            Proof::Apart => self.is_apart(small, mode, (ours, theirs))?,
            Proof::Member => self.agree_on(replaced::member_texts(small), mode)?,
            Proof::Unfolded => self.agree_on(replaced::unfolded(small), mode)?,
            Proof::Inner => {
                executed::is_nullable_here(ours, theirs)
                    && self.agree_on(executed::inner(small), mode)?
            }
            Proof::Valueless => self.agree_on(replaced::valueless(small), mode)?,
            Proof::Unmaterialized => {
                self.is_executed(executed::unmaterialized(small), mode, ours)?
            }
            Proof::Guarded => self.is_executed(executed::guarded(small), mode, ours)?,
            Proof::Nullable => self.is_executed(executed::nullable(small), mode, ours)?,
            Proof::Alternatives => self.is_answered(executed::one_by_one(small), mode, ours)?,
            Proof::StoredAsText => self.is_executed(executed::stored_as_text(small), mode, ours)?,
            Proof::Listed => self.is_listed(small, mode, ours)?,
            Proof::Extremes => self.is_answered(replaced::extremes(small), mode, ours)?,
            Proof::Positions => {
                self.is_same_without(small, mode, (ours, theirs), replaced::without_positions)
            }
            Proof::Unmerged => self.is_executed(replaced::limited(small), mode, ours)?,
            Proof::Swapped => self.is_executed(executed::swapped(small), mode, ours)?,
            Proof::Multiplied => self.is_multiplied(small, mode, ours)?,
            Proof::FewerHours => self.agree_on(replaced::of_fewer_hours(small), mode)?,
            Proof::Unsigned => {
                self.is_executed(executed::without_zeros_below_zero(small), mode, ours)?
            }
            Proof::Widened => self.is_answered(replaced::widened(small), mode, ours)?,
            Proof::Unfilled => self.agree_on(replaced::unfilled(small), mode)?,
            Proof::Bytes => self.is_of_bytes(small, mode, ours)?,
            Proof::Texted => self.is_answered(executed::texted(small), mode, ours)?,
            Proof::Signless => {
                let without = executed::without_signs_of_zero;
                self.is_same_without(small, mode, (ours, theirs), without)
            }
            Proof::Mirrored => compare::refusals(small, ours, theirs)
                .is_some_and(|both| executed::are_mirrored(&both)),
            _ => self.is_of_parts(small, mode, (ours, theirs))?,
        })
    }

    /// The same of another form of a statement. Where the form has a condition that can never be
    /// true MariaDB leaves out the text of an UPDATE, whatever it is asked for.
    pub(super) fn ask_form(
        &mut self,
        form: &Statement,
        mode: &'static str,
    ) -> Result<(bool, Reply, Vec<Told>), String> {
        let (found, ours, theirs) = self.ask(form, mode)?;
        let is_update = form.root.texts[0].starts_with("UPDATE ");
        let agree = found.is_none() || is_update && found == Some(Difference::Info);
        Ok((agree, ours, theirs))
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
        let (ours, theirs) = self.servers.ask(&query, mode)?;
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
            if small.kind == Kind::Change {
                if self.is_executed(Some(query), mode, answered)? {
                    return Ok(true);
                }
                continue;
            }
            let (ours, theirs) = self.servers.ask(&query, mode)?;
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
            let (ours, theirs) = self.servers.ask(&cast, mode)?;
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
        Ok(composed::are_among(answered, &self.untabled(small, mode)?))
    }

    /// The forms of a query that need no temporary table, with their answers.
    fn untabled(
        &mut self,
        small: &Statement,
        mode: &'static str,
    ) -> Result<Vec<(Statement, Reply, Vec<Told>)>, String> {
        let mut answers = Vec::new();
        for query in composed::without_temporary_table(small) {
            let (ours, theirs) = self.servers.ask(&query, mode)?;
            answers.push((query, ours, theirs));
        }
        Ok(answers)
    }

    /// Whether Gannet's rows are, each once, those that both answer without a temporary table.
    fn is_distinct(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        Ok(executed::are_distinct_rows(answered, &self.untabled(small, mode)?))
    }

    /// Whether both answer a statement the same where it is executed in another way, and Gannet
    /// what it answered before.
    pub(super) fn is_executed(
        &mut self,
        other: Option<Statement>,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(statement) = other else { return Ok(false) };
        let (agree, ours, _) = self.ask_form(&statement, mode)?;
        let how = self.how(mode);
        let is_same = |ours: &Vec<Told>| {
            let answered = executed::with_names_of(answered, ours);
            compare::difference(&statement, how, &answered, ours).is_none()
        };
        Ok(agree && ours.as_ref().is_ok_and(is_same))
    }

    /// Whether both answer a query the same without DISTINCT and an order, and Gannet describes its
    /// columns as before.
    fn is_described(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(query) = executed::unordered(small) else { return Ok(false) };
        let (found, ours, _) = self.ask(&query, mode)?;
        let (Ok(answered), Ok(ours)) = (answered, &ours) else { return Ok(false) };
        let ([own], [here]) = (&answered[..], &ours[..]) else { return Ok(false) };
        let how = compare::Rules { strict: true, ..self.how(mode) };
        Ok(found.is_none() && compare::columns(&own.answer, &here.answer, how).is_none())
    }

    /// Whether both answer another form of a query the same, which is what Gannet answered but for
    /// the last digits.
    fn is_near(
        &mut self,
        other: Option<Statement>,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(query) = other else { return Ok(false) };
        let (found, ours, _) = self.ask(&query, mode)?;
        Ok(found.is_none() && executed::are_near(answered, &ours))
    }

    /// Whether both refuse another form of a query with the error that Gannet gives to the query.
    fn is_refused(
        &mut self,
        other: Option<Statement>,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(query) = other else { return Ok(false) };
        let (ours, theirs) = self.servers.ask(&query, mode)?;
        let refused = compare::refusals(&query, &ours, &theirs);
        let given = answered.as_ref().is_ok_and(|own| {
            compare::refusals(&query, answered, own).map(|[own, _]| own)
                == refused.as_ref().map(|[here, _]| here.clone())
        });
        let are_one = |both: &[Problem; 2]| both[0] == both[1] || executed::are_mirrored(both);
        Ok(given && refused.is_some_and(|both| are_one(&both)))
    }

    /// Whether both answer each value of a row alone the same, or the statement for each row alone,
    /// or each value of each row, and refuse it with errors that one of these is refused with.
    fn is_apart(
        &mut self,
        small: &Statement,
        mode: &'static str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let Some(wanted) = compare::refusals(small, ours, theirs) else { return Ok(false) };
        let values = replaced::values_alone(small, "NULL");
        // Some columns take no NULL.
        let with_ones = replaced::values_alone(small, "1");
        let of_rows = values.iter().flat_map(replaced::rows_alone).collect();
        for alone in [values, with_ones, replaced::rows_alone(small), of_rows] {
            if let Some(known) = self.same_errors(&alone, mode)?
                && wanted.iter().all(|error| known.contains(error))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The errors with which both refuse some of these statements; none if they do not answer all
    /// of them the same.
    pub(super) fn same_errors(
        &mut self,
        statements: &[Statement],
        mode: &'static str,
    ) -> Result<Option<Vec<Problem>>, String> {
        let mut known = Vec::new();
        for statement in statements {
            let (agree, ours, theirs) = self.ask_form(statement, mode)?;
            if !agree {
                return Ok(None);
            }
            known.extend(compare::refusals(statement, &ours, &theirs).map(|[error, _]| error));
        }
        Ok(Some(known))
    }

    /// Whether both answer another form of a query the same, and Gannet the same values as before.
    pub(super) fn is_answered(
        &mut self,
        other: Option<Statement>,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(query) = other else { return Ok(false) };
        let (agree, ours, _) = self.ask_form(&query, mode)?;
        let is_same = |ours: &Vec<Told>| {
            compare::has_same_values(&query, answered, ours)
                && compare::is_refused_alike(&query, answered, ours)
        };
        Ok(agree && ours.as_ref().is_ok_and(is_same))
    }

    /// Whether what only one of the servers complains of is what both say of the statement's
    /// parts, or, of a change, what the other one warns of in a mode without strictness. The parts
    /// have the same values, but for what BIT is that is computed, and differ in nothing but what
    /// both say of parts of theirs.
    fn is_of_parts(
        &mut self,
        small: &Statement,
        mode: &'static str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let mut known: BTreeSet<Problem> = BTreeSet::new();
        for Part { query, is_own } in parts::parts(small) {
            let (ours, theirs) = self.servers.ask(&query, mode)?;
            let complaints = compare::complaints(&query, &ours, &theirs);
            let is_known = complaints.iter().all(|it| compare::is_known(&known, it));
            let is_same = is_known && compare::has_same_values(&query, &ours, &theirs);
            if is_same || is_known && is_own && self.is_bit_computed(&query, mode, &ours)? {
                known.extend(compare::common(&query, &ours, &theirs));
            } else if is_own {
                return Ok(false);
            }
        }
        if small.kind == Kind::Change {
            let (ours, theirs) = self.servers.ask(small, LENIENT)?;
            known.extend(compare::common(small, &ours, &theirs));
        }
        let complaints = compare::complaints(small, ours, theirs);
        Ok(!complaints.is_empty() && complaints.iter().all(|it| compare::is_known(&known, it)))
    }

    /// Whether both answer another form of the statement the same in every respect; not where
    /// there is no such form.
    pub(super) fn agree_on(
        &mut self,
        replaced: Option<Statement>,
        mode: &'static str,
    ) -> Result<bool, String> {
        let Some(statement) = replaced else { return Ok(false) };
        Ok(self.ask_form(&statement, mode)?.0)
    }

    /// Whether both answer the statement with the number that a variable holds in its place the
    /// same, and Gannet answered that with the variable.
    fn is_written(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(query) = replaced::written(small) else { return Ok(false) };
        let (agree, ours, _) = self.ask_form(&query, mode)?;
        let is_same = |ours: &Vec<Told>| compare::has_same_values(&query, answered, ours);
        Ok(agree && ours.as_ref().is_ok_and(is_same))
    }
}
