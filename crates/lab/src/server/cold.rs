//! Cold beginnings: nothing of the data in memory.

use super::program::answer;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// In which state of its memory a server was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beginning {
    /// As what ran before had left it.
    #[default]
    Warm,
    /// Restarted, and all caches of the operating system dropped.
    Cold,
    /// Restarted; of the operating system's caches only those of its data, for the reason given.
    /// Caches of a disk's controller or of a host below this machine may still be warm.
    ColdData(String),
    /// Restarted, while the operating system's caches could not be dropped, for the reason given.
    Restarted(String),
}

impl Beginning {
    /// As a report says it.
    pub fn words(&self) -> String {
        match self {
            Beginning::Warm => "warm".into(),
            Beginning::Cold => "cold: restarted, the system's caches dropped".into(),
            Beginning::ColdData(why) => {
                format!("cold: restarted, its own files dropped from the system's cache ({why})")
            }
            Beginning::Restarted(why) => {
                format!("lukewarm: restarted, but the system's caches stay ({why})")
            }
        }
    }
}

const SWITCH: &str = "/proc/sys/vm/drop_caches";

/// Drops the caches of the operating system, of a stopped server's data at least.
pub fn drop_caches(data: &Path) -> Beginning {
    // Only what is written can be dropped.
    if let Err(error) = answer(&mut Command::new("sync")) {
        return Beginning::Restarted(error);
    }
    let Err(all) = std::fs::write(SWITCH, "3") else { return Beginning::Cold };
    let why = format!("{SWITCH}: {all}; run as root to drop all");
    match drop_files(data) {
        Ok(()) => Beginning::ColdData(why),
        Err(error) => Beginning::Restarted(format!("{why}; {error}")),
    }
}

/// Advises the kernel to forget each file.
fn drop_files(data: &Path) -> Result<(), String> {
    let mut folders: Vec<PathBuf> = vec![data.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let with_path = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(with_path)?.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() => {
                    let file = format!("if={}", path.display());
                    answer(Command::new("dd").args([&file, "iflag=nocache", "count=0"]))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_dropped_without_rights() {
        let folder = std::env::temp_dir().join(format!("lab-cold-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("below")).expect("a folder");
        std::fs::write(folder.join("below/page"), [7; 4096]).expect("written");
        assert_eq!(drop_files(&folder), Ok(()));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(drop_files(&folder).is_err());
    }
}
