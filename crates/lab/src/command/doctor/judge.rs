//! What of a machine would spoil a measurement.

use crate::machine::{Busy, Disk, Machine};
use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gravity {
    /// What is measured here says little.
    Spoils,
    /// It costs, or may.
    Matters,
    /// To be known with the figures.
    Known,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) gravity: Gravity,
    pub(super) what: String,
    pub(super) fix: String,
}

impl Finding {
    pub(super) fn new(gravity: Gravity, what: &str, fix: &str) -> Self {
        Self { gravity, what: what.into(), fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.gravity {
            Gravity::Spoils => "SPOILS ",
            Gravity::Matters => "matters",
            Gravity::Known => "known  ",
        };
        write!(f, "{word}  {}", self.what)?;
        if !self.fix.is_empty() {
            write!(f, "\n         -> {}", self.fix)?;
        }
        Ok(())
    }
}

/// What is going to be measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Clients at the same time.
    pub(super) clients: u32,
    /// This program has checks and little optimisation.
    pub(super) is_debug: bool,
}

/// Others may use so much of a processor.
const BUSY_SPOILS: f64 = 0.25;
const BUSY_MATTERS: f64 = 0.05;
/// A hypervisor may give others such a share.
const STOLEN_SPOILS: f64 = 0.02;
const STOLEN_MATTERS: f64 = 0.002;
/// Descriptors of the driver besides its connections.
const DESCRIPTORS: u64 = 64;
/// Disks are slower, and the figures other ones, when they are nearly full.
const FILL_SPOILS: f64 = 0.95;
const FILL_MATTERS: f64 = 0.80;
const FREE_LEAST: u64 = 1 << 30;

/// Findings in a list that grows.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn put(&mut self, gravity: Gravity, what: String, fix: &str) {
        self.0.push(Finding { gravity, what, fix: fix.into() });
    }

    /// The graver of two limits that is passed.
    fn beyond(&mut self, value: f64, (spoils, matters): (f64, f64), what: String, fix: &str) {
        if value > spoils {
            self.put(Gravity::Spoils, what, fix);
        } else if value > matters {
            self.put(Gravity::Matters, what, fix);
        }
    }
}

/// Looks at a machine.
pub(super) fn of_machine(machine: &Machine, busy: &Busy, asked: &Asked) -> Vec<Finding> {
    let mut findings = Findings::default();
    others(&mut findings, busy);
    processors(&mut findings, machine, asked);
    memory(&mut findings, machine);
    clients(&mut findings, machine, asked);
    machine.disks.iter().for_each(|one| disk(&mut findings, one));
    findings.0.sort_by_key(|finding| finding.gravity);
    findings.0
}

fn others(findings: &mut Findings, busy: &Busy) {
    let names: Vec<String> =
        busy.processes.iter().map(|(name, cores)| format!("{name} {cores:.2}")).collect();
    findings.beyond(
        busy.cores,
        (BUSY_SPOILS, BUSY_MATTERS),
        format!("others use {:.2} processors: {}", busy.cores, names.join(", ")),
        "stop them, or wait until they have ended",
    );
    findings.beyond(
        busy.stolen,
        (STOLEN_SPOILS, STOLEN_MATTERS),
        format!("the hypervisor gives {:.1} % of the time to others", busy.stolen * 100.0),
        "use a machine of its own, or one with processors that are not shared",
    );
}

fn processors(findings: &mut Findings, machine: &Machine, asked: &Asked) {
    if asked.is_debug {
        findings.put(
            Gravity::Matters,
            "this gannet-lab is a build with checks: its clients cost more".into(),
            "cargo build --release --package gannet-lab",
        );
    }
    if machine.cores < 2 {
        findings.put(
            Gravity::Spoils,
            "one processor: the driver takes it from the server".into(),
            "run the driver on another machine",
        );
    }
    if let Some(cores) = machine.processor_limit.filter(|cores| *cores < machine.cores as f64) {
        findings.put(
            Gravity::Spoils,
            format!("a control group stops everything after {cores:.2} processors' time"),
            "raise its cpu.max",
        );
    }
    match machine.governor.as_deref() {
        Some("performance") | None => {}
        Some(other) => findings.put(
            Gravity::Matters,
            format!("the processors' frequency follows the load (governor {other})"),
            "cpupower frequency-set --governor performance",
        ),
    }
    if let Some(clock) = machine.clock_source.as_deref()
        && !["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"].contains(&clock)
    {
        findings.put(
            Gravity::Matters,
            format!("reading the clock ({clock}) is a slow call"),
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        );
    }
    if machine.numa_nodes > 1 {
        findings.put(
            Gravity::Known,
            format!("{} nodes of memory: where a server starts matters", machine.numa_nodes),
            "give each server the same node with `cpus`",
        );
    }
    if machine.is_virtual {
        findings.put(Gravity::Known, "the machine is a virtual one".into(), "");
    }
}

