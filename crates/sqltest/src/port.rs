//! Ports for servers that have to be told theirs.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux gives to clients and to servers that ask for any
/// (`ip_local_port_range`): nobody gets one of these between the look and the server's start.
const PORTS: Range<u16> = 11_000..21_000;

/// How many ports this process has taken.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A TCP port of the loopback that nobody listens at. Each call of a process answers another one,
/// and processes begin at different places.
pub fn free_port() -> Result<u16, String> {
    let count = u32::from(PORTS.end - PORTS.start);
    let own = std::process::id().wrapping_mul(61);
    (0..count)
        .map(|_| own.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % count)
        .map(|place| PORTS.start + place as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| format!("no port from {} to {} is free", PORTS.start, PORTS.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_not_given_twice_nor_to_a_client() {
        let first = free_port().unwrap();
        assert_ne!(free_port().unwrap(), first);
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        let lowest: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
        assert!(PORTS.end <= lowest, "clients get ports from {lowest} on");
    }
}
