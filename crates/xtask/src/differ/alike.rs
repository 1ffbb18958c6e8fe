//! Proofs by looking at two answers: they are the same but for what is known.

use super::compare::{self, Reply, Told};
use super::proofs::{Judge, Servers};
use super::replaced;
use super::statements::Statement;

impl<S: Servers> Judge<'_, S> {
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
