//! Doors for the fuzz targets, present only in their builds (`--cfg fuzzing`) and in tests.
//! Checksums are put right first: random bytes would never get behind them, rotten bytes with a
//! right one may.

use crate::blob::{self, BLOB_HEADER_BYTES};
use crate::bytes::{put, u64_at};
use crate::chunks::{CHUNKS, chunk_bytes};
use crate::delta::{self, FIXED_BYTES};
use crate::dictionary_file::{self, Content, DictionaryName};
use crate::group;
use crate::header::{self, CLASS_COUNT, CLASS_MIN, class_bytes, class_is_valid};
use crate::segment;
use crate::space::map_page;
use crate::superblock::{CONTENT_BYTES, Superblock};
use crate::training::Lz4Pages;
use base::checksum::crc32c;
use base::{Lsn, PageId, TreeId};
use codec::{Codec, Dictionary, Search};
use std::sync::{Arc, OnceLock};

/// How many kinds of bytes [`decode`] knows.
pub const KINDS: u8 = 7;

fn seal(bytes: &mut [u8], at: usize, covered: std::ops::Range<usize>) {
    if let Some(body) = bytes.get(covered) {
        let crc = crc32c(body);
        put(bytes, at, &crc.to_le_bytes());
    }
}

/// Decodes bytes of one kind: a blob, header and directory of a group, a segment's header and
/// trailer, the superblock, a page of the allocation map with its changes, a dictionary.
pub fn decode(kind: u8, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    match kind % KINDS {
        0 => blob(&mut bytes),
        1 => directory(&mut bytes),
        2 => segment_header(&mut bytes),
        3 => segment_trailer(&mut bytes),
        4 => superblock(&mut bytes),
        5 => allocation_map(&bytes),
        _ => dictionary_copy(&mut bytes),
    }
}

fn blob(bytes: &mut Vec<u8>) {
    let padded = bytes.len().max(BLOB_HEADER_BYTES).next_multiple_of(64);
    let end = bytes.len().max(BLOB_HEADER_BYTES);
    bytes.resize(padded, 0);
    put(bytes, 4, &((end - BLOB_HEADER_BYTES) as u32).to_le_bytes());
    seal(bytes, 0, 4..end);
    if let Ok(header) = blob::verify(bytes) {
        let mut page = vec![0; class_bytes(header.class)];
        if blob::decode(&header, bytes, named(&header), &mut page).is_ok() {
            assert_eq!(header::raw_pid(&page), header.pid.get());
        }
        // A delta on a base that would do: only the checksum of the page is in its way.
        header::set_pid(&mut page, header.pid);
        header::set_class(&mut page, header.class);
        header::set_tree(&mut page, header.tree);
        let base = header.base.unwrap_or_default();
        header::set_page_lsn(&mut page, base.lsn);
        if delta::apply(&header, bytes, base, named(&header), &mut page).is_ok() {
            assert_eq!(header::page_lsn(&page), header.page_lsn);
        }
    }
}

/// Zstandard with a dictionary for pages of rows, and the content of that.
fn with_dictionary() -> &'static (Arc<dyn Codec>, Vec<u8>) {
    static MADE: OnceLock<(Arc<dyn Codec>, Vec<u8>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut random = base::Random::new(8);
        let words = |random: &mut base::Random| {
            (0..40).map(|_| format!("word{:x} ", 1 << random.below(30))).collect::<String>()
        };
        let samples: Vec<String> = (0..100).map(|_| words(&mut random)).collect();
        let lengths: Vec<usize> = samples.iter().map(String::len).collect();
        let content = codec::train(samples.concat().as_bytes(), &lengths, 2048);
        let content = content.expect("samples with much in common");
        let reader = Arc::new(Dictionary::new(&content).expect("a dictionary"));
        (
            codec::with_dictionary(0, Search::ByLevel, 1, &content, reader).expect("a dictionary"),
            content,
        )
    })
}

/// Every number stands for the same one here.
fn named(blob: &blob::BlobHeader) -> Option<&'static Dictionary> {
    static PREPARED: OnceLock<Option<Dictionary>> = OnceLock::new();
    let prepared = || Dictionary::new(&with_dictionary().1);
    (blob.dictionary != 0).then(|| PREPARED.get_or_init(prepared).as_ref()).flatten()
}

/// What [`dictionary_copy`] is taken for.
const NAME: DictionaryName = DictionaryName { tree: TreeId::new(20), number: 1 };

