//! What the store counts, for metrics, tests and `SHOW STATUS`.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// Live counters.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64,)* }

        /// A snapshot of the store's counters.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StoreCounters { $($(#[$meta])* pub $name: u64,)* }

        impl Counters {
            pub(crate) fn snapshot(&self) -> StoreCounters {
                StoreCounters { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl StoreCounters {
            /// Every counter with its name, for `SHOW STATUS` and metrics pages.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Pages read from disk because they were not in memory.
    misses,
    /// Requests that read them and what changed of them.
    reads,
    /// Bytes read for misses.
    read_bytes,
    /// Reads that failed verification and were repeated.
    read_retries,
    /// Pages found corrupt after the repeated read.
    corrupt_pages,
    /// Pages written, in full or what changed of them; moved copies not counted.
    flushed_pages,
    /// Pages of which only what changed was written.
    delta_pages,
    /// Bytes of that, with headers.
    delta_bytes,
    /// Bytes of the chunks in them, as they were written ...
    delta_packed_bytes,
    /// ... and at the ratio at which their pages were compressed in full.
    delta_as_base_bytes,
    /// Bytes written to segments: groups, headers and footers.
    written_bytes,
    /// Bytes of pages written in full, before compression.
    raw_bytes,
    /// Bytes of the same as they were written, with their headers.
    stored_bytes,
    /// Copies that were compressed; others gained nothing or were not to be.
    compressed_pages,
    /// Copies written with LZ4 in place of a dearer codec, or as they are until they are
    /// compressed, as cores were short.
    compression_fallbacks,
    /// Copies of those compressed later as their trees ask for ...
    anew_pages,
    /// ... their bytes as they had been written, with their headers ...
    anew_former_bytes,
    /// ... their bytes since ...
    anew_bytes,
    /// ... and nanoseconds that took.
    anew_nanos,
    /// Copies written with LZ4 in place of Zstandard, as they are not much larger by it.
    compression_lz4_pages,
    /// Copies that were not tried to be compressed, as their tree's pages gain nothing.
    compression_skips,
    /// Copies compressed by helper threads, as their codec is slow.
    compression_by_helpers,
    /// Copies of pages compressed with a dictionary.
    dictionary_pages,
    /// Bytes of the same as they were written, with their headers.
    dictionary_bytes,
    /// The same of some of them, which were compressed without, too ...
    dictionary_compared_bytes,
    /// ... and what they would have taken without.
    dictionary_plain_bytes,
    /// Dictionaries made and used.
    dictionaries_made,
    /// Dictionaries made, tried and found not worth while.
    dictionaries_refused,
    /// Nanoseconds that helpers took to make and try dictionaries.
    dictionary_nanos,
    /// Nanoseconds that compression took, tries that gained nothing included.
    compress_nanos,
    /// Nanoseconds that writes of groups took, one after the other.
    write_nanos,
    /// Times that writers were slowed down, as the log was near its cap.
    delays,
    /// Nanoseconds that they were asked to wait.
    delay_nanos,
    /// Deltas read from disk beside their pages.
    delta_reads,
    /// Deltas of pages read that were in memory.
    delta_hits,
    /// Copies read that had to be decompressed.
    decompressed_pages,
    /// Groups written.
    groups,
    /// Clean pages evicted.
    evictions,
    /// Chunks of frames that changed their size class.
    rebalanced_chunks,
    /// Segments emptied by moving their live copies.
    collections,
    /// Copies moved by collections or compressed anew.
    moved_pages,
    /// Bytes written by that.
    moved_bytes,
    /// Segments opened in space that had held another segment.
    segment_reuses,
    /// Segments given back to the file system.
    segments_released,
    /// Syncs of the data files.
    syncs,
    /// Unfinished groups found at recovery.
    torn_groups,
    /// Waits for a free frame.
    frame_waits,
    /// Times a write met a full disk.
    disk_full_waits,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
