//! Where two byte strings begin to differ, a word at a time: the changed part of a row.

fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// What two byte strings have in common at their ends; the ends do not overlap in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Bytes at the start.
    pub front: usize,
    /// Bytes at the end.
    pub back: usize,
}

impl Kept {
    /// The longest common prefix, then the longest common suffix of the rest.
    pub fn between(a: &[u8], b: &[u8]) -> Self {
        let front = common_prefix(a, b);
        let most = a.len().min(b.len()) - front;
        // Without the prefix, so that equal strings are not gone through twice.
        let back = if most == 0 { 0 } else { common_suffix(a, b).min(most) };
        Self { front, back }
    }
}

/// Length of the common prefix.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (words_a, rest_a) = a.as_chunks::<8>();
    let (words_b, rest_b) = b.as_chunks::<8>();
    for (at, (x, y)) in words_a.iter().zip(words_b).enumerate() {
        let differing = word(x) ^ word(y);
        if differing != 0 {
            return 8 * at + differing.trailing_zeros() as usize / 8;
        }
    }
    let common = 8 * words_a.len().min(words_b.len());
    let (tail_a, tail_b) = match words_a.len().cmp(&words_b.len()) {
        std::cmp::Ordering::Equal => (rest_a, rest_b),
        _ => (&a[common..], &b[common..]),
    };
    common + tail_a.iter().zip(tail_b).take_while(|(x, y)| x == y).count()
}

/// Length of the common suffix.
pub fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let (rest_a, words_a) = a.as_rchunks::<8>();
    let (rest_b, words_b) = b.as_rchunks::<8>();
    for (at, (x, y)) in words_a.iter().rev().zip(words_b.iter().rev()).enumerate() {
        let differing = word(x) ^ word(y);
        if differing != 0 {
            return 8 * at + differing.leading_zeros() as usize / 8;
        }
    }
    let common = 8 * words_a.len().min(words_b.len());
    let (head_a, head_b) = match words_a.len().cmp(&words_b.len()) {
        std::cmp::Ordering::Equal => (rest_a, rest_b),
        _ => (&a[..a.len() - common], &b[..b.len() - common]),
    };
    common + head_a.iter().rev().zip(head_b.iter().rev()).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn as_byte_by_byte() {
        let mut random = Random::new(11);
        for _ in 0..20_000 {
            let a: Vec<u8> = (0..random.index(40)).map(|_| random.below(2) as u8).collect();
            let mut b = a.clone();
            match random.below(4) {
                0 => b.truncate(random.index(40)),
                1 => b = b.split_off(random.index(b.len() + 1)),
                2 if !b.is_empty() => {
                    let at = random.index(b.len());
                    b[at] ^= 1 << random.below(8);
                }
                _ => b.extend((0..random.index(20)).map(|_| random.below(2) as u8)),
            }
            let prefix = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            let suffix = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
            assert_eq!(common_prefix(&a, &b), prefix, "{a:?} {b:?}");
            assert_eq!(common_suffix(&a, &b), suffix, "{a:?} {b:?}");
            let back = suffix.min(a.len().min(b.len()) - prefix);
            assert_eq!(Kept::between(&a, &b), Kept { front: prefix, back }, "{a:?} {b:?}");
        }
    }
}
