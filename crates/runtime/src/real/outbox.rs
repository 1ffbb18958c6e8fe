//! Answers that leave with the next hand-over to the kernel: all connections that a worker served
//! in one turn are answered by one system call, which also asks for their next bytes. (A system
//! call for each answer wakes its client each time, and the client then often takes the core away
//! from the worker.)
//!
//! Invariants:
//! 1. The bytes of an answer stay where they are until its completion was delivered: room is used
//!    again only when no answer is outstanding.
//! 2. The receive of a connection is queued behind the send of its answer. Sends never wait in
//!    the kernel (MSG_DONTWAIT), so their completions are delivered first.
//! 3. What the kernel did not take is sent by a fiber of its own, and the connection is not run
//!    before that has ended: answers stay in order.
//! 4. Memory is bounded: [`ROOM_BYTES`] for a worker, and [`ANSWER_BYTES_MAX`] for each
//!    connection whose client does not read. What finds no room is sent by a call of its own.
//! 5. An answer is held for no longer than the rest of the turn in which it was made, because a
//!    turn ends with the hand-over: 64 fibers or one time slice, whatever is first.

use crate::file::AlignedBuf;
use std::cell::{Cell, RefCell};

/// Larger answers are sent at once: the copy would cost more than the system call.
pub(crate) const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Room for the answers of one turn.
const ROOM_BYTES: usize = 256 * 1024;

/// Where an answer lies. Goes back by [`Outbox::withdraw`] or [`Outbox::queue`].
#[derive(Debug)]
pub(crate) struct Placed {
    start: usize,
    length: usize,
}

/// An answer given to the kernel, and the wait of the connection that it belongs to.
struct Sending {
    placed: Placed,
    place: u32,
    sequence: u32,
}

/// What the kernel did not take of an answer.
pub(crate) struct Unsent {
    /// The connection's place.
    pub(crate) place: u32,
    /// The wait that the connection is in.
    pub(crate) sequence: u32,
    /// What is left to send; `None`: the connection is broken.
    pub(crate) rest: Option<Vec<u8>>,
}

