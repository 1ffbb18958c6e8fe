//! What else the machine does while nothing is measured.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// What was used in a while, by everybody but this process and one that may be left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Busy {
    /// Processors' worth of time.
    pub cores: f64,
    /// Share of the time that a hypervisor gave to others, from 0 to 1.
    pub stolen: f64,
    /// Processes that used most, with processors' worth of time.
    pub processes: Vec<(String, f64)>,
}

/// A tick of the kernel's accounts.
const TICKS_PER_SECOND: f64 = 100.0;
/// Processes that are named.
const NAMED: usize = 3;

/// The counters of a moment.
#[derive(Debug, Default)]
struct Moment {
    all: u64,
    idle: u64,
    stolen: u64,
    processes: BTreeMap<u32, (String, u64)>,
}

impl Moment {
    fn now() -> Self {
        let mut moment = Self::of(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let Ok(entries) = fs::read_dir("/proc") else { return moment };
        for id in entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()) {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            moment.processes.extend(process(&stat).map(|found| (id, found)));
        }
        moment
    }

    fn of(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
        let at = |place: usize| ticks.get(place).copied().unwrap_or(0);
        Self {
            all: ticks.iter().sum(),
            idle: at(3) + at(4),
            stolen: at(7),
            processes: BTreeMap::new(),
        }
    }

    /// What was used since.
    fn since(&self, before: &Self, left_out: &[u32]) -> Busy {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let mut used: Vec<(String, u64)> = Vec::new();
        let mut ours = 0;
        for (id, (name, ticks)) in &self.processes {
            let first = before.processes.get(id).map_or(0, |(_, ticks)| *ticks);
            let ticks = ticks.saturating_sub(first);
            if left_out.contains(id) {
                ours += ticks;
            } else if ticks > 0 {
                used.push((name.clone(), ticks));
            }
        }
        let idle = self.idle.saturating_sub(before.idle);
        let stolen = self.stolen.saturating_sub(before.stolen);
        let busy = (all as u64).saturating_sub(idle + stolen + ours);
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let share = |ticks: u64| ticks as f64 / all * processors as f64;
        used.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
        used.truncate(NAMED);
        Busy {
            cores: share(busy),
            stolen: stolen as f64 / all,
            processes: used.into_iter().map(|(name, ticks)| (name, share(ticks))).collect(),
        }
    }
}

/// Name and ticks of a process.
fn process(stat: &str) -> Option<(String, u64)> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some((name.to_string(), ticks(11)? + ticks(12)?))
}

/// Looks for a while at what others do; some processes may be left out. Call it in a fiber.
pub fn busy(time: Duration, left_out: &[u32]) -> Busy {
    let mut left_out = left_out.to_vec();
    left_out.push(std::process::id());
    let before = Moment::now();
    runtime::sleep(time.max(Duration::from_secs_f64(2.0 / TICKS_PER_SECOND)));
    Moment::now().since(&before, &left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_neither_idle_nor_ours() {
        let at = |all: &str, processes: &[(u32, &str, u64)]| Moment {
            processes: processes
                .iter()
                .map(|(id, name, t)| (*id, (name.to_string(), *t)))
                .collect(),
            ..Moment::of(all)
        };
        let before = at("cpu 100 0 0 900 0 0 0 0", &[(1, "a", 10), (2, "b", 5), (3, "lab", 7)]);
        let after = at(
            "cpu 180 0 20 980 0 0 0 20",
            &[(1, "a", 70), (2, "b", 10), (3, "lab", 37), (4, "new", 5)],
        );
        let busy = after.since(&before, &[3]);
        let processors = std::thread::available_parallelism().map_or(1, |c| c.get()) as f64;
        assert!((busy.stolen - 0.1).abs() < 1e-9, "{busy:?}");
        assert!((busy.cores - 70.0 / 200.0 * processors).abs() < 1e-9, "{busy:?}");
        let names: Vec<&str> = busy.processes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "new"]);
    }

    #[test]
    fn a_name_may_have_brackets() {
        let stat = "7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14";
        assert_eq!(process(stat), Some(("a (b) c".into(), 11 + 12)));
        assert_eq!(process("7"), None);
    }
}
