//! What both event loops do, and the numbers by which they name who waits.

use super::epoll::EpollLoop;
use super::group::Ring;
use super::group::errno;
use super::outbox::Placed;
use super::uring::UringLoop;
use crate::mailbox::Mailbox;
use crate::worker::Worker;
use std::io;
use std::os::fd::RawFd;

/// Who is told about a completion; 64 bits that the kernel carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// A part of the operation of the fiber in this slot.
    Fiber { slot: u32, part: u8 },
    /// An idle connection; the sequence number tells this wait from former ones.
    Connection { place: u32, sequence: u32 },
    /// The answer with this number in the outbox.
    Sent { number: u32 },
    /// The worker's own wake-up descriptor.
    WakeUp,
    /// The worker's alarm.
    Alarm,
    /// Nobody.
    Nobody,
}

/// Sequence numbers of connection waits have 24 bits.
pub(crate) const SEQUENCE_MASK: u32 = (1 << 24) - 1;

impl Token {
    pub(crate) fn to_bits(self) -> u64 {
        match self {
            Self::Fiber { slot, part } => u64::from(part) << 32 | u64::from(slot),
            Self::Connection { place, sequence } => {
                1 << 56 | u64::from(sequence & SEQUENCE_MASK) << 32 | u64::from(place)
            }
            Self::WakeUp => 2 << 56,
            Self::Nobody => 3 << 56,
            Self::Sent { number } => 4 << 56 | u64::from(number),
            Self::Alarm => 5 << 56,
        }
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        let low = bits as u32;
        match bits >> 56 {
            0 => Self::Fiber { slot: low, part: (bits >> 32) as u8 },
            1 => Self::Connection { place: low, sequence: (bits >> 32) as u32 & SEQUENCE_MASK },
            2 => Self::WakeUp,
            4 => Self::Sent { number: low },
            5 => Self::Alarm,
            _ => Self::Nobody,
        }
    }
}

/// A file operation of the current fiber. The memory stays valid and, for a read, exclusive until
/// the operation has ended, because the fiber waits for that.
#[derive(Clone, Copy)]
pub(crate) enum FileOperation {
    Read {
        fd: RawFd,
        address: *mut u8,
        length: u32,
        offset: u64,
    },
    /// With `durable` it ends when what it wrote is durable.
    Write {
        fd: RawFd,
        address: *const u8,
        length: u32,
        offset: u64,
        durable: bool,
    },
    Sync {
        fd: RawFd,
    },
    /// Two parts: the write, and the sync that begins when all of it is written.
    WriteAndSync {
        fd: RawFd,
        address: *const u8,
        length: u32,
        offset: u64,
    },
}

impl FileOperation {
    /// Runs it by system call, for which the thread waits. Gives the results of its one or two
    /// parts, negative for errors.
    ///
    /// # Safety
    /// Addresses and lengths are valid, and nobody else uses the memory of a read.
    pub(crate) unsafe fn call(self) -> (i32, Option<i32>) {
        let result = |value: isize| if value < 0 { -errno() } else { value as i32 };
        // SAFETY: the caller's promise; offsets are those of files.
        unsafe {
            match self {
                Self::Read { fd, address, length, offset } => {
                    let done =
                        libc::pread(fd, address.cast(), length as usize, offset as libc::off_t);
                    (result(done), None)
                }
                Self::Write { fd, address, length, offset, durable } => {
                    let piece = libc::iovec {
                        iov_base: address.cast_mut().cast(),
                        iov_len: length as usize,
                    };
                    let flags = if durable { libc::RWF_DSYNC } else { 0 };
                    let done =
                        libc::pwritev2(fd, &raw const piece, 1, offset as libc::off_t, flags);
                    (result(done), None)
                }
                Self::Sync { fd } => (result(libc::fdatasync(fd) as isize), None),
                Self::WriteAndSync { fd, address, length, offset } => {
                    let done =
                        libc::pwrite(fd, address.cast(), length as usize, offset as libc::off_t);
                    let written = result(done);
                    if done != length as isize {
                        return (written, Some(-libc::ECANCELED));
                    }
                    (written, Some(result(libc::fdatasync(fd) as isize)))
                }
            }
        }
    }

    pub(crate) fn parts(&self) -> u8 {
        if matches!(self, Self::WriteAndSync { .. }) { 2 } else { 1 }
    }
}

/// The event loop of one worker.
#[expect(clippy::large_enum_variant, reason = "one per worker, never moved after the start")]
pub(crate) enum EventLoop {
    Uring(UringLoop),
    Epoll(EpollLoop),
}

impl EventLoop {
    /// Makes the loop; called on the worker's thread.
    pub(crate) fn new(ring: Ring, mailbox: &'static Mailbox) -> io::Result<Self> {
        match ring {
            Ring::Uring => UringLoop::new(mailbox).map(Self::Uring),
            Ring::Fallback => EpollLoop::new(mailbox).map(Self::Epoll),
            Ring::Auto => match UringLoop::new(mailbox) {
                Ok(uring) => Ok(Self::Uring(uring)),
                Err(_) => EpollLoop::new(mailbox).map(Self::Epoll),
            },
        }
    }

