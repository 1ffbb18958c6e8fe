//! TPC-C's non-uniform random numbers (clause 2.1.6) and the last names made of them (4.3.2.3).

use super::between;
use base::Random;

/// NURand(A, x, y) with its constant C.
#[derive(Clone, Copy, Debug)]
pub struct NonUniform {
    a: u64,
    c: u64,
    low: u64,
    high: u64,
}

impl NonUniform {
    /// Numbers in `low..=high`.
    pub fn new(a: u64, c: u64, low: u64, high: u64) -> Self {
        Self { a, c, low, high }
    }

    /// A number.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let mixed = between(random, 0, self.a) | between(random, self.low, self.high);
        (mixed + self.c) % (self.high - self.low + 1) + self.low
    }
}

/// The three constants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Of last names, in the load.
    pub last_name_load: u64,
    /// Of last names, in the run.
    pub last_name_run: u64,
    /// Of customers.
    pub customer: u64,
    /// Of items.
    pub item: u64,
}

impl Constants {
    /// Drawn so that the two of last names differ as clause 2.1.6.1 wants it.
    pub fn draw(random: &mut Random) -> Self {
        let last_name_load = between(random, 0, 255);
        let last_name_run = loop {
            let trial = between(random, 0, 255);
            if is_valid_delta(trial.abs_diff(last_name_load)) {
                break trial;
            }
        };
        let customer = between(random, 0, 1023);
        Self { last_name_load, last_name_run, customer, item: between(random, 0, 8191) }
    }
}

/// Whether the constants of last names of load and run may differ by so much.
pub fn is_valid_delta(delta: u64) -> bool {
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The last name of a number below 1,000.
pub fn last_name(number: u64) -> String {
    [number / 100, number / 10 % 10, number % 10].map(|part| SYLLABLES[part as usize]).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_three_syllables() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn constants_of_last_names_keep_their_distance() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            let constants = Constants::draw(&mut random);
            let delta = constants.last_name_load.abs_diff(constants.last_name_run);
            assert!(is_valid_delta(delta), "{constants:?}");
        }
    }

    #[test]
    fn every_number_comes_as_often_as_the_definition_says() {
        // All pairs of the definition, counted instead of drawn.
        let (a, c, low, high) = (15, 7, 1, 40);
        let mut wanted = [0u64; 41];
        for x in 0..=a {
            for y in low..=high {
                wanted[(((x | y) + c) % (high - low + 1) + low) as usize] += 1;
            }
        }
        let draws = 640_000u64;
        let (numbers, mut random) = (NonUniform::new(a, c, low, high), Random::new(3));
        let mut counts = [0u64; 41];
        (0..draws).for_each(|_| counts[numbers.draw(&mut random) as usize] += 1);
        for number in low as usize..=high as usize {
            let expected = wanted[number] as f64 / 640.0 * draws as f64;
            let deviation = (counts[number] as f64 - expected).abs() / expected.sqrt().max(1.0);
            assert!(deviation < 5.0, "{number}: {deviation} sigma");
        }
        assert_eq!(counts[0], 0);
    }
}
