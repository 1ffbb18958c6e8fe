//! Names of the simulated disk: directories whose changes are durable after `sync_dir`.
//!
//! Invariants:
//! 1. Changes of one directory become durable in order: a power failure leaves a prefix of the
//!    changes since the last sync, chosen for each directory on its own.
//! 2. A rename within a directory is one change. (Between directories it is refused.)

use super::image::FileImage;
use base::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

pub(crate) type NodeNumber = usize;

type Entries = BTreeMap<String, NodeNumber>;

enum Change {
    Link(String, NodeNumber),
    Unlink(String),
    Rename(String, String),
}

#[derive(Default)]
pub(crate) struct Directory {
    current: Entries,
    durable: Entries,
    unsynced: Vec<Change>,
}

impl Directory {
    fn apply(entries: &mut Entries, change: &Change) {
        match change {
            Change::Link(name, node) => {
                entries.insert(name.clone(), *node);
            }
            Change::Unlink(name) => {
                entries.remove(name);
            }
            Change::Rename(from, to) => {
                if let Some(node) = entries.remove(from) {
                    entries.insert(to.clone(), node);
                }
            }
        }
    }

    fn change(&mut self, change: Change) {
        Self::apply(&mut self.current, &change);
        self.unsynced.push(change);
    }

    fn settle(&mut self, count: usize) {
        for change in self.unsynced.drain(..count) {
            Self::apply(&mut self.durable, &change);
        }
    }
}

pub(crate) enum Node {
    File(Box<FileImage>),
    Directory(Directory),
}

/// All files and directories by number, and their names.
pub(crate) struct Namespace {
    nodes: BTreeMap<NodeNumber, Node>,
    next: NodeNumber,
    open: BTreeMap<NodeNumber, usize>,
}

const ROOT: NodeNumber = 0;

pub(crate) fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// The parts of a path; `.` and empty parts are left out.
pub(crate) fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

impl Namespace {
    pub(crate) fn new() -> Self {
        let nodes = BTreeMap::from([(ROOT, Node::Directory(Directory::default()))]);
        Self { nodes, next: ROOT + 1, open: BTreeMap::new() }
    }

    fn find_parts(&self, parts: &[&str]) -> Option<NodeNumber> {
        let mut number = ROOT;
        for part in parts {
            match self.nodes.get(&number) {
                Some(Node::Directory(directory)) => number = *directory.current.get(*part)?,
                _ => return None,
            }
        }
        Some(number)
    }

    pub(crate) fn find(&self, path: &str) -> Option<NodeNumber> {
        self.find_parts(&parts(path))
    }

