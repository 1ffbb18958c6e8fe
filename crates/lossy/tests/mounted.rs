//! The layer under ordinary files, through the kernel: it loses what it should and nothing else.
//! Where the kernel does not let us mount there is nothing to show, and the test says so.

use lossy::disk::{Cut, Disk, Kind};
use lossy::mount::{Mounted, SharedDisk, lock, mount};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

struct Layer {
    disk: SharedDisk,
    place: PathBuf,
    mounted: Option<Mounted>,
    folder: PathBuf,
}

impl Layer {
    fn new(name: &str) -> Option<Layer> {
        let folder = std::env::temp_dir().join(format!("lossy-{}-{name}", std::process::id()));
        let (behind, place) = (folder.join("behind"), folder.join("seen"));
        std::fs::create_dir_all(&behind).expect("a folder");
        std::fs::create_dir_all(&place).expect("a folder");
        let disk = Arc::new(Mutex::new(Disk::new(behind)));
        match mount(&disk, &place) {
            Ok(mounted) => Some(Layer { disk, place, mounted: Some(mounted), folder }),
            Err(error) => {
                eprintln!("nothing is shown: no mount here: {error}");
                std::fs::remove_dir_all(&folder).expect("just made");
                None
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    fn power_failure(&mut self, seed: u64) -> lossy::image::Loss {
        lock(&self.disk).power_off("test");
        self.mounted.take().expect("mounted").unmount().expect("nobody uses it");
        let loss = lock(&self.disk).restore(&mut base::Random::new(seed)).expect("the folder");
        self.mounted = Some(mount(&self.disk, &self.place).expect("as before"));
        loss
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        drop(self.mounted.take().map(Mounted::unmount));
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn write_file(path: &Path, byte: u8, flags: i32) -> File {
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .custom_flags(flags)
        .open(path)
        .expect("a new file");
    file.write_all(&[byte; 64 << 10]).expect("a write");
    file
}

fn sync_directory(path: &Path) {
    File::open(path).and_then(|directory| directory.sync_all()).expect("a sync");
}

#[test]
fn plain_writes_are_lost_and_synced_ones_are_not() {
    let Some(mut layer) = Layer::new("plain") else { return };
    let (mut lost, mut torn) = (0, 0);
    for seed in 0..20 {
        for name in ["plain", "synced", "durable"] {
            drop(std::fs::remove_file(layer.path(name)));
        }
        let plain = write_file(&layer.path("plain"), 0, 0);
        plain.sync_all().expect("a sync");
        let synced = write_file(&layer.path("synced"), 2, 0);
        synced.sync_data().expect("a sync");
        drop(write_file(&layer.path("durable"), 3, libc::O_DSYNC));
        sync_directory(&layer.place);
        plain.write_all_at(&[1; 64 << 10], 0).expect("a write");
        let mut seen = Vec::new();
        File::open(layer.path("plain")).expect("there").read_to_end(&mut seen).expect("a read");
        assert_eq!(seen, [1; 64 << 10], "while the power is on");
        drop((plain, synced));
        layer.power_failure(seed);
        let left = std::fs::read(layer.path("plain")).expect("its name was synced");
        assert_eq!(left.len(), 64 << 10);
        assert!(left.chunks(512).all(|sector| sector == [0; 512] || sector == [1; 512]));
        lost += u64::from(left.contains(&0));
        torn += u64::from(left.contains(&0) && left.contains(&1));
        assert_eq!(std::fs::read(layer.path("synced")).expect("there"), [2; 64 << 10]);
        assert_eq!(std::fs::read(layer.path("durable")).expect("there"), [3; 64 << 10]);
    }
    assert!(lost > 10 && torn > 3 && lost < 20, "{lost} lost, {torn} of them torn");
}

#[test]
fn names_are_lost_unless_the_directory_was_synced() {
    let Some(mut layer) = Layer::new("names") else { return };
    let mut lost = 0;
    for seed in 0..20 {
        let (old, new) = (layer.path(&format!("old{seed}")), layer.path(&format!("new{seed}")));
        write_file(&old, 1, 0).sync_all().expect("a sync");
        sync_directory(&layer.place);
        std::fs::rename(&old, &new).expect("a rename");
        layer.power_failure(seed);
        assert!(old.exists() != new.exists(), "a rename is done or not");
        lost += u64::from(old.exists());
    }
    assert!(lost > 3 && lost < 20, "{lost} of 20 renames lost");
}

#[test]
fn the_power_goes_at_the_planned_operation() {
    let Some(mut layer) = Layer::new("cut") else { return };
    let mut file = write_file(&layer.path("a"), 1, 0);
    sync_directory(&layer.place);
    let cut = Cut { kinds: vec![Kind::Sync], path_part: "/a".into(), skip: 1, is_done: true };
    lock(&layer.disk).plan(Some(cut));
    file.sync_all().expect("the first passes");
    file.seek(SeekFrom::Start(0)).expect("a seek");
    file.write_all(&[2; 4096]).expect("the power is on");
    file.sync_all().expect("the second is done, then the power goes");
    assert_eq!(lock(&layer.disk).off_at(), Some("after Sync of /a"));
    assert!(file.write_all(&[3; 4096]).is_err(), "the power is off");
    drop(file);
    layer.power_failure(1);
    let left = std::fs::read(layer.path("a")).expect("there");
    assert_eq!((left[0], left[4096]), (2, 1));
}

#[test]
fn direct_files_work_and_a_disk_without_them_refuses() {
    let Some(mut layer) = Layer::new("direct") else { return };
    let open = |path: &Path| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .custom_flags(libc::O_DIRECT)
            .open(path)
    };
    drop(open(&layer.path("a")).expect("a direct file"));
    assert_eq!(lock(&layer.disk).counts().direct_opens, 1);
    lock(&layer.disk).abilities.direct = false;
    layer.power_failure(1);
    let refused = open(&layer.path("b")).expect_err("no such files here");
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
}