fn dictionary_copy(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(64), 0);
    let end = 64 + (u32::from_le_bytes([bytes[36], bytes[37], bytes[38], bytes[39]]) as usize);
    let end = end.min(bytes.len());
    seal(bytes, 8, 12..end);
    if let Ok(content) = dictionary_file::decode([3; 16], NAME, bytes)
        && let Some(dictionary) = Dictionary::new(&content.bytes)
    {
        let mut page = vec![0; 4096];
        let (codec, _) = with_dictionary();
        let packed = blob::pack(&vec![7; 4096], &**codec, &mut page);
        let packed = page[..packed.bytes].to_vec();
        let _ = dictionary.decompress(&packed, &mut page);
    }
}

fn directory(bytes: &mut [u8]) {
    let Some(header) = group::peek(bytes, 7, 3) else { return };
    seal(bytes, 4, 8..group::head_bytes(header.entry_count as usize));
    if let Ok((header, entries)) = group::decode_head(bytes, 7, 3) {
        assert_eq!(entries.len(), header.entry_count as usize);
        for entry in entries {
            assert!(class_is_valid(entry.class));
            assert!(
                u64::from(entry.offset_bytes) + u64::from(entry.length_bytes)
                    <= u64::from(header.total_bytes)
            );
        }
    }
}

fn segment_header(bytes: &mut Vec<u8>) {
    bytes.resize(segment::BLOCK_BYTES, 0);
    for start in [0, segment::BLOCK_BYTES / 2] {
        seal(bytes, start + 8, start + 12..start + 512);
    }
    let _ = segment::read_header(bytes);
}

fn segment_trailer(bytes: &mut Vec<u8>) {
    bytes.resize(segment::BLOCK_BYTES, 0);
    for start in [0, segment::BLOCK_BYTES / 2] {
        seal(bytes, start + 8, start + 12..start + 512);
    }
    let _ = segment::read_trailer(bytes);
}

fn superblock(bytes: &mut Vec<u8>) {
    bytes.resize(CONTENT_BYTES, 0);
    seal(bytes, 8, 12..CONTENT_BYTES);
    if let Some(content) = bytes.first_chunk() {
        let _ = Superblock::from_content(content);
    }
}

/// A page that may be anything, then changes to one that is sound.
fn allocation_map(bytes: &[u8]) {
    let half = bytes.len() / 2;
    let mut page = vec![0; 8192];
    map_page::format(&mut page);
    let sound = page.clone();
    for (target, byte) in page[header::HEADER_BYTES..].iter_mut().zip(&bytes[..half]) {
        *target = *byte;
    }
    for mut page in [page, sound] {
        if map_page::check(&page).is_ok()
            && map_page::apply(&mut page, map_page::OP_MAP_CHANGE, &bytes[half..]).is_ok()
        {
            assert_eq!(map_page::check(&page), Ok(()));
        }
    }
}

/// Bytes before the packed chunks in what [`apply_delta`] is given.
const DELTA_HEAD_BYTES: usize = 20;
/// The full copy that hostile deltas name.
const BASE: delta::Base = delta::Base { lsn: Lsn::new(4000), crc: 5 };

/// Puts a delta on a sound full copy of its page: codec, classes of page and blob, dictionary, the
/// set of chunks, and the packed chunks are anybody's. What it gives is taken only if that is the
/// page whose checksum the delta has, and then no other chunk was touched. Returns whether it was.
pub fn apply_delta(bytes: &[u8]) -> bool {
    let Some((head, packed)) = bytes.split_first_chunk::<DELTA_HEAD_BYTES>() else { return false };
    let class_of = |byte: u8| CLASS_MIN + byte % CLASS_COUNT as u8;
    let copy = full_copy(class_of(head[1]));
    let changed = delta::joined([4, 12].map(|at| u64_at(head, at)));
    let fields = (head[0], class_of(head[2]), head[3], changed);
    let mut page = copy.clone();
    let Some(outcome) = apply_to(&mut page, fields, packed, crc32c(&copy)) else { return false };
    assert!(outcome.is_err(), "a delta was taken that gives another page than it says");
    // The checksum is of what came out: only what else is wrong is in its way now.
    let crc = crc32c(&page);
    page.copy_from_slice(&copy);
    let outcome = apply_to(&mut page, fields, packed, crc).and_then(Result::ok);
    let Some(since) = outcome else { return false };
    assert_eq!((since.base, since.changed), (BASE, changed));
    assert_eq!(header::page_lsn(&page), Lsn::new(5000));
    header::set_page_lsn(&mut page, BASE.lsn);
    let size = chunk_bytes(header::class(&copy));
    let pairs = page.chunks_exact(size).zip(copy.chunks_exact(size)).enumerate();
    for (number, (chunk, former)) in pairs {
        // The LSN stands in the first chunk and is the header's, not the delta's.
        let may_change = changed & 1 << number != 0;
        assert!(may_change || chunk == former, "chunk {number} of {CHUNKS} was touched");
    }
    true
}

