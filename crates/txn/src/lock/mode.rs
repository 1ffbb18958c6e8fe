//! Modes of record locks and which of them conflict.

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Others may read-lock too.
    Shared,
    /// Nobody else.
    Exclusive,
}

impl LockMode {
    /// Whether a request must wait for a lock of this mode that another transaction holds.
    pub(crate) fn conflicts(self, held: Self) -> bool {
        self == Self::Exclusive || held == Self::Exclusive
    }

    /// Whether holding this makes `wanted` superfluous.
    pub(crate) fn covers(self, wanted: Self) -> bool {
        self >= wanted
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{Exclusive, Shared};

    #[test]
    fn conflicts_are_those_of_innodb() {
        assert!(!Shared.conflicts(Shared));
        assert!(Shared.conflicts(Exclusive) && Exclusive.conflicts(Shared));
        assert!(Exclusive.conflicts(Exclusive));
        assert!(Exclusive.covers(Shared) && Shared.covers(Shared) && !Shared.covers(Exclusive));
    }
}
