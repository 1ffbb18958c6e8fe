use super::*;

const SIZE: u64 = 65536;

fn location(segment: u64, offset: u64) -> Location {
    Location::new(segment * SIZE + offset, 128, 13, 0)
}

#[test]
fn reuse_waits_for_a_covering_sync() {
    let mut table = SegmentTable::new(SIZE);
    let (first, former) = table.choose(0, Lsn::ZERO);
    assert_eq!((first, former.seq), (0, 0));
    let group = table.begin_group();
    table.end_group(first, group, 4096);
    table.born(location(0, 4096));
    table.close(first, true);
    let (second, _) = table.choose(0, Lsn::ZERO);
    assert_eq!(second, 1, "the first still has live bytes");
    let early = table.sync_point();
    let newer = table.begin_group();
    let unfinished = table.sync_point();
    table.end_group(second, newer, 4096);
    table.born(location(1, 4096));
    table.die(location(0, 4096), Death::Superseded(newer));
    assert!(!table.is_reusable(0, Lsn::MAX) && table.wants_sync());
    table.synced(&early);
    table.synced(&unfinished);
    assert!(!table.is_reusable(0, Lsn::MAX), "those syncs began too early");
    let point = table.sync_point();
    table.synced(&point);
    assert!(table.is_reusable(0, Lsn::MAX) && !table.wants_sync());
    assert_eq!(table.releasable(0, Lsn::MAX), [0]);
    assert_eq!(table.choose(0, Lsn::MAX).0, 0);
}

#[test]
fn a_lower_group_still_being_written_holds_back_the_sync() {
    let mut table = SegmentTable::new(SIZE);
    let (number, _) = table.choose(0, Lsn::ZERO);
    let slow = table.begin_group();
    let quick = table.begin_group();
    table.end_group(number, quick, 4096);
    assert_eq!(table.sync_point().group_seq, slow - 1);
    table.withdraw_group(slow);
    assert_eq!(table.sync_point().group_seq, quick);
}

#[test]
fn freed_pages_wait_for_the_log() {
    let mut table = SegmentTable::new(SIZE);
    let (number, _) = table.choose(0, Lsn::ZERO);
    table.born(location(0, 4096));
    table.close(number, true);
    table.die(location(0, 4096), Death::Freed(Lsn::new(9000)));
    let point = table.sync_point();
    table.synced(&point);
    assert!(!table.is_reusable(0, Lsn::new(8999)));
    assert!(table.is_reusable(0, Lsn::new(9000)));
}

#[test]
fn a_reserve_is_left_for_moved_pages() {
    let mut table = SegmentTable::new(SIZE);
    let (number, _) = table.choose(0, Lsn::ZERO);
    table.close(number, true);
    let point = table.sync_point();
    table.synced(&point);
    assert_eq!(table.choose(1, Lsn::MAX).0, 1, "one reusable segment is in reserve");
    assert_eq!(table.choose(0, Lsn::MAX).0, 0);
}

#[test]
fn the_emptiest_segment_is_collected_first() {
    let mut table = SegmentTable::new(SIZE);
    for segment in 0..3u64 {
        let (number, _) = table.choose(0, Lsn::ZERO);
        for blob in 0..=(segment + 1) % 3 {
            table.born(location(segment, 4096 + blob * 128));
        }
        table.close(number, true);
    }
    assert_eq!(table.victim(1.0, false), Some(2));
    assert_eq!(table.victim(0.0015, false), None);
    assert_eq!(table.victim(1.0, true), Some(0), "older, and hardly fuller");
    assert_eq!(table.utilisation(), (6 * 128, 3 * table.usable_bytes(), 3));
}

#[test]
fn the_closed_segment_with_most_to_be_compressed_is_taken_and_no_more_than_lives() {
    let mut table = SegmentTable::new(SIZE);
    for segment in 0..3u64 {
        table.choose(0, Lsn::ZERO);
        for blob in 0..=segment {
            table.born(location(segment, 4096 + blob * 128));
            table.defer(location(segment, 4096 + blob * 128));
        }
    }
    assert_eq!((table.most_deferred(), table.deferred_bytes()), (None, 6 * 128), "all are open");
    (0..3).for_each(|number| table.close(number, true));
    assert_eq!(table.most_deferred(), Some(2));
    table.die(location(2, 4096), Death::Superseded(1));
    table.die(location(2, 4224), Death::Superseded(1));
    assert_eq!((table.most_deferred(), table.deferred_bytes()), (Some(1), 4 * 128));
    assert!(table.has_deferred(1, 2) && !table.has_deferred(1, 1), "another use of it");
    assert!(table.is_among_deferred(location(1, 4096)));
    (0..2).for_each(|blob| table.born(location(1, 8192 + blob * 128)));
    (0..2).for_each(|blob| table.die(location(1, 8192 + blob * 128), Death::Superseded(2)));
    assert!(!table.is_among_deferred(location(1, 4096)), "half of them did not wait");
    table.segments[1].is_damaged = true;
    assert_eq!(table.most_deferred(), Some(2));
    table.segments.iter_mut().for_each(|segment| segment.deferred_bytes = 0);
    assert_eq!((table.most_deferred(), table.deferred_bytes()), (None, 0));
}

#[test]
fn the_reserve_is_whole_and_left_to_the_collector() {
    let mut table = SegmentTable::new(SIZE);
    for _ in 0..5 {
        let (number, _) = table.choose(0, Lsn::ZERO);
        table.born(location(u64::from(number), 4096));
        table.close(number, true);
    }
    assert_eq!(table.reserve_missing(Lsn::ZERO), 2);
    assert_eq!(table.begin_reserve(Lsn::ZERO), [5, 6], "nothing is free: new ones");
    assert_eq!(table.choose(0, Lsn::ZERO).0, 7, "out of reach while they are made whole");
    table.end_reserve(5, true);
    table.end_reserve(6, true);
    assert_eq!(table.begin_reserve(Lsn::ZERO), [], "complete");
    assert_eq!(table.choose(2, Lsn::ZERO).0, 8, "left to the collector");
    let (moved, former) = table.choose(0, Lsn::ZERO);
    assert_eq!((moved, former.is_whole), (5, true));
    table.unchoose(moved, former);
    assert_eq!(table.choose(0, Lsn::ZERO).0, 5, "it is what it was");
    assert!(table.segments[5].is_whole, "its space stays allocated");
}

#[test]
fn a_segment_that_was_never_filled_has_no_space() {
    let mut table = SegmentTable::new(SIZE);
    for is_filled in [false, true, false] {
        let (number, _) = table.choose(0, Lsn::ZERO);
        table.close(number, is_filled);
    }
    let point = table.sync_point();
    table.synced(&point);
    let free = |table: &SegmentTable| [false, true].map(|needs| table.reusable(needs, Lsn::MAX));
    assert_eq!(free(&table), [vec![1], vec![0, 2]]);
    assert_eq!(table.releasable(1, Lsn::MAX), [0, 2], "the one with space is worth keeping");
    assert_eq!(table.choose(1, Lsn::MAX).0, 0, "the reserve is not taken in its place");
    let (number, _) = table.choose(0, Lsn::MAX);
    assert_eq!(number, 1);
    table.close(number, false);
    let point = table.sync_point();
    table.synced(&point);
    assert_eq!(free(&table), [vec![1], vec![2]], "what was filled once keeps its space");
    table.released(1);
    assert_eq!(free(&table), [vec![], vec![1, 2]]);
}
