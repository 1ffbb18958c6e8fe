//! Timers of one worker: a binary heap that knows where each timer is, so that a deadline which
//! did not come (nearly all of them) is removed at once instead of piling up.

/// A timer in the heap. Valid until it fires or is removed; numbers are reused after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimerId(u32);

impl TimerId {
    /// Stands for "no timer".
    pub(crate) const NONE: Self = Self(u32::MAX);
}

#[derive(Clone, Copy)]
struct Entry<T> {
    deadline_nanos: u64,
    sequence: u64,
    id: u32,
    target: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (u64, u64) {
        (self.deadline_nanos, self.sequence)
    }
}

/// The heap; `T` says whom to wake. Equal deadlines fire in the order of insertion.
pub(crate) struct Timers<T> {
    heap: Vec<Entry<T>>,
    positions: Vec<u32>,
    free: Vec<u32>,
    sequence: u64,
}

impl<T: Copy> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { heap: Vec::new(), positions: Vec::new(), free: Vec::new(), sequence: 0 }
    }

    /// Adds a timer.
    pub(crate) fn insert(&mut self, deadline_nanos: u64, target: T) -> TimerId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.positions.push(0);
            self.positions.len() as u32 - 1
        });
        self.sequence += 1;
        let position = self.heap.len();
        self.heap.push(Entry { deadline_nanos, sequence: self.sequence, id, target });
        self.sift_up(position);
        TimerId(id)
    }

    /// Removes a timer that has not fired.
    pub(crate) fn remove(&mut self, timer: TimerId) {
        self.remove_at(self.positions[timer.0 as usize] as usize);
    }

    /// When the next timer fires.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.heap.first().map(|entry| entry.deadline_nanos)
    }

    /// Takes out the first timer whose deadline is not after `now_nanos`.
    pub(crate) fn pop_due(&mut self, now_nanos: u64) -> Option<T> {
        let first = self.heap.first()?;
        (first.deadline_nanos <= now_nanos).then(|| self.remove_at(0))
    }

    fn remove_at(&mut self, position: usize) -> T {
        let removed = self.heap.swap_remove(position);
        self.free.push(removed.id);
        if position < self.heap.len() {
            self.sift_down(position);
            self.sift_up(position);
        }
        removed.target
    }

    fn place(&mut self, position: usize, entry: Entry<T>) {
        self.positions[entry.id as usize] = position as u32;
        self.heap[position] = entry;
    }

    fn sift_up(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.place(position, self.heap[parent]);
            position = parent;
        }
        self.place(position, entry);
    }

    fn sift_down(&mut self, mut position: usize) {
        let entry = self.heap[position];
        loop {
            let mut child = 2 * position + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].key() < self.heap[child].key() {
                child += 1;
            }
            if entry.key() <= self.heap[child].key() {
                break;
            }
            self.place(position, self.heap[child]);
            position = child;
        }
        self.place(position, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_sorted_map() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut timers = Timers::new();
            let mut model: BTreeMap<(u64, u64), TimerId> = BTreeMap::new();
            let mut now = 0;
            for number in 0..500u64 {
                match random.below(4) {
                    0 | 1 => {
                        let deadline = now + random.below(100);
                        model.insert((deadline, number), timers.insert(deadline, number));
                    }
                    2 if !model.is_empty() => {
                        let key = *model.keys().nth(random.index(model.len())).expect("in range");
                        timers.remove(model.remove(&key).expect("just seen"));
                    }
                    _ => {
                        now += random.below(30);
                        while let Some(target) = timers.pop_due(now) {
                            let (key, _) = model.pop_first().expect("the model has it too");
                            assert_eq!(key.1, target);
                            assert!(key.0 <= now);
                        }
                    }
                }
                assert_eq!(timers.next_deadline(), model.keys().next().map(|key| key.0));
            }
        }
    }
}
