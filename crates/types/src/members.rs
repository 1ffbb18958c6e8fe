//! The members of ENUM and SET types.
//!
//! Lists are kept once for the life of the process, so that a type stays small and `Copy`. They
//! come from definitions of tables only: as many as there are different ones.

use crate::column_type::CollationId;
use std::collections::HashSet;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most members of a SET.
pub const SET_MEMBERS_MAX: usize = 64;

/// The members of a type, in declared order and in its character set.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Members {
    names: Vec<Vec<u8>>,
}

impl Members {
    /// The list of these members.
    pub fn of(names: Vec<Vec<u8>>) -> &'static Self {
        static KNOWN: OnceLock<Mutex<HashSet<&'static Members>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let members = Members { names };
        if let Some(known) = known.get(&members) {
            return known;
        }
        let kept: &'static Members = Box::leak(Box::new(members));
        known.insert(kept);
        kept
    }

    /// The texts.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// The text of a number as ENUM counts them: 0 is no member and empty text.
    pub fn name(&self, number: u64) -> Option<&[u8]> {
        match number {
            0 => Some(&[]),
            _ => self.names.get(usize::try_from(number - 1).ok()?).map(Vec::as_slice),
        }
    }

    /// Position (from 1) of the member that equals a text under a collation.
    pub fn number_of(&self, text: &[u8], collation: CollationId) -> Option<u64> {
        let exact = self.names.iter().position(|name| name == text);
        let position = exact.or_else(|| {
            let collation = collation.info();
            self.names.iter().position(|name| collation.compare(name, text).is_eq())
        });
        position.map(|position| position as u64 + 1)
    }

    /// The bits of a list with commas, and whether all of it are members.
    pub fn bits_of(&self, text: &[u8], collation: CollationId) -> (u64, bool) {
        if text.is_empty() {
            return (0, true);
        }
        let mut found = (0, true);
        for part in text.split(|byte| *byte == b',') {
            // Blanks behind a part count; no member has them.
            let number = self.number_of(part, collation).filter(|_| !part.ends_with(b" "));
            match number {
                Some(number) => found.0 |= 1 << ((number - 1) % 64),
                None => found.1 = false,
            }
        }
        found
    }

    /// All bits of a SET.
    pub fn all_bits(&self) -> u64 {
        match self.names.len() {
            0 => 0,
            count => u64::MAX >> (64 - count.min(64)),
        }
    }

    /// The text of the bits of a SET.
    pub fn text_of_bits(&self, bits: u64) -> Vec<u8> {
        let mut text = Vec::new();
        for (position, name) in self.names.iter().enumerate().take(SET_MEMBERS_MAX) {
            if bits >> position & 1 != 0 {
                if !text.is_empty() {
                    text.push(b',');
                }
                text.extend_from_slice(name);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_collation_and_number() {
        let members = Members::of(["a", "b", "C"].map(|name| name.as_bytes().to_vec()).to_vec());
        let general = CollationId::UTF8MB4_GENERAL_CI;
        assert_eq!(members.number_of(b"c", general), Some(3));
        assert_eq!(members.number_of(b"c", CollationId::UTF8MB4_BIN), None);
        assert_eq!(members.bits_of(b"c,a,x", general), (5, false));
        assert_eq!(members.text_of_bits(5), b"a,C");
        assert_eq!(members.all_bits(), 7);
        assert_eq!(members.name(4), None);
        assert!(std::ptr::eq(members, Members::of(members.names().to_vec())));
    }
}
