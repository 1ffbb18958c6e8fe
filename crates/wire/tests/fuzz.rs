//! Every decoder on damaged input: no panic, no read past the end, no large allocation. Runs for
//! a second; `GANNET_FUZZ_SECONDS` makes it longer and `GANNET_FUZZ_SEED` repeats a run.

use base::Random;
use std::time::{Duration, Instant};
use wire::binary::{ParameterType, ParameterTypes, read_parameters};
use wire::handshake::{ChangeUser, LoginRequest};
use wire::{Command, InputBuffer};

/// Valid packets, to be damaged.
fn corpus() -> Vec<Vec<u8>> {
    let mut login = vec![0x0d, 0xa2, 0x3a, 0x00, 0, 0, 0, 1, 45];
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(
        b"root\0\x14aaaaaaaaaaaaaaaaaaaatest\0mysql_native_password\0\x08\x03key\x03val",
    );
    let mut execute = vec![0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0b100, 1];
    for code in [3, 0xfd, 6, 12, 11, 5, 8, 246, 10] {
        execute.extend_from_slice(&[code, 0]);
    }
    execute.extend_from_slice(&[7, 0, 0, 0, 2, b'h', b'i', 11, 0xe8, 7, 1, 2, 3, 4, 5]);
    execute.extend_from_slice(&[1, 0, 0, 0, 8, 0, 1, 0, 0, 0, 2, 3, 4]);
    execute.extend_from_slice(&1.5f64.to_le_bytes());
    execute.extend_from_slice(&9u64.to_le_bytes());
    execute.extend_from_slice(&[3, b'1', b'.', b'5', 4, 0xe8, 7, 1, 2]);
    let mut packets = vec![
        login,
        execute,
        b"\x03SELECT 1".to_vec(),
        b"\x04table\0pattern%".to_vec(),
        b"\x11root\0\x14aaaaaaaaaaaaaaaaaaaadb\0\x2d\0mysql_native_password\0".to_vec(),
        b"\x18\x01\0\0\0\x02\0data".to_vec(),
        b"\x1c\x01\0\0\0\x02\0\0\0".to_vec(),
    ];
    packets.extend((0..=0x20).map(|command| vec![command, 1, 0, 0, 0]));
    packets
}

fn damage(random: &mut Random, packet: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        if packet.is_empty() {
            return;
        }
        let at = random.index(packet.len());
        match random.below(6) {
            0 => packet[at] = random.next_u32() as u8,
            1 => packet[at] ^= 1 << random.below(8),
            2 => packet.truncate(at),
            3 => packet.insert(at, *random.pick(&[0, 0xfb, 0xfc, 0xfd, 0xfe, 0xff])),
            4 => {
                let tail = packet[at..].to_vec();
                packet.extend_from_slice(&tail);
            }
            _ => {
                packet.remove(at);
            }
        }
    }
}

fn decode(random: &mut Random, packet: &[u8]) {
    let capabilities = match random.below(3) {
        0 => wire::capability::SERVER,
        1 => 0,
        _ => random.next_u64(),
    };
    if let Ok(Command::Execute(execute)) = Command::parse(packet, capabilities) {
        let count = random.below(12) as usize;
        let mut types = match random.below(2) {
            0 => ParameterTypes::new(),
            _ => {
                let bound = ParameterType { code: random.next_u32() as u8, unsigned: false };
                ParameterTypes::from_elem(bound, count)
            }
        };
        let long = vec![None, Some(b"long".to_vec())];
        let mut values = Vec::new();
        let read = read_parameters(execute.parameters, count, &mut types, &long, &mut values);
        assert!(read.is_err() || values.len() == count);
    }
    // What they say is of no interest here, only that they return.
    let _login = LoginRequest::parse(packet);
    let _change = ChangeUser::parse(packet, capabilities);
}

/// Feeds packets, some with damaged headers, in chunks of any size.
fn frame(random: &mut Random, packets: &[Vec<u8>]) {
    let mut stream = Vec::new();
    for sequence in 0..random.below(4) as u8 {
        let packet = random.pick(packets);
        stream.extend_from_slice(&(packet.len() as u32).to_le_bytes()[..3]);
        stream.push(sequence);
        stream.extend_from_slice(packet);
    }
    damage(random, &mut stream);
    let mut input = InputBuffer::new();
    let mut sequence = 0;
    let mut rest = &stream[..];
    while !rest.is_empty() {
        let room = input.room();
        let count = (1 + random.index(rest.len())).min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        input.received(count);
        rest = &rest[count..];
        loop {
            match input.next_packet(&mut sequence, 4096) {
                Ok(Some(payload)) => assert!(payload.len() <= 4096),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

#[test]
fn damaged_packets_are_answered_or_refused() {
    let number = |name: &str, default| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let seed = number("GANNET_FUZZ_SEED", 1);
    let limit = Duration::from_secs(number("GANNET_FUZZ_SECONDS", 1));
    let mut random = Random::new(seed);
    let packets = corpus();
    let begun = Instant::now();
    let mut rounds = 0u64;
    while rounds < 1000 || begun.elapsed() < limit {
        let mut packet = random.pick(&packets).clone();
        damage(&mut random, &mut packet);
        decode(&mut random, &packet);
        frame(&mut random, &packets);
        rounds += 1;
    }
    println!("{rounds} rounds from seed {seed}");
}
