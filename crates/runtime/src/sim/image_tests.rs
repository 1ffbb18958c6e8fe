//! The image against a plain vector, and what crashes may leave of it.

use super::*;

/// One random change on both; returns the write's number when it is still in flight.
fn change(image: &mut FileImage, model: &mut Vec<u8>, random: &mut Random) -> Option<u64> {
    let at = random.index(40_000);
    let longest = if random.one_in(4) { 20_000 } else { 700 };
    let length = 1 + random.index(longest);
    match random.below(8) {
        0 => {
            image.set_length(at as u64);
            model.resize(at, 0);
        }
        1 => {
            image.punch(at as u64, length as u64);
            let end = (at + length).min(model.len());
            model[at.min(end)..end].fill(0);
        }
        2 => {
            let at = model.len().next_multiple_of(CHUNK_BYTES);
            image.allocate(at as u64, length as u64);
            model.resize(at + length, 0);
        }
        _ => {
            let bytes: Vec<u8> = (0..length).map(|_| random.next_u32() as u8).collect();
            if model.len() < at + length {
                model.resize(at + length, 0);
            }
            model[at..at + length].copy_from_slice(&bytes);
            return Some(image.begin_write(at as u64, &bytes, false));
        }
    }
    None
}

fn content(image: &FileImage) -> Vec<u8> {
    let mut content = vec![0; image.length() as usize];
    image.read(0, &mut content);
    content
}

#[test]
fn reads_see_what_a_vector_would_have() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let (mut image, mut model) = (FileImage::default(), Vec::new());
        for _ in 0..60 {
            if let Some(write) = change(&mut image, &mut model, &mut random) {
                image.end_write(write);
            }
            if random.one_in(10) {
                let cover = image.begin_sync(0..u64::MAX);
                image.end_sync(&cover);
                assert_eq!(image.unsynced_sectors(), 0);
            }
            assert!(content(&image) == model, "seed {seed}");
        }
    }
}

#[test]
fn everything_synced_survives_a_power_failure() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let (mut image, mut model) = (FileImage::default(), Vec::new());
        for _ in 0..20 {
            if let Some(write) = change(&mut image, &mut model, &mut random) {
                image.end_write(write);
            }
        }
        let cover = image.begin_sync(0..u64::MAX);
        image.end_sync(&cover);
        let outcome = image.power_failure(&mut random);
        assert_eq!((outcome.kept, outcome.dropped), (0, 0));
        assert!(content(&image) == model, "seed {seed}");
        assert_eq!(image.allocated_bytes(), image.durable.allocated_bytes());
    }
}

/// A durable write of one sector says nothing about its neighbours, written before or after it.
#[test]
fn a_sync_of_a_range_leaves_the_rest_unsynced() {
    let sector_bytes = SECTOR_BYTES as u64;
    let mut neighbours_lost = [0; 2];
    for seed in 0..50 {
        let mut image = FileImage::default();
        for sector in 0..3 {
            let write = image.begin_write(sector * sector_bytes, &[1; SECTOR_BYTES], false);
            image.end_write(write);
        }
        let cover = image.begin_sync(sector_bytes..2 * sector_bytes);
        image.end_sync(&cover);
        assert_eq!(image.unsynced_sectors(), 2);
        image.power_failure(&mut Random::new(seed));
        let left = content(&image);
        let is_kept = |sector: usize| left.get(sector * SECTOR_BYTES) == Some(&1);
        assert!(is_kept(1), "seed {seed}");
        neighbours_lost[0] += usize::from(!is_kept(0));
        neighbours_lost[1] += usize::from(!is_kept(2));
    }
    assert!(neighbours_lost.iter().all(|lost| (10..40).contains(lost)), "{neighbours_lost:?}");
}

#[test]
fn a_failed_sync_is_never_repaired_by_a_later_one() {
    let mut lost = 0;
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let mut image = FileImage::default();
        let write = image.begin_write(0, &[1; SECTOR_BYTES], false);
        image.end_write(write);
        let cover = image.begin_sync(0..u64::MAX);
        image.fail_sync(&cover, &mut random);
        let cover = image.begin_sync(0..u64::MAX);
        image.end_sync(&cover);
        assert_eq!(content(&image)[0], 1, "the cache still shows it");
        image.power_failure(&mut random);
        lost += u64::from(content(&image).first() != Some(&1));
    }
    assert!((10..40).contains(&lost), "{lost} of 50");
}

#[test]
fn stale_reads_show_the_former_content() {
    let mut image = FileImage::default();
    for value in [1, 2] {
        let write = image.begin_write(0, &[value; 2 * SECTOR_BYTES], true);
        image.end_write(write);
    }
    let mut seen = [0; 2 * SECTOR_BYTES];
    assert!(image.read_stale(0, &mut seen));
    assert_eq!(seen, [1; 2 * SECTOR_BYTES]);
}

#[test]
fn punched_chunks_are_free_again() {
    let mut image = FileImage::default();
    let write = image.begin_write(0, &[1; 8 * CHUNK_BYTES], false);
    image.end_write(write);
    let cover = image.begin_sync(0..u64::MAX);
    image.end_sync(&cover);
    image.punch(CHUNK_BYTES as u64, 4 * CHUNK_BYTES as u64);
    assert_eq!(image.allocated_bytes(), 4 * CHUNK_BYTES as u64);
    let cover = image.begin_sync(0..u64::MAX);
    image.end_sync(&cover);
    image.power_failure(&mut Random::new(1));
    assert_eq!(image.allocated_bytes(), 4 * CHUNK_BYTES as u64);
}
