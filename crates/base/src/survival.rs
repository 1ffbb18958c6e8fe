//! What a power failure leaves of sectors that no sync has covered: the choice among their versions
//! that the simulated disk and the lossy file system have in common. How often which kind of
//! failure is drawn is their own.

use crate::Random;

/// How a power failure treats the unsynced sectors of one file.
#[derive(Clone, Copy, Debug)]
pub enum Survival {
    /// All have their durable content again.
    Nothing,
    /// All have their newest version.
    Everything,
    /// Each sector on its own, with this chance of one of its versions.
    Each(f64),
    /// Writes up to this sequence number, the next one torn, nothing later.
    Until(u64),
}

impl Survival {
    /// Which of a sector's versions survives; none if its durable content does. There is at least
    /// one version, and they ascend by the sequence numbers of their writes.
    pub fn choose<V>(
        self,
        versions: &[V],
        sequence: impl Fn(&V) -> u64,
        random: &mut Random,
    ) -> Option<usize> {
        match self {
            Survival::Nothing => None,
            Survival::Everything => versions.len().checked_sub(1),
            Survival::Each(chance) => random.chance(chance).then(|| random.index(versions.len())),
            Survival::Until(limit) => {
                let whole = versions.iter().rposition(|it| sequence(it) <= limit);
                let torn = versions.iter().position(|it| sequence(it) == limit + 1);
                torn.filter(|_| random.one_in(2)).or(whole)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Versions that some of many failures leave of a sector written by 2, 5 and 9.
    fn left(survival: Survival) -> Vec<Option<usize>> {
        let mut random = Random::new(1);
        let mut choose = || survival.choose(&[2, 5, 9], |sequence| *sequence, &mut random);
        (0..200).map(|_| choose()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn a_failure_leaves_what_its_kind_says() {
        assert_eq!(left(Survival::Nothing), [None]);
        assert_eq!(left(Survival::Everything), [Some(2)]);
        assert_eq!(left(Survival::Each(0.0)), [None]);
        assert_eq!(left(Survival::Each(1.0)), [Some(0), Some(1), Some(2)]);
        assert_eq!(left(Survival::Each(0.5)), [None, Some(0), Some(1), Some(2)]);
        assert_eq!(left(Survival::Until(0)), [None]);
        assert_eq!(left(Survival::Until(1)), [None, Some(0)], "the first is torn");
        assert_eq!(left(Survival::Until(3)), [Some(0)]);
        assert_eq!(left(Survival::Until(4)), [Some(0), Some(1)], "the second is torn");
        assert_eq!(left(Survival::Until(100)), [Some(2)]);
    }
}
