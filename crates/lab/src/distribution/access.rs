//! Which rows sysbench touches: its distributions of ids over `low..=high`.

use super::zipf::SteepZipf;
use base::Random;

/// How many even numbers make a bell.
const BELL_DRAWS: u32 = 12;
/// The share of rows that `special` visits more often, in percent.
const SPECIAL_PERCENT: f64 = 1.0;
/// The share of visits that go there, in percent.
const SPECIAL_VISITS_PERCENT: f64 = 75.0;

/// A distribution by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Every id as often as any other: what sysbench does since 1.1.
    Uniform,
    /// Three quarters of the visits go to 0.75 % of the rows in the middle: the default of 0.4 to
    /// 1.0, whose results therefore compare with no others.
    Special,
    /// A bell around the middle.
    Gaussian,
    /// A share of the rows, and what is left of one for the visits (0.2: 80 % visit 20 %).
    Pareto(f64),
    /// Popularity falls with the id, by this exponent.
    Zipfian(f64),
}

impl Kind {
    /// By the word of sysbench's `--rand-type`, with sysbench's parameters.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "uniform" => Self::Uniform,
            "special" => Self::Special,
            "gaussian" => Self::Gaussian,
            "pareto" => Self::Pareto(0.2),
            "zipfian" => Self::Zipfian(0.8),
            _ => return None,
        })
    }
}

/// A distribution over a range of ids.
#[derive(Clone, Debug)]
pub struct Access {
    low: u64,
    high: u64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Special,
    Gaussian,
    Pareto { power: f64 },
    Zipfian(SteepZipf),
}

impl Access {
    /// Ids in `low..=high`. Panics when there are none.
    pub fn new(kind: Kind, low: u64, high: u64) -> Self {
        assert!(low <= high, "no ids");
        let shape = match kind {
            Kind::Uniform => Shape::Uniform,
            Kind::Special => Shape::Special,
            Kind::Gaussian => Shape::Gaussian,
            Kind::Pareto(share) => Shape::Pareto { power: share.ln() / (1.0 - share).ln() },
            Kind::Zipfian(exponent) => Shape::Zipfian(SteepZipf::new(high - low + 1, exponent)),
        };
        Self { low, high, shape }
    }

    /// An id.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let span = self.high - self.low;
        let width = span as f64;
        let offset = match &self.shape {
            Shape::Uniform => random.below(span + 1) as f64,
            Shape::Gaussian => width * bell(random),
            Shape::Special => {
                let share = random.fraction();
                // Numbers below the first quarter become the bell; the hot rows are chosen by the
                // same number, so only the upper three quarters of their window are ever drawn.
                if share < 1.0 - SPECIAL_VISITS_PERCENT / 100.0 {
                    width * bell(random)
                } else {
                    let window = width * SPECIAL_PERCENT / 100.0;
                    share * (window + 1.0) + width / 2.0 - window / 2.0
                }
            }
            Shape::Pareto { power } => (width + 1.0) * random.fraction().powf(*power),
            Shape::Zipfian(zipf) => (zipf.draw(random) - 1) as f64,
        };
        self.low + (offset as u64).min(span)
    }
}

/// The mean of some even numbers: a bell over `0.0..1.0`.
fn bell(random: &mut Random) -> f64 {
    (0..BELL_DRAWS).map(|_| random.fraction()).sum::<f64>() / f64::from(BELL_DRAWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 400_000;
    const ROWS: u64 = 100_000;

    fn ids(kind: Kind) -> Vec<u64> {
        let (access, mut random) = (Access::new(kind, 1, ROWS), Random::new(8));
        (0..DRAWS).map(|_| access.draw(&mut random)).collect()
    }

    fn share(ids: &[u64], wanted: impl Fn(u64) -> bool) -> f64 {
        ids.iter().filter(|&&id| wanted(id)).count() as f64 / ids.len() as f64
    }

    #[test]
    fn all_ids_are_in_range_also_of_one_row() {
        let kinds = ["uniform", "special", "gaussian", "pareto", "zipfian"];
        for kind in kinds.map(|name| Kind::of_name(name).expect("a name")) {
            assert!(ids(kind).iter().all(|id| (1..=ROWS).contains(id)), "{kind:?}");
            assert_eq!(Access::new(kind, 7, 7).draw(&mut Random::new(1)), 7);
        }
        assert_eq!(Kind::of_name("normal"), None);
    }

    #[test]
    fn uniform_is_even() {
        let ids = ids(Kind::Uniform);
        for tenth in 0..10 {
            let share = share(&ids, |id| (id - 1) / (ROWS / 10) == tenth);
            assert!((share - 0.1).abs() < 0.003, "tenth {tenth}: {share}");
        }
    }

    #[test]
    fn special_visits_three_quarters_of_one_percent_three_times_in_four() {
        let ids = ids(Kind::Special);
        // The window is 1 % around the middle; its first quarter is never chosen on purpose.
        let (from, to) = (ROWS / 2 - ROWS / 400, ROWS / 2 + ROWS / 200);
        let hot = share(&ids, |id| (from..=to + 1).contains(&id));
        assert!((0.75..0.80).contains(&hot), "{hot}");
        let cold = share(&ids, |id| (ROWS / 2 - ROWS / 200 + 1..from).contains(&id));
        assert!(cold < 0.01, "{cold}");
    }

    #[test]
    fn gaussian_is_a_bell_of_the_right_width() {
        let ids = ids(Kind::Gaussian);
        let mean = ids.iter().sum::<u64>() as f64 / DRAWS as f64;
        let square = |id: &u64| (*id as f64 - mean).powi(2);
        let deviation = (ids.iter().map(square).sum::<f64>() / DRAWS as f64).sqrt();
        assert!((mean / ROWS as f64 - 0.5).abs() < 0.002, "{mean}");
        // Of the mean of 12 numbers, each of variance 1/12.
        assert!((deviation / ROWS as f64 - 1.0 / 12.0).abs() < 0.002, "{deviation}");
    }

    #[test]
    fn pareto_gives_the_share_its_visits() {
        let hot = share(&ids(Kind::Pareto(0.2)), |id| id <= ROWS / 5);
        assert!((hot - 0.8).abs() < 0.005, "{hot}");
    }
}
