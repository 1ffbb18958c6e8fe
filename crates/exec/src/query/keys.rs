//! Byte keys, numbered from 0 in the order in which they first came: what DISTINCT, GROUP BY and
//! hash joins look rows up by. All keys lie in one piece of memory.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Where a key is found again.
struct Place {
    hash: u64,
    number: usize,
}

/// See the head of the file.
#[derive(Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// End of each key in `bytes`; it begins where the one before ends.
    ends: Vec<usize>,
    places: HashTable<Place>,
    hasher: DefaultHashBuilder,
}

/// Memory that a key takes besides its bytes.
pub const KEY_OVERHEAD_BYTES: usize = size_of::<usize>() + 2 * size_of::<Place>();

impl Keys {
    fn get<'k>(bytes: &'k [u8], ends: &[usize], number: usize) -> &'k [u8] {
        let start = number.checked_sub(1).map_or(0, |before| ends[before]);
        &bytes[start..ends[number]]
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Key number N.
    pub fn key(&self, number: usize) -> &[u8] {
        Self::get(&self.bytes, &self.ends, number)
    }

    /// Bytes of all keys.
    pub fn key_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The number of a key that came before.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        let same = |place: &Place| {
            place.hash == hash && Self::get(&self.bytes, &self.ends, place.number) == key
        };
        self.places.find(hash, same).map(|place| place.number)
    }

    /// The number of a key, and whether it came for the first time.
    pub fn insert(&mut self, key: &[u8]) -> (usize, bool) {
        let hash = self.hasher.hash_one(key);
        let (bytes, ends) = (&self.bytes, &self.ends);
        let same =
            |place: &Place| place.hash == hash && Self::get(bytes, ends, place.number) == key;
        match self.places.entry(hash, same, |place| place.hash) {
            hashbrown::hash_table::Entry::Occupied(found) => (found.get().number, false),
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                let number = ends.len();
                vacant.insert(Place { hash, number });
                self.bytes.extend_from_slice(key);
                self.ends.push(self.bytes.len());
                (number, true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbered_in_the_order_in_which_they_come() {
        let mut keys = Keys::default();
        let key = |number: usize| vec![b'k'; number % 7].into_iter().chain([number as u8]);
        for round in 0..2 {
            for number in 0..200 {
                let key: Vec<u8> = key(number).collect();
                assert_eq!(keys.find(&key), (round == 1).then_some(number));
                assert_eq!(keys.insert(&key), (number, round == 0));
            }
        }
        assert_eq!(keys.find(b""), None);
        assert_eq!(keys.insert(b""), (200, true));
    }
}
