//! RAND()'s generator: the server's own two-number congruential one, so that `RAND(seed)` gives
//! the same series.

/// A series of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RandomGenerator {
    seed1: u64,
    seed2: u64,
}

const MODULUS: u64 = 0x3fff_ffff;

impl RandomGenerator {
    /// From two seeds.
    pub fn new(seed1: u64, seed2: u64) -> Self {
        Self { seed1: seed1 % MODULUS, seed2: seed2 % MODULUS }
    }

    /// The series of `RAND(seed)`.
    pub fn seeded(seed: u32) -> Self {
        let first = seed.wrapping_mul(0x1_0001).wrapping_add(55_555_555);
        let second = seed.wrapping_mul(0x1000_0001);
        Self::new(u64::from(first), u64::from(second))
    }

    /// The next number, from 0 up to but not 1.
    pub fn next_f64(&mut self) -> f64 {
        self.seed1 = (self.seed1 * 3 + self.seed2) % MODULUS;
        self.seed2 = (self.seed1 + self.seed2 + 33) % MODULUS;
        self.seed1 as f64 / MODULUS as f64
    }
}
