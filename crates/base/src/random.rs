//! Seeded random numbers with a stream that never changes between versions, so that a seed
//! replays for ever.

/// xoshiro256** by Blackman and Vigna, seeded through splitmix64. Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

/// One step of splitmix64: a good mixing of `value` into 64 bits.
#[inline]
fn mix(value: u64) -> u64 {
    let mut mixed = value;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Random {
    /// The generator whose stream is decided by `seed` alone.
    pub fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        let mut value = seed;
        for word in &mut state {
            value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
            *word = mix(value);
        }
        Self { state }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// The next 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number in `0..limit`, evenly. Panics when `limit` is zero.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "no number is below zero");
        let mut product = u128::from(self.next_u64()) * u128::from(limit);
        // Lemire's rejection keeps every value equally likely.
        if (product as u64) < limit {
            let threshold = limit.wrapping_neg() % limit;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(limit);
            }
        }
        (product >> 64) as u64
    }

    /// A number in `range`, evenly. Panics when the range is empty.
    #[inline]
    pub fn range(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// An index into something of `length` elements. Panics when it is empty.
    #[inline]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number in `0.0..1.0`, evenly, with 53 bits.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability; draws a number even when it is 0 or 1, so that changing a
    /// probability does not shift the rest of the stream.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// True once in `times` on average.
    #[inline]
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the elements. Panics when there are none.
    #[inline]
    pub fn pick<'a, T>(&mut self, elements: &'a [T]) -> &'a T {
        &elements[self.index(elements.len())]
    }

    /// Shuffles the elements, every order equally likely.
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, self.index(last + 1));
        }
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Damages bytes as rot, a cut or somebody hostile would: bits flipped, a piece overwritten by
    /// noise or by another piece, the end gone or something behind it.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            if bytes.is_empty() {
                bytes.push(self.next_u64() as u8);
            }
            let (from, to) = (self.index(bytes.len()), self.index(bytes.len()));
            let length = 1 + self.index((bytes.len() - from.max(to)).min(16));
            match self.below(8) {
                0..3 => bytes[from] ^= 1 << self.below(8),
                3 => bytes[from] = *self.pick(&[0, 1, 0x7F, 0x80, 0xFF]),
                4 => self.fill(&mut bytes[from..from + length]),
                5 => bytes.copy_within(from..from + length, to),
                6 => bytes.truncate(from),
                _ => bytes.resize(bytes.len() + length, self.next_u64() as u8),
            }
        }
    }

    /// A generator with a stream of its own, decided by this one's state.
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_fixed_for_ever() {
        let mut random = Random::new(42);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [1_546_998_764_402_558_742, 6_990_951_692_964_543_102, 12_544_586_762_248_559_009]
        );
    }

    #[test]
    fn below_covers_the_range_evenly() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[random.index(7)] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }

    #[test]
    fn shuffle_keeps_the_elements() {
        let mut elements: Vec<u32> = (0..100).collect();
        Random::new(9).shuffle(&mut elements);
        assert_ne!(elements, (0..100).collect::<Vec<_>>());
        elements.sort_unstable();
        assert_eq!(elements, (0..100).collect::<Vec<_>>());
    }
}
