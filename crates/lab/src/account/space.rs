//! Space that files and tables take.

use super::process::{has_open_below, server_of};
use crate::client::{Connection, Failure, Target};
use runtime::net::Address;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of a moment that are kept one by one; the others are together.
const FILES: usize = 40;

/// What a server's data take at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceAt {
    /// What had just been done.
    pub moment: String,
    /// All files of the data directory; absent where it cannot be read.
    pub files: Option<Space>,
    /// What the server says of its tables: estimates of its own.
    pub tables: Vec<TableSpace>,
}

/// What a server says of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableSpace {
    /// Its name.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes of its rows.
    pub data_bytes: u64,
    /// Bytes of its other indexes.
    pub index_bytes: u64,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FileKind {
    /// Rows and indexes.
    Data,
    /// What recovery reads, and what replicas do.
    Log,
    /// Old versions of rows.
    Undo,
    /// Gone after a restart.
    Temporary,
    /// The server's own.
    Other,
}

impl FileKind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Data, Self::Undo, Self::Log, Self::Temporary, Self::Other];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Undo => "undo",
            Self::Temporary => "temporary",
            Self::Other => "other",
        }
    }

    /// Of a path below a data directory of Gannet, MariaDB, with MyRocks or not, or MySQL.
    pub fn of(path: &str) -> Self {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let begins = |names: &[&str]| names.iter().any(|name| file.starts_with(name));
        let is_binary_log = file.contains("-bin.") || begins(&["binlog."]);
        let is_redo = begins(&["ib_logfile", "aria_log", "#ib_redo"])
            || folder == "#rocksdb" && file.ends_with(".log");
        if is_redo || is_binary_log || folder == "wal" {
            return Self::Log;
        }
        if begins(&["ibtmp", "#sql"]) || folder == "tmp" || folder == "#innodb_temp" {
            return Self::Temporary;
        }
        if begins(&["undo", "ibdata"]) {
            return Self::Undo;
        }
        let is_own = ["mysql", "sys", "performance_schema"].contains(&folder);
        let is_data = [".ibd", ".ibt", ".MYD", ".MYI", ".MAD", ".MAI", ".sst"];
        if !is_own && is_data.iter().any(|end| file.ends_with(end)) || folder == "data" {
            return Self::Data;
        }
        Self::Other
    }
}

/// What a server's data take now, below its data directory if that is known or can be found, and
/// by what it says itself.
pub fn space_of(target: &Target, data: Option<&Path>, moment: &str) -> Result<SpaceAt, Failure> {
    let mut connection = Connection::open(target)?;
    let files = match data {
        Some(folder) => Some(space(folder)),
        None => data_of(&mut connection, target)?.map(|folder| space(&folder)),
    };
    let mut tables = Vec::new();
    let sql = "SELECT table_name, table_rows, data_length, index_length \
               FROM information_schema.tables WHERE table_schema=DATABASE() \
               AND table_type='BASE TABLE' ORDER BY table_name";
    connection.query(sql, |row| {
        let number = |column| row.integer(column).unwrap_or(0).max(0) as u64;
        let name = row.text(0).map(|name| String::from_utf8_lossy(&name).into_owned());
        tables.push(TableSpace {
            name: name.unwrap_or_default(),
            rows: number(1),
            data_bytes: number(2),
            index_bytes: number(3),
        });
        Ok(())
    })?;
    Ok(SpaceAt { moment: moment.to_string(), files, tables })
}

/// The data directory of a server on this machine, if it may be read.
pub fn data_of(connection: &mut Connection, target: &Target) -> Result<Option<PathBuf>, Failure> {
    let Address::Tcp(address) = &target.address else { return Ok(None) };
    let Some(server) = server_of(address) else { return Ok(None) };
    let folder = connection.single("SELECT @@datadir")?.map(PathBuf::from);
    // A folder of this name may be another one than the server's, as in a container.
    Ok(folder.filter(|folder| has_open_below(server, folder)))
}

/// `st_blocks` counts these, whatever the file system's block is.
const BLOCK_BYTES: u64 = 512;

/// Space below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// What the device has given.
    pub allocated_bytes: u64,
    /// What the files say of their length.
    pub apparent_bytes: u64,
    /// Allocated bytes by what they are for, in the order of [`FileKind::ALL`].
    pub by_kind: [u64; 5],
    /// The largest files, the largest first.
    pub files: Vec<FileSpace>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSpace {
    /// Its path from the folder.
    pub name: String,
    /// What the device has given.
    pub allocated_bytes: u64,
    /// What it says of its length.
    pub apparent_bytes: u64,
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
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            let file = FileSpace {
                allocated_bytes: about.blocks() * BLOCK_BYTES,
                apparent_bytes: about.len(),
                name,
            };
            found.allocated_bytes += file.allocated_bytes;
            found.apparent_bytes += file.apparent_bytes;
            let kind = FileKind::of(&file.name);
            let place = FileKind::ALL.iter().position(|k| *k == kind).unwrap_or_default();
            found.by_kind[place] += file.allocated_bytes;
            found.files.push(file);
        }
    }
    let key = |file: &FileSpace| (std::cmp::Reverse(file.allocated_bytes), file.name.clone());
    found.files.sort_by_key(key);
    found.files.truncate(FILES);
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
        assert_eq!(space.files[0].name, "below/full");
        assert_eq!(space.by_kind.iter().sum::<u64>(), space.allocated_bytes);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn files_of_servers_are_known_by_their_names() {
        let wanted = [
            ("data/gannet-0", FileKind::Data),
            ("wal/wal-0000000001.log", FileKind::Log),
            ("tmp/sort-1", FileKind::Temporary),
            ("engine.lock", FileKind::Other),
            ("test/sbtest1.ibd", FileKind::Data),
            ("test/sbtest1.frm", FileKind::Other),
            ("#rocksdb/000017.sst", FileKind::Data),
            ("#rocksdb/000018.log", FileKind::Log),
            ("#rocksdb/MANIFEST-000005", FileKind::Other),
            ("#rocksdb/LOG", FileKind::Other),
            ("mysql/innodb_table_stats.ibd", FileKind::Other),
            ("ib_logfile0", FileKind::Log),
            ("#innodb_redo/#ib_redo12", FileKind::Log),
            ("host-bin.000001", FileKind::Log),
            ("ibtmp1", FileKind::Temporary),
            ("undo001", FileKind::Undo),
            ("ibdata1", FileKind::Undo),
        ];
        for (path, kind) in wanted {
            assert_eq!(FileKind::of(path), kind, "{path}");
        }
    }
}
