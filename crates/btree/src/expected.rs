//! Lookups that are expected: what [`crate::Tree::prefetch_leaf`] found out is not looked for again
//! by the lookup that follows a little later on the same worker.
//!
//! 1. A leaf from here is only tried, as one from a [`crate::LeafHint`]: see invariant 4 of
//!    `descent`. So it does no harm that keys are told apart by [`mark_of`] alone, that the tree
//!    has changed since, or that the lookup never comes.
//! 2. A worker has [`PLACES`] of them; a newer one takes the place of the oldest.

use base::{PageId, TreeId};
use std::cell::Cell;

/// Lookups expected at the same time.
const PLACES: usize = 4;

#[derive(Clone, Copy)]
struct Expected {
    tree: TreeId,
    mark: u64,
    leaf: PageId,
}

thread_local! {
    static PLACED: [Cell<Option<Expected>>; PLACES] =
        const { [const { Cell::new(None) }; PLACES] };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// A number of a key; different keys may have the same.
fn mark_of(key: &[u8]) -> u64 {
    let word =
        |bytes: &[u8]| bytes.iter().take(8).fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
    let last = &key[key.len().saturating_sub(8)..];
    word(key).rotate_left(32) ^ word(last) ^ (key.len() as u64) << 56
}

/// Notes in which leaf a key is to be looked up.
pub fn note(tree: TreeId, key: &[u8], leaf: PageId) {
    let number = COUNT.get();
    COUNT.set(number.wrapping_add(1));
    let expected = Expected { tree, mark: mark_of(key), leaf };
    PLACED.with(|places| places[number % PLACES].set(Some(expected)));
}

/// The leaf noted for a key, once.
#[inline]
pub fn take(tree: TreeId, key: &[u8]) -> Option<PageId> {
    if COUNT.get() == 0 { None } else { find(tree, key) }
}

#[inline(never)]
fn find(tree: TreeId, key: &[u8]) -> Option<PageId> {
    let mark = mark_of(key);
    PLACED.with(|places| {
        let is_it = |place: &&Cell<Option<Expected>>| {
            place.get().is_some_and(|it| it.mark == mark && it.tree == tree)
        };
        places.iter().find(is_it)?.take().map(|it| it.leaf)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_few_are_found_once() {
        let (tree, leaf) = (TreeId::new(7), |number| PageId::new(number));
        assert_eq!(take(tree, b"nobody"), None);
        for number in 0..=PLACES as u64 {
            note(tree, &number.to_be_bytes(), leaf(100 + number));
        }
        assert_eq!(take(tree, &0u64.to_be_bytes()), None, "newer ones took its place");
        assert_eq!(take(TreeId::new(8), &1u64.to_be_bytes()), None, "another tree's");
        for number in 1..=PLACES as u64 {
            assert_eq!(take(tree, &number.to_be_bytes()), Some(leaf(100 + number)));
            assert_eq!(take(tree, &number.to_be_bytes()), None);
        }
    }
}
