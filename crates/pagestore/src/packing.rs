//! A page becomes a blob: by the codec that the governor chooses, without holding up its worker.
//!
//! Where a tree's pages are hardly larger by LZ4 than by Zstandard, which it asks for, or not much
//! larger and change, they are written with LZ4 (training.rs, invariant 4).
//!
//! What the governor has LZ4 write, or nothing, is *deferred*: to be compressed anew (catch_up.rs).
//!
//! Slow codecs (LZMA, bzip2: up to milliseconds a page) run on helper threads while the flusher is
//! parked (amendment 20); for the others the flusher yields by time between pages.

use crate::blob::{self, BlobHeader};
use crate::codecs::Asked;
use crate::counters::add;
use crate::delta::{self, SinceBase};
use crate::governor::Choice;
use crate::header;
use crate::location::Location;
use crate::store::Shared;
use base::{TreeId, probe};
use codec::{Codec, CodecId, DecompressError, Search};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Of a page so many zeroes in a row count as empty ...
const EMPTY_BYTES: usize = 256;
/// ... and one of so many parts of it is worth being tried.
const EMPTY_PARTS: usize = 8;

/// Writes the blob of a page to the start of `target`, as [`blob::encode`] does; `former`: the full
/// copy that it has on disk, if any. Returns whether it is deferred, too. Parks; the caller holds
/// no latch.
pub(crate) fn encode(
    shared: &Shared,
    page: &[u8],
    former: Location,
    target: &mut [u8],
) -> (BlobHeader, bool) {
    let counters = &shared.counters;
    let tree = header::tree(page);
    let asked = shared.codecs.of(tree);
    let is_rewritten = !former.is_none();
    let may_wait =
        (!is_rewritten || shared.is_among_deferred(former)) && shared.has_room_to_defer();
    let choice = shared.governor.choose(tree, asked.codec.id(), may_wait);
    let is_skipped = matches!(choice, Choice::Skip);
    let codec = match choice {
        Choice::Asked => best_codec(shared, tree, &asked, is_rewritten),
        Choice::Fallback(codec) => {
            add(&counters.compression_fallbacks, 1);
            return (timed(shared, &counters.compress_nanos, &codec, page, target), true);
        }
        Choice::Deferred => {
            add(&counters.compression_fallbacks, 1);
            return (raw(page, target), true);
        }
        Choice::Skip if is_part_empty(page) => {
            probe!("pagestore_part_empty_page_tried");
            asked.codec.clone()
        }
        Choice::Skip => {
            add(&counters.compression_skips, 1);
            return (raw(page, target), false);
        }
    };
    if codec.id() == CodecId::None {
        return (blob::encode(page, &*codec, target), false);
    }
    let blob = timed(shared, &counters.compress_nanos, &codec, page, target);
    if !is_skipped {
        shared.governor.note(tree, blob.codec != CodecId::None);
    }
    note_asked(shared, &asked, page, &blob);
    (blob, false)
}

/// Writes the blob of a deferred copy as its tree asks for it to the start of `target`, if that
/// gives a shorter one. `page` has room for the page, and holds it then. Parks; the caller holds no
/// latch.
pub(crate) fn encode_anew(
    shared: &Shared,
    copy: &[u8],
    page: &mut [u8],
    target: &mut [u8],
) -> Option<BlobHeader> {
    let former = blob::verify(copy).ok()?;
    let asked = shared.codecs.of(former.tree);
    let codec = best_codec(shared, former.tree, &asked, false);
    if codec.id() == CodecId::None {
        return None;
    }
    shared.unpack(&former, copy, page).ok()?;
    let blob = timed(shared, &shared.counters.anew_nanos, &codec, page, target);
    note_asked(shared, &asked, page, &blob);
    let blob_bytes = |blob: &BlobHeader| blob::blob_bytes(blob.payload_bytes as usize);
    (blob_bytes(&blob) < blob_bytes(&former)).then_some(blob)
}

/// Compresses a page with a codec; `nanos` counts how long that takes.
fn timed(
    shared: &Shared,
    nanos: &AtomicU64,
    codec: &Arc<dyn Codec>,
    page: &[u8],
    target: &mut [u8],
) -> BlobHeader {
    let begun = runtime::now();
    let blob = if is_slow(codec.id()) {
        add(&shared.counters.compression_by_helpers, 1);
        let bytes = on_helper(codec, page);
        blob::encode(page, &Packed { id: codec.id(), bytes }, target)
    } else {
        blob::encode(page, &**codec, target)
    };
    let taken = begun.elapsed();
    add(nanos, taken.as_nanos() as u64);
    shared.counted_trees.note_tried(blob.tree, blob.codec != CodecId::None, taken);
    blob
}

/// The page as it is.
fn raw(page: &[u8], target: &mut [u8]) -> BlobHeader {
    blob::encode(page, &Packed { id: CodecId::None, bytes: None }, target)
}

