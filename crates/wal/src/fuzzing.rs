//! Doors for the fuzz targets, present only in their builds (`--cfg fuzzing`). Checksums are put
//! right first: random bytes would never get behind them, rotten bytes with a right one may.

use crate::format::{
    BATCH_HEADER_BYTES, BatchHeader, FileHeader, batch_file_bytes, copy_payload, payload_places,
    split_record,
};
use crate::record::{LogicalUndo, RecordBuilder, RecordKind, RecordView, UndoKind};
use crate::sector::{self, SECTOR_BYTES};
use base::checksum::crc32c_append;
use base::{Lsn, PageId, TrxId};

const UUID: [u8; 16] = [3; 16];
/// How many kinds of bytes [`decode`] knows.
pub const KINDS: u8 = 4;

/// Decodes bytes of one kind: a record, a batch with its records, a file's header, sectors whose
/// seals are as they come.
pub fn decode(kind: u8, bytes: &[u8]) {
    match kind % KINDS {
        0 => record(bytes),
        1 => batch(&mut bytes.to_vec()),
        2 => file_header(&mut bytes.to_vec()),
        _ => sectors(&mut bytes.to_vec()),
    }
}

/// What a torn write or rot leaves: a sector with a right seal is not damaged, and a batch that is
/// accepted has only such.
fn sectors(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(SECTOR_BYTES).next_multiple_of(SECTOR_BYTES), 0);
    for sector in bytes.chunks_exact(SECTOR_BYTES) {
        assert!(!(sector::is_sealed(sector) && sector::is_damaged(sector)));
    }
    if let Some(header) = BatchHeader::decode(bytes, &UUID)
        && header.body_is_intact(bytes)
    {
        let mut sectors = bytes[..header.sector_bytes()].chunks_exact(SECTOR_BYTES);
        assert!(sectors.all(sector::is_sealed));
    }
    let _ = FileHeader::decode(bytes, &UUID);
}

fn record(bytes: &[u8]) {
    let Ok(view) = RecordView::parse(bytes) else { return };
    let ops = view.page_ops();
    let payload: usize = ops.clone().map(|op| op.payload.len()).sum();
    assert_eq!(ops.count(), view.page_op_count());
    assert!(payload + view.logical().len() <= view.bytes().len());
    if let Ok(undo) = LogicalUndo::parse(view.logical()) {
        let mut again = Vec::new();
        undo.encode(&mut again);
        assert_eq!(again, view.logical());
    }
}

fn batch(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(BATCH_HEADER_BYTES).next_multiple_of(SECTOR_BYTES), 0);
    let mut body_crc = 0;
    for sector in bytes[SECTOR_BYTES..].chunks_exact_mut(SECTOR_BYTES) {
        body_crc = crc32c_append(body_crc, &sector::seal(sector).to_le_bytes());
    }
    bytes[52..56].copy_from_slice(&body_crc.to_le_bytes());
    sector::seal(&mut bytes[..SECTOR_BYTES]);
    let Some(header) = BatchHeader::decode(bytes, &UUID) else { return };
    if !header.body_is_intact(bytes) {
        return;
    }
    let mut payload = Vec::new();
    copy_payload(bytes, header.payload_len, &mut payload);
    let mut rest = &payload[..];
    while let Ok((length, stream_length)) = split_record(rest) {
        record(&rest[..length]);
        rest = &rest[stream_length..];
    }
}

fn file_header(bytes: &mut Vec<u8>) {
    bytes.resize(4096, 0);
    sector::seal(&mut bytes[..SECTOR_BYTES]);
    if let Some(header) = FileHeader::decode(bytes, &UUID) {
        let mut again = vec![0; header.block_bytes];
        header.encode(&UUID, &mut again);
        assert_eq!(FileHeader::decode(&again, &UUID), Some(header));
    }
}

/// Sound bytes of every kind, to begin with.
pub fn seeds() -> Vec<(u8, Vec<u8>)> {
    let mut records = Vec::new();
    let kinds = (0..=u8::MAX).filter_map(RecordKind::from_u8);
    for kind in kinds {
        let mut record = RecordBuilder::new(kind, TrxId::new(5));
        let put = |out: &mut Vec<u8>| out.extend_from_slice(&[1, 0, 2, 0, b'a', b'b']);
        record.page_op(PageId::new(300), 0x20, Lsn::new(5000), put);
        record.page_op(PageId::new(301), 0x02, Lsn::new(5008), |_| {});
        let undo = LogicalUndo {
            tree: 20,
            kind: UndoKind::Update,
            prev_lsn: Lsn::new(4096),
            key: b"key",
            before: b"before",
        };
        undo.encode(record.logical_mut());
        records.push(record.to_bytes());
    }
    let mut payload = Vec::new();
    for record in &records {
        payload.extend_from_slice(record);
        payload.resize(payload.len().next_multiple_of(8), 0);
    }
    let header = BatchHeader {
        epoch: 2,
        chain: 9,
        start_lsn: 4096,
        durable_lsn: 4096,
        payload_len: payload.len(),
        body_crc: 0,
        seal: 0,
    };
    let mut batch = vec![0; batch_file_bytes(payload.len(), 4096)];
    let mut left = &payload[..];
    for place in payload_places(&mut batch) {
        let (now, later) = left.split_at(left.len().min(place.len()));
        place[..now.len()].copy_from_slice(now);
        left = later;
    }
    header.seal(&UUID, &mut batch);
    let file = FileHeader { block_bytes: 4096, sequence: 3, first_lsn: 4096, epoch: 2, chain: 9 };
    let mut block = vec![0; 4096];
    file.encode(&UUID, &mut block);
    let mut seeds: Vec<_> = records.into_iter().map(|bytes| (0, bytes)).collect();
    seeds.push((3, batch.clone()));
    seeds.push((1, batch));
    seeds.push((2, block[..64].to_vec()));
    seeds
}
