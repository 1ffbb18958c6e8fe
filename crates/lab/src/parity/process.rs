//! What the operating system lets a server's process use.

use std::fs;

/// Confines of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confines {
    /// Processors that it may run on, as the kernel lists them.
    pub processors: Option<String>,
    /// Files that it may open.
    pub open_files: Option<String>,
    /// Its group, which has limits of memory and of processors.
    pub group: Option<String>,
}

impl Confines {
    /// Of a process of this machine; `None` if it is gone.
    pub fn of(id: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let limits = fs::read_to_string(format!("/proc/{id}/limits")).unwrap_or_default();
        let groups = fs::read_to_string(format!("/proc/{id}/cgroup")).unwrap_or_default();
        Some(Self {
            processors: behind(&status, "Cpus_allowed_list:"),
            open_files: behind(&limits, "Max open files"),
            group: groups
                .lines()
                .find(|line| line.starts_with("0::") || line.contains(":memory:"))
                .and_then(|line| line.rsplit(':').next().map(str::to_string)),
        })
    }
}

/// The word behind a name at the begin of a line.
fn behind(text: &str, name: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next().map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_confines() {
        let own = Confines::of(std::process::id()).expect("it runs");
        assert!(own.processors.is_some() && own.open_files.is_some(), "{own:?}");
        assert_eq!(Confines::of(u32::MAX), None);
    }
}
