//! The machine: what it is, and what else it does.
//!
//! 1. Figures are the kernel's, from `/proc` and `/sys`; what it does not tell is absent.
//! 2. Reading takes no rights. What only root may see (the wear of a disk) is in `account`.

mod busy;
mod disk;
mod used;

pub use busy::{Busy, busy};
pub use disk::Disk;
pub use used::Used;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A machine as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The distribution.
    pub system: Option<String>,
    /// The processor's model.
    pub processor: Option<String>,
    /// Processors that this process may use.
    pub cores: usize,
    /// A hypervisor is below.
    pub is_virtual: bool,
    /// Nodes of memory.
    pub numa_nodes: usize,
    /// How the frequency is chosen; absent where the kernel does not choose it.
    pub governor: Option<String>,
    /// What the clock reads.
    pub clock_source: Option<String>,
    /// always, madvise or never.
    pub huge_pages: Option<String>,
    /// Bytes.
    pub memory: u64,
    /// Bytes that could be used.
    pub memory_available: u64,
    /// Bytes that the group of this process may use.
    pub memory_limit: Option<u64>,
    /// Processors' worth of time that the group of this process may use.
    pub processor_limit: Option<f64>,
    /// Bytes.
    pub swap: u64,
    /// Bytes.
    pub swap_used: u64,
    /// Processes that wanted to run, on average over a minute.
    pub load: f64,
    /// Descriptors that this process may have, and could raise that to.
    pub descriptors: (u64, u64),
    /// Ports that the kernel gives to clients.
    pub ports: (u32, u32),
    /// Connections that may wait to be accepted.
    pub backlog: u64,
    /// Where data are.
    pub disks: Vec<Disk>,
}

/// Reads a file below the root of a system.
struct System<'a>(&'a Path);

impl System<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(path)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }
}

/// The value behind `name:` or `name=` at the begin of a line.
fn named<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim_start_matches([':', '=', ' ', '\t']).trim().trim_matches('"'))
}

/// The word in brackets of a list of choices.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

impl Machine {
    /// This one, with the disks of some folders.
    pub fn here(folders: &[PathBuf]) -> Self {
        let mut machine = Self::read(Path::new("/"));
        machine.cores = std::thread::available_parallelism().map_or(1, |count| count.get());
        for folder in folders {
            let disk = Disk::of(Path::new("/"), folder);
            let is_new = |disk: &Disk| machine.disks.iter().all(|d| d.mount != disk.mount);
            machine.disks.extend(disk.filter(is_new));
        }
        machine
    }

    fn read(root: &Path) -> Self {
        let system = System(root);
        let text = |path: &str| system.text(path).unwrap_or_default();
        let memory = text("proc/meminfo");
        let bytes = |name: &str| {
            let words = named(&memory, name).unwrap_or_default();
            words.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * 1024
        };
        let processors = text("proc/cpuinfo");
        let limits = text("proc/self/limits");
        let open = named(&limits, "Max open files").unwrap_or_default();
        let mut open = open.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
        let ports = text("proc/sys/net/ipv4/ip_local_port_range");
        let mut ports = ports.split_whitespace().map(|word| word.parse().unwrap_or(0));
        let flags = named(&processors, "flags").unwrap_or_default();
        Self {
            kernel: text("proc/sys/kernel/osrelease"),
            system: named(&text("etc/os-release"), "PRETTY_NAME").map(str::to_string),
            processor: named(&processors, "model name").map(str::to_string),
            cores: processors.lines().filter(|line| line.starts_with("processor")).count(),
            is_virtual: flags.split(' ').any(|flag| flag == "hypervisor"),
            numa_nodes: nodes(root),
            governor: system.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: system
                .text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            huge_pages: chosen(&text("sys/kernel/mm/transparent_hugepage/enabled")),
            memory: bytes("MemTotal"),
            memory_available: bytes("MemAvailable"),
            memory_limit: memory_limit(&system),
            processor_limit: processor_limit(&system),
            swap: bytes("SwapTotal"),
            swap_used: bytes("SwapTotal").saturating_sub(bytes("SwapFree")),
            load: text("proc/loadavg")
                .split(' ')
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0.0),
            descriptors: (open.next().unwrap_or(u64::MAX), open.next().unwrap_or(u64::MAX)),
            ports: (ports.next().unwrap_or(0), ports.next().unwrap_or(0)),
            backlog: system.number("proc/sys/net/core/somaxconn").unwrap_or(0),
            disks: Vec::new(),
        }
    }

    /// By name, as a report shows it.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        let mut put = |name: &str, value: Option<String>| {
            facts.extend(value.filter(|v| !v.is_empty()).map(|value| (name.to_string(), value)));
        };
        put("kernel", Some(self.kernel.clone()));
        put("system", self.system.clone());
        let below = if self.is_virtual { ", virtual" } else { "" };
        put("processor", self.processor.as_ref().map(|name| format!("{name}{below}")));
        put("cores", Some(self.cores.to_string()));
        put("NUMA nodes", Some(self.numa_nodes.to_string()));
        put("CPU governor", Some(self.governor.clone().unwrap_or("not shown".into())));
        put("clock source", self.clock_source.clone());
        put("transparent huge pages", self.huge_pages.clone());
        put("memory", Some(megabytes(self.memory)));
        put("memory limit", self.memory_limit.map(megabytes));
        put("processor limit", self.processor_limit.map(|cores| format!("{cores:.2} cores")));
        let swap = format!("{}, {} used", megabytes(self.swap), megabytes(self.swap_used));
        put("swap", Some(if self.swap == 0 { "off".into() } else { swap }));
        put("load before", Some(format!("{:.2}", self.load)));
        for disk in &self.disks {
            let place = match self.disks.len() {
                1 => "disk".to_string(),
                _ => format!("disk of {}", disk.mount),
            };
            put(&place, Some(disk.words()));
        }
        facts
    }
}

