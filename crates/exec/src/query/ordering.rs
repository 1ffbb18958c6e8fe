//! The order of kept rows, however they are kept.
//!
//! 1. Rows are sorted by the heads of their first key (`heads.rs`, `distribute.rs`), then by what
//!    equal heads leave open, then by the order in which they came.
//! 2. Where heads are exact, rows with equal ones get the heads of their next key and are sorted
//!    by these; else they are compared.

use super::distribute::{self, Place};
use super::heads::HeadRule;
use crate::order;
use base::memory::MemoryAccount;
use std::cmp::Ordering;
use types::ValueRef;

/// A key of ORDER BY.
pub struct Key {
    /// Of its values in the rows.
    pub position: usize,
    /// Its collation and direction, and how heads are made.
    pub rule: HeadRule,
}

/// Rows that places point to.
pub trait KeptRows {
    /// A value of the row of a place.
    fn value(&self, place: &Place, position: usize) -> ValueRef<'_>;
}

/// See the head of the file.
pub struct Order<'a, R> {
    /// Keys, the first one counts most.
    pub keys: &'a [Key],
    /// Rows.
    pub rows: &'a R,
    /// What sorting takes is charged here.
    pub memory: &'a MemoryAccount,
}

impl<R: KeptRows> Order<'_, R> {
    fn compare(&self, keys: &[Key], a: &Place, b: &Place) -> Ordering {
        for key in keys {
            let (x, y) = (self.rows.value(a, key.position), self.rows.value(b, key.position));
            let order = order::compare(x, y, key.rule.collation);
            let order = if key.rule.descending { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Sorts places that have the heads of the first key, in the order in which their rows came.
    /// Afterwards they have heads of any keys.
    pub fn sort(&self, places: &mut [Place], is_exact: bool) {
        self.sort_by(self.keys, places, is_exact);
    }

    /// Sorts places that have the heads of `keys[0]`.
    fn sort_by(&self, keys: &[Key], places: &mut [Place], is_exact: bool) {
        distribute::sort(places, self.memory);
        let rest = if is_exact { keys.get(1..).unwrap_or(&[]) } else { keys };
        let Some(next) = rest.first() else { return };
        let pacer = runtime::Pacer::default();
        for equal in places.chunk_by_mut(|a, b| a.head == b.head) {
            pacer.step();
            if equal.len() == 1 {
                continue;
            }
            if !is_exact {
                equal.sort_unstable_by(|a, b| {
                    pacer.step();
                    self.compare(rest, a, b).then(a.start.cmp(&b.start))
                });
                continue;
            }
            let mut is_exact = true;
            for place in equal.iter_mut() {
                pacer.step();
                let head = next.rule.head(self.rows.value(place, next.position));
                place.head = head.number;
                is_exact &= head.is_exact;
            }
            self.sort_by(rest, equal, is_exact);
        }
    }

    /// Keeps the first of sorted rows with equal keys.
    pub fn drop_equal(&self, places: &mut Vec<Place>) {
        let pacer = runtime::Pacer::default();
        places.dedup_by(|later, earlier| {
            pacer.step();
            // Rows with different heads differ in this key or in one before.
            later.head == earlier.head && self.compare(self.keys, later, earlier).is_eq()
        });
    }
}
