//! Trees that are dropped while a page of the allocation map cannot be read: what the map does not
//! tell stays, all else is freed, and a later start that can read the page frees the rest.

use crate::miniature::{DATA, Miniature, Sizes, options};
use crate::model::{SharedModel, lock};
use base::{PageId, Random, TreeId};
use pagestore::space::{MAP_EXTENTS, MAP_PAGES};
use pagestore::{RegionKind, StoreError};
use runtime::sim::{CrashKind, Disk, SimConfig, Simulation};
use std::path::Path;

const SIZES: Sizes = Sizes { segment_bytes: 64 << 10, segments_per_file: 8 };
/// One tree for each extent of the first map page, and some more.
const TREES: std::ops::Range<u32> = 100..110 + MAP_EXTENTS as u32;
/// The offset of the page number in a blob, and that of its codec (docs/file-format.md).
const PID_OFFSET: usize = 8;
const CODEC_OFFSET: usize = 14;

fn quiet(seed: u64) -> SimConfig {
    SimConfig { buggify: false, ..SimConfig::new(seed) }
}

fn start(model: &SharedModel, random: &mut Random) -> Miniature {
    Miniature::start(model, options(random), SIZES).expect("damage of a map page is contained")
}

/// Ends without the comparisons of a clean stop: they ask the map.
fn stop(mini: &Miniature) {
    mini.store.flush_until(mini.wal.end()).expect("no faults");
    mini.checkpoint().expect("no faults");
    mini.store.close().expect("no faults");
    mini.wal.close().expect("no faults");
    mini.note_durable();
}

/// A store whose trees need two map pages; first pages of the first and the last tree.
fn store_of_two_maps(model: &SharedModel) -> (Disk, [u64; 2]) {
    let mut simulation = Simulation::new(quiet(1));
    let shared = model.clone();
    let ended = simulation.run(move || {
        let mut random = Random::new(1);
        let mini = start(&shared, &mut random);
        for tree in TREES {
            mini.allocate(&mut random, tree, 12).expect("no faults");
        }
        stop(&mini);
        [TREES.start, TREES.end - 1].map(|tree| {
            let model = lock(&shared);
            let page = model.live.iter().find(|(_, of)| of.0 == tree);
            *page.expect("the tree has a page").0
        })
    });
    (simulation.crash(CrashKind::Power), ended.expect("no crash"))
}

/// Where the full copies of a page stand: file and offset.
fn copies(disk: &Disk, pid: PageId) -> Vec<(String, u64)> {
    let mut simulation = Simulation::with_disk(quiet(2), disk.clone());
    let report = simulation.run(|| pagestore::check(Path::new(DATA), None).expect("readable"));
    let report = report.expect("a check ends");
    let blobs = report.regions.iter().filter(|region| region.kind == RegionKind::Blob);
    let is_meant = |place: &(String, u64)| {
        let content = disk.content(&place.0).expect("a data file");
        let blob = &content[place.1 as usize..];
        let number = &blob[PID_OFFSET..PID_OFFSET + 6];
        number == &pid.get().to_le_bytes()[..6] && blob[CODEC_OFFSET] & 0x80 == 0
    };
    blobs
        .map(|region| (format!("{DATA}/{}", region.file), region.offset))
        .filter(is_meant)
        .collect()
}

fn flip(disk: &Disk, places: &[(String, u64)]) {
    for (path, offset) in places {
        assert!(disk.flip_bit(path, offset + 40, 3), "{path} at {offset}");
    }
}

#[test]
fn what_an_unreadable_map_page_tells_of_stays_and_all_else_goes() {
    for broken in 0..2usize {
        let model = SharedModel::default();
        let (disk, pages) = store_of_two_maps(&model);
        assert!(pages[0] < MAP_PAGES && pages[1] > MAP_PAGES, "{pages:?}");
        let map = PageId::new(broken as u64 * MAP_PAGES);
        let places = copies(&disk, map);
        assert!(!places.is_empty());
        flip(&disk, &places);
        let trees = [TREES.start, TREES.end - 1];
        let mut simulation = Simulation::with_disk(quiet(3), disk);
        let shared = model.clone();
        let ended = simulation.run(move || {
            lock(&shared).tolerates_corrupt = true;
            let mut random = Random::new(3);
            let mini = start(&shared, &mut random);
            for tree in trees {
                // Nobody knows what else belongs to them.
                let dropped = mini.drop_tree(tree);
                let names_map = |error: &StoreError| {
                    matches!(error, StoreError::Corrupt { pid, .. } if *pid == map)
                };
                assert!(dropped.as_ref().is_err_and(names_map), "tree {tree}: {dropped:?}");
            }
            let (kept, gone) = (PageId::new(pages[broken]), PageId::new(pages[1 - broken]));
            assert!(mini.read(kept).is_ok(), "what may belong to somebody stays");
            let read = mini.read(gone);
            assert!(matches!(read, Err(StoreError::NoSuchPage(_))), "{read:?}");
            mini.allocate(&mut random, 9, 13).expect("others find numbers");
            stop(&mini);
        });
        ended.expect("no crash");
        let disk = simulation.crash(CrashKind::Power);
        flip(&disk, &places);
        let mut simulation = Simulation::with_disk(quiet(4), disk);
        let ended = simulation.run(move || {
            let mini = start(&model, &mut Random::new(4));
            let [kept, gone] = [trees[broken], trees[1 - broken]].map(TreeId::new);
            let left = mini.store.space().trees();
            assert!(left.contains(&kept) && !left.contains(&gone), "{left:?}");
            mini.store.space().drop_tree(kept).expect("the map can be read");
            assert_eq!(mini.store.space().pages_of(kept), 0);
        });
        ended.expect("no crash");
    }
}
