//! A permutation of `0..n` that can be inverted without a table, so that popular ranks lie
//! scattered over the ids: the elements are dealt to groups, and each group is turned by an offset
//! of its own.

use base::Random;

const GROUPS_MAX: u64 = 1024;

/// The permutation of one seed.
#[derive(Clone, Debug)]
pub struct Shuffle {
    elements: u64,
    /// By how many places each group is turned.
    turns: Vec<u64>,
}

impl Shuffle {
    /// Of so many elements. Panics when there are none.
    pub fn new(elements: u64, seed: u64) -> Self {
        assert!(elements > 0, "a permutation of nothing");
        let groups = elements.min(GROUPS_MAX);
        let mut random = Random::new(seed);
        let turns = (0..groups).map(|_| random.below(elements / groups)).collect();
        Self { elements, turns }
    }

    /// Where an element goes.
    pub fn permute(&self, element: u64) -> u64 {
        self.turned(element, |turn, _| turn)
    }

    /// Which element goes there.
    pub fn inverse(&self, element: u64) -> u64 {
        self.turned(element, |turn, size| size - turn)
    }

    fn turned(&self, element: u64, by: impl Fn(u64, u64) -> u64) -> u64 {
        let groups = self.turns.len() as u64;
        let (place, group) = (element / groups, element % groups);
        let size = self.elements / groups + u64::from(group < self.elements % groups);
        (place + by(self.turns[group as usize], size)) % size * groups + group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_permutation_and_its_inverse() {
        for elements in [1, 2, 7, 1023, 1024, 1025, 4096, 10_007] {
            let shuffle = Shuffle::new(elements, 5);
            let mut seen = vec![false; elements as usize];
            for element in 0..elements {
                let there = shuffle.permute(element);
                assert!(!std::mem::replace(&mut seen[there as usize], true), "{there} twice");
                assert_eq!(shuffle.inverse(there), element);
            }
        }
    }

    #[test]
    fn hot_ranks_are_scattered() {
        let shuffle = Shuffle::new(1_000_000, 9);
        let places: Vec<u64> = (0..100).map(|rank| shuffle.permute(rank)).collect();
        let near = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 10_000).count();
        assert!(near < 20, "{near} of 99 neighbours stayed near each other");
    }
}
