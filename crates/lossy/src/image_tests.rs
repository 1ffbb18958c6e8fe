use super::*;
use std::collections::BTreeSet;

fn image(name: &str) -> Image {
    let path = std::env::temp_dir().join(format!("lossy-{}-{name}", std::process::id()));
    let options = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let file = options.expect("a temporary file");
    std::fs::remove_file(&path).expect("just made");
    Image::new(file)
}

/// First bytes of the first sectors.
fn firsts(image: &Image, count: u64) -> Vec<u8> {
    let first = |number: u64| image.read(number * SECTOR, 1).expect("a read")[0];
    (0..count).map(first).collect()
}

#[test]
fn reads_and_lengths_agree_with_a_plain_array() {
    let mut random = Random::new(5);
    for round in 0..40 {
        let (mut image, mut plain) = (image("plain"), Vec::<u8>::new());
        for _ in 0..60 {
            let (at, length) = (random.index(6000), random.index(3000));
            match random.below(8) {
                0 => {
                    image.truncate(at as u64).expect("a change");
                    plain.resize(at, 0);
                }
                1 => {
                    image.zero(at as u64, length as u64).expect("a change");
                    let end = (at + length).min(plain.len());
                    plain[at.min(end)..end].fill(0);
                }
                2 => {
                    image.extend(at as u64);
                    plain.resize(plain.len().max(at), 0);
                }
                3 => image.sync().expect("a sync"),
                4 => image.sync_range(at as u64, length as u64).expect("a sync"),
                _ => {
                    let mut bytes = vec![0; length];
                    random.fill(&mut bytes);
                    image.write(at as u64, &bytes).expect("a write");
                    if length > 0 {
                        plain.resize(plain.len().max(at + length), 0);
                        plain[at..at + length].copy_from_slice(&bytes);
                    }
                }
            }
            assert_eq!(image.length(), plain.len() as u64, "round {round}");
            assert!(image.read(0, 20_000).expect("a read") == plain, "round {round}");
        }
    }
}

#[test]
fn what_was_synced_survives_and_what_was_not_is_lost_torn_or_kept() {
    let (mut torn, mut outcomes) = (0, BTreeSet::new());
    for seed in 0..300 {
        let mut image = image("tears");
        image.write(0, &[1; 4 * SECTOR_BYTES]).expect("a write");
        image.sync().expect("a sync");
        image.write(0, &[2; 4 * SECTOR_BYTES]).expect("a write");
        assert_eq!(firsts(&image, 4), [2; 4]);
        let loss = image.power_failure(&mut Random::new(seed)).expect("power");
        assert_eq!(loss.kept_sectors + loss.dropped_sectors, 4);
        torn += loss.torn_writes;
        let left = firsts(&image, 4);
        assert!(left.iter().all(|byte| [1, 2].contains(byte)));
        outcomes.insert(left);
        assert_eq!(image.unsynced_sectors(), 0);
    }
    assert!(torn > 0);
    assert_eq!(outcomes.len(), 16, "every mixture of four sectors");
}

#[test]
fn later_writes_may_survive_earlier_ones() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..300 {
        let mut image = image("order");
        image.write(0, &[1; 2 * SECTOR_BYTES]).expect("a write");
        image.sync().expect("a sync");
        image.write(0, &[2; SECTOR_BYTES]).expect("a write");
        image.write(SECTOR, &[3; SECTOR_BYTES]).expect("a write");
        image.power_failure(&mut Random::new(seed)).expect("power");
        outcomes.insert(firsts(&image, 2));
    }
    assert_eq!(outcomes, [vec![1, 1], vec![2, 1], vec![1, 3], vec![2, 3]].into());
}

#[test]
fn a_durable_write_covers_its_own_range_only() {
    let mut lost = 0;
    for seed in 0..100 {
        let mut image = image("range");
        image.truncate(8 * SECTOR).expect("a change");
        image.sync().expect("a sync");
        image.write(0, &[1; SECTOR_BYTES]).expect("a write");
        image.write(SECTOR, &[2; SECTOR_BYTES]).expect("a write");
        image.sync_range(SECTOR, SECTOR).expect("a sync");
        image.power_failure(&mut Random::new(seed)).expect("power");
        let left = firsts(&image, 2);
        assert_eq!(left[1], 2);
        lost += u64::from(left[0] == 0);
    }
    assert!(lost > 0, "the write beside it was never lost");
}

#[test]
fn a_length_that_was_not_synced_may_be_lost_and_one_that_was_needed_may_not() {
    let mut lengths = BTreeSet::new();
    for seed in 0..200 {
        let mut image = image("length");
        image.write(0, &[1; SECTOR_BYTES]).expect("a write");
        image.sync_range(0, SECTOR).expect("a sync");
        image.write(SECTOR, &[2; SECTOR_BYTES]).expect("a write");
        image.power_failure(&mut Random::new(seed)).expect("power");
        assert_eq!(firsts(&image, 1), [1]);
        lengths.insert(image.length());
    }
    assert_eq!(lengths, [SECTOR, 2 * SECTOR].into());
}
