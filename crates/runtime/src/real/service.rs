//! Listening and accepting.

use super::connections::{Connections, Task};
use super::event_loop::Token;
use super::net::{RealStream, check, own, wait_for};
use crate::net::{Address, Factory, Peer, Stream, StreamTwin};
use crate::worker::{self, Twin};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Pause after the process ran out of descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(20);

/// A listening socket.
pub(crate) struct RealListener {
    fd: Arc<OwnedFd>,
    address: Address,
}

/// A non-blocking socket of the right family, and the address as the kernel wants it.
pub(super) fn socket_for(
    address: &Address,
) -> io::Result<(OwnedFd, libc::sockaddr_storage, libc::socklen_t)> {
    let (family, name, length) = match address {
        Address::Tcp(address) => tcp_name(address),
        Address::Unix(path) => unix_name(path)?,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = own(unsafe { libc::socket(family, kind, 0) })?;
    Ok((fd, name, length))
}

fn tcp_name(address: &SocketAddr) -> (i32, libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all-zero is a valid sockaddr_storage, which is large and aligned enough for both.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        match address {
            SocketAddr::V4(address) => {
                let name = &mut *(&raw mut storage).cast::<libc::sockaddr_in>();
                name.sin_family = libc::AF_INET as u16;
                name.sin_port = address.port().to_be();
                name.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                (libc::AF_INET, storage, size_of::<libc::sockaddr_in>() as u32)
            }
            SocketAddr::V6(address) => {
                let name = &mut *(&raw mut storage).cast::<libc::sockaddr_in6>();
                name.sin6_family = libc::AF_INET6 as u16;
                name.sin6_port = address.port().to_be();
                name.sin6_addr.s6_addr = address.ip().octets();
                name.sin6_scope_id = address.scope_id();
                (libc::AF_INET6, storage, size_of::<libc::sockaddr_in6>() as u32)
            }
        }
    }
}

fn unix_name(path: &Path) -> io::Result<(i32, libc::sockaddr_storage, libc::socklen_t)> {
    let bytes = path.as_os_str().as_bytes();
    // SAFETY: as in `tcp_name`.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let name = &mut *(&raw mut storage).cast::<libc::sockaddr_un>();
        if bytes.len() >= name.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        name.sun_family = libc::AF_UNIX as u16;
        for (place, byte) in name.sun_path.iter_mut().zip(bytes) {
            *place = *byte as libc::c_char;
        }
        Ok((libc::AF_UNIX, storage, size_of::<libc::sockaddr_un>() as u32))
    }
}

fn tcp_address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the family says what the storage holds.
    unsafe {
        match i32::from(name.ss_family) {
            libc::AF_INET => {
                let name = &*(&raw const *name).cast::<libc::sockaddr_in>();
                let octets = name.sin_addr.s_addr.to_ne_bytes();
                let address = IpAddr::V4(Ipv4Addr::from(octets));
                Some(SocketAddr::new(address, u16::from_be(name.sin_port)))
            }
            libc::AF_INET6 => {
                let name = &*(&raw const *name).cast::<libc::sockaddr_in6>();
                let address = IpAddr::V6(Ipv6Addr::from(name.sin6_addr.s6_addr));
                Some(SocketAddr::new(address, u16::from_be(name.sin6_port)))
            }
            _ => None,
        }
    }
}

pub(super) fn set_option(fd: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: a valid number and its length.
    check(unsafe {
        let place = (&raw const value).cast();
        libc::setsockopt(fd, level, option, place, size_of::<i32>() as u32)
    })
    .map(drop)
}

fn user_of(fd: RawFd) -> Option<u32> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: valid places for the credentials and their length.
    let status = unsafe {
        let place = (&raw mut credentials).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut length)
    };
    (status == 0).then_some(credentials.uid)
}

