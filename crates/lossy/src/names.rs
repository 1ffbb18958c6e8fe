//! Directories: names as everybody sees them, and as a power failure would leave them.
//!
//! 1. Changes of a directory are durable after a sync of the directory, and only then.
//! 2. A power failure leaves a prefix of the changes since, chosen for each directory on its own.
//! 3. A rename within a directory is one change.

use base::Random;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Names and the numbers of what they stand for.
pub type Entries = BTreeMap<OsString, u64>;

#[derive(Clone, Debug)]
enum Change {
    Link(OsString, u64),
    Unlink(OsString),
    Rename(OsString, OsString),
}

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Directory {
    current: Entries,
    durable: Entries,
    unsynced: Vec<Change>,
}

fn apply(entries: &mut Entries, change: &Change) {
    match change {
        Change::Link(name, number) => {
            entries.insert(name.clone(), *number);
        }
        Change::Unlink(name) => {
            entries.remove(name);
        }
        Change::Rename(from, to) => {
            if let Some(number) = entries.remove(from) {
                entries.insert(to.clone(), number);
            }
        }
    }
}

impl Directory {
    /// Names as everybody sees them.
    pub fn entries(&self) -> &Entries {
        &self.current
    }

    /// What a name stands for.
    pub fn find(&self, name: &OsStr) -> Option<u64> {
        self.current.get(name).copied()
    }

    /// Everything that a name stands for or may stand for after a power failure.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let linked = self.unsynced.iter().filter_map(|change| match change {
            Change::Link(_, number) => Some(*number),
            _ => None,
        });
        self.current.values().chain(self.durable.values()).copied().chain(linked)
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.current, &change);
        self.unsynced.push(change);
    }

    /// Gives a name, which may have stood for something else.
    pub fn link(&mut self, name: &OsStr, number: u64) {
        self.change(Change::Link(name.to_owned(), number));
    }

    /// Takes a name away.
    pub fn unlink(&mut self, name: &OsStr) {
        self.change(Change::Unlink(name.to_owned()));
    }

    /// Gives what has one name another one.
    pub fn rename(&mut self, from: &OsStr, to: &OsStr) {
        self.change(Change::Rename(from.to_owned(), to.to_owned()));
    }

    /// Makes everything durable.
    pub fn sync(&mut self) {
        self.unsynced.clear();
        self.durable.clone_from(&self.current);
    }

    /// The power fails; how many changes are gone.
    pub fn power_failure(&mut self, random: &mut Random) -> u64 {
        let all = std::mem::take(&mut self.unsynced);
        let kept = match random.below(3) {
            0 => 0,
            1 => all.len(),
            _ => random.index(all.len() + 1),
        };
        all[..kept].iter().for_each(|change| apply(&mut self.durable, change));
        self.current.clone_from(&self.durable);
        (all.len() - kept) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Directory) -> Vec<&str> {
        directory.entries().keys().filter_map(|name| name.to_str()).collect()
    }

    #[test]
    fn a_power_failure_leaves_a_prefix_of_what_was_not_synced() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut directory = Directory::default();
            directory.link("a".as_ref(), 1);
            directory.sync();
            directory.link("b".as_ref(), 2);
            directory.rename("b".as_ref(), "a".as_ref());
            directory.unlink("a".as_ref());
            assert_eq!(names(&directory), [""; 0]);
            directory.power_failure(&mut Random::new(seed));
            let left: Vec<(String, u64)> = directory
                .entries()
                .iter()
                .map(|(name, number)| (name.to_string_lossy().into_owned(), *number))
                .collect();
            seen.insert(left);
        }
        let entry = |name: &str, number| (name.to_owned(), number);
        let possible =
            [vec![], vec![entry("a", 1)], vec![entry("a", 1), entry("b", 2)], vec![entry("a", 2)]];
        assert_eq!(seen, possible.into_iter().collect());
    }

    #[test]
    fn what_was_synced_stays() {
        for seed in 0..20 {
            let mut directory = Directory::default();
            directory.link("a".as_ref(), 1);
            directory.link("b".as_ref(), 2);
            directory.rename("a".as_ref(), "c".as_ref());
            directory.sync();
            assert_eq!(directory.power_failure(&mut Random::new(seed)), 0);
            assert_eq!(names(&directory), ["b", "c"]);
        }
    }
}
