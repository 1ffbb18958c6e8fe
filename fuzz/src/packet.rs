//! What a client may send: packets, the handshake, commands.
#![no_main]

mod seeds;

use libfuzzer_sys::fuzz_target;
use wire::binary::{ParameterType, ParameterTypes, read_parameters};
use wire::handshake::{ChangeUser, LoginRequest};
use wire::{Command, InputBuffer, capability};

/// Largest packet the target takes.
const LIMIT_BYTES: usize = 65_536;

fuzz_target!(
    init: seeds::write(packets()),
    |bytes: &[u8]| {
        let Some((&first, bytes)) = bytes.split_first() else { return };
        let capabilities = match first % 4 {
            0 => capability::SERVER,
            1 => 0,
            _ => u64::from(first) * 0x0101_0101_0101,
        };
        let _ = LoginRequest::parse(bytes);
        let _ = ChangeUser::parse(bytes, capabilities);
        if let Ok(Command::Execute(execute)) = Command::parse(bytes, capabilities) {
            parameters(first, execute.parameters);
        }
        frame(bytes);
    }
);

fn parameters(first: u8, bytes: &[u8]) {
    let count = usize::from(first / 4);
    let long = vec![None, Some(b"long".to_vec())];
    let known = std::iter::repeat_n(ParameterType { code: first, unsigned: false }, count);
    let mut values = Vec::new();
    for mut types in [ParameterTypes::new(), known.collect()] {
        if read_parameters(bytes, count, &mut types, &long, &mut values).is_ok() {
            assert_eq!(values.len(), count);
        }
    }
}

/// The stream in small pieces.
fn frame(mut rest: &[u8]) {
    let mut input = InputBuffer::new();
    let mut sequence = 0;
    while !rest.is_empty() {
        let room = input.room();
        let count = room.len().min(rest.len()).min(17);
        room[..count].copy_from_slice(&rest[..count]);
        input.received(count);
        rest = &rest[count..];
        while let Ok(Some(payload)) = input.next_packet(&mut sequence, LIMIT_BYTES) {
            assert!(payload.len() <= LIMIT_BYTES);
        }
    }
}

/// One of every command, a login, an execution with parameters, and a stream of two packets.
fn packets() -> Vec<Vec<u8>> {
    let mut login = vec![0, 0x0d, 0xa2, 0x3a, 0, 0, 0, 0, 1, 45];
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(
        b"root\0\x14aaaaaaaaaaaaaaaaaaaatest\0mysql_native_password\0\x08\x03key\x03val",
    );
    let mut execute = vec![36, 0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0b100, 0, 1];
    for code in [3, 0xfd, 6, 12, 11, 5, 8, 246, 10] {
        execute.extend_from_slice(&[code, 0]);
    }
    execute.extend_from_slice(&[7, 0, 0, 0, 2, b'h', b'i', 11, 0xe8, 7, 1, 2, 3, 4, 5]);
    execute.extend_from_slice(&[1, 0, 0, 0, 8, 0, 1, 0, 0, 0, 2, 3, 4]);
    execute.extend_from_slice(&1.5f64.to_le_bytes());
    execute.extend_from_slice(&9u64.to_le_bytes());
    execute.extend_from_slice(&[3, b'1', b'.', b'5', 4, 0xe8, 7, 1, 2]);
    let mut all = vec![
        login,
        execute,
        b"\0\x03SELECT 1".to_vec(),
        b"\0\x04table\0pattern%".to_vec(),
        b"\0\x11root\0\x14aaaaaaaaaaaaaaaaaaaadb\0\x2d\0mysql_native_password\0".to_vec(),
        b"\0\x18\x01\0\0\0\x02\0data".to_vec(),
        b"\0\x1c\x01\0\0\0\x02\0\0\0".to_vec(),
        b"\0\x09\0\0\0\x03SELECT 1\x01\0\0\0\x0e".to_vec(),
    ];
    all.extend((0..=0x20).map(|command| vec![0, command, 1, 0, 0, 0]));
    all
}
