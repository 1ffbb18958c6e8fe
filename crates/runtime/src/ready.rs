//! The queue of fibers that can run.
//!
//! Completions, new fibers and yields go first-in-first-out; fibers that a running fiber of the
//! same worker woke go last-in-first-out, because what they need is still in the cache. What has
//! waited for more than [`AGE_LIMIT_TURNS`] turns of the loop goes first, so neither order starves
//! anybody.

use std::collections::VecDeque;

/// A fiber may be passed by newer ones for this many turns of the loop (a turn is 100 us at most).
const AGE_LIMIT_TURNS: u32 = 3;

#[derive(Clone, Copy)]
struct Entry {
    slot: u32,
    turn: u32,
}

/// The two queues of one worker.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    in_order: VecDeque<Entry>,
    hot: VecDeque<Entry>,
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

    /// The fiber to run now.
    #[inline]
    pub(crate) fn pop(&mut self, turn: u32) -> Option<u32> {
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

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.hot.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.hot.is_empty()
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
        assert_eq!(queue.pop(0), Some(4));
        queue.push_hot(5, 4);
        assert_eq!(queue.pop(4), Some(1), "old ones go first, in order");
        assert_eq!(queue.pop(4), Some(2));
        assert_eq!(queue.pop(4), Some(3), "then old hot ones");
        assert_eq!(queue.pop(4), Some(5));
        assert!(queue.pop(4).is_none() && queue.is_empty());
    }
}
