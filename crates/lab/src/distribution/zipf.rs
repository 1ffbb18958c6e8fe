//! Ranks by popularity.
//!
//! [`Zipf`] is the generator of Gray et al., "Quickly generating billion-record synthetic
//! databases" (SIGMOD 1994), which LinkBench uses; [`SteepZipf`] draws exactly, for any exponent,
//! by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions", 1996), which sysbench uses.

use base::Random;

/// From so many elements on the sum of the weights is approximated.
const EXACT_SUM_ELEMENTS: u64 = 100_000;

/// Ranks `0..n`, rank 0 the most popular, of exponent theta below 1.
#[derive(Clone, Debug)]
pub struct Zipf {
    elements: u64,
    sum: f64,
    alpha: f64,
    eta: f64,
    second: f64,
}

impl Zipf {
    /// Of so many elements. Panics when there are none or theta is not in `0.0..1.0`.
    pub fn new(elements: u64, theta: f64) -> Self {
        assert!(elements > 0 && (0.0..1.0).contains(&theta), "parameters of a Zipf distribution");
        let count = elements as f64;
        let sum = if elements < EXACT_SUM_ELEMENTS {
            (1..=elements).map(|rank| (rank as f64).powf(-theta)).sum()
        } else {
            let power = 1.0 - theta;
            count.powf(power) / power + 0.58 - 1.0 / power
        };
        let second = 0.5f64.powf(theta);
        let eta = (1.0 - (2.0 / count).powf(1.0 - theta)) / (1.0 - (1.0 + second) / sum);
        Self { elements, sum, alpha: 1.0 / (1.0 - theta), eta, second }
    }

    /// A rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let share = random.fraction();
        let weight = share * self.sum;
        if weight < 1.0 {
            return 0;
        }
        if weight < 1.0 + self.second {
            return 1.min(self.elements - 1);
        }
        let base = self.eta * share - self.eta + 1.0;
        ((self.elements as f64 * base.powf(self.alpha)) as u64).min(self.elements - 1)
    }
}

/// Ranks `1..=n`, of any exponent above 0.
#[derive(Clone, Debug)]
pub struct SteepZipf {
    elements: u64,
    exponent: f64,
    first: f64,
    last: f64,
    accept: f64,
}

impl SteepZipf {
    /// Of so many elements. Panics when there are none or the exponent is not above 0.
    pub fn new(elements: u64, exponent: f64) -> Self {
        assert!(elements > 0 && exponent > 0.0, "parameters of a Zipf distribution");
        let mut zipf = Self { elements, exponent, first: 0.0, last: 0.0, accept: 0.0 };
        zipf.first = zipf.area(1.5) - 1.0;
        zipf.last = zipf.area(elements as f64 + 0.5);
        zipf.accept = 2.0 - zipf.position(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// A rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.last + random.fraction() * (self.first - self.last);
            let position = self.position(area);
            let rank = position.round().clamp(1.0, self.elements as f64);
            let close = rank - position <= self.accept;
            if close || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64;
            }
        }
    }

    /// The weight at a position.
    fn height(&self, position: f64) -> f64 {
        position.powf(-self.exponent)
    }

    /// The weight from 1 to a position; a logarithm where the exponent is 1.
    fn area(&self, position: f64) -> f64 {
        let log = position.ln();
        let power = (1.0 - self.exponent) * log;
        log * if power.abs() > 1e-8 { power.exp_m1() / power } else { 1.0 + power / 2.0 }
    }

    /// The position to which the weight is an area.
    fn position(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let scale = if power.abs() > 1e-8 { power.ln_1p() / power } else { 1.0 - power / 2.0 };
        (scale * area).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 400_000;

    /// The share of draws that hit the most popular elements.
    fn hot(zipf: &Zipf, elements: u64) -> f64 {
        let mut random = Random::new(7);
        (0..DRAWS).filter(|_| zipf.draw(&mut random) < elements).count() as f64 / DRAWS as f64
    }

    #[test]
    fn the_hot_shares_are_those_of_the_specification() {
        let shares = [
            (0.8, 0.376, 0.617),
            (0.741, 0.294, 0.545),
            (0.625, 0.176, 0.421),
            (0.606, 0.162, 0.403),
        ];
        for (theta, one_percent, ten_percent) in shares {
            let zipf = Zipf::new(10_000_000, theta);
            let (one, ten) = (hot(&zipf, 100_000), hot(&zipf, 1_000_000));
            assert!((one - one_percent).abs() < 0.004, "theta {theta}: 1 % has {one}");
            assert!((ten - ten_percent).abs() < 0.004, "theta {theta}: 10 % have {ten}");
        }
    }

    #[test]
    fn every_rank_is_in_range() {
        let mut random = Random::new(1);
        for elements in [1, 2, 3, 100] {
            let (zipf, steep) = (Zipf::new(elements, 0.8), SteepZipf::new(elements, 0.8));
            for _ in 0..1000 {
                assert!(zipf.draw(&mut random) < elements);
                assert!((1..=elements).contains(&steep.draw(&mut random)));
            }
        }
    }

    #[test]
    fn rejection_inversion_gives_each_rank_its_weight() {
        for exponent in [0.5, 0.8, 1.0, 1.3] {
            let elements = 50;
            let steep = SteepZipf::new(elements, exponent);
            let mut counts = vec![0u64; elements as usize + 1];
            let mut random = Random::new(3);
            (0..DRAWS).for_each(|_| counts[steep.draw(&mut random) as usize] += 1);
            let weight = |rank: u64| (rank as f64).powf(-exponent);
            let sum: f64 = (1..=elements).map(weight).sum();
            for rank in 1..=elements {
                let wanted = weight(rank) / sum * DRAWS as f64;
                let deviation = (counts[rank as usize] as f64 - wanted).abs() / wanted.sqrt();
                assert!(deviation < 5.0, "exponent {exponent}, rank {rank}: {deviation} sigma");
            }
        }
    }
}
