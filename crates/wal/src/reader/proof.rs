//! What stands behind the end of the log: statements that more was durable, and damage.

use super::{ReadError, Reader, Window};
use crate::format::BatchHeader;
use crate::listing::LogFile;
use crate::sector::{self, SECTOR_BYTES};
use runtime::file::AlignedBuf;
use std::path::PathBuf;

impl Reader {
    /// The first damaged sector where the next batch would be: in the present file, or in the
    /// next one behind a header.
    pub(super) fn damage_at_end(&mut self) -> Result<Option<(PathBuf, u64)>, ReadError> {
        let begun = self.offset;
        let len = self.continuing_header()?.map_or(SECTOR_BYTES, |header| header.sector_bytes());
        let here = (0..len as u64).step_by(SECTOR_BYTES).map(|at| begun + at);
        for offset in here {
            if let Some(bytes) = self.window.bytes(offset, SECTOR_BYTES)?
                && sector::is_damaged(bytes)
            {
                return Ok(Some((self.window.log.path.clone(), offset)));
            }
        }
        let sequence = self.logs[self.current].sequence + 1;
        let next = self.logs.iter().find(|log| log.sequence == sequence);
        Ok(next.filter(|log| log.header_damaged).map(|log| (log.path.clone(), 0)))
    }

    /// The highest LSN that anything behind the end says was durable.
    pub(super) fn evidence(&mut self) -> Result<u64, ReadError> {
        let mut durable = self.scan_blocks(self.offset)?;
        let current = self.logs[self.current].sequence;
        let later: Vec<LogFile> =
            self.logs.iter().filter(|log| log.sequence > current).cloned().collect();
        for log in later {
            if let Some(header) = log.header {
                durable = durable.max(header.first_lsn);
            }
            let buffer = std::mem::replace(&mut self.window.buffer, AlignedBuf::zeroed(0));
            let window = Window::open(log, buffer)?;
            let former = std::mem::replace(&mut self.window, window);
            let found = self.scan_blocks(0);
            self.window.filled = 0;
            let scanned = std::mem::replace(&mut self.window, former);
            self.window.buffer = scanned.buffer;
            self.window.filled = 0;
            durable = durable.max(found?);
        }
        Ok(durable)
    }

    /// The highest durable LSN named by an intact batch header in the present file from `offset`.
    fn scan_blocks(&mut self, offset: u64) -> Result<u64, ReadError> {
        let mut durable = 0;
        let mut offset = offset;
        let uuid = self.database_uuid;
        while let Some(bytes) = self.window.bytes(offset, SECTOR_BYTES)? {
            if let Some(header) = BatchHeader::decode(bytes, &uuid) {
                durable = durable.max(header.durable_lsn);
            }
            offset += self.block_bytes as u64;
            runtime::yield_if_due();
        }
        Ok(durable)
    }
}