/// A delta of these fields (codec, class, dictionary, set of chunks) is sealed and applied; `None`
/// if it is no blob at all.
fn apply_to(
    page: &mut [u8],
    (codec, class, dictionary, changed): (u8, u8, u8, u128),
    packed: &[u8],
    crc: u32,
) -> Option<Result<delta::SinceBase, &'static str>> {
    let end = BLOB_HEADER_BYTES + FIXED_BYTES + packed.len();
    let mut bytes = vec![0; end.next_multiple_of(64)];
    put(&mut bytes, 4, &((end - BLOB_HEADER_BYTES) as u32).to_le_bytes());
    put(&mut bytes, 8, &[9, 0, 0, 0, 0, 0, codec | blob::DELTA_FLAG, class]);
    put(&mut bytes, 16, &5000u64.to_le_bytes());
    put(&mut bytes, 24, &20u32.to_le_bytes());
    put(&mut bytes, 28, &[dictionary, 0]);
    put(&mut bytes, 32, &BASE.lsn.get().to_le_bytes());
    let [first, second] = delta::halves(changed);
    put(&mut bytes, 40, &first.to_le_bytes());
    put(&mut bytes, 48, &crc.to_le_bytes());
    put(&mut bytes, 52, &BASE.crc.to_le_bytes());
    put(&mut bytes, 58, &1u16.to_le_bytes());
    put(&mut bytes, 60, &second.to_le_bytes());
    put(&mut bytes, BLOB_HEADER_BYTES + FIXED_BYTES, packed);
    seal(&mut bytes, 0, 4..end);
    let blob = blob::verify(&bytes).ok()?;
    Some(delta::apply(&blob, &bytes, BASE, named(&blob), page))
}

/// Page 9 of tree 20 as [`BASE`] names it.
fn full_copy(class: u8) -> Vec<u8> {
    let mut page = vec![0; class_bytes(class)];
    base::Random::new(u64::from(class)).fill(&mut page[header::HEADER_BYTES..]);
    header::set_pid(&mut page, PageId::new(9));
    header::set_class(&mut page, class);
    header::set_page_lsn(&mut page, BASE.lsn);
    header::set_tree(&mut page, TreeId::new(20));
    page
}

/// Every codec, and Zstandard once more with a dictionary.
fn codecs() -> Vec<Arc<dyn Codec>> {
    let plain = codec::ALL.into_iter().map(|id| Arc::from(codec::codec(id, 0)));
    plain.chain([with_dictionary().0.clone()]).collect()
}

/// Sound deltas of every codec, to begin with.
pub fn delta_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, codec) in codecs().into_iter().enumerate() {
        let class = CLASS_MIN + (number % CLASS_COUNT) as u8;
        let mut page = full_copy(class);
        // Behind the page's header, whatever its class.
        let changed = 0b1101u128 << (14 * number + 2);
        let size = chunk_bytes(class);
        let marked = (0..CHUNKS).filter(|chunk| changed & 1 << chunk != 0);
        marked.for_each(|chunk| page[chunk * size..(chunk + 1) * size].fill(7));
        header::set_page_lsn(&mut page, Lsn::new(5000));
        let since = delta::SinceBase { base: BASE, changed, count: 2 };
        let mut bytes = vec![0; delta::delta_bytes_max(class, changed)];
        let blob = delta::encode(&page, &since, &*codec, &mut Vec::new(), &mut bytes);
        let packed =
            BLOB_HEADER_BYTES + FIXED_BYTES..BLOB_HEADER_BYTES + blob.payload_bytes as usize;
        let classes = [class - CLASS_MIN; 2];
        let dictionary = [blob.dictionary as u8];
        let head =
            [&[blob.codec as u8][..], &classes, &dictionary, &changed.to_le_bytes()].concat();
        seeds.push([&head[..], &bytes[packed]].concat());
    }
    seeds
}

