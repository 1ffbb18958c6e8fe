//! Modes and kinds of locks and which of them conflict.

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Others may read-lock too.
    Shared,
    /// Nobody else.
    Exclusive,
}

/// What of a key is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// The key itself.
    Record,
    /// The open interval before the key: keeps inserts out, conflicts with nothing else.
    Gap,
    /// Both.
    NextKey,
    /// The wish to insert into the interval before the key.
    InsertIntention,
}

impl LockKind {
    fn has_record(self) -> bool {
        matches!(self, Self::Record | Self::NextKey)
    }

    fn has_gap(self) -> bool {
        matches!(self, Self::Gap | Self::NextKey)
    }
}

/// Whether a request must wait for a lock that another transaction holds.
pub(crate) fn must_wait(wanted: (LockMode, LockKind), held: (LockMode, LockKind)) -> bool {
    if wanted.1 == LockKind::InsertIntention {
        return held.1.has_gap();
    }
    let both_shared = wanted.0 == LockMode::Shared && held.0 == LockMode::Shared;
    wanted.1.has_record() && held.1.has_record() && !both_shared
}

/// Whether holding `held` makes `wanted` superfluous.
pub(crate) fn covers(held: (LockMode, LockKind), wanted: (LockMode, LockKind)) -> bool {
    held.0 >= wanted.0
        && wanted.1 != LockKind::InsertIntention
        && (!wanted.1.has_record() || held.1.has_record())
        && (!wanted.1.has_gap() || held.1.has_gap())
}

#[cfg(test)]
mod tests {
    use super::LockKind::{Gap, InsertIntention, NextKey, Record};
    use super::LockMode::{Exclusive, Shared};
    use super::*;

    #[test]
    fn conflicts_are_those_of_innodb() {
        // Rows: held; columns: wanted Record, Gap, NextKey, InsertIntention (all exclusive).
        let table = [
            (Record, [true, false, true, false]),
            (Gap, [false, false, false, true]),
            (NextKey, [true, false, true, true]),
            (InsertIntention, [false, false, false, false]),
        ];
        for (held, row) in table {
            for (wanted, expected) in [Record, Gap, NextKey, InsertIntention].iter().zip(row) {
                let found = must_wait((Exclusive, *wanted), (Exclusive, held));
                assert_eq!(found, expected, "{wanted:?} wanted, {held:?} held");
            }
        }
        assert!(!must_wait((Shared, NextKey), (Shared, Record)));
        assert!(must_wait((Shared, NextKey), (Exclusive, Record)));
        assert!(covers((Exclusive, NextKey), (Shared, Record)));
        assert!(!covers((Shared, Record), (Exclusive, Record)));
        assert!(!covers((Exclusive, Record), (Shared, NextKey)));
    }
}
