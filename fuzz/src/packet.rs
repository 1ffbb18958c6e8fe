//! What a client may send: packets, the handshake, commands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::handshake::{ChangeUser, LoginRequest};
use wire::{Command, InputBuffer};

fuzz_target!(|bytes: &[u8]| {
    let _ = LoginRequest::parse(bytes);
    let capabilities = bytes.first().map_or(0, |byte| u64::from(*byte) * 0x0101_0101);
    let _ = ChangeUser::parse(bytes, capabilities);
    let _ = Command::parse(bytes, capabilities);
    let mut input = InputBuffer::new();
    let mut sequence = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let room = input.room();
        let count = room.len().min(rest.len()).min(17);
        room[..count].copy_from_slice(&rest[..count]);
        input.received(count);
        rest = &rest[count..];
        while let Ok(Some(_)) = input.next_packet(&mut sequence, 65_536) {}
    }
});