impl RealListener {
    pub(crate) fn bind(mut address: Address, back_log: u32) -> io::Result<Self> {
        let (fd, name, length) = socket_for(&address)?;
        match &address {
            Address::Tcp(_) => {
                set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
            }
            Address::Unix(path) => {
                let path = path.clone();
                match crate::blocking(move || std::fs::remove_file(path)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        let back_log = i32::try_from(back_log).unwrap_or(i32::MAX);
        // SAFETY: the name is valid for `length` bytes.
        unsafe {
            check(libc::bind(fd.as_raw_fd(), (&raw const name).cast(), length))?;
            check(libc::listen(fd.as_raw_fd(), back_log))?;
        }
        if let Address::Tcp(address) = &mut address {
            // SAFETY: all-zero is valid; the length says how much room there is.
            let name = unsafe {
                let mut name: libc::sockaddr_storage = std::mem::zeroed();
                let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
                let place = (&raw mut name).cast();
                check(libc::getsockname(fd.as_raw_fd(), place, &mut length))?;
                name
            };
            *address = tcp_address(&name).unwrap_or(*address);
        }
        Ok(Self { fd: Arc::new(fd), address })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Starts the fiber that accepts; returns what stops it.
    pub(crate) fn serve(self, factory: Arc<Factory>) -> Box<dyn Fn() + Send + Sync> {
        self.serve_on(worker::current().number, None, factory)
    }

    /// As `serve`, accepting on the worker with this number; connections run on worker `home`,
    /// or on all in turn.
    pub(crate) fn serve_on(
        self,
        number: usize,
        home: Option<usize>,
        factory: Arc<Factory>,
    ) -> Box<dyn Fn() + Send + Sync> {
        let stopping = Arc::new(AtomicBool::new(false));
        let slot = Arc::new(AtomicU32::new(u32::MAX));
        // The fiber has the only strong reference: its end closes the socket.
        let fd = Arc::downgrade(&self.fd);
        let (told, place) = (stopping.clone(), slot.clone());
        start_on(number, "listener", move || {
            place.store(worker::current().current_fiber().slot, Ordering::SeqCst);
            self.accept_until(&told, home, &factory);
            place.store(u32::MAX, Ordering::SeqCst);
        });
        Box::new(move || {
            stopping.store(true, Ordering::SeqCst);
            let (fd, slot) = (fd.clone(), slot.clone());
            start_on(number, "listener stop", move || {
                let worker = worker::current();
                let slot = slot.load(Ordering::SeqCst);
                if let Twin::Real(real) = &worker.twin
                    && let Some(fd) = fd.upgrade()
                    && slot != u32::MAX
                {
                    let token = Token::Fiber { slot, part: 0 };
                    real.event_loop.poll_cancel(worker, fd.as_raw_fd(), token);
                }
            });
        })
    }

    fn accept_until(&self, stopping: &AtomicBool, home: Option<usize>, factory: &Arc<Factory>) {
        let mut next = worker::current().number;
        while !stopping.load(Ordering::SeqCst) {
            match self.accept() {
                Ok((stream, peer)) => {
                    next = home.unwrap_or_else(|| home_of_new(next));
                    start_connection(next, stream, peer, factory.clone());
                    // A storm of connections is work like any other.
                    crate::yield_if_due();
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => {
                        if wait_for(self.fd.as_raw_fd(), libc::POLLIN as u32, None).is_err() {
                            return;
                        }
                    }
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        crate::sleep(EXHAUSTED_PAUSE);
                    }
                    // The client has gone already, or a signal came.
                    _ => crate::yield_now(),
                },
            }
        }
        if let Twin::Real(real) = &worker::current().twin {
            real.event_loop.forget(self.fd.as_raw_fd());
        }
    }

    fn accept(&self) -> io::Result<(RealStream, Peer)> {
        // SAFETY: all-zero is valid; the length says how much room there is.
        let (fd, name) = unsafe {
            let mut name: libc::sockaddr_storage = std::mem::zeroed();
            let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let place = (&raw mut name).cast();
            let fd = libc::accept4(self.fd.as_raw_fd(), place, &mut length, flags);
            (own(fd)?, name)
        };
        let peer = match &self.address {
            Address::Tcp(_) => {
                set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
                set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
                let address = tcp_address(&name).map_or(self.address.clone(), Address::Tcp);
                Peer { address, user_id: None }
            }
            Address::Unix(_) => {
                Peer { address: self.address.clone(), user_id: user_of(fd.as_raw_fd()) }
            }
        };
        Ok((RealStream::new(fd), peer))
    }
}

/// The worker for a new connection; `last` had the one before.
fn home_of_new(last: usize) -> usize {
    let worker = worker::current();
    match &worker.twin {
        Twin::Real(real) => real.group.home_of_new(last, worker.turn_time().as_nanos()),
        _ => last,
    }
}

/// Runs a new connection for the first time, on the worker with this number.
fn start_connection(number: usize, stream: RealStream, peer: Peer, factory: Arc<Factory>) {
    let run = move || {
        let stream = Stream::new(StreamTwin::Real(stream), peer);
        let connection = factory(stream.peer(), stream.handle());
        Connections::run(Task::new(connection, stream));
    };
    start_on(number, "connection", run);
}

/// Starts a fiber on a worker, which may be the reserved one.
fn start_on(number: usize, name: &'static str, run: impl FnOnce() + Send + 'static) {
    let worker = worker::current();
    match &worker.twin {
        Twin::Real(real) if number != worker.number => {
            real.group.start(number, name, Box::new(run));
        }
        _ => {
            worker.start(name, number, run);
        }
    }
}