/// What the machine is, with the disks of some folders, by name.
pub fn facts(folders: &[PathBuf]) -> BTreeMap<String, String> {
    Machine::here(folders).facts()
}

fn megabytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn nodes(root: &Path) -> usize {
    let Ok(entries) = fs::read_dir(root.join("sys/devices/system/node")) else { return 1 };
    let is_node =
        |name: &str| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| is_node(name)).count().max(1)
}

/// The group of this process and those above it, by the first and the second version of groups.
fn groups(system: &System<'_>, controller: &str) -> Vec<String> {
    let text = system.text("proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let base = match controllers {
            "" => "sys/fs/cgroup".to_string(),
            _ if controllers.split(',').any(|name| name == controller) => {
                format!("sys/fs/cgroup/{controllers}")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            found.push(format!("{base}{path}"));
            match path.rsplit_once('/') {
                Some((above, _)) => path = above,
                None => break,
            }
        }
    }
    found
}

fn memory_limit(system: &System<'_>) -> Option<u64> {
    /// What the first version of groups calls "no limit": the largest multiple of a page.
    const NONE: u64 = 1 << 62;
    let limits = groups(system, "memory").into_iter().flat_map(|group| {
        ["memory.max", "memory.limit_in_bytes"].map(|name| format!("{group}/{name}"))
    });
    limits.filter_map(|path| system.number(&path)).filter(|limit| *limit < NONE).min()
}

fn processor_limit(system: &System<'_>) -> Option<f64> {
    let of = |group: &String| {
        if let Some(text) = system.text(&format!("{group}/cpu.max")) {
            let (quota, period) = text.split_once(' ')?;
            return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
        }
        let quota = system.text(&format!("{group}/cpu.cfs_quota_us"))?.parse::<f64>().ok()?;
        let period = system.number(&format!("{group}/cpu.cfs_period_us"))?;
        (quota > 0.0).then_some(quota / period as f64)
    };
    groups(system, "cpu").iter().filter_map(of).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn a_machine_is_read() {
        let root = std::env::temp_dir().join(format!("lab-machine-{}", std::process::id()));
        let kb = "MemTotal:       1000 kB\nMemAvailable: 600 kB\nSwapTotal: 64 kB\nSwapFree: 60 kB";
        put(&root, "proc/meminfo", kb);
        put(
            &root,
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: A 1\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n",
        );
        put(&root, "etc/os-release", "NAME=x\nPRETTY_NAME=\"System 12\"\n");
        put(&root, "proc/self/limits", "Max open files            1024      4096      files\n");
        put(&root, "proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
        put(&root, "proc/self/cgroup", "4:memory:/a/b\n0::/c\n");
        put(&root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n");
        put(&root, "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        put(&root, "sys/fs/cgroup/c/cpu.max", "150000 100000\n");
        put(&root, "sys/fs/cgroup/cpu.max", "max 100000\n");
        put(&root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        let machine = Machine::read(&root);
        assert_eq!((machine.memory, machine.swap_used), (1000 * 1024, 4 * 1024));
        assert_eq!((machine.cores, machine.is_virtual), (2, true));
        assert_eq!(machine.descriptors, (1024, 4096));
        assert_eq!(machine.ports, (32768, 60999));
        assert_eq!((machine.memory_limit, machine.processor_limit), (Some(4096), Some(1.5)));
        let facts = machine.facts();
        assert_eq!(facts["system"], "System 12");
        assert_eq!(facts["transparent huge pages"], "madvise");
        assert_eq!(facts["processor"], "A 1, virtual");
        assert_eq!(facts["CPU governor"], "not shown");
        fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn this_machine_has_memory_and_a_disk() {
        let machine = Machine::here(&[std::env::temp_dir(), "/".into()]);
        assert!(machine.memory > 1 << 20 && machine.cores > 0);
        assert!(!machine.disks.is_empty(), "{machine:?}");
        assert!(machine.facts().contains_key("kernel"));
    }
}
