//! What is asked, and how often.

use super::Mix;
use base::Random;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AddLink,
    DeleteLink,
    UpdateLink,
    CountLink,
    MultigetLink,
    GetLinkList,
    AddNode,
    UpdateNode,
    DeleteNode,
    GetNode,
}

impl Kind {
    /// In the order of their numbers.
    pub(super) const ALL: [Self; 10] = [
        Self::AddLink,
        Self::DeleteLink,
        Self::UpdateLink,
        Self::CountLink,
        Self::MultigetLink,
        Self::GetLinkList,
        Self::AddNode,
        Self::UpdateNode,
        Self::DeleteNode,
        Self::GetNode,
    ];

    /// The name that LinkBench's users know.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AddLink => "ADD_LINK",
            Self::DeleteLink => "DELETE_LINK",
            Self::UpdateLink => "UPDATE_LINK",
            Self::CountLink => "COUNT_LINK",
            Self::MultigetLink => "MULTIGET_LINK",
            Self::GetLinkList => "GET_LINK_LIST",
            Self::AddNode => "ADD_NODE",
            Self::UpdateNode => "UPDATE_NODE",
            Self::DeleteNode => "DELETE_NODE",
            Self::GetNode => "GET_NODE",
        }
    }

    /// Draws by the shares of a mix.
    pub(super) fn draw(mix: Mix, random: &mut Random) -> Self {
        let mut left = random.fraction() * 100.0;
        for (kind, share) in Self::ALL.into_iter().zip(mix.percent()) {
            left -= share;
            if left < 0.0 {
                return kind;
            }
        }
        Self::GetNode
    }
}

impl Mix {
    /// Percent of each operation.
    pub(super) fn percent(self) -> [f64; 10] {
        match self {
            Self::Original => [
                8.9886601, 2.9907664, 8.0122125, 4.8863567, 0.5261142, 50.7119145, 2.5732789,
                7.366437, 1.0115914, 12.9326683,
            ],
            Self::Cached => [
                5.35038, 0.98401, 4.75589, 4.27898, 12.14725, 22.57039, 2.61198, 3.06256, 0.25166,
                43.9869,
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_up_and_are_drawn() {
        for (mix, tolerance) in [(Mix::Original, 1e-5), (Mix::Cached, 1e-3)] {
            let percent = mix.percent();
            assert!((percent.iter().sum::<f64>() - 100.0).abs() < tolerance);
            let (draws, mut counts, mut random) = (400_000, [0u64; 10], Random::new(1));
            (0..draws).for_each(|_| counts[Kind::draw(mix, &mut random) as usize] += 1);
            for (count, percent) in counts.iter().zip(percent) {
                let expected = percent / 100.0 * f64::from(draws);
                assert!((*count as f64 - expected).abs() < 5.0 * expected.sqrt(), "{percent} %");
            }
        }
    }
}
