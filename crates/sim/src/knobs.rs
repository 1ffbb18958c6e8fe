//! What a seed chooses for the workload.

use crate::client::promise_of;
use crate::faults::FaultKind;
use crate::model::Promise;
use crate::tables::{GroupIndex, TableShape};
use crate::world::SLOTS;
use base::Random;
use engine_api::FlushPolicy;
use std::time::Duration;

/// One seed in so many is for the log alone, and one for readers of what is not durable.
const SEEDS_PER_SPECIAL: u64 = 20;
const LOG_SEED: u64 = 19;
const READER_SEED: u64 = 9;

/// One seed of three has tables without a primary key, in these slots.
const KEYLESS_SEED: u64 = 1;
const KEYLESS_SLOTS: [usize; 2] = [1, SLOTS - 1];

/// What seeds in turn want cut off, by the names that `base::under_way` knows.
const WITHIN: [Option<&str>; 5] =
    [None, None, Some(UNDO), Some("pagestore.collection"), Some("engine.checkpoint")];
/// The last part of a recovery.
pub const UNDO: &str = "engine.undo";

/// Codecs of tables, some with levels; the last two leave it to the store and to the server.
pub const CODECS: [&str; 12] = [
    "none",
    "lz4",
    "zstd",
    "zlib",
    "lzo",
    "lzma:1",
    "bzip2",
    "snappy",
    "zstd:9",
    "zlib:1",
    "compressed",
    "",
];

/// What a seed chooses for the workload.
#[derive(Clone, Debug)]
pub struct Knobs {
    /// Fibers that run transactions.
    pub clients: usize,
    /// Shapes of the tables.
    pub shapes: [TableShape; SLOTS],
    /// Policy of all commits, or `None` for a mixture.
    pub policy: Option<FlushPolicy>,
    /// Longest pause between transactions.
    pub pause_max: Duration,
    /// A seed for the log alone: many short lives of single inserts of few lengths under a weak
    /// policy, so that there are many unsynced batches when the power fails, and now and then
    /// those of two lives fit together.
    pub is_for_log: bool,
    /// A seed for readers of what is not durable yet: many short lives of small lazy commits,
    /// whose undo is forgotten as soon as it may be, among single looks that are told of at
    /// once; the power fails just when somebody was told.
    pub is_for_readers: bool,
    /// Once it is time, the power waits for this to be under way before it fails.
    pub crash_within: Option<&'static str>,
    /// Pauses between two changes of definitions; 0: no changes.
    pub definition_pauses: u32,
    /// What the disk does wrong, once [`crate::world::World::has_faults`] is set.
    pub fault: Option<FaultKind>,
}

impl Knobs {
    /// The choices of a seed.
    pub fn new(seed: u64, random: &mut Random) -> Knobs {
        let mut knobs = Knobs::general(random);
        let keyless: &[usize] = if seed % 3 == KEYLESS_SEED { &KEYLESS_SLOTS } else { &[] };
        keyless.iter().for_each(|&slot| knobs.shapes[slot].keyless = true);
        match seed % SEEDS_PER_SPECIAL {
            LOG_SEED => {
                knobs.is_for_log = true;
                knobs.shapes[0].ids = 4_000;
                knobs.policy = Some(FlushPolicy::WriteOnly);
                knobs.pause_max = Duration::from_micros(50);
                knobs.definition_pauses = 0;
            }
            READER_SEED => {
                knobs.is_for_readers = true;
                knobs.shapes[0].ids = 60;
                knobs.shapes[0].body_bytes = 60;
                knobs.policy = Some(FlushPolicy::EverySecond);
                knobs.pause_max = Duration::from_millis(1);
                knobs.definition_pauses = 0;
            }
            _ => knobs.crash_within = WITHIN[(seed % WITHIN.len() as u64) as usize],
        }
        knobs
    }

    fn general(random: &mut Random) -> Knobs {
        let policies = [FlushPolicy::WriteOnly, FlushPolicy::EverySecond];
        let codec = |random: &mut Random| *random.pick(&CODECS);
        let shape = |random: &mut Random, by_group, unique, body: &[usize]| TableShape {
            keyless: false,
            by_group,
            unique,
            body_bytes: *random.pick(body),
            ids: *random.pick(&[20, 150, 1_000, 4_000]),
            codec: codec(random),
        };
        Knobs {
            clients: 8 + random.index(9),
            shapes: [
                shape(random, GroupIndex::None, false, &[60, 300]),
                shape(random, GroupIndex::WithId, false, &[100, 1000]),
                shape(random, GroupIndex::Plain, true, &[200, 1500, 9000]),
                shape(random, GroupIndex::Repeating, false, &[400]),
            ],
            policy: match random.below(10) {
                0 => None,
                1 => Some(*random.pick(&policies)),
                _ => Some(FlushPolicy::Synchronous),
            },
            pause_max: Duration::from_micros(*random.pick(&[200, 5_000, 300_000])),
            is_for_log: false,
            is_for_readers: false,
            crash_within: None,
            fault: None,
            definition_pauses: *random.pick(&[0, 3, 10]),
        }
    }

    /// Whether all transactions are small ones in one table.
    pub fn is_special(&self) -> bool {
        self.is_for_log || self.is_for_readers
    }

    /// One life has at most the operations of a seed divided by this.
    pub fn parts(&self) -> u64 {
        match (self.is_for_log, self.is_for_readers) {
            (true, _) => 40,
            (_, true) => 10,
            _ => 3,
        }
    }

    /// A pause between two transactions.
    pub fn pause(&self, random: &mut Random) -> Duration {
        Duration::from_nanos(random.below(self.pause_max.as_nanos() as u64 + 1))
    }

    /// The policy of a commit and what it promises.
    pub fn policy(&self, random: &mut Random) -> (FlushPolicy, Promise) {
        let all = [FlushPolicy::Synchronous, FlushPolicy::WriteOnly, FlushPolicy::EverySecond];
        let policy = self.policy.unwrap_or_else(|| *random.pick(&all));
        (policy, promise_of(policy))
    }
}
