//! Files and directories together, the moment of the power cut, and what it does.
//!
//! 1. While the power is on, everybody sees every change (`image`, `names`).
//! 2. A cut is one moment between two operations: what came before counts as done, and from then
//!    on every operation fails with EIO and changes nothing, until [`Disk::restore`].
//! 3. `restore` decides by the seed what of the unsynced is left.
//! 4. Content lies in the folder behind, one file per number; names are in memory only, so a disk
//!    does not outlive this process.

use crate::image::{Image, Loss};
use crate::names::Directory;
use base::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;

/// Number of the uppermost directory.
pub const ROOT: u64 = 1;

/// An operation as a trigger names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A write that nobody asked to be durable.
    Write,
    /// A write that is durable when it returns.
    DurableWrite,
    /// fsync or fdatasync of a file.
    Sync,
    /// Creation, renaming or removal of a name.
    Name,
}

/// When the power is cut by itself.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Operations of these kinds count.
    pub kinds: Vec<Kind>,
    /// On files whose path contains this.
    pub path_part: String,
    /// So many pass; the next one meets the cut.
    pub skip: u64,
    /// The one that meets it is done before the power is cut, not refused.
    pub is_done: bool,
}

/// What an operation that was refused says: an error number of the system.
pub type Refused = i32;
type Done<T = ()> = Result<T, Refused>;

#[derive(Debug)]
enum Node {
    File { image: Box<Image>, opened: u64 },
    Directory(Directory),
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub number: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Bytes.
    pub length: u64,
}

/// What was asked of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Writes that were durable when they returned.
    pub durable_writes: u64,
    /// fsync and fdatasync of files.
    pub syncs: u64,
    /// Syncs of directories.
    pub directory_syncs: u64,
    /// Files opened past the page cache.
    pub direct_opens: u64,
}

/// What the file system can do; real ones differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Files can be opened with `O_DIRECT`; otherwise that is EINVAL.
    pub direct: bool,
    /// Space can be allocated and holes punched; otherwise that is EOPNOTSUPP.
    pub allocation: bool,
}

/// See the head of the file.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    nodes: BTreeMap<u64, Node>,
    /// Path of every file, as it was named last.
    paths: BTreeMap<u64, String>,
    next: u64,
    cut: Option<Cut>,
    /// The operation at which the power was cut; `None`: the power is on.
    off_at: Option<String>,
    counts: Counts,
    /// See there.
    pub abilities: Abilities,
}

