//! Sockets of the real twin: non-blocking calls first, the event loop when they would block.

use super::backlog::Backlog;
use super::event_loop::{EventLoop, SEQUENCE_MASK, Token};
use super::group::{RealTwin, errno};
use crate::clock::Instant;
use crate::net::{Address, Connection, Next, Stream};
use crate::park::{WaitClass, Wake};
use crate::timer::TimerId;
use crate::worker::{self, TimerTarget, Twin, Worker};
use base::metrics::Counter;
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// Connections that went to a worker with less to do.
static CONNECTIONS_MOVED: Counter =
    Counter::new("runtime_connections_moved", "connections moved to a worker with less to do");

const IN: u32 = libc::POLLIN as u32;
const OUT: u32 = libc::POLLOUT as u32;

/// A socket in non-blocking mode.
#[derive(Clone)]
pub(crate) struct RealStream {
    fd: Arc<OwnedFd>,
}

pub(super) fn check(status: i32) -> io::Result<i32> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

fn real_here() -> io::Result<(&'static Worker, &'static RealTwin)> {
    let worker = worker::current();
    match &worker.twin {
        Twin::Real(real) if !worker.is_halting() => Ok((worker, real)),
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

/// Parks the current fiber until one of `events` comes; false when the deadline came first.
pub(super) fn wait_for(fd: RawFd, events: u32, deadline: Option<Instant>) -> io::Result<bool> {
    let (worker, real) = real_here()?;
    let token = Token::Fiber { slot: worker.current_fiber().slot, part: 0 };
    worker.begin_operation(1);
    real.event_loop.poll_add(fd, events, token);
    if worker.wait_operation(WaitClass::Network, deadline) == Wake::TimedOut {
        real.event_loop.poll_cancel(worker, fd, token);
        worker.wait_operation(WaitClass::Network, None);
        return Ok(worker.operation_result(0) >= 0);
    }
    Ok(true)
}

impl RealStream {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self { fd: Arc::new(fd) }
    }

    fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn connect(address: &Address) -> io::Result<Self> {
        let (fd, name, length) = super::service::socket_for(address)?;
        let stream = Self::new(fd);
        // SAFETY: the name is valid for `length` bytes.
        let status = unsafe { libc::connect(stream.raw(), (&raw const name).cast(), length) };
        if status < 0 {
            match errno() {
                libc::EINPROGRESS => {}
                // A UNIX socket whose backlog is full.
                libc::EAGAIN => return Err(io::ErrorKind::ConnectionRefused.into()),
                _ => return Err(io::Error::last_os_error()),
            }
            wait_for(stream.raw(), OUT, None)?;
            let number = stream.pending_error()?;
            if number != 0 {
                return Err(io::Error::from_raw_os_error(number));
            }
        }
        if matches!(address, Address::Tcp(_)) {
            super::service::set_option(stream.raw(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        }
        Ok(stream)
    }

    fn pending_error(&self) -> io::Result<i32> {
        let (mut number, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: valid places for the number and its length.
        check(unsafe {
            let place = (&raw mut number).cast();
            libc::getsockopt(self.raw(), libc::SOL_SOCKET, libc::SO_ERROR, place, &mut length)
        })?;
        Ok(number)
    }

    pub(crate) fn read(
        &self,
        buffer: &mut [u8],
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> io::Result<usize> {
        let mut deadline = Some(deadline);
        let mut until = None;
        loop {
            // SAFETY: the buffer is valid for writes.
            let read = unsafe {
                libc::recv(self.raw(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
            };
            if read >= 0 {
                return Ok(read as usize);
            }
            match errno() {
                libc::EINTR => {}
                libc::EAGAIN => {
                    until = deadline.take().map_or(until, |deadline| deadline());
                    if !wait_for(self.raw(), IN, until)? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                _ => return Err(io::Error::last_os_error()),
            }
        }
    }

    pub(crate) fn write_all(
        &self,
        bytes: &[u8],
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> io::Result<()> {
        let mut deadline = Some(deadline);
        let mut until = None;
        let mut rest = bytes;
        while !rest.is_empty() {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the rest is valid for reads.
            let sent = unsafe { libc::send(self.raw(), rest.as_ptr().cast(), rest.len(), flags) };
            if sent >= 0 {
                rest = &rest[sent as usize..];
                continue;
            }
            match errno() {
                libc::EINTR => {}
                libc::EAGAIN => {
                    until = deadline.take().map_or(until, |deadline| deadline());
                    if !wait_for(self.raw(), OUT, until)? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                _ => return Err(io::Error::last_os_error()),
            }
        }
        Ok(())
    }

    pub(crate) fn wait_readable(&self, deadline: Option<Instant>) -> bool {
        // An error shows at the next read.
        wait_for(self.raw(), IN, deadline).unwrap_or(true)
    }

    pub(crate) fn is_abandoned(&self, farewell: &[u8]) -> bool {
        let mut poll = libc::pollfd { fd: self.raw(), events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: one valid pollfd; it does not wait.
        let count = unsafe { libc::poll(&mut poll, 1, 0) };
        if count < 1 {
            return false;
        }
        if poll.revents & (libc::POLLHUP | libc::POLLERR) != 0 {
            return true;
        }
        // It says nothing more; what it said last may still be a command.
        let mut left = [0u8; 64];
        let flags = libc::MSG_DONTWAIT | libc::MSG_PEEK;
        // SAFETY: the bytes are valid for writes.
        let seen = unsafe { libc::recv(self.raw(), left.as_mut_ptr().cast(), left.len(), flags) };
        usize::try_from(seen).is_ok_and(|seen| seen == 0 || left[..seen] == *farewell)
    }

    pub(crate) fn shutdown(&self) {
        // SAFETY: no memory is passed. A socket that is not connected any more is no error here.
        unsafe { libc::shutdown(self.raw(), libc::SHUT_RDWR) };
    }
}

/// A served connection: its state object and its socket.
pub(crate) struct Task {
    connection: Box<dyn Connection>,
    stream: Stream,
    /// Its place in the present worker's table, from its first wait there until it ends or moves.
    place: Option<u32>,
}

impl Task {
    pub(super) fn new(connection: Box<dyn Connection>, stream: Stream) -> Box<Self> {
        Box::new(Self { connection, stream, place: None })
    }

    fn fd(&self) -> RawFd {
        self.stream.real().map_or(-1, RealStream::raw)
    }
}

/// A place in the table. The timer is lazy: it stays where it is while the connection runs, and
/// when it fires early it is set again for the deadline of the present wait.
struct Place {
    task: Option<Box<Task>>,
    sequence: u32,
    deadline: Option<Instant>,
    timer: TimerId,
}

/// The connections of one worker that have waited at least once.
pub(crate) struct Connections {
    places: RefCell<Vec<Place>>,
    free: RefCell<Vec<u32>>,
}

impl Connections {
    pub(crate) fn new() -> Self {
        Self { places: RefCell::new(Vec::new()), free: RefCell::new(Vec::new()) }
    }

    /// Runs a connection in the current fiber, then lets it wait or drops it.
    pub(super) fn run(mut task: Box<Task>) {
        let Task { connection, stream, .. } = &mut *task;
        let next = crate::catch_panic(|| connection.run(stream));
        let Ok((worker, real)) = real_here() else { return };
        match next {
            Ok(Next::WaitReadable { timeout }) => real.connections.wait(worker, task, timeout),
            Ok(Next::Close) | Err(_) => real.connections.remove(worker, &real.event_loop, &task),
        }
    }

    fn wait(&self, worker: &Worker, mut task: Box<Task>, timeout: Option<Duration>) {
        let Twin::Real(real) = &worker.twin else { return };
        task.stream.set_timed_out(false);
        let fd = task.fd();
        let number = task.place.unwrap_or_else(|| self.take_place());
        task.place = Some(number);
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.sequence = (place.sequence + 1) & SEQUENCE_MASK;
        place.task = Some(task);
        place.deadline = timeout.map(|timeout| worker.now() + timeout);
        let mut timers = worker.timers.borrow_mut();
        if let Some(deadline) = place.deadline {
            let target = TimerTarget::Connection(number);
            let is_earlier = place.timer_deadline(&timers) > Some(deadline.as_nanos());
            if place.timer != TimerId::NONE && is_earlier {
                timers.remove(place.timer);
                place.timer = TimerId::NONE;
            }
            if place.timer == TimerId::NONE {
                place.timer = timers.insert(deadline.as_nanos(), target);
            }
        }
        let token = Token::Connection { place: number, sequence: place.sequence };
        real.event_loop.poll_add(fd, IN, token);
    }

    fn take_place(&self) -> u32 {
        if let Some(number) = self.free.borrow_mut().pop() {
            return number;
        }
        let mut places = self.places.borrow_mut();
        places.push(Place { task: None, sequence: 0, deadline: None, timer: TimerId::NONE });
        places.len() as u32 - 1
    }

    /// The connection ends: gives its place back.
    fn remove(&self, worker: &Worker, event_loop: &EventLoop, task: &Task) {
        event_loop.forget(task.fd());
        if let Some(number) = task.place {
            self.give_back(worker, number);
        }
    }

    /// The connection of this place ended, or was stolen.
    fn give_back(&self, worker: &Worker, number: u32) {
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.deadline = None;
        if place.timer != TimerId::NONE {
            worker.timers.borrow_mut().remove(place.timer);
            place.timer = TimerId::NONE;
        }
        self.free.borrow_mut().push(number);
    }

    /// Bytes have come for an idle connection: it waits for its turn in the backlog.
    pub(crate) fn readable(&self, worker: &Worker, real: &RealTwin, number: u32, sequence: u32) {
        let mut places = self.places.borrow_mut();
        let Some(place) = places.get_mut(number as usize) else { return };
        if place.sequence != sequence {
            return;
        }
        let Some(task) = place.task.take() else { return };
        drop(places);
        if worker.is_stopping() {
            return;
        }
        let left = real.backlog(worker).push(task);
        for number in left {
            self.give_back(worker, number);
        }
    }

    /// A fiber for the connection of this worker's backlog that has waited longest.
    pub(super) fn start_next(worker: &Worker, real: &RealTwin) -> Option<u32> {
        let task = real.backlog(worker).pop()?;
        Some(worker.prepare("connection", worker.number, move || Self::run(task)))
    }

    /// Takes over connections that wait in another worker's backlog; true if there were any.
    pub(super) fn steal(worker: &Worker, real: &RealTwin) -> bool {
        let stolen = real.group.steal(worker.number, |task: &mut Box<Task>| task.place.take());
        let found = !stolen.is_empty();
        CONNECTIONS_MOVED.add(stolen.len() as u64);
        for task in stolen {
            for number in real.backlog(worker).push(task) {
                real.connections.give_back(worker, number);
            }
        }
        found
    }

    /// The lazy timer of a place fires.
    pub(crate) fn timer(&self, worker: &Worker, real: &RealTwin, number: u32, now: Instant) {
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.timer = TimerId::NONE;
        let (Some(task), Some(deadline)) = (&place.task, place.deadline) else { return };
        if deadline > now {
            let target = TimerTarget::Connection(number);
            place.timer = worker.timers.borrow_mut().insert(deadline.as_nanos(), target);
            return;
        }
        let fd = task.fd();
        let token = Token::Connection { place: number, sequence: place.sequence };
        // The completion of the cancelled poll must find another sequence number.
        place.sequence = (place.sequence + 1) & SEQUENCE_MASK;
        let task = place.task.take();
        drop(places);
        real.event_loop.poll_cancel(worker, fd, token);
        if let Some(mut task) = task {
            task.stream.set_timed_out(true);
            worker.start("connection", worker.number, move || Self::run(task));
        }
    }

    /// Drops all connections that wait when the worker ends.
    pub(crate) fn close_all(&self, backlog: &Backlog<Box<Task>>) {
        let tasks: Vec<_> =
            self.places.borrow_mut().iter_mut().filter_map(|place| place.task.take()).collect();
        drop(tasks);
        drop(backlog.clear());
    }
}

impl Place {
    fn timer_deadline(&self, timers: &crate::timer::Timers<TimerTarget>) -> Option<u64> {
        (self.timer != TimerId::NONE).then(|| timers.deadline(self.timer))
    }
}

/// Makes an owned descriptor of what a system call returned.
pub(super) fn own(fd: i32) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