fn memory(findings: &mut Findings, machine: &Machine) {
    if machine.swap_used > machine.memory / 100 {
        findings.put(
            Gravity::Spoils,
            format!("{} MiB are swapped out", machine.swap_used >> 20),
            "swapoff --all",
        );
    } else if machine.swap > 0 {
        findings.put(
            Gravity::Matters,
            "swap is on: memory of a server may become a disk's".into(),
            "swapoff --all, or sysctl vm.swappiness=1",
        );
    }
    if machine.huge_pages.as_deref() == Some("always") {
        findings.put(
            Gravity::Matters,
            "transparent huge pages are made for everybody: memory and pauses that nobody asked for"
                .into(),
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        );
    }
    if let Some(limit) = machine.memory_limit.filter(|limit| *limit < machine.memory) {
        findings.put(
            Gravity::Known,
            format!("a control group allows {} MiB, the system's cache included", limit >> 20),
            "",
        );
    }
}

fn clients(findings: &mut Findings, machine: &Machine, asked: &Asked) {
    let wanted = u64::from(asked.clients) + DESCRIPTORS;
    if machine.descriptors.1 < wanted {
        findings.put(
            Gravity::Spoils,
            format!(
                "{} clients need {wanted} descriptors, {} are allowed",
                asked.clients, machine.descriptors.1
            ),
            "ulimit -Hn 1048576 as root, or `nofile` in /etc/security/limits.conf",
        );
    }
    let ports = u64::from(machine.ports.1.saturating_sub(machine.ports.0));
    if ports > 0 {
        let share = f64::from(asked.clients) / ports as f64;
        findings.beyond(
            share,
            (0.95, 0.5),
            format!("{} clients, and {ports} ports for them", asked.clients),
            "sysctl net.ipv4.ip_local_port_range=\"1024 65535\"",
        );
    }
    if machine.backlog > 0 && machine.backlog < u64::from(asked.clients) {
        findings.put(
            Gravity::Matters,
            format!("{} connections may wait to be accepted, fewer than clients", machine.backlog),
            "sysctl net.core.somaxconn=65535",
        );
    }
}

