//! Memory into which a worker's statements write their answers and their parameters. It belongs to
//! the worker and is lent to a session while that runs a command: what was used last is in the
//! cache, where memory that each of thousands of sessions kept for itself would not be. Idle
//! sessions hold none.
//!
//! 1. A room is taken out of the worker's list while in use; who finds none allocates.
//! 2. A worker's list is looked up anew by every call: the caller may have parked in between.

use std::cell::RefCell;
use types::Value;

/// Rooms that a worker keeps; commands that run at the same time need more.
const KEPT_MAX: usize = 8;
/// A room with more for answers is not kept.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Nor is one with more for parameters.
const PARAMETERS_MAX: usize = 256;

/// What a command writes into.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) answer: Vec<u8>,
    pub(crate) parameters: Vec<Value>,
}

thread_local! {
    static ROOMS: RefCell<Vec<Room>> = const { RefCell::new(Vec::new()) };
}

/// An empty room.
#[inline(never)]
pub(crate) fn take() -> Room {
    ROOMS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// It is not needed any more; its content is lost.
#[inline(never)]
pub(crate) fn give(mut room: Room) {
    room.answer.clear();
    room.parameters.clear();
    let (bytes, parameters) = (room.answer.capacity(), room.parameters.capacity());
    if bytes <= ANSWER_BYTES_MAX && parameters <= PARAMETERS_MAX && bytes + parameters > 0 {
        ROOMS.with_borrow_mut(|kept| {
            if kept.len() < KEPT_MAX {
                kept.push(room);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_rooms_come_back_empty_and_large_ones_do_not() {
        let capacities = |room: &Room| (room.answer.capacity(), room.parameters.capacity());
        give(Room::default());
        assert_eq!(ROOMS.with_borrow(Vec::len), 0, "nothing is not kept");
        give(Room { answer: b"an answer".to_vec(), parameters: vec![Value::Null] });
        let room = take();
        assert!(room.answer.is_empty() && room.parameters.is_empty());
        assert!(room.answer.capacity() >= 9 && room.parameters.capacity() >= 1);
        give(Room { answer: Vec::with_capacity(ANSWER_BYTES_MAX + 1), ..room });
        assert_eq!(capacities(&take()), (0, 0));
        give(Room { parameters: Vec::with_capacity(PARAMETERS_MAX + 1), ..Room::default() });
        assert_eq!(capacities(&take()), (0, 0));
        for _ in 0..2 * KEPT_MAX {
            give(Room { answer: vec![1], ..Room::default() });
        }
        assert_eq!(ROOMS.with_borrow(Vec::len), KEPT_MAX);
    }
}