/// See the head of the file.
pub(crate) struct Outbox {
    /// Start of the memory; the kernel reads through it, so it is never borrowed as a whole.
    base: *mut u8,
    _memory: AlignedBuf,
    used: Cell<usize>,
    outstanding: Cell<usize>,
    sending: RefCell<Vec<Sending>>,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let mut memory = AlignedBuf::zeroed(ROOM_BYTES);
        Self {
            base: memory.as_mut_ptr(),
            _memory: memory,
            used: Cell::new(0),
            outstanding: Cell::new(0),
            sending: RefCell::new(Vec::new()),
        }
    }

    /// Copies an answer to where it can be sent from, if there is room.
    pub(crate) fn place(&self, bytes: &[u8]) -> Option<Placed> {
        let (start, length) = (self.used.get(), bytes.len());
        if length > ANSWER_BYTES_MAX || start + length > ROOM_BYTES {
            return None;
        }
        // SAFETY: the room is within the memory, and no answer lies there (invariant 1).
        unsafe { self.address(start).copy_from_nonoverlapping(bytes.as_ptr(), length) };
        self.used.set(start + length);
        self.outstanding.set(self.outstanding.get() + 1);
        Some(Placed { start, length })
    }

    /// The answer is not sent from here.
    pub(crate) fn withdraw(&self, placed: Placed) -> Vec<u8> {
        let bytes = self.copy_of(placed.start, placed.start + placed.length);
        self.end_one();
        bytes
    }

    fn address(&self, start: usize) -> *mut u8 {
        assert!(start <= ROOM_BYTES, "answers lie within the memory");
        // SAFETY: within the memory or at its end.
        unsafe { self.base.add(start) }
    }

    fn copy_of(&self, start: usize, end: usize) -> Vec<u8> {
        assert!(start <= end && end <= self.used.get(), "an answer lies where room was taken");
        // SAFETY: within the memory; nobody writes where an answer lies (invariant 1).
        unsafe { std::slice::from_raw_parts(self.address(start), end - start) }.to_vec()
    }

    /// The answer goes to the kernel: its number, for [`Outbox::completed`], and its bytes.
    pub(crate) fn queue(
        &self,
        placed: Placed,
        place: u32,
        sequence: u32,
    ) -> (u32, *const u8, usize) {
        let address = self.address(placed.start).cast_const();
        let length = placed.length;
        let mut sending = self.sending.borrow_mut();
        sending.push(Sending { placed, place, sequence });
        (sending.len() as u32 - 1, address, length)
    }

    /// The kernel took this many bytes of an answer, or none (a negative error number).
    pub(crate) fn completed(&self, number: u32, result: i32) -> Option<Unsent> {
        let unsent = {
            let sending = self.sending.borrow();
            let sending = &sending[number as usize];
            let Placed { start, length } = sending.placed;
            let taken = match result {
                0.. => Some(result as usize),
                _ if result == -libc::EAGAIN || result == -libc::EINTR => Some(0),
                _ => None,
            };
            (taken != Some(length)).then(|| Unsent {
                place: sending.place,
                sequence: sending.sequence,
                rest: taken.map(|taken| self.copy_of(start + taken.min(length), start + length)),
            })
        };
        self.end_one();
        unsent
    }

    fn end_one(&self) {
        let left = self.outstanding.get() - 1;
        self.outstanding.set(left);
        if left == 0 {
            self.used.set(0);
            self.sending.borrow_mut().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would read.
    fn seen((number, address, length): (u32, *const u8, usize)) -> (u32, Vec<u8>) {
        // SAFETY: the outbox keeps the bytes until the completion, which comes later.
        (number, unsafe { std::slice::from_raw_parts(address, length) }.to_vec())
    }

    #[test]
    fn room_is_used_again_when_nothing_is_outstanding() {
        let outbox = Outbox::new();
        let (first, second) = (outbox.place(b"first").expect("room"), outbox.place(b"second"));
        let second = outbox.queue(second.expect("room"), 7, 70);
        let first = outbox.queue(first, 6, 60);
        let third = outbox.place(b"third").expect("room");
        assert_eq!(seen(second), (0, b"second".to_vec()));
        assert!(outbox.completed(0, 6).is_none());
        assert_eq!(seen(first), (1, b"first".to_vec()), "invariant 1");
        assert!(outbox.completed(1, 5).is_none());
        assert_eq!(outbox.used.get(), 16, "the third is still there");
        assert_eq!(outbox.withdraw(third), b"third");
        assert_eq!((outbox.used.get(), outbox.sending.borrow().len()), (0, 0));
    }

    #[test]
    fn what_the_kernel_did_not_take_comes_back() {
        let outbox = Outbox::new();
        let queue = |sequence| {
            let placed = outbox.place(b"an answer").expect("room");
            outbox.queue(placed, 3, sequence).0
        };
        let (short, full, broken) = (queue(1), queue(2), queue(3));
        let rest = |unsent: Unsent| (unsent.place, unsent.sequence, unsent.rest);
        let answer = outbox.completed(short, 3).map(rest);
        assert_eq!(answer, Some((3, 1, Some(b"answer".to_vec()))));
        let answer = outbox.completed(full, -libc::EAGAIN).map(rest);
        assert_eq!(answer, Some((3, 2, Some(b"an answer".to_vec()))));
        assert_eq!(outbox.completed(broken, -libc::EPIPE).map(rest), Some((3, 3, None)));
    }

    #[test]
    fn room_is_bounded() {
        let outbox = Outbox::new();
        assert!(outbox.place(&vec![0; ANSWER_BYTES_MAX + 1]).is_none());
        let answer = vec![1; ANSWER_BYTES_MAX];
        let placed: Vec<_> = std::iter::from_fn(|| outbox.place(&answer)).collect();
        assert_eq!(placed.len(), ROOM_BYTES / ANSWER_BYTES_MAX);
        assert!(outbox.place(b"x").is_none());
        placed.into_iter().for_each(|placed| assert_eq!(outbox.withdraw(placed), answer));
        assert!(outbox.place(b"x").is_some());
    }
}