/// Takes note of a page that was written as its tree asks for.
fn note_asked(shared: &Shared, asked: &Asked, page: &[u8], blob: &BlobHeader) {
    if asked.dictionary_level.is_some() && blob.codec != CodecId::None {
        let is_lz4 = u64::from(blob.codec == CodecId::Lz4);
        add(&shared.counters.compression_lz4_pages, is_lz4);
        shared.dictionaries.note_written(blob.tree, page.len());
    }
    if blob.dictionary != 0 {
        shared.compare_dictionary(page, &*asked.codec, blob.stored_bytes());
    }
}

/// The codec that a tree asks for, with its dictionary if it has one, or LZ4 if that is as good for
/// such a page. Parks.
fn best_codec(shared: &Shared, tree: TreeId, asked: &Asked, is_rewritten: bool) -> Arc<dyn Codec> {
    let Some((level, disk)) = asked.dictionary_level.zip(shared.disk.as_ref()) else {
        return asked.codec.clone();
    };
    if is_for_lz4(shared, tree, asked, is_rewritten) {
        probe!("pagestore_lz4_for_zstandard");
        return shared.governor.lz4();
    }
    let writer = shared.dictionaries.writer(disk, tree, level);
    writer.unwrap_or_else(|| asked.codec.clone())
}

/// Whether a page of a tree that asks for Zstandard is written with LZ4 (training.rs, invariant 4).
/// What was found at a usual level may still be known where another is asked for now.
fn is_for_lz4(shared: &Shared, tree: TreeId, asked: &Asked, is_rewritten: bool) -> bool {
    let is_usual = |level| !Search::is_small_before_fast(level);
    asked.dictionary_level.is_some_and(is_usual)
        && shared.dictionaries.is_for_lz4(tree, is_rewritten)
}

/// Writes what changed of a page to the start of `target`, as [`delta::encode`] does. Chunks are
/// few, so the governor is not asked; in place of slow codecs LZ4 is used, and of Zstandard if it
/// has no dictionary: without one it makes and sends its tables for a few hundred bytes. Parks; the
/// caller holds no latch.
pub(crate) fn encode_delta(
    shared: &Shared,
    page: &[u8],
    since: &SinceBase,
    scratch: &mut Vec<u8>,
    target: &mut [u8],
) -> BlobHeader {
    let tree = header::tree(page);
    let asked = shared.codecs.of(tree);
    let codec = best_codec(shared, tree, &asked, true);
    let is_dear = is_slow(codec.id()) || codec.id() == CodecId::Zstd && codec.dictionary() == 0;
    let codec = if is_dear { shared.governor.lz4() } else { codec };
    delta::encode(page, since, &*codec, scratch, target)
}

/// Whether a good part of the page is empty, as deletes leave it: that gains with any codec, even
/// where rows gain nothing.
fn is_part_empty(page: &[u8]) -> bool {
    let empty = page.chunks_exact(EMPTY_BYTES).filter(|part| part.iter().all(|&byte| byte == 0));
    empty.count() * EMPTY_BYTES * EMPTY_PARTS >= page.len()
}

/// Whether a page takes so long that it would hold up a worker.
fn is_slow(id: CodecId) -> bool {
    matches!(id, CodecId::Lzma | CodecId::Bzip2)
}

fn on_helper(codec: &Arc<dyn Codec>, page: &[u8]) -> Option<Vec<u8>> {
    let (codec, page) = (codec.clone(), page.to_vec());
    runtime::blocking(move || {
        let mut bytes = vec![0; page.len()];
        let size = codec.compress(&page, &mut bytes)?;
        bytes.truncate(size);
        Some(bytes)
    })
}

/// What is compressed already, or is not to be, in the place of a codec.
#[derive(Debug)]
struct Packed {
    id: CodecId,
    bytes: Option<Vec<u8>>,
}

impl Codec for Packed {
    fn id(&self) -> CodecId {
        self.id
    }

    fn compress(&self, _source: &[u8], target: &mut [u8]) -> Option<usize> {
        let bytes = self.bytes.as_deref()?;
        target.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(bytes.len())
    }

    fn decompress(&self, _source: &[u8], _target: &mut [u8]) -> Result<(), DecompressError> {
        Err(DecompressError("what was packed for one page reads none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_part_empty_if_an_eighth_is_zeroes_in_a_row() {
        let mut page = vec![7; 8192];
        assert!(!is_part_empty(&page));
        page[3000..3900].fill(0);
        assert!(!is_part_empty(&page), "too little");
        page[3000..4400].fill(0);
        assert!(is_part_empty(&page));
        let scattered: Vec<u8> = (0..8192).map(|at| u8::from(at % 100 == 0)).collect();
        assert!(!is_part_empty(&scattered), "zeroes between other bytes");
    }
}
