//! The file system and the device below a folder.

use super::System;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where files go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disk {
    /// Where the file system is mounted.
    pub mount: String,
    /// Its kind, such as ext4.
    pub file_system: String,
    /// Options that it is mounted with.
    pub options: String,
    /// The device, such as nvme0n1; absent if there is none below.
    pub device: Option<String>,
    /// Its maker's name for it.
    pub model: Option<String>,
    /// Its firmware.
    pub firmware: Option<String>,
    /// It says that it turns.
    pub is_rotational: Option<bool>,
    /// Which requests go first.
    pub scheduler: Option<String>,
    /// It takes back space that is not used any more.
    pub discards: Option<bool>,
    /// "write back" needs flushes for what must last.
    pub write_cache: Option<String>,
    /// Bytes, and of them free ones.
    pub space: Option<(u64, u64)>,
}

impl Disk {
    /// Of a folder that exists, or of the nearest one above that does.
    pub fn of(root: &Path, folder: &Path) -> Option<Self> {
        let mut folder = std::path::absolute(folder).ok()?;
        while !folder.exists() {
            folder = folder.parent()?.to_path_buf();
        }
        let folder = folder.canonicalize().ok()?;
        let system = System(root);
        let mounts = system.text("proc/self/mountinfo")?;
        let mut disk = mounted(&mounts, &folder)?;
        if let Some(block) = block(root, &mounts, &disk.mount) {
            disk.read_block(&block);
        }
        disk.space = space(&folder);
        Some(disk)
    }

    fn read_block(&mut self, block: &Path) {
        let system = System(block);
        self.device = block.file_name().map(|name| name.to_string_lossy().into_owned());
        self.model = system.text("device/model");
        self.firmware = system.text("device/firmware_rev").or_else(|| system.text("device/rev"));
        self.is_rotational = system.number("queue/rotational").map(|number| number == 1);
        self.scheduler = system.text("queue/scheduler").as_deref().and_then(super::chosen);
        self.discards = system.number("queue/discard_max_bytes").map(|bytes| bytes > 0);
        self.write_cache = system.text("queue/write_cache");
    }

    /// How full it is, from 0 to 1.
    pub fn fill(&self) -> Option<f64> {
        self.space.map(|(all, free)| 1.0 - free as f64 / all.max(1) as f64)
    }

    /// Whether the file system gives space back to the device: at once, or when it is asked to.
    pub fn trims(&self) -> &'static str {
        match (self.discards, self.options.split(',').any(|word| word.starts_with("discard"))) {
            (Some(true), true) => "TRIM at once",
            (Some(true), false) => "TRIM when asked (fstrim)",
            (Some(false), _) => "no TRIM",
            (None, _) => "TRIM unknown",
        }
    }

    /// All of it in a line.
    pub fn words(&self) -> String {
        let mut words = vec![format!("{} on {} ({})", self.file_system, self.mount, self.options)];
        words.extend(self.device.clone());
        words.extend(self.model.as_ref().map(|model| format!("model {model}")));
        words.extend(self.firmware.as_ref().map(|firmware| format!("firmware {firmware}")));
        words.extend(
            self.is_rotational.map(|yes| if yes { "rotational" } else { "not rotational" }.into()),
        );
        words.extend(self.scheduler.as_ref().map(|name| format!("scheduler {name}")));
        words.extend(self.write_cache.as_ref().map(|cache| format!("write cache: {cache}")));
        words.push(self.trims().to_string());
        words.extend(self.fill().map(|share| format!("{:.0} % full", share * 100.0)));
        words.join(", ")
    }
}

/// The fields of a line of `mountinfo` before and behind its hyphen.
fn fields(line: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let (before, behind) = line.split_once(" - ")?;
    Some((before.split(' ').collect(), behind.split(' ').collect()))
}

/// The file system that a folder is in: of those mounted above it the longest, and of these the
/// last.
fn mounted(mounts: &str, folder: &Path) -> Option<Disk> {
    let mut found: Option<Disk> = None;
    for line in mounts.lines() {
        let Some((before, behind)) = fields(line) else { continue };
        let (Some(mount), Some(options)) = (before.get(4), before.get(5)) else { continue };
        let mount = unescaped(mount);
        let is_longer = found.as_ref().is_none_or(|disk| disk.mount.len() <= mount.len());
        if !folder.starts_with(&mount) || !is_longer {
            continue;
        }
        // What the mount says and what the file system says, each once.
        let mut all: Vec<&str> = options.split(',').collect();
        for word in behind.get(2).unwrap_or(&"").split(',') {
            if !word.is_empty() && !all.contains(&word) {
                all.push(word);
            }
        }
        let file_system = behind.first().unwrap_or(&"").to_string();
        found = Some(Disk { mount, file_system, options: all.join(","), ..Disk::default() });
    }
    found
}

