//! The queue of fibers that can run.
//!
//! 1. Completions, new fibers and early yields go first-in-first-out; fibers that a running fiber
//!    of the same worker woke go last-in-first-out, because what they need is still in the cache.
//!    What has waited for more than [`AGE_LIMIT_TURNS`] turns of the loop goes first, so neither
//!    order starves the other.
//! 2. A fiber that has used up a slice is long: it goes to a queue of its own and runs when no
//!    other fiber is ready, so that a short statement waits for at most the slice that runs.
//! 3. A long fiber whose queue was passed over for [`LONG_LIMIT_TURNS`] turns runs all the same:
//!    long fibers together have at least about a third of a worker, whatever else comes. Among
//!    themselves they take turns.

use std::collections::VecDeque;

/// A fiber may be passed by newer ones for this many turns of the loop (a turn is 150 us at most).
const AGE_LIMIT_TURNS: u32 = 3;

/// Long fibers get no slice for this many turns, at most.
const LONG_LIMIT_TURNS: u32 = 2;

#[derive(Clone, Copy)]
struct Entry {
    slot: u32,
    turn: u32,
}

/// The queues of one worker.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    in_order: VecDeque<Entry>,
    hot: VecDeque<Entry>,
    long: VecDeque<u32>,
    /// The turn in which a long fiber ran last, or in which the first one came.
    long_turn: u32,
}

impl ReadyQueue {
    /// Queues a fiber behind the others.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, turn: u32) {
        self.in_order.push_back(Entry { slot, turn });
    }

    /// Queues a fiber to run next.
    #[inline]
    pub(crate) fn push_hot(&mut self, slot: u32, turn: u32) {
        self.hot.push_back(Entry { slot, turn });
    }

    /// Queues a fiber that has used up its slice.
    pub(crate) fn push_long(&mut self, slot: u32, turn: u32) {
        if self.long.is_empty() {
            self.long_turn = turn;
        }
        self.long.push_back(slot);
    }

    /// The fiber to run now, long ones only when they have waited too long.
    #[inline]
    pub(crate) fn pop(&mut self, turn: u32) -> Option<u32> {
        let is_due = turn.wrapping_sub(self.long_turn) > LONG_LIMIT_TURNS;
        if is_due && !self.long.is_empty() {
            return self.pop_long(turn);
        }
        let aged = |entry: Option<&Entry>| {
            entry.is_some_and(|it| turn.wrapping_sub(it.turn) > AGE_LIMIT_TURNS)
        };
        let entry = if aged(self.in_order.front()) {
            self.in_order.pop_front()
        } else if aged(self.hot.front()) {
            self.hot.pop_front()
        } else {
            self.hot.pop_back().or_else(|| self.in_order.pop_front())
        };
        entry.map(|entry| entry.slot)
    }

    /// The fiber that is likely to run when so many others of the short ones have.
    #[inline]
    pub(crate) fn ahead(&self, distance: usize) -> Option<u32> {
        let entry = match self.hot.len().checked_sub(distance + 1) {
            Some(position) => self.hot.get(position),
            None => self.in_order.get(distance - self.hot.len()),
        };
        entry.map(|entry| entry.slot)
    }

    /// The long fiber that has waited longest, for when there is nothing else to run.
    #[inline]
    pub(crate) fn pop_long(&mut self, turn: u32) -> Option<u32> {
        let slot = self.long.pop_front()?;
        self.long_turn = turn;
        Some(slot)
    }

    /// Fibers that are ready, without the long ones.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.hot.len()
    }

    /// Whether some fiber that is ready has to wait for another one of its kind; that a long one
    /// waits for short ones is as it should be.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.len() > 1 || self.long.len() > 1
    }

    #[inline]
    pub(crate) fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.hot.is_empty() && self.long.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_first_until_others_are_old() {
        let mut queue = ReadyQueue::default();
        queue.push(1, 0);
        queue.push(2, 0);
        queue.push_hot(3, 0);
        queue.push_hot(4, 0);
        let ahead: Vec<_> = (0..5).map(|distance| queue.ahead(distance)).collect();
        assert_eq!(ahead, [Some(4), Some(3), Some(1), Some(2), None]);
        assert_eq!(queue.pop(0), Some(4));
        queue.push_hot(5, 4);
        assert_eq!(queue.pop(4), Some(1), "old ones go first, in order");
        assert_eq!(queue.pop(4), Some(2));
        assert_eq!(queue.pop(4), Some(3), "then old hot ones");
        assert_eq!(queue.pop(4), Some(5));
        assert!(queue.pop(4).is_none() && queue.is_empty());
    }

    #[test]
    fn it_is_crowded_when_fibers_wait_for_others_of_their_kind() {
        let mut queue = ReadyQueue::default();
        queue.push_long(1, 0);
        queue.push(2, 0);
        assert!(!queue.is_crowded(), "one for the time that the other leaves");
        queue.push_hot(3, 0);
        assert!(queue.is_crowded());
        assert!(queue.pop(0).is_some() && !queue.is_crowded());
        queue.push_long(4, 0);
        assert!(queue.is_crowded());
    }

    /// Eight long fibers and an endless stream of short ones: every short one is passed by at
    /// most one slice of a long one, and every long one gets its turn.
    #[test]
    fn long_fibers_give_way_but_do_not_starve() {
        let mut queue = ReadyQueue::default();
        let mut slices = [0u32; 8];
        (0..8).for_each(|slot| queue.push_long(slot, 0));
        let mut long_in_a_row = 0;
        for turn in 1..=2400 {
            queue.push(100 + turn, turn);
            while let Some(slot) = queue.pop(turn) {
                if slot >= 100 {
                    long_in_a_row = 0;
                    continue;
                }
                long_in_a_row += 1;
                assert!(long_in_a_row < 2, "a short fiber waits for one slice at most");
                slices[slot as usize] += 1;
                queue.push_long(slot, turn);
            }
        }
        assert_eq!(slices, [100; 8], "a slice in three turns, in turn");
    }

    #[test]
    fn long_fibers_have_all_that_nobody_else_wants() {
        let mut queue = ReadyQueue::default();
        queue.push_long(1, 0);
        queue.push_long(2, 0);
        assert!(!queue.is_empty());
        assert_eq!(queue.len(), 0, "long ones are not counted");
        assert_eq!(queue.pop(1), None, "first the backlog is looked at");
        assert_eq!((queue.pop_long(1), queue.pop_long(1)), (Some(1), Some(2)));
        assert!(queue.is_empty() && queue.pop_long(1).is_none());
    }
}
