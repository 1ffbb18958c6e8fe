//! The fall-back loop: epoll for sockets, helper threads for files.
//!
//! Invariant: `armed` has exactly the descriptors that somebody waits for, each with one token;
//! the kernel's registration is one-shot, so it is silent otherwise.

use super::event_loop::{FileOperation, Token, complete};
use super::group::errno;
use super::helpers;
use crate::mailbox::Mailbox;
use crate::worker::{Twin, Worker};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Events fetched at once.
const EVENTS: usize = 128;

/// Who waits for a descriptor, by its number: the kernel gives the lowest that is free.
#[derive(Default)]
struct Armed(Vec<Option<Token>>);

impl Armed {
    fn insert(&mut self, fd: RawFd, token: Token) -> Option<Token> {
        let place = fd as usize;
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].replace(token)
    }

    fn remove(&mut self, fd: RawFd) -> Option<Token> {
        self.0.get_mut(fd as usize)?.take()
    }
}

pub(crate) struct EpollLoop {
    epoll: OwnedFd,
    wake_descriptor: RawFd,
    armed: RefCell<Armed>,
    events: RefCell<Vec<libc::epoll_event>>,
}

impl EpollLoop {
    pub(crate) fn new(mailbox: &'static Mailbox) -> io::Result<Self> {
        // SAFETY: no memory is passed; the descriptor is new and ours.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let wake_descriptor = mailbox.wake_descriptor()?;
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let this = Self {
            epoll,
            wake_descriptor,
            armed: RefCell::new(Armed::default()),
            events: RefCell::new(events),
        };
        let flags = (libc::EPOLLIN | libc::EPOLLET) as u32;
        if !this.control(libc::EPOLL_CTL_ADD, wake_descriptor, flags) {
            return Err(io::Error::last_os_error());
        }
        Ok(this)
    }

    fn control(&self, operation: i32, fd: RawFd, events: u32) -> bool {
        let mut event = libc::epoll_event { events, u64: fd as u64 };
        // SAFETY: a valid event.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) == 0 }
    }

    pub(crate) fn poll_add(&self, fd: RawFd, events: u32, token: Token) {
        // POLLIN and POLLOUT have the values of EPOLLIN and EPOLLOUT.
        let flags = events | (libc::EPOLLONESHOT | libc::EPOLLRDHUP) as u32;
        let former = self.armed.borrow_mut().insert(fd, token);
        debug_assert!(former.is_none(), "one waiter for a descriptor");
        let ok = self.control(libc::EPOLL_CTL_MOD, fd, flags)
            || (errno() == libc::ENOENT && self.control(libc::EPOLL_CTL_ADD, fd, flags));
        assert!(ok, "epoll refuses a descriptor: {}", io::Error::last_os_error());
    }

    pub(crate) fn poll_cancel(&self, worker: &Worker, fd: RawFd) {
        let armed = self.armed.borrow_mut().remove(fd);
        if let Some(token) = armed {
            self.control(libc::EPOLL_CTL_DEL, fd, 0);
            complete(worker, token, -libc::ECANCELED, &[]);
        }
    }

    pub(crate) fn forget(&self, fd: RawFd) {
        self.control(libc::EPOLL_CTL_DEL, fd, 0);
    }

    pub(crate) fn cancel_polls(&self, worker: &Worker) {
        let armed = self.armed.take();
        for (fd, token) in armed.0.into_iter().enumerate() {
            let Some(token) = token else { continue };
            self.control(libc::EPOLL_CTL_DEL, fd as RawFd, 0);
            complete(worker, token, -libc::ECANCELED, &[]);
        }
    }

    pub(crate) fn poll(&self, worker: &Worker, wait_nanos: Option<u64>) {
        let timeout = match wait_nanos {
            None => 0,
            Some(u64::MAX) => -1,
            // Rounded up, so as not to wake before the timer.
            Some(nanos) => i32::try_from(nanos.div_ceil(1_000_000)).unwrap_or(i32::MAX),
        };
        let mut events = self.events.take();
        // SAFETY: room for EVENTS events.
        let count = unsafe {
            let epoll = self.epoll.as_raw_fd();
            libc::epoll_wait(epoll, events.as_mut_ptr(), EVENTS as i32, timeout)
        };
        for event in &events[..count.max(0) as usize] {
            let fd = event.u64 as RawFd;
            if fd == self.wake_descriptor {
                self.drain_wake_descriptor();
                continue;
            }
            let token = self.armed.borrow_mut().remove(fd);
            if let Some(token) = token {
                complete(worker, token, event.events as i32, &[]);
            }
        }
        self.events.replace(events);
    }

    fn drain_wake_descriptor(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight valid bytes; the descriptor is readable.
        unsafe { libc::read(self.wake_descriptor, count.as_mut_ptr().cast(), 8) };
    }

    /// Runs a file operation of the current fiber on a helper thread.
    pub(crate) fn start_file(worker: &Worker, operation: FileOperation) {
        let Twin::Real(real) = &worker.twin else { return };
        let (mailbox, fiber) = (worker.mailbox, worker.current_fiber());
        let shipped = Shipped(operation);
        real.group.helpers.run(Box::new(move || {
            let (first, second) = shipped.run();
            if let Some(second) = second {
                helpers::complete(mailbox, fiber, 1, second);
            }
            helpers::complete(mailbox, fiber, 0, first);
        }));
    }
}

/// An operation on its way to a helper thread.
struct Shipped(FileOperation);

// SAFETY: the memory belongs to the fiber that waits for the operation's end.
unsafe impl Send for Shipped {}

impl Shipped {
    fn run(self) -> (i32, Option<i32>) {
        // SAFETY: addresses and lengths are valid until the fiber is told.
        unsafe { self.0.call() }
    }
}