fn disk(findings: &mut Findings, disk: &Disk) {
    let place = &disk.mount;
    if let Some(fill) = disk.fill() {
        findings.beyond(
            fill,
            (FILL_SPOILS, FILL_MATTERS),
            format!("the disk of {place} is {:.0} % full", fill * 100.0),
            "remove what is not needed, then fstrim",
        );
    }
    if disk.space.is_some_and(|(_, free)| free < FREE_LEAST) {
        let free = disk.space.map_or(0, |(_, free)| free >> 20);
        let what = format!("the disk of {place} has {free} MiB left");
        findings.put(Gravity::Spoils, what, "remove what is not needed");
    }
    if ["tmpfs", "ramfs"].contains(&disk.file_system.as_str()) {
        findings.put(
            Gravity::Spoils,
            format!("{place} is memory: commits cost nothing and nothing survives"),
            "put the data on a disk with `data`",
        );
    }
    if ["nfs", "nfs4", "cifs", "fuse", "overlay", "9p", "virtiofs"]
        .contains(&disk.file_system.as_str())
    {
        findings.put(
            Gravity::Matters,
            format!("{place} is {}: its writes and syncs are another system's", disk.file_system),
            "put the data on a disk of this machine with `data`",
        );
    }
    if disk.options.split(',').any(|option| option == "nobarrier" || option == "barrier=0") {
        findings.put(
            Gravity::Spoils,
            format!("{place} is mounted without barriers: a sync makes nothing durable"),
            "mount it with barriers",
        );
    }
    if disk.is_rotational == Some(true) && disk.device.is_some() {
        findings.put(
            Gravity::Known,
            format!("the disk of {place} says that it turns; virtual ones often do"),
            "",
        );
    }
    if disk.discards == Some(false) {
        findings.put(
            Gravity::Known,
            format!("the disk of {place} does not take back space (no TRIM)"),
            "",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Machine {
        Machine {
            cores: 8,
            numa_nodes: 1,
            memory: 16 << 30,
            governor: Some("performance".into()),
            clock_source: Some("tsc".into()),
            huge_pages: Some("madvise".into()),
            descriptors: (1024, 1 << 20),
            ports: (1024, 65535),
            backlog: 65535,
            disks: vec![Disk {
                mount: "/d".into(),
                file_system: "xfs".into(),
                device: Some("nvme0n1".into()),
                is_rotational: Some(false),
                discards: Some(true),
                space: Some((100 << 30, 60 << 30)),
                ..Disk::default()
            }],
            ..Machine::default()
        }
    }

    fn asked() -> Asked {
        Asked { clients: 1000, is_debug: false }
    }

    fn of(machine: &Machine, busy: &Busy) -> Vec<Finding> {
        of_machine(machine, busy, &asked())
    }

    #[test]
    fn a_quiet_machine_has_no_findings() {
        assert_eq!(of(&good(), &Busy::default()), []);
    }

    #[test]
    fn each_trouble_is_found_with_its_gravity_and_a_fix() {
        type Change = fn(&mut Machine, &mut Busy);
        let cases: [(Change, Gravity, &str); 18] = [
            (|_, b| b.cores = 0.5, Gravity::Spoils, "others use"),
            (|_, b| b.cores = 0.1, Gravity::Matters, "others use"),
            (|_, b| b.stolen = 0.1, Gravity::Spoils, "hypervisor gives"),
            (|m, _| (m.swap, m.swap_used) = (1 << 30, 1 << 30), Gravity::Spoils, "swapped"),
            (|m, _| m.swap = 1 << 30, Gravity::Matters, "swap is on"),
            (|m, _| m.governor = Some("powersave".into()), Gravity::Matters, "powersave"),
            (|m, _| m.clock_source = Some("hpet".into()), Gravity::Matters, "hpet"),
            (|m, _| m.huge_pages = Some("always".into()), Gravity::Matters, "huge"),
            (|m, _| m.descriptors = (1024, 1024), Gravity::Spoils, "descriptors"),
            (|m, _| m.ports = (60_000, 61_000), Gravity::Spoils, "ports"),
            (|m, _| m.backlog = 128, Gravity::Matters, "accepted"),
            (|m, _| m.processor_limit = Some(1.5), Gravity::Spoils, "control group"),
            (|m, _| m.cores = 1, Gravity::Spoils, "one processor"),
            (|m, _| m.disks[0].space = Some((100, 3)), Gravity::Spoils, "97 % full"),
            (|m, _| m.disks[0].file_system = "tmpfs".into(), Gravity::Spoils, "is memory"),
            (|m, _| m.disks[0].file_system = "overlay".into(), Gravity::Matters, "overlay"),
            (|m, _| m.disks[0].options = "rw,nobarrier".into(), Gravity::Spoils, "barriers"),
            (|m, _| m.disks[0].is_rotational = Some(true), Gravity::Known, "turns"),
        ];
        for (change, gravity, word) in cases {
            let (mut machine, mut busy) = (good(), Busy::default());
            change(&mut machine, &mut busy);
            let findings = of(&machine, &busy);
            let found = findings.iter().find(|f| f.what.contains(word));
            let found = found.unwrap_or_else(|| panic!("{word}: {findings:?}"));
            assert_eq!(found.gravity, gravity, "{found}");
            assert!(!found.fix.is_empty() || gravity == Gravity::Known, "{found}");
        }
    }

    #[test]
    fn the_gravest_come_first() {
        let mut machine = good();
        (machine.is_virtual, machine.cores, machine.swap) = (true, 1, 1 << 30);
        let findings = of(&machine, &Busy::default());
        let order: Vec<Gravity> = findings.iter().map(|finding| finding.gravity).collect();
        assert_eq!(order, [Gravity::Spoils, Gravity::Matters, Gravity::Known]);
    }
}
