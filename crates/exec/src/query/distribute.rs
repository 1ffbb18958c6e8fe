//! Sorting by heads: few rows by comparing, many by distributing them by the bits in which their
//! heads differ, which touches each row a few times however many there are.

use base::memory::MemoryAccount;

/// A row's place in the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What is compared first.
    pub head: u64,
    /// Where the row begins in the packed rows: later rows begin behind earlier ones.
    pub start: usize,
}

impl Place {
    #[inline]
    fn order(&self) -> u128 {
        u128::from(self.head) << 64 | self.start as u128
    }
}

/// Fewer rows are compared.
const FEW: usize = 2048;
/// Most bits by which rows are distributed at once.
const DIGIT_BITS: u32 = 11;
/// Rows between two looks whether others wait for the core.
const STEP: usize = 4096;

/// Sorts places, those of earlier rows first where heads are equal. They come in the order of
/// their rows.
pub fn sort(places: &mut [Place], memory: &MemoryAccount) {
    if places.len() < FEW {
        return places.sort_unstable_by_key(Place::order);
    }
    let more = size_of_val(places) as u64;
    if memory.charge(more).is_err() {
        let pacer = runtime::Pacer::default();
        return places.sort_unstable_by(|a, b| {
            pacer.step();
            a.order().cmp(&b.order())
        });
    }
    let mut spare = vec![Place::default(); places.len()];
    distribute(places, &mut spare);
    memory.release(more);
}

fn distribute(places: &mut [Place], spare: &mut [Place]) {
    runtime::yield_if_due();
    if places.len() < FEW {
        return places.sort_unstable_by_key(Place::order);
    }
    let first = places[0].head;
    let mut differing = 0;
    for some in places.chunks(STEP) {
        differing |= some.iter().fold(0, |bits, place| bits | (place.head ^ first));
        runtime::yield_if_due();
    }
    if differing == 0 {
        return;
    }
    let (low, high) = (differing.trailing_zeros(), 64 - differing.leading_zeros());
    let bits = high - low;
    if bits <= DIGIT_BITS {
        scatter(places, spare, low, bits);
        places.copy_from_slice(spare);
    } else if bits <= 2 * DIGIT_BITS {
        let half = bits.div_ceil(2);
        scatter(places, spare, low, half);
        scatter(spare, places, low + half, bits - half);
    } else {
        let ends = scatter(places, spare, high - DIGIT_BITS, DIGIT_BITS);
        places.copy_from_slice(spare);
        let mut start = 0;
        for end in ends {
            if end - start > 1 {
                distribute(&mut places[start..end], &mut spare[start..end]);
            }
            start = end;
        }
    }
}

/// Copies places in the order of `bits` bits of their heads; equal ones keep their order. Returns
/// where those of each number end.
fn scatter(from: &[Place], to: &mut [Place], low: u32, bits: u32) -> Vec<usize> {
    let mask = (1usize << bits) - 1;
    let digit = |place: &Place| (place.head >> low) as usize & mask;
    let mut ends = vec![0usize; 1 << bits];
    for some in from.chunks(STEP) {
        some.iter().for_each(|place| ends[digit(place)] += 1);
        runtime::yield_if_due();
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    for some in from.chunks(STEP) {
        for place in some {
            let at = &mut ends[digit(place)];
            to[*at] = *place;
            *at += 1;
        }
        runtime::yield_if_due();
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;
    use runtime::sim::{SimConfig, Simulation};

    fn sorts(memory_bytes: u64) {
        let memory = MemoryAccount::new(memory_bytes);
        let mut random = Random::new(3);
        for round in 0..60 {
            let count = [0, 1, 2, 100, FEW - 1, FEW, 3 * FEW, 20_000][round % 8];
            // Heads that differ in a few bits, in many, in the highest and lowest, nowhere.
            let (bits, shift) = [(8, 3), (20, 0), (64, 0), (30, 30), (0, 0), (22, 42)][round % 6];
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let skew =
                |random: &mut Random| if round % 3 == 0 { random.below(70) as u32 } else { 0 };
            let mut places: Vec<Place> = (0..count)
                .map(|start| {
                    let number = random.next_u64() & mask;
                    let skew = skew(&mut random);
                    let head =
                        number.checked_shr(skew).unwrap_or(0) << shift | u64::from(shift > 60);
                    Place { head, start }
                })
                .collect();
            let mut expected = places.clone();
            expected.sort();
            sort(&mut places, &memory);
            assert!(places == expected, "round {round}");
            assert_eq!(memory.used_bytes(), 0);
        }
    }

    /// Sorts yield, which they can do only inside a runtime.
    #[test]
    fn places_are_sorted_like_any_numbers() {
        let run = |test: fn()| {
            let ended = Simulation::new(SimConfig::new(1)).run(test);
            ended.expect("the simulation ends by itself");
        };
        run(|| sorts(8 << 20));
        run(|| sorts(0));
    }
}
