//! What a device says of its own life (SMART), before a run and behind it.
//!
//! 1. Programs that others keep are asked: `smartctl` (smartmontools) what hosts have written to
//!    the device and how much of its life is used, `nvme` (nvme-cli) what it has written to its
//!    flash, which a device with the log of the Open Compute Project tells. Both mostly want root.
//! 2. What cannot be told is a sentence, never 0.
//! 3. A device counts in units of half a megabyte, whoever writes.

use crate::machine::Disk;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A data unit: a thousand times 512 bytes (NVM Express Base Specification, SMART log).
const UNIT_BYTES: u64 = 512_000;

/// Sums since the device was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wear {
    /// Bytes that were written to it.
    pub written_bytes: u64,
    /// Bytes that it has written to its flash, where it tells.
    pub flash_bytes: Option<u64>,
    /// Percent of its life that is used, as its maker means it; beyond 100 it goes on.
    pub used_percent: Option<u64>,
}

/// The wear before a run and behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worn {
    /// Before the warm-up.
    pub before: Wear,
    /// After the measured time.
    pub after: Wear,
}

impl Worn {
    /// Bytes written to the device between.
    pub fn written_bytes(&self) -> u64 {
        self.after.written_bytes.saturating_sub(self.before.written_bytes)
    }

    /// Bytes that the device wrote to its flash between.
    pub fn flash_bytes(&self) -> Option<u64> {
        Some(self.after.flash_bytes?.saturating_sub(self.before.flash_bytes?))
    }
}

/// A run whose device was asked before it.
pub struct Wearing {
    folder: PathBuf,
    before: Result<Wear, String>,
}

impl Wearing {
    /// Asks the device below a folder.
    pub fn begin(folder: PathBuf) -> Self {
        let before = Wear::below(&folder);
        Self { folder, before }
    }

    /// Asks it again; or why it does not tell.
    pub fn end(self) -> Result<Worn, String> {
        Ok(Worn { before: self.before?, after: Wear::below(&self.folder)? })
    }
}

impl Wear {
    fn below(folder: &Path) -> Result<Self, String> {
        let disk = Disk::of(Path::new("/"), folder);
        Self::of(&disk.and_then(|disk| disk.device).ok_or("no single device is below the data")?)
    }

    /// Of a device, such as nvme0n1; or why it is not known.
    pub fn of(device: &str) -> Result<Self, String> {
        let device = format!("/dev/{device}");
        let health = answer("smartctl", &["--json", "-A", &device])?;
        let flash = answer("nvme", &["ocp", "smart-add-log", "-o", "json", &device]);
        Self::read(&health, flash.ok().as_ref())
    }

    fn read(health: &Value, flash: Option<&Value>) -> Result<Self, String> {
        let log = &health["nvme_smart_health_information_log"];
        let Some(units) = log["data_units_written"].as_u64() else {
            let said = &health["smartctl"]["messages"][0]["string"];
            let said = said.as_str().unwrap_or("the device counts no data units");
            return Err(format!("smartctl: {said}"));
        };
        let flash = flash.map(|log| &log["Physical media units written"]);
        Ok(Self {
            written_bytes: units.saturating_mul(UNIT_BYTES),
            // Of 128 bits those above 64 stay 0: a device is worn out long before.
            flash_bytes: flash.and_then(|bytes| bytes["lo"].as_u64()),
            used_percent: log["percentage_used"].as_u64(),
        })
    }
}

/// What a program prints in JSON, whatever its exit code: that is about the device's health too.
fn answer(program: &str, words: &[&str]) -> Result<Value, String> {
    let output =
        Command::new(program).args(words).output().map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{program} is not installed"),
            _ => format!("{program}: {error}"),
        })?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("{program}: {}", said.lines().next().unwrap_or("it prints no JSON"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn a_devices_own_counts_are_read() {
        // As smartctl 7.3 and nvme-cli 2.3 print them, shortened.
        let health = parsed(
            r#"{"smartctl": {"version": [7, 3], "exit_status": 0},
                "device": {"name": "/dev/nvme0n1", "type": "nvme", "protocol": "NVMe"},
                "nvme_smart_health_information_log": {"critical_warning": 0,
                "percentage_used": 2, "data_units_read": 19446553,
                "data_units_written": 25771349, "power_on_hours": 3150}}"#,
        );
        let flash = parsed(
            r#"{"Physical media units written": {"hi": 0, "lo": 26000000000000},
                "Physical media units read": {"hi": 0, "lo": 467772386381824}}"#,
        );
        let wear = Wear::read(&health, Some(&flash)).expect("known");
        let expected = Wear {
            written_bytes: 13_194_930_688_000,
            flash_bytes: Some(26_000_000_000_000),
            used_percent: Some(2),
        };
        assert_eq!(wear, expected);
        assert_eq!(Wear::read(&health, None).expect("known").flash_bytes, None);
        let later = Wear { written_bytes: 13_194_931_200_000, ..wear };
        let worn = Worn { before: wear, after: later };
        assert_eq!((worn.written_bytes(), worn.flash_bytes()), (512_000, Some(0)));
    }

    #[test]
    fn a_device_that_does_not_tell_is_said_so() {
        let refused = parsed(
            r#"{"smartctl": {"exit_status": 2, "messages": [{"string":
                "Smartctl open device: /dev/nvme0n1 failed: Permission denied"}]}}"#,
        );
        let why = Wear::read(&refused, None).expect_err("not allowed");
        assert_eq!(why, "smartctl: Smartctl open device: /dev/nvme0n1 failed: Permission denied");
        let disk = parsed(r#"{"smartctl": {"exit_status": 0}, "ata_smart_attributes": {}}"#);
        let why = Wear::read(&disk, None).expect_err("a disk");
        assert_eq!(why, "smartctl: the device counts no data units");
        assert_eq!(answer("lab-no-such", &[]), Err("lab-no-such is not installed".into()));
        assert!(answer("true", &[]).expect_err("empty").contains("no JSON"));
    }
}