    pub(crate) fn is_uring(&self) -> bool {
        matches!(self, Self::Uring(_))
    }

    /// Asks once for `events` (POLLIN, POLLOUT) on a descriptor; the token is told.
    pub(crate) fn poll_add(&self, fd: RawFd, events: u32, token: Token) {
        match self {
            Self::Uring(uring) => uring.poll_add(fd, events, token),
            Self::Epoll(epoll) => epoll.poll_add(fd, events, token),
        }
    }

    /// Asks once for the next bytes of a connection. Its token is told when there are some, mostly
    /// together with them, or when the connection has ended.
    pub(crate) fn receive(&self, fd: RawFd, token: Token) {
        match self {
            Self::Uring(uring) => uring.receive(fd, token),
            Self::Epoll(epoll) => epoll.poll_add(fd, libc::POLLIN as u32, token),
        }
    }

    /// Whether the kernel may still write into the loop's buffers.
    pub(crate) fn has_receives(&self) -> bool {
        match self {
            Self::Uring(uring) => uring.has_receives(),
            Self::Epoll(_) => false,
        }
    }

    /// Copies an answer to where it can be sent from later; `None`: the caller sends it now.
    pub(crate) fn place_answer(&self, bytes: &[u8]) -> Option<Placed> {
        match self {
            Self::Uring(uring) => uring.outbox.place(bytes),
            Self::Epoll(_) => None,
        }
    }

    /// Takes back what [`EventLoop::place_answer`] gave: the answer's bytes.
    pub(crate) fn withdraw_answer(&self, answer: Placed) -> Vec<u8> {
        match self {
            Self::Uring(uring) => uring.outbox.withdraw(answer),
            Self::Epoll(_) => unreachable!("this loop places no answers"),
        }
    }

    /// Sends an answer with the next hand-over, in front of the connection's next receive.
    pub(crate) fn send(&self, fd: RawFd, answer: Placed, place: u32, sequence: u32) {
        match self {
            Self::Uring(uring) => uring.send(fd, answer, place, sequence),
            Self::Epoll(_) => unreachable!("this loop places no answers"),
        }
    }

    /// Takes back a [`EventLoop::poll_add`]. A fiber's token is told in any case.
    pub(crate) fn poll_cancel(&self, worker: &Worker, fd: RawFd, token: Token) {
        match self {
            Self::Uring(uring) => uring.poll_cancel(token),
            Self::Epoll(epoll) => epoll.poll_cancel(worker, fd),
        }
    }

    /// The descriptor goes to another worker or is closed; nothing is asked for on it.
    pub(crate) fn forget(&self, fd: RawFd) {
        if let Self::Epoll(epoll) = self {
            epoll.forget(fd);
        }
    }

    /// Begins a file operation of the current fiber.
    pub(crate) fn start_file(&self, worker: &Worker, operation: FileOperation) {
        match self {
            Self::Uring(uring) => uring.start_file(worker, operation),
            Self::Epoll(_) => EpollLoop::start_file(worker, operation),
        }
    }

    /// Hands over what was asked for, and delivers what has happened. Waits up to this many
    /// nanoseconds (`u64::MAX`: for ever) for something to happen, or not at all.
    pub(crate) fn poll(&self, worker: &Worker, wait_nanos: Option<u64>) {
        match self {
            Self::Uring(uring) => uring.poll(worker, wait_nanos),
            Self::Epoll(epoll) => epoll.poll(worker, wait_nanos),
        }
    }

    /// The worker ends: takes back all polls, so that fibers waiting for sockets are told.
    pub(crate) fn cancel_polls(&self, worker: &Worker) {
        match self {
            Self::Uring(uring) => uring.cancel_polls(),
            Self::Epoll(epoll) => epoll.cancel_polls(worker),
        }
    }
}

/// Delivers one completion; `bytes`: what was received with it.
pub(super) fn complete(worker: &Worker, token: Token, result: i32, bytes: &[u8]) {
    match token {
        Token::Fiber { slot, part } => worker.complete_part(slot, part, result),
        Token::Connection { place, sequence } => {
            if let crate::worker::Twin::Real(real) = &worker.twin {
                real.connections.received(worker, real, (place, sequence), result, bytes);
            }
        }
        Token::WakeUp | Token::Alarm | Token::Nobody | Token::Sent { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_kernel() {
        let tokens = [
            Token::Fiber { slot: u32::MAX, part: 1 },
            Token::Fiber { slot: 0, part: 0 },
            Token::Connection { place: 9, sequence: SEQUENCE_MASK },
            Token::WakeUp,
            Token::Alarm,
            Token::Nobody,
            Token::Sent { number: u32::MAX },
        ];
        for token in tokens {
            assert_eq!(Token::from_bits(token.to_bits()), token);
        }
    }
}
