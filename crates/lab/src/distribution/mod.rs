//! What the workloads draw: ids, sizes, payloads, decks. Every distribution is a value built once
//! from its parameters; a draw needs a [`base::Random`] and nothing else, so that a seed gives the
//! same operations whatever the servers answer.

pub mod access;
pub mod deck;
pub mod degree;
pub mod nonuniform;
pub mod payload;
pub mod shuffle;
pub mod size;
pub mod zipf;

use base::Random;

/// A number in `low..=high`, evenly.
pub fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

/// A number of the normal distribution of mean 0 and deviation 1 (Box and Muller, 1958).
pub fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.fraction()).cos()
}