    fn directory(&mut self, number: NodeNumber) -> io::Result<&mut Directory> {
        match self.nodes.get_mut(&number) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(error(libc::ENOTDIR)),
            None => Err(error(libc::ENOENT)),
        }
    }

    pub(crate) fn file(&mut self, number: NodeNumber) -> io::Result<&mut FileImage> {
        match self.nodes.get_mut(&number) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(error(libc::EISDIR)),
            None => Err(error(libc::ENOENT)),
        }
    }

    /// The directory that has the last part of the path, and that part.
    fn parent<'a>(&self, path: &'a str) -> io::Result<(NodeNumber, &'a str)> {
        let parts = parts(path);
        let (name, before) = parts.split_last().ok_or_else(|| error(libc::EINVAL))?;
        let parent = self.find_parts(before).ok_or_else(|| error(libc::ENOENT))?;
        Ok((parent, name))
    }

    fn add(&mut self, node: Node) -> NodeNumber {
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, node);
        number
    }

    pub(crate) fn create_file(&mut self, path: &str) -> io::Result<NodeNumber> {
        let (parent, name) = self.parent(path)?;
        let name = name.to_owned();
        self.directory(parent)?;
        let number = self.add(Node::File(Box::default()));
        self.directory(parent)?.change(Change::Link(name, number));
        Ok(number)
    }

    pub(crate) fn create_directories(&mut self, path: &str) -> io::Result<()> {
        let all = parts(path);
        for length in 1..=all.len() {
            if let Some(number) = self.find_parts(&all[..length]) {
                self.directory(number)?;
                continue;
            }
            let parent = self.find_parts(&all[..length - 1]).ok_or_else(|| error(libc::ENOENT))?;
            let number = self.add(Node::Directory(Directory::default()));
            let name = all[length - 1].to_owned();
            self.directory(parent)?.change(Change::Link(name, number));
        }
        Ok(())
    }

    pub(crate) fn names(&mut self, path: &str) -> io::Result<Vec<String>> {
        let number = self.find(path).ok_or_else(|| error(libc::ENOENT))?;
        Ok(self.directory(number)?.current.keys().cloned().collect())
    }

    pub(crate) fn remove_file(&mut self, path: &str) -> io::Result<()> {
        let number = self.find(path).ok_or_else(|| error(libc::ENOENT))?;
        self.file(number)?;
        let (parent, name) = self.parent(path)?;
        self.directory(parent)?.change(Change::Unlink(name.to_owned()));
        self.collect(number);
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let moved = self.find(from).ok_or_else(|| error(libc::ENOENT))?;
        let replaced = self.find(to);
        let (from_parent, from_name) = self.parent(from)?;
        let (to_parent, to_name) = self.parent(to)?;
        if from_parent != to_parent {
            return Err(error(libc::EXDEV));
        }
        if replaced == Some(moved) {
            return Ok(());
        }
        let change = Change::Rename(from_name.to_owned(), to_name.to_owned());
        self.directory(from_parent)?.change(change);
        if let Some(replaced) = replaced {
            self.collect(replaced);
        }
        Ok(())
    }

    pub(crate) fn sync_directory(&mut self, path: &str) -> io::Result<()> {
        let number = self.find(path).ok_or_else(|| error(libc::ENOENT))?;
        let directory = self.directory(number)?;
        let count = directory.unsynced.len();
        directory.settle(count);
        self.collect_all();
        Ok(())
    }

    pub(crate) fn opened(&mut self, number: NodeNumber) {
        *self.open.entry(number).or_default() += 1;
    }

    pub(crate) fn closed(&mut self, number: NodeNumber) {
        if let Some(count) = self.open.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&number);
                self.collect(number);
            }
        }
    }

    /// Frees a file that no name, durable name or open handle refers to.
    fn collect(&mut self, number: NodeNumber) {
        if !self.open.contains_key(&number) && !self.linked().contains(&number) {
            self.nodes.remove(&number);
        }
    }

    fn collect_all(&mut self) {
        let linked = self.linked();
        let open = &self.open;
        self.nodes.retain(|number, _| linked.contains(number) || open.contains_key(number));
    }

    fn linked(&self) -> BTreeSet<NodeNumber> {
        let mut linked = BTreeSet::from([ROOT]);
        for node in self.nodes.values() {
            if let Node::Directory(directory) = node {
                linked.extend(directory.current.values());
                linked.extend(directory.durable.values());
                linked.extend(directory.unsynced.iter().filter_map(|change| match change {
                    Change::Link(_, number) => Some(*number),
                    _ => None,
                }));
            }
        }
        linked
    }

    /// The power fails: every directory keeps a prefix of its changes (invariant 1).
    pub(crate) fn power_failure(&mut self, random: &mut Random) {
        self.open.clear();
        for node in self.nodes.values_mut() {
            if let Node::Directory(directory) = node {
                let kept = match random.below(3) {
                    0 => 0,
                    1 => directory.unsynced.len(),
                    _ => random.index(directory.unsynced.len() + 1),
                };
                directory.settle(kept);
                directory.unsynced.clear();
                directory.current = directory.durable.clone();
            }
        }
        self.collect_all();
    }

    pub(crate) fn process_death(&mut self) {
        self.open.clear();
        self.collect_all();
    }

    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut FileImage> {
        self.nodes.values_mut().filter_map(|node| match node {
            Node::File(file) => Some(&mut **file),
            Node::Directory(_) => None,
        })
    }

    pub(crate) fn allocated_bytes(&self) -> u64 {
        let sizes = self.nodes.values().map(|node| match node {
            Node::File(file) => file.allocated_bytes(),
            Node::Directory(_) => 0,
        });
        sizes.sum()
    }

    /// Paths of all files, sorted.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.walk(ROOT, "", &mut paths);
        paths
    }

    fn walk(&self, number: NodeNumber, path: &str, paths: &mut Vec<String>) {
        match self.nodes.get(&number) {
            Some(Node::File(_)) => paths.push(path.to_owned()),
            Some(Node::Directory(directory)) => {
                for (name, &child) in &directory.current {
                    self.walk(child, &format!("{path}/{name}"), paths);
                }
            }
            None => {}
        }
    }
}
