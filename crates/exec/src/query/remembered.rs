//! Rows of an inner table that point lookups have found: a join that asks for the same rows of a
//! small table again and again descends its tree once for each of them.
//!
//! 1. Only plain reads remember. The statement reads from one snapshot and a lookup changes
//!    nothing, so a row found once is what every later lookup of its key would find; so is the
//!    absence of a row.
//! 2. Remembering begins after as many lookups as a quarter of the table has rows: whoever came
//!    so far will probably come again, and if not, has lost little. It ends for good when not one
//!    in four of the lookups was known after twice as many as the table has rows.
//! 3. What is remembered is charged to the statement. When that is refused, or at
//!    [`BYTES_MAX`], nothing is added any more; the statement goes on.

use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use base::memory::MemoryAccount;
use engine_api::{RowBatch, RowBuffer};
use std::sync::Arc;

/// Lookups before anything is counted on.
const LOOKUPS_MIN: u64 = 256;
/// Tables with more rows are not remembered.
const ROWS_MAX: u64 = 1 << 18;
/// Most that is remembered.
const BYTES_MAX: usize = 32 << 20;

/// What is done about lookups.
#[derive(Default)]
pub enum Remembered {
    /// So many lookups came, and nothing is known of the table.
    #[default]
    New,
    /// So many came.
    Counting(u64),
    /// Nothing until so many came.
    Waiting { lookups: u64, begin: u64, rows: u64 },
    /// Rows are remembered.
    Known(Box<Known>),
    /// Nothing, ever.
    Useless,
}

/// The rows.
pub struct Known {
    keys: Keys,
    /// Row number N has key number N; a key without a row has an empty one.
    rows: RowBatch,
    lookups: u64,
    found: u64,
    /// After so many lookups it is looked whether this helps.
    trial: u64,
    full: bool,
    memory: Arc<MemoryAccount>,
    charged_bytes: usize,
}

impl Remembered {
    /// Counts a lookup. `rows` tells how many the table has, if that matters now.
    #[inline]
    pub fn begin(&mut self, memory: &Arc<MemoryAccount>, rows: impl FnOnce() -> u64) {
        match self {
            Self::New => *self = Self::Counting(1),
            Self::Counting(lookups) if *lookups < LOOKUPS_MIN => *lookups += 1,
            Self::Counting(lookups) => {
                let (lookups, rows) = (*lookups, rows());
                *self = match rows <= ROWS_MAX {
                    true => Self::Waiting { lookups, begin: rows / 4, rows },
                    false => Self::Useless,
                };
            }
            Self::Waiting { lookups, begin, rows } => {
                *lookups += 1;
                if *lookups >= *begin {
                    *self = Self::Known(Box::new(Known::new(*rows, memory)));
                }
            }
            Self::Known(known) => {
                if known.is_useless() {
                    *self = Self::Useless;
                }
            }
            Self::Useless => {}
        }
    }

    /// Copies the row of a key into `row`; whether there is one. None if that is not known.
    #[inline]
    pub fn find(&mut self, key: &[u8], row: &mut RowBuffer) -> Option<bool> {
        match self {
            Self::Known(known) => known.find(key, row),
            _ => None,
        }
    }

    /// Remembers what a lookup found.
    #[inline]
    pub fn add(&mut self, key: &[u8], row: Option<&RowBuffer>) {
        if let Self::Known(known) = self {
            known.add(key, row);
        }
    }
}

impl Known {
    fn new(rows: u64, memory: &Arc<MemoryAccount>) -> Self {
        Self {
            keys: Keys::default(),
            rows: RowBatch::default(),
            lookups: 0,
            found: 0,
            trial: (2 * rows).max(LOOKUPS_MIN),
            full: false,
            memory: memory.clone(),
            charged_bytes: 0,
        }
    }

    fn is_useless(&mut self) -> bool {
        if self.lookups < self.trial {
            return false;
        }
        let useless = self.found < self.lookups / 4;
        (self.lookups, self.found) = (0, 0);
        useless
    }

    fn find(&mut self, key: &[u8], row: &mut RowBuffer) -> Option<bool> {
        self.lookups += 1;
        let known = self.rows.row(self.keys.find(key)?)?;
        self.found += 1;
        if known.payload.is_empty() {
            return Some(false);
        }
        row.key.clear();
        row.key.extend_from_slice(known.key);
        row.payload.clear();
        row.payload.extend_from_slice(known.payload);
        Some(true)
    }

    fn add(&mut self, key: &[u8], row: Option<&RowBuffer>) {
        let row_bytes = row.map_or(0, |row| row.key.len() + row.payload.len());
        let bytes = row_bytes + key.len() + KEY_OVERHEAD_BYTES + 32;
        self.full = self.full
            || self.charged_bytes + bytes > BYTES_MAX
            || self.memory.charge(bytes as u64).is_err();
        if self.full {
            return;
        }
        self.charged_bytes += bytes;
        let (_, is_new) = self.keys.insert(key);
        if is_new {
            let missing = RowBuffer::default();
            self.rows.push(row.unwrap_or(&missing).as_row());
        }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.memory.release(self.charged_bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of key N: none for every seventh.
    fn row(number: u64) -> Option<RowBuffer> {
        let key = number.to_be_bytes().to_vec();
        let payload = vec![number as u8; 1 + number as usize % 50];
        (!number.is_multiple_of(7)).then_some(RowBuffer { key, payload })
    }

    /// Asks for keys as a join does; how many lookups went to the table.
    fn ask(keys: impl Iterator<Item = u64>, rows: u64, memory: &Arc<MemoryAccount>) -> usize {
        let (mut remembered, mut buffer) = (Remembered::default(), RowBuffer::default());
        let mut asked = 0;
        for number in keys {
            let key = number.to_be_bytes();
            remembered.begin(memory, || rows);
            let expected = row(number);
            match remembered.find(&key, &mut buffer) {
                Some(found) => {
                    assert_eq!(found, expected.is_some(), "{number}");
                    if let Some(expected) = expected {
                        assert_eq!(
                            (&buffer.key, &buffer.payload),
                            (&expected.key, &expected.payload)
                        );
                    }
                }
                None => {
                    asked += 1;
                    remembered.add(&key, expected.as_ref());
                }
            }
        }
        asked
    }

    #[test]
    fn rows_asked_for_again_are_known() {
        let memory = MemoryAccount::new(u64::MAX);
        let asked = ask((0..100_000).map(|number| number % 1000), 1000, &memory);
        assert!(asked < 1300, "{asked}");
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn few_lookups_large_tables_and_keys_that_never_come_again_are_left_alone() {
        let memory = MemoryAccount::new(u64::MAX);
        assert_eq!(ask((0..200).map(|_| 1), 10, &memory), 200);
        assert_eq!(ask((0..5000).map(|_| 1), ROWS_MAX + 1, &memory), 5000);
        assert_eq!(ask(0..10_000, 1000, &memory), 10_000);
        assert!(memory.high_water_bytes() < 1 << 20, "it stops after a trial");
    }

    #[test]
    fn refused_memory_ends_remembering_and_not_the_statement() {
        let memory = MemoryAccount::new(20_000);
        let asked = ask((0..100_000).map(|number| number % 1000), 1000, &memory);
        assert!(asked > 50_000, "{asked}");
        assert!(memory.high_water_bytes() <= 20_000);
    }
}
