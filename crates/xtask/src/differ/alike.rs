//! Proofs by looking at two answers: they are the same but for what is known, or another form of
//! the statement has what one of them has.

use super::compare::{self, Reply, Told};
use super::difference::Difference;
use super::proofs::{Judge, Servers};
use super::statements::{Kind, Statement};
use super::{executed, parts, replaced};
use sqltest::client::{Answer, Column, Field};
use std::collections::BTreeSet;

/// Rows whose cells that are lists of values in hexadecimal digits have their values in an order
/// of their own.
fn with_sorted_lists(told: &[Told]) -> Vec<compare::Row> {
    let sorted = |cell: Field| {
        let text = String::from_utf8(cell.clone()?).ok();
        match text.and_then(|text| members_of(&text)) {
            Some(mut members) => {
                members.sort();
                Some(members.join(&b'|'))
            }
            None => cell,
        }
    };
    let rows = compare::sorted_rows(told).into_iter();
    let mut rows: Vec<compare::Row> =
        rows.map(|row| row.into_iter().map(sorted).collect()).collect();
    rows.sort();
    rows
}

/// All cells but those that are NULL.
fn cells(told: &[Told]) -> Vec<Vec<u8>> {
    compare::sorted_rows(told).into_iter().flatten().flatten().collect()
}

/// The members of all lists of an answer; none where something else is in it.
fn listed_members(told: &[Told]) -> Option<BTreeSet<Vec<u8>>> {
    let lists = cells(told).into_iter().map(|cell| members_of(&String::from_utf8(cell).ok()?));
    Some(lists.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The members of a list that is written in hexadecimal digits; none where it is not.
fn members_of(text: &str) -> Option<Vec<Vec<u8>>> {
    let places = (0..text.len()).step_by(2);
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = places.map(byte).collect::<Option<_>>()?;
    Some(bytes.split(|byte| *byte == b'|').map(<[u8]>::to_vec).collect())
}

/// Whether two replies say the same of their columns in what a difference is about.
fn are_described_alike(difference: &Difference, ours: &Reply, others: &Reply) -> bool {
    let aspect = |reply: &Reply| -> Option<Vec<u16>> {
        let Answer::Rows { columns, .. } = &reply.as_ref().ok()?.first()?.answer else {
            return None;
        };
        let of = |column: &Column| match difference {
            Difference::Column("nullability", _) => Some(column.flags & compare::NOT_NULL),
            Difference::Column("decimals", _) => Some(column.decimals.into()),
            _ => None,
        };
        columns.iter().map(of).collect()
    };
    aspect(ours).is_some() && aspect(ours) == aspect(others)
}

impl<S: Servers> Judge<'_, S> {
    /// Whether both answer the statement with values in place of its parameters the same, and
    /// Gannet as before: in what differs, if that is a column's description, or one of the errors
    /// that were given.
    pub(super) fn is_unprepared(
        &mut self,
        small: &Statement,
        mode: &'static str,
        difference: &Difference,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let Some(form) = executed::unprepared(small) else { return Ok(false) };
        // Texts of errors name what a parameter is, here or there.
        if let Some(given) = compare::refusals(small, ours, theirs) {
            let known = self.same_errors(&[form], mode)?.unwrap_or_default();
            return Ok(known.iter().any(|known| given.contains(known)));
        }
        if let Difference::Column(..) = difference {
            let (agree, here, _) = self.ask_form(&form, mode)?;
            return Ok(agree && are_described_alike(difference, ours, &here));
        }
        self.is_executed(Some(form), mode, ours)
    }

    /// Whether both refuse, each with what both say of a part: they only begin at another one. What
    /// both warn of in a part is an error of a change.
    pub(super) fn is_of_two_parts(
        &mut self,
        small: &Statement,
        mode: &'static str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let Some(wanted) = compare::refusals(small, ours, theirs) else { return Ok(false) };
        let mut known = Vec::new();
        let queries = parts::parts(small).into_iter().map(|part| part.query);
        let without =
            [executed::unconditional, executed::ungrouped, executed::itemless, executed::unkeyed];
        let forms = without.map(|form| form(small));
        for query in queries.chain(forms.into_iter().flatten()) {
            let (found, ours, theirs) = self.ask(&query, mode)?;
            if small.kind == Kind::Change {
                known.extend(compare::common(&query, &ours, &theirs));
            }
            let Some([here, there]) = compare::refusals(&query, &ours, &theirs) else { continue };
            let is_same = match found {
                // What a parameter is called may differ.
                Some(found) if here.0 == there.0 => {
                    executed::are_mirrored(&[here.clone(), there])
                        || self.is_unprepared(&query, mode, &found, (&ours, &theirs))?
                }
                _ => here == there,
            };
            if is_same {
                known.push(here);
            }
        }
        Ok(wanted.iter().all(|refusal| known.contains(refusal)))
    }

    /// Whether both answer the same where lists are of the texts of their values, and Gannet's
    /// lists have the same values; or what is listed, and Gannet's lists have all of that.
    pub(super) fn is_listed(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(form) = replaced::listed(small) else { return Ok(false) };
        let (agree, here, _) = self.ask_form(&form, mode)?;
        let (Ok(answered), Ok(here)) = (answered, &here) else { return Ok(false) };
        if agree && with_sorted_lists(answered) == with_sorted_lists(here) {
            return Ok(true);
        }
        let Some(values) = replaced::unlisted(small) else { return Ok(false) };
        let (here, there) = self.servers.ask(&values, mode)?;
        let is_same = compare::has_same_values(&values, &here, &there);
        let values = here.map(|here| cells(&here).into_iter().collect::<BTreeSet<_>>());
        Ok(is_same && values.is_ok_and(|values| Some(values) == listed_members(answered)))
    }

    /// Whether the answers are the same without something in both.
    pub(super) fn is_same_without(
        &self,
        small: &Statement,
        mode: &str,
        (ours, theirs): (&Reply, &[Told]),
        without: fn(&[Told]) -> Vec<Told>,
    ) -> bool {
        let own = ours.as_ref().map(|told| without(told)).map_err(Clone::clone);
        compare::difference(small, self.how(mode), &own, &without(theirs)).is_none()
    }

    /// Whether the answers are the same but for a backslash in characters of two halves.
    pub(super) fn is_halved(
        &self,
        small: &Statement,
        mode: &str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> bool {
        let ours = ours.as_ref().map(|told| replaced::with_broken_halves(told));
        let ours = ours.map_err(Clone::clone);
        compare::difference(small, self.how(mode), &ours, theirs).is_none()
    }

    /// Whether only warnings of JSON_CONTAINS and JSON_OVERLAPS about broken documents differ, and
    /// both servers find one of their documents broken.
    pub(super) fn is_broken(
        &mut self,
        small: &Statement,
        mode: &'static str,
        (ours, theirs): (&Reply, &[Told]),
    ) -> Result<bool, String> {
        let complaints = compare::complaints(small, ours, theirs);
        if complaints.is_empty() || !complaints.iter().all(replaced::is_of_broken_document) {
            return Ok(false);
        }
        for query in replaced::documents_judged(small) {
            let (ours, theirs) = self.servers.ask(&query, mode)?;
            let is_false = |row: &compare::Row| row.first() == Some(&Some(b"0".to_vec()));
            let is_broken = compare::rows_of(&ours).is_some_and(|rows| rows.iter().any(is_false));
            if is_broken && compare::has_same_values(&query, &ours, &theirs) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
