//! A process as `/proc` tells of it.

use serde::{Deserialize, Serialize};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// A tick of the kernel's accounts (`USER_HZ`).
const TICK_MICROS: u64 = 10_000;

/// Figures of a process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Processor time in user mode.
    pub user_micros: u64,
    /// Processor time in the kernel.
    pub system_micros: u64,
    /// Context switches of all threads that live.
    pub switches: u64,
    /// Bytes that the device was asked for.
    pub read_bytes: u64,
    /// Bytes that the device was given.
    pub written_bytes: u64,
    /// Memory that it occupies.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open files and sockets.
    pub open_files: u64,
}

impl Figures {
    /// Of a process now; `None` if it is gone, or not ours to look at.
    pub fn of(id: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let field = |place: usize| fields.get(place)?.parse::<u64>().ok();
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let io = fs::read_to_string(format!("/proc/{id}/io")).ok()?;
        Some(Self {
            user_micros: field(11)? * TICK_MICROS,
            system_micros: field(12)? * TICK_MICROS,
            switches: switches(id),
            read_bytes: named(&io, "read_bytes:")?,
            written_bytes: named(&io, "write_bytes:")?,
            resident_bytes: named(&status, "VmRSS:").unwrap_or(0) * 1024,
            threads: field(17)?,
            open_files: fs::read_dir(format!("/proc/{id}/fd"))
                .map_or(0, |list| list.count() as u64),
        })
    }

    /// Processor time.
    pub fn cpu_micros(&self) -> u64 {
        self.user_micros + self.system_micros
    }
}

/// The number behind a name at the begin of a line.
fn named(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Of all threads; those that ended are not in the kernel's list any more.
fn switches(id: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return 0 };
    let of_thread = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let voluntary = named(&status, "voluntary_ctxt_switches:")?;
        Some(voluntary + named(&status, "nonvoluntary_ctxt_switches:")?)
    };
    threads.flatten().filter_map(of_thread).sum()
}

/// The process that listens on a port of this machine.
pub fn server_of(address: &SocketAddr) -> Option<u32> {
    if !address.ip().is_loopback() {
        return None;
    }
    let inode = listening_inode(address.port())?;
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{id}/fd")) else { return false };
        let mut links = descriptors.flatten().filter_map(|d| fs::read_link(d.path()).ok());
        links.any(|link| link.to_str() == Some(&wanted))
    })
}

/// Whether a process has a file open below a folder.
pub(super) fn has_open_below(id: u32, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let Ok(descriptors) = fs::read_dir(format!("/proc/{id}/fd")) else { return false };
    let mut links = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| link.starts_with(&folder))
}

/// The number of the socket that listens on a port.
fn listening_inode(port: u16) -> Option<u64> {
    const LISTEN: &str = "0A";
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    let text: String = tables.filter_map(|table| fs::read_to_string(table).ok()).collect();
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local_port, 16).ok()? == port && fields[3] == LISTEN;
        is_it.then(|| fields.get(9)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_a_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        assert_eq!(server_of(&address), Some(std::process::id()));
        drop(listener);
        assert_eq!(server_of(&address), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_figures() {
        assert_eq!(Figures::of(u32::MAX), None);
        assert!(Figures::of(std::process::id()).is_some_and(|figures| figures.threads >= 1));
    }
}