/// Sound bytes of every kind, to begin with.
pub fn seeds() -> Vec<(u8, Vec<u8>)> {
    let mut page = vec![0; 4096];
    page[100..200].fill(7);
    header::set_pid(&mut page, PageId::new(9));
    header::set_class(&mut page, 12);
    header::set_page_lsn(&mut page, Lsn::new(5000));
    header::set_tree(&mut page, TreeId::new(20));
    let mut seeds = Vec::new();
    let mut entries = Vec::new();
    for codec in codecs() {
        let mut bytes = vec![0; blob::blob_bytes_max(12)];
        let blob = blob::encode(&page, &*codec, &mut bytes);
        bytes.truncate(BLOB_HEADER_BYTES + blob.payload_bytes as usize);
        seeds.push((0, bytes));
        entries.push(group::DirectoryEntry::new(&blob, group::blobs_offset(6), &page, false));
        let base = delta::Base { lsn: Lsn::new(4000), crc: 5 };
        let since = delta::SinceBase { base, changed: 0b1011 << 30, count: 2 };
        let mut bytes = vec![0; delta::delta_bytes_max(12, since.changed)];
        let blob = delta::encode(&page, &since, &*codec, &mut Vec::new(), &mut bytes);
        bytes.truncate(BLOB_HEADER_BYTES + blob.payload_bytes as usize);
        seeds.push((0, bytes));
        entries.push(group::DirectoryEntry::new(&blob, group::blobs_offset(6), &page, false));
    }
    let mut head = vec![0; group::head_bytes(entries.len())];
    let header = group::GroupHeader {
        segment_seq: 7,
        group_seq: 99,
        index: 3,
        entry_count: entries.len() as u32,
        total_bytes: 12288,
        max_page_lsn: Lsn::new(5000),
        epoch: 2,
    };
    group::encode_head(&header, &entries, &mut head);
    seeds.push((1, head));
    seeds.extend(segment_seeds());
    let superblock = Superblock::new([3; 16], 64 << 20, 64);
    seeds.push((4, superblock.to_content()[..1024].to_vec()));
    let (tree, extent) = (TreeId::new(20), 1);
    let mut changes = Vec::new();
    map_page::MapEntry::Assign { extent, tree, class: 13 }.encode(&mut changes);
    map_page::MapEntry::Set { extent, bit: 9, tree }.encode(&mut changes);
    map_page::MapEntry::Clear { extent, bit: 9, tree }.encode(&mut changes);
    map_page::MapEntry::Release { extent, tree }.encode(&mut changes);
    let name = NAME;
    let content = Content {
        bytes: with_dictionary().1.clone(),
        search: Search::ByLevel,
        lz4_pages: Lz4Pages::None,
    };
    let mut copy = vec![0; dictionary_file::covered_bytes(content.bytes.len())];
    dictionary_file::encode([3; 16], name, &content, &mut copy);
    seeds.push((6, copy));
    seeds.push((5, [vec![0, 1, 200, 0, 0, 0, 0, 0], vec![0; 24], changes].concat()));
    seeds
}

fn segment_seeds() -> Vec<(u8, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut block = vec![0; segment::BLOCK_BYTES];
    let sync = segment::SyncRecord {
        version: 4,
        synced_group_seq: 90,
        next_segment_seq: 8,
        open: vec![segment::OpenSegment { number: 1, groups: 2, seq: 7 }],
    };
    let segment = segment::SegmentHeader {
        is_free: false,
        stream: 0,
        uuid: [3; 16],
        number: 1,
        epoch: 2,
        seq: 7,
        segment_bytes: 64 << 20,
        sync,
    };
    segment.encode(&mut block);
    seeds.push((2, block[..512].to_vec()));
    let trailer = segment::SegmentTrailer {
        uuid: [3; 16],
        number: 1,
        seq: 7,
        group_count: 2,
        footer_offset: 65_000_000,
        footer_bytes: 4096,
        footer_crc: 5,
    };
    trailer.encode(&mut block);
    seeds.push((3, block[..512].to_vec()));
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    #[test]
    fn damaged_bytes_with_right_checksums_never_panic() {
        let mut random = Random::new(31);
        for (kind, seed) in seeds() {
            for _ in 0..300 {
                let mut bytes = seed.clone();
                random.damage(&mut bytes);
                decode(kind, &bytes);
            }
        }
    }

    #[test]
    fn hostile_deltas_touch_nothing_else() {
        let mut random = Random::new(32);
        let (mut taken, mut tried) = (0, 0);
        for (number, seed) in delta_seeds().iter().enumerate() {
            assert!(apply_delta(seed), "seed {number} is sound");
            for _ in 0..1_000 {
                let mut bytes = seed.clone();
                match random.one_in(4) {
                    true => random.fill(&mut bytes[DELTA_HEAD_BYTES..]),
                    false => random.damage(&mut bytes),
                }
                taken += u32::from(apply_delta(&bytes));
                tried += 1;
            }
        }
        assert!(taken > tried / 20 && taken < tried * 9 / 10, "{taken} of {tried} were taken");
    }
}
