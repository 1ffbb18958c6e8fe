//! `gannet check`: verify a data directory that no server uses.

use crate::data_directory::DataDirectory;
use crate::log;

/// Verifies the directory and prints what is wrong; the exit code: 0 clean, 1 findings, 2 not
/// possible. With `regions` every region that is covered by a checksum is listed.
pub fn run(path: &str, _regions: bool) -> i32 {
    match DataDirectory::open(path, false) {
        Ok(_directory) => {
            log::error("this build has no engine on disk to check");
            2
        }
        Err(error) => {
            log::error(&error.to_string());
            2
        }
    }
}
