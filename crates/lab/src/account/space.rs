//! Space that files take.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// `st_blocks` counts these, whatever the file system's block is.
const BLOCK_BYTES: u64 = 512;

/// Space below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// What the device has given.
    pub allocated_bytes: u64,
    /// What the files say of their length.
    pub apparent_bytes: u64,
    /// Allocated bytes by file, the largest first; paths from the folder.
    pub files: Vec<(String, u64)>,
}

/// Looks at all files below a folder. What vanishes meanwhile is left out.
pub fn space(folder: &Path) -> Space {
    let mut found = Space::default();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let allocated = about.blocks() * BLOCK_BYTES;
            found.allocated_bytes += allocated;
            found.apparent_bytes += about.len();
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap_or(&path);
            found.files.push((name.to_string_lossy().into_owned(), allocated));
        }
    }
    found.files.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_take_no_space() {
        let folder = std::env::temp_dir().join(format!("gannet-lab-space-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).expect("a folder");
        fs::write(folder.join("below/full"), vec![7; 100_000]).expect("written");
        let holes = fs::File::create(folder.join("holes")).expect("made");
        holes.set_len(10 << 20).expect("a hole");
        let space = space(&folder);
        assert!(space.apparent_bytes >= (10 << 20) + 100_000);
        assert!((100_000..1 << 20).contains(&space.allocated_bytes), "{space:?}");
        assert_eq!(space.files[0].0, "below/full");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
