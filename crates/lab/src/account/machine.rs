//! The machine as a whole, and its devices.

use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A tick of the kernel's accounts (`USER_HZ`).
const TICK_MICROS: u64 = 10_000;
/// `/sys/block/*/stat` counts these, whatever the device's sector is.
const SECTOR_BYTES: u64 = 512;

/// Time of all processors since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// At work for anything.
    pub busy_micros: u64,
    /// Without work, waiting for devices included.
    pub idle_micros: u64,
    /// Without work while something waited for a device.
    pub waiting_micros: u64,
    /// Taken by other machines on the same host; part of `busy_micros`.
    pub stolen_micros: u64,
}

impl Machine {
    /// Now; `None` where the kernel does not tell.
    pub fn now() -> Option<Self> {
        Self::read(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|t| t.parse().ok()).collect();
        let [user, nice, system, idle, waiting, hard, soft, stolen, ..] = ticks[..] else {
            return None;
        };
        Some(Self {
            busy_micros: (user + nice + system + hard + soft + stolen) * TICK_MICROS,
            idle_micros: (idle + waiting) * TICK_MICROS,
            waiting_micros: waiting * TICK_MICROS,
            stolen_micros: stolen * TICK_MICROS,
        })
    }
}

/// A block device since it was found, of all processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Requests to read.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests to write.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time with a request on its way.
    pub busy_millis: u64,
    /// Requests to make written data durable; absent where the kernel does not count them.
    pub flushes: Option<u64>,
}

impl Device {
    fn read(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text.split_whitespace().filter_map(|f| f.parse().ok()).collect();
        Some(Self {
            reads: *fields.first()?,
            read_bytes: fields.get(2)? * SECTOR_BYTES,
            writes: *fields.get(4)?,
            written_bytes: fields.get(6)? * SECTOR_BYTES,
            busy_millis: *fields.get(9)?,
            flushes: fields.get(15).copied(),
        })
    }
}

/// The device with a folder; `None` where the kernel does not tell, as of a network or a file
/// system of several devices.
pub fn device_of(folder: &Path) -> Option<Device> {
    let number = fs::metadata(folder).ok()?.dev();
    // The layout of `dev_t` in the kernel's interface (`sysmacros.h`).
    let major = (number >> 8 & 0xfff) | (number >> 32 & !0xfff);
    let minor = (number & 0xff) | (number >> 12 & !0xff);
    Device::read(&fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let machine = Machine::read("cpu  10 2 3 50 5 1 1 4 0 0\ncpu0 1 1 1\n").expect("valid");
        assert_eq!((machine.busy_micros, machine.idle_micros), (210_000, 550_000));
        assert_eq!((machine.waiting_micros, machine.stolen_micros), (50_000, 40_000));
        assert_eq!(Machine::read("intr 5"), None);
        let text = " 42 4 200 57 33 2 400 95 0 50 68 1 2 3 4 77 10\n";
        let device = Device::read(text).expect("valid");
        assert_eq!((device.reads, device.read_bytes), (42, 102_400));
        assert_eq!((device.writes, device.written_bytes), (33, 204_800));
        assert_eq!((device.busy_millis, device.flushes), (50, Some(77)));
        assert_eq!(Device::read(" 42 4 200 57 33 2 400 95 0 50 68").expect("old").flushes, None);
    }
}
