//! The order of runs.

/// The subjects of a round in the order in which they run: there and back, so that what drifts in
/// the middle of a round meets all alike; the next round the other way, so that none is always the
/// first. A single one runs once.
pub fn order(subjects: usize, round: usize) -> Vec<usize> {
    let there = 0..subjects;
    match (subjects, round % 2) {
        (0 | 1, _) => there.collect(),
        (_, 0) => there.clone().chain(there.rev()).collect(),
        (_, _) => there.clone().rev().chain(there).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_there_and_back_and_alternate() {
        assert_eq!(order(2, 0), [0, 1, 1, 0]);
        assert_eq!(order(2, 1), [1, 0, 0, 1]);
        assert_eq!(order(3, 2), [0, 1, 2, 2, 1, 0]);
        assert_eq!(order(3, 3), [2, 1, 0, 0, 1, 2]);
        assert_eq!(order(1, 3), [0]);
    }

    #[test]
    fn every_subject_has_the_same_mean_place() {
        for subjects in 2..6 {
            let places = order(subjects, 0);
            for subject in 0..subjects {
                let sum: usize =
                    places.iter().enumerate().filter(|(_, s)| **s == subject).map(|(p, _)| p).sum();
                assert_eq!(sum, 2 * subjects - 1);
            }
        }
    }
}
