//! How many links leave an id of the social graph: LinkBench's published distribution, in compact
//! form.

/// Degrees and how many percent of the ids have at most that many links.
const CUMULATIVE_PERCENT: [(f64, f64); 34] = [
    (0.0, 45.331_605_7),
    (1.0, 77.462_591_1),
    (2.0, 86.958_059_5),
    (3.0, 91.993_054_3),
    (4.0, 94.450_799_1),
    (5.0, 95.828_077_1),
    (6.0, 96.722_528_0),
    (7.0, 97.320_088_5),
    (8.0, 97.761_423_2),
    (9.0, 98.077_676_9),
    (10.0, 98.328_033_7),
    (12.0, 98.700_256_7),
    (15.0, 99.026_879_0),
    (20.0, 99.326_955_6),
    (30.0, 99.556_939_0),
    (50.0, 99.721_560_5),
    (75.0, 99.796_274_9),
    (100.0, 99.831_361_2),
    (150.0, 99.866_218_6),
    (200.0, 99.885_135_2),
    (300.0, 99.906_066_3),
    (500.0, 99.927_463_7),
    (1000.0, 99.950_659_2),
    (2000.0, 99.969_372_0),
    (3000.0, 99.978_549_0),
    (5000.0, 99.987_453_3),
    (7000.0, 99.991_713_7),
    (10_000.0, 99.995_045_2),
    (20_000.0, 99.998_537_7),
    (50_000.0, 99.999_814_0),
    (100_000.0, 99.999_962_8),
    (200_000.0, 99.999_990_4),
    (500_000.0, 99.999_999_3),
    (961_963.0, 100.0),
];

/// The number of links of the id that stands at `rank` (0 has most) among `elements` ids.
///
/// Between two points the share of ids above a degree falls as a power of the degree (a straight
/// line between logarithms); in the last stretch, where that share ends at nothing, evenly.
pub fn degree(rank: u64, elements: u64) -> u64 {
    let percent = (1.0 - rank as f64 / elements as f64) * 100.0;
    let upper = CUMULATIVE_PERCENT.partition_point(|&(_, reached)| reached < percent);
    let Some(lower) = upper.checked_sub(1) else { return 0 };
    let Some(&(high, high_percent)) = CUMULATIVE_PERCENT.get(upper) else {
        return CUMULATIVE_PERCENT[lower].0 as u64;
    };
    let (low, low_percent) = CUMULATIVE_PERCENT[lower];
    let found = if high_percent >= 100.0 {
        low + (high - low) * (percent - low_percent) / (high_percent - low_percent)
    } else {
        let above = |percent: f64| (100.0 - percent).ln();
        let part =
            (above(percent) - above(low_percent)) / (above(high_percent) - above(low_percent));
        let (from, to) = ((low + 1.0).ln(), (high + 1.0).ln());
        (from + (to - from) * part).exp() - 1.0
    };
    // What should be a whole number may lie a rounding error above it.
    (found - 1e-9 * found.max(1.0)).ceil().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_within_one_percent_of_the_published_graph() {
        let total: u64 = (0..1_000_000).map(|rank| degree(rank, 1_000_000)).sum();
        assert!(total.abs_diff(4_975_697) * 100 < 4_975_697, "{total}");
        let total: u64 = (0..10_000_000).map(|rank| degree(rank, 10_000_000)).sum();
        assert!(total.abs_diff(41_721_824) * 100 < 41_721_824, "{total}");
    }

    #[test]
    fn few_ids_own_most_links() {
        let degrees: Vec<u64> = (0..1_000_000).map(|rank| degree(rank, 1_000_000)).collect();
        assert!(degrees.is_sorted_by(|a, b| a >= b));
        assert_eq!(degrees[0], 961_963);
        assert_eq!(degrees[999_999], 0);
        let total: u64 = degrees.iter().sum();
        let share = |ids: usize| degrees[..ids].iter().sum::<u64>() as f64 / total as f64;
        for (ids, wanted) in [(100, 0.46), (10_000, 0.78), (100_000, 0.88)] {
            assert!((share(ids) - wanted).abs() < 0.01, "{ids} ids own {}", share(ids));
        }
    }
}