fn io_error(error: std::io::Error) -> Refused {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl Disk {
    /// An empty disk; contents of files go into `folder`, which must be empty.
    pub fn new(folder: impl Into<PathBuf>) -> Disk {
        Disk {
            folder: folder.into(),
            nodes: BTreeMap::from([(ROOT, Node::Directory(Directory::default()))]),
            paths: BTreeMap::from([(ROOT, String::new())]),
            next: ROOT + 1,
            cut: None,
            off_at: None,
            counts: Counts::default(),
            abilities: Abilities { direct: true, allocation: true },
        }
    }

    /// What was asked so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sectors that a power failure could take now.
    pub fn unsynced_sectors(&self) -> u64 {
        let unsynced = |node: &Node| match node {
            Node::File { image, .. } => image.unsynced_sectors(),
            Node::Directory(_) => 0,
        };
        self.nodes.values().map(unsynced).sum()
    }

    /// Plans a cut, or none.
    pub fn plan(&mut self, cut: Option<Cut>) {
        self.cut = cut;
    }

    /// Cuts the power now, unless it is off.
    pub fn power_off(&mut self, why: &str) {
        self.off_at.get_or_insert_with(|| why.to_owned());
    }

    /// At which operation the power was cut.
    pub fn off_at(&self) -> Option<&str> {
        self.off_at.as_deref()
    }

    /// After a cut, with nobody using the disk: decides what is left, and the power is on again.
    pub fn restore(&mut self, random: &mut Random) -> std::io::Result<Loss> {
        let mut loss = Loss::default();
        for node in self.nodes.values_mut() {
            match node {
                Node::File { image, opened } => {
                    *opened = 0;
                    loss.add(&image.power_failure(random)?);
                }
                Node::Directory(directory) => loss.dropped_names += directory.power_failure(random),
            }
        }
        self.forget_unlinked(&BTreeSet::new());
        (self.cut, self.off_at) = (None, None);
        Ok(loss)
    }

    /// Counts an operation against the plan. `Err`: it is refused.
    fn admit(&mut self, kind: Option<Kind>, number: u64) -> Done<bool> {
        if self.off_at.is_some() {
            return Err(libc::EIO);
        }
        let (Some(kind), Some(cut)) = (kind, &mut self.cut) else { return Ok(false) };
        let path = self.paths.get(&number).map_or("", String::as_str);
        if !cut.kinds.contains(&kind) || !path.contains(&cut.path_part) {
            return Ok(false);
        }
        if cut.skip > 0 {
            cut.skip -= 1;
            return Ok(false);
        }
        let is_done = cut.is_done;
        if !is_done {
            self.off_at = Some(format!("before {kind:?} of {path}"));
            return Err(libc::EIO);
        }
        Ok(true)
    }

    /// The other end of `admit`: an operation that met the cut is done, now the power goes.
    fn done(&mut self, meets_cut: bool, kind: Kind, number: u64) {
        if meets_cut {
            let path = self.paths.get(&number).map_or("", String::as_str);
            self.off_at = Some(format!("after {kind:?} of {path}"));
        }
    }

    fn directory(&mut self, number: u64) -> Done<&mut Directory> {
        match self.nodes.get_mut(&number) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File { .. }) => Err(libc::ENOTDIR),
            None => Err(libc::ENOENT),
        }
    }

    fn image(&mut self, number: u64) -> Done<&mut Image> {
        match self.nodes.get_mut(&number) {
            Some(Node::File { image, .. }) => Ok(image),
            Some(Node::Directory(_)) => Err(libc::EISDIR),
            None => Err(libc::ENOENT),
        }
    }

    /// What a node is.
    pub fn attributes(&self, number: u64) -> Done<Attributes> {
        let (is_directory, length) = match self.nodes.get(&number).ok_or(libc::ENOENT)? {
            Node::File { image, .. } => (false, image.length()),
            Node::Directory(_) => (true, 0),
        };
        Ok(Attributes { number, is_directory, length })
    }

    /// What a name stands for.
    pub fn find(&mut self, parent: u64, name: &OsStr) -> Done<Attributes> {
        self.admit(None, parent)?;
        let number = self.directory(parent)?.find(name).ok_or(libc::ENOENT)?;
        self.attributes(number)
    }

    /// Names in a directory.
    pub fn names(&mut self, number: u64) -> Done<Vec<(u64, bool, std::ffi::OsString)>> {
        self.admit(None, number)?;
        let entries = self.directory(number)?.entries().clone();
        let is_directory = |number| matches!(self.nodes.get(&number), Some(Node::Directory(_)));
        Ok(entries.into_iter().map(|(name, it)| (it, is_directory(it), name)).collect())
    }

    /// A new file or directory.
    pub fn create(&mut self, parent: u64, name: &OsStr, is_directory: bool) -> Done<Attributes> {
        let meets_cut = self.admit(Some(Kind::Name), parent)?;
        if self.directory(parent)?.find(name).is_some() {
            return Err(libc::EEXIST);
        }
        let number = self.next;
        let node = match is_directory {
            true => Node::Directory(Directory::default()),
            false => {
                let path = self.folder.join(number.to_string());
                let options = File::options().read(true).write(true).create_new(true).open(path);
                let image = Box::new(Image::new(options.map_err(io_error)?));
                Node::File { image, opened: 0 }
            }
        };
        self.next += 1;
        self.nodes.insert(number, node);
        self.name_path(parent, name, number);
        self.directory(parent)?.link(name, number);
        self.done(meets_cut, Kind::Name, number);
        self.attributes(number)
    }

    fn name_path(&mut self, parent: u64, name: &OsStr, number: u64) {
        let above = self.paths.get(&parent).map_or("", String::as_str);
        self.paths.insert(number, format!("{above}/{}", name.to_string_lossy()));
    }

    /// Takes a name away; a directory must be empty.
    pub fn remove(&mut self, parent: u64, name: &OsStr) -> Done {
        let number = self.directory(parent)?.find(name).ok_or(libc::ENOENT)?;
        if matches!(self.nodes.get(&number), Some(Node::Directory(it)) if !it.entries().is_empty())
        {
            return Err(libc::ENOTEMPTY);
        }
        let meets_cut = self.admit(Some(Kind::Name), number)?;
        self.directory(parent)?.unlink(name);
        self.done(meets_cut, Kind::Name, number);
        Ok(())
    }

    /// Another name in the same directory, which replaces what had it.
    pub fn rename(&mut self, parent: u64, from: &OsStr, to_parent: u64, to: &OsStr) -> Done {
        if parent != to_parent {
            return Err(libc::EXDEV);
        }
        let number = self.directory(parent)?.find(from).ok_or(libc::ENOENT)?;
        let meets_cut = self.admit(Some(Kind::Name), number)?;
        self.directory(parent)?.rename(from, to);
        self.name_path(parent, to, number);
        self.done(meets_cut, Kind::Name, number);
        Ok(())
    }

    /// Makes the names of a directory durable.
    pub fn sync_directory(&mut self, number: u64) -> Done {
        self.admit(None, number)?;
        self.counts.directory_syncs += 1;
        self.directory(number)?.sync();
        Ok(())
    }

    /// A handle is opened.
    pub fn open(&mut self, number: u64, is_direct: bool) -> Done {
        self.admit(None, number)?;
        if is_direct && !self.abilities.direct {
            return Err(libc::EINVAL);
        }
        if let Some(Node::File { opened, .. }) = self.nodes.get_mut(&number) {
            *opened += 1;
            self.counts.direct_opens += u64::from(is_direct);
        }
        Ok(())
    }

    /// A handle is closed: what has neither name nor handle goes.
    pub fn close(&mut self, number: u64) {
        if let Some(Node::File { opened, .. }) = self.nodes.get_mut(&number) {
            *opened = opened.saturating_sub(1);
        }
        let is_open = |node: &Node| matches!(node, Node::File { opened, .. } if *opened > 0);
        let open = self.nodes.iter().filter(|(_, node)| is_open(node)).map(|(number, _)| *number);
        let open: BTreeSet<u64> = open.collect();
        if self.off_at.is_none() && !open.contains(&number) {
            self.forget_unlinked(&open);
        }
    }

    fn forget_unlinked(&mut self, open: &BTreeSet<u64>) {
        let mut linked = BTreeSet::from([ROOT]);
        for node in self.nodes.values() {
            if let Node::Directory(directory) = node {
                linked.extend(directory.numbers());
            }
        }
        let folder = &self.folder;
        self.nodes.retain(|number, node| {
            let stays = linked.contains(number) || open.contains(number);
            if !stays && matches!(node, Node::File { .. }) {
                // What cannot be removed takes space and nothing else.
                let _ = std::fs::remove_file(folder.join(number.to_string()));
            }
            stays
        });
    }

    /// Bytes of a file.
    pub fn read(&mut self, number: u64, offset: u64, length: usize) -> Done<Vec<u8>> {
        self.admit(None, number)?;
        self.counts.reads += 1;
        self.image(number)?.read(offset, length).map_err(io_error)
    }

    /// Writes bytes; with `durable` they are that when it returns.
    pub fn write(&mut self, number: u64, offset: u64, bytes: &[u8], durable: bool) -> Done {
        let kind = if durable { Kind::DurableWrite } else { Kind::Write };
        let was_on = self.off_at.is_none();
        let meets_cut = match self.admit(Some(kind), number) {
            // Cut while it was under way: the device may have done any part of it.
            Err(refused) if was_on => {
                self.image(number)?.write(offset, bytes).map_err(io_error)?;
                return Err(refused);
            }
            other => other?,
        };
        self.counts.writes += 1;
        let image = self.image(number)?;
        image.write(offset, bytes).map_err(io_error)?;
        if durable {
            image.sync_range(offset, bytes.len() as u64).map_err(io_error)?;
            self.counts.durable_writes += 1;
        }
        self.done(meets_cut, kind, number);
        Ok(())
    }

    /// fsync, fdatasync.
    pub fn sync(&mut self, number: u64) -> Done {
        let meets_cut = self.admit(Some(Kind::Sync), number)?;
        self.counts.syncs += 1;
        self.image(number)?.sync().map_err(io_error)?;
        self.done(meets_cut, Kind::Sync, number);
        Ok(())
    }

    /// Another length.
    pub fn truncate(&mut self, number: u64, length: u64) -> Done {
        self.admit(None, number)?;
        self.image(number)?.truncate(length).map_err(io_error)
    }

    /// fallocate: space at least up to there, or a hole.
    pub fn allocate(&mut self, number: u64, offset: u64, length: u64, mode: i32) -> Done {
        self.admit(None, number)?;
        if !self.abilities.allocation {
            return Err(libc::EOPNOTSUPP);
        }
        let image = self.image(number)?;
        match mode {
            0 => image.extend(offset + length),
            libc::FALLOC_FL_KEEP_SIZE => {}
            _ if mode == libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE => {
                image.zero(offset, length).map_err(io_error)?;
            }
            _ => return Err(libc::EOPNOTSUPP),
        }
        Ok(())
    }
}