/// Spaces are written as `\040`.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

/// The folder in `/sys` of the device below a mount: the whole device of a partition, and what is
/// below a mapped one as long as there is only one.
fn block(root: &Path, mounts: &str, mount: &str) -> Option<PathBuf> {
    let line = mounts.lines().rfind(|line| {
        fields(line).is_some_and(|(before, _)| before.get(4).is_some_and(|m| unescaped(m) == mount))
    })?;
    let (before, behind) = fields(line)?;
    let number = root.join("sys/dev/block").join(before.get(2)?);
    let mut block = number.canonicalize().ok().or_else(|| {
        // Some file systems have a number of their own, and say the device's name.
        let name = Path::new(behind.get(1)?).canonicalize().ok()?;
        root.join("sys/class/block").join(name.file_name()?).canonicalize().ok()
    })?;
    if block.join("partition").exists() {
        block = block.parent()?.to_path_buf();
    }
    while let Some(below) = only_one(&block.join("slaves")) {
        block = below;
        if block.join("partition").exists() {
            block = block.parent()?.to_path_buf();
        }
    }
    Some(block)
}

fn only_one(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    let first = entries.next()?;
    entries.next().is_none().then(|| first.path().canonicalize().ok())?
}

/// Bytes and free bytes of a file system.
fn space(folder: &Path) -> Option<(u64, u64)> {
    let output = Command::new("df").args(["-P", "-k"]).arg(folder).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().nth(1)?;
    let mut numbers = line.split_whitespace().skip(1).map(|word| word.parse::<u64>().ok());
    let (_, used, free) = (numbers.next()??, numbers.next()??, numbers.next()??);
    // What is kept for root is neither.
    Some(((used + free) * 1024, free * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw,discard
28 27 0:24 / /data\\040disk rw,noatime - tmpfs none rw,size=4k
29 27 253:0 / /srv rw,noatime - xfs /dev/mapper/vg rw,attr2";

    #[test]
    fn the_longest_mount_is_the_folders() {
        let of = |folder: &str| mounted(MOUNTS, Path::new(folder)).expect("the root at least");
        let root = of("/home/x");
        assert_eq!((root.mount.as_str(), root.file_system.as_str()), ("/", "ext4"));
        assert_eq!(root.options, "rw,relatime,discard");
        assert_eq!(of("/data disk/y").file_system, "tmpfs");
        assert_eq!(of("/srv").file_system, "xfs");
        assert_eq!(of("/srvx").mount, "/");
    }

    #[test]
    fn a_partition_is_its_device_and_a_mapping_what_is_below() {
        let root = std::env::temp_dir().join(format!("lab-disk-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("not the root")).expect("made");
            fs::write(path, text).expect("written");
        };
        let link = |path: &str, to: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("not the root")).expect("made");
            std::os::unix::fs::symlink(root.join(to), path).expect("linked");
        };
        put("sys/devices/nvme0n1/nvme0n1p2/partition", "2");
        put("sys/devices/nvme0n1/device/model", "Fast 1  \n");
        put("sys/devices/nvme0n1/device/firmware_rev", "F2\n");
        put("sys/devices/nvme0n1/queue/rotational", "0\n");
        put("sys/devices/nvme0n1/queue/scheduler", "[none] mq-deadline\n");
        put("sys/devices/nvme0n1/queue/discard_max_bytes", "4096\n");
        link("sys/dev/block/259:2", "sys/devices/nvme0n1/nvme0n1p2");
        link("sys/dev/block/253:0", "sys/devices/dm-0");
        link("sys/devices/dm-0/slaves/nvme0n1p2", "sys/devices/nvme0n1/nvme0n1p2");
        for mount in ["/", "/srv"] {
            let block = block(&root, MOUNTS, mount).expect("a device");
            let mut disk = mounted(MOUNTS, Path::new(mount)).expect("mounted");
            disk.read_block(&block);
            assert_eq!(disk.device.as_deref(), Some("nvme0n1"), "{mount}");
            assert_eq!(disk.model.as_deref(), Some("Fast 1"));
            assert_eq!((disk.is_rotational, disk.discards), (Some(false), Some(true)));
        }
        assert_eq!(block(&root, MOUNTS, "/data disk"), None);
        fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn a_line_says_all() {
        let disk = Disk {
            mount: "/".into(),
            file_system: "ext4".into(),
            options: "rw,discard".into(),
            device: Some("sda".into()),
            discards: Some(true),
            is_rotational: Some(true),
            space: Some((1000, 250)),
            ..Disk::default()
        };
        assert_eq!(
            disk.words(),
            "ext4 on / (rw,discard), sda, rotational, TRIM at once, 75 % full"
        );
    }
}
