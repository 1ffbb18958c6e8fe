//! The MySQL/MariaDB protocol as bytes: what a client sends becomes events, answers become
//! bytes. No sockets, no session, no SQL.
//!
//! Invariants:
//! 1. No decoder panics, and none allocates more than the bytes that have arrived.
//! 2. A packet larger than the limit is refused when its header is seen, before its body.
//! 3. Rows are written from values straight into the connection's output; nothing is formatted
//!    into an intermediate string.
//! 4. An answer of 2^24 - 1 bytes or more is split, a command as long is joined.
//!
//! [`InputBuffer`] cuts packets, [`Command::parse`] reads them; [`OutputBuffer`] collects an
//! answer, into which [`response`], [`row`], [`text`] and [`binary`] write.

pub mod binary;
pub mod bulk;
pub mod caching_sha2;
pub mod capability;
mod command;
pub mod handshake;
mod input;
mod output;
pub mod response;
pub mod row;
pub mod text;

pub use command::{Command, Execute, Fields, MalformedPacket};
pub use input::{InputBuffer, PacketError};
pub use output::{OutputBuffer, put_bytes, put_length, put_written};

/// Longest payload of one packet; a payload of exactly this length is continued in the next.
pub const PACKET_PAYLOAD_MAX: usize = 0xff_ffff;
/// Bytes before a payload: length (3) and sequence number (1).
pub const PACKET_HEADER_BYTES: usize = 4;
/// Largest packet accepted before the login has succeeded.
pub const LOGIN_PACKET_BYTES_MAX: usize = 64 * 1024;
