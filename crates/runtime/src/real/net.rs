//! Sockets of the real twin: non-blocking calls first, the event loop when they would block.

use super::event_loop::Token;
use super::group::{RealTwin, errno};
use crate::clock::Instant;
use crate::net::Address;
use crate::park::{WaitClass, Wake};
use crate::worker::{self, Twin, Worker};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

const IN: u32 = libc::POLLIN as u32;
const OUT: u32 = libc::POLLOUT as u32;

/// A socket in non-blocking mode.
#[derive(Clone)]
pub(crate) struct RealStream {
    /// Open as long as a clone is there.
    _open: Arc<OwnedFd>,
    /// Its number: looking it up would touch memory that nothing else of a run does.
    raw: RawFd,
}

pub(super) fn check(status: i32) -> io::Result<i32> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

pub(super) fn real_here() -> io::Result<(&'static Worker, &'static RealTwin)> {
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
        let raw = fd.as_raw_fd();
        Self { _open: Arc::new(fd), raw }
    }

    pub(super) fn raw(&self) -> RawFd {
        self.raw
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

    /// Reads what is there; `None` if nothing is, or the connection has ended.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: the buffer is valid for writes.
        let read = unsafe {
            libc::recv(self.raw(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
        };
        usize::try_from(read).ok()
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

/// Makes an owned descriptor of what a system call returned.
pub(super) fn own(fd: i32) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
