//! Whether a server under load goes on without stalls, in the memory it was given.
//!
//! 1. Every second completes at least half of what the median second does. Beside that stands what
//!    other machines on the host took of the processors in those that do not (`steal` in
//!    `proc_stat(5)`), for how long the device held up a small synced write beside the server, and
//!    how many are below half of what that leaves. It excuses no second.
//! 2. The longest time in which nothing completes is at most [`GAP_MAX`] longer than the longest
//!    that the device took for a small synced write in the same run.
//! 3. The process never occupies more than its pool, a tenth of it, [`MEMORY_BASE`] and 0.3 % of
//!    its data.

use crate::account::{Machine, between};
use crate::results::{DeviceProbe, Finding, Run};
use crate::statistics::median;
use std::time::Duration;

/// See 2.
const GAP_MAX: Duration = Duration::from_millis(250);
/// See 3, bytes.
const MEMORY_BASE: u64 = 64 << 20;
/// Data of which memory may be one part, see 3.
const DATA_PART: f64 = 0.003;

/// What is to be said of a run; what was not measured is not kept. `pool` is the buffer pool.
pub fn findings(run: &Run, pool: Option<u64>) -> Vec<Finding> {
    let mut found = vec![seconds(run), gap(run, run.device.as_ref())];
    found.push(memory(run, pool));
    found
}

fn finding(name: &str, wanted: String, found: String, met: bool) -> Finding {
    Finding { name: name.into(), wanted, found, met }
}

fn seconds(run: &Run) -> Finding {
    let completed: Vec<f64> = run.completed().iter().map(|&count| count as f64).collect();
    let middle = median(&completed);
    let least = completed.iter().copied().fold(f64::INFINITY, f64::min);
    let below = completed.iter().filter(|&&count| count < middle / 2.0).count();
    let share = 100.0 * least / middle;
    let at = completed.iter().position(|&count| count == least).unwrap_or(0);
    let mut found = format!(
        "{below} of {} seconds; the least, second {at}, has {share:.0} % of {middle:.0}",
        completed.len()
    );
    if below > 0 {
        found.push_str(&from_outside(run, &completed, middle));
    }
    let met = !completed.is_empty() && below == 0;
    finding("no second below half of the median", "0 seconds".into(), found, met)
}

/// Of the seconds below half: what was taken from outside, and how many are below half of the rest.
fn from_outside(run: &Run, completed: &[f64], middle: f64) -> String {
    let Some(stolen) = stolen_shares(run, completed.len()) else { return String::new() };
    let low = || (0..completed.len()).filter(|&second| completed[second] < middle / 2.0);
    let held = |second: usize| held_share(run.device.as_ref(), second as f64);
    let rest = |second: usize| (1.0 - stolen[second]) * (1.0 - held(second));
    let left = low().filter(|&second| completed[second] < middle / 2.0 * rest(second)).count();
    let percent = |share: f64| (share * 100.0).round();
    let range = |share: &dyn Fn(usize) -> f64| {
        let least = low().map(share).fold(f64::INFINITY, f64::min);
        let most = low().map(share).fold(0.0, f64::max);
        format!("{} to {} %", percent(least), percent(most))
    };
    format!(
        "; in those, other machines took {} of the processors' work (of all seconds the median is \
         {} %), and the device was held up {} of the time: {left} are below half of the rest",
        range(&|second| stolen[second]),
        percent(median(&stolen)),
        range(&held),
    )
}

/// The share of a second in which the device was at a slow small write.
fn held_share(device: Option<&DeviceProbe>, second: f64) -> f64 {
    let overlap = |&(begin, micros): &(f64, u64)| {
        let end = begin + micros as f64 / 1e6;
        (end.min(second + 1.0) - begin.max(second)).max(0.0)
    };
    device.map_or(0.0, |device| device.slow.iter().map(overlap).sum::<f64>().min(1.0))
}

/// The share of the processors' work that other machines took in each second.
fn stolen_shares(run: &Run, seconds: usize) -> Option<Vec<f64>> {
    let points = |of: fn(&Machine) -> u64| {
        let point = |s: &crate::account::Sample| Some((s.seconds, of(&s.machine?) as f64));
        run.samples.iter().map(point).collect::<Option<Vec<_>>>()
    };
    let (stolen, busy) = (points(|m| m.stolen_micros)?, points(|m| m.busy_micros)?);
    let share = |second: usize| {
        let (begin, end) = (second as f64, second as f64 + 1.0);
        let busy = between(&busy, begin, end);
        if busy > 0.0 { between(&stolen, begin, end) / busy } else { 0.0 }
    };
    Some((0..seconds).map(share).collect())
}

fn gap(run: &Run, device: Option<&DeviceProbe>) -> Finding {
    let name = "longest time without a commit";
    let (Some(gap), Some(device)) = (run.gap, device.filter(|probe| probe.writes > 0)) else {
        return finding(name, "to be measured".into(), "not measured".into(), false);
    };
    let limit = device.micros[2] + GAP_MAX.as_micros() as u64;
    let millis = |micros: u64| micros as f64 / 1000.0;
    let empty = run.tenths.iter().filter(|&&count| count == 0).count();
    finding(
        name,
        format!(
            "at most {:.0} ms: the device's longest write and sync of {:.0} ms and {} ms",
            millis(limit),
            millis(device.micros[2]),
            GAP_MAX.as_millis()
        ),
        format!(
            "{:.0} ms, until second {:.1}; {empty} of {} tenths of a second without any",
            millis(gap.micros),
            gap.until_seconds,
            run.tenths.len()
        ),
        gap.micros <= limit,
    )
}

fn memory(run: &Run, pool: Option<u64>) -> Finding {
    let name = "resident memory";
    let over = |sample: &crate::account::Sample| {
        let (pool, data) = (pool?, sample.allocated_bytes.unwrap_or(0));
        let limit = pool + pool / 10 + MEMORY_BASE + (data as f64 * DATA_PART) as u64;
        let resident = sample.server?.resident_bytes;
        Some((resident as i64 - limit as i64, resident, limit))
    };
    let end = run.seconds.len() as f64;
    let measured = run.samples.iter().filter(|s| s.seconds >= 0.0 && s.seconds <= end);
    let Some((excess, resident, limit)) = measured.filter_map(over).max() else {
        return finding(name, "to be measured".into(), "not measured".into(), false);
    };
    let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    finding(
        name,
        format!("at most {:.0} MiB: the pool, 10 %, 64 MiB, 0.3 % of the data", megabytes(limit)),
        format!("{:.0} MiB", megabytes(resident)),
        excess <= 0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Figures, Sample};
    use crate::driver::Gap;
    use crate::results::Second;

    fn run(completed: &[u64], gap_millis: u64, device_millis: u64, resident: u64) -> Run {
        let second = |&completed: &u64| Second { completed, ..Second::default() };
        let figures = Figures { resident_bytes: resident << 20, ..Figures::default() };
        let sample = Sample {
            seconds: 1.0,
            server: Some(figures),
            allocated_bytes: Some(1000 << 20),
            ..Sample::default()
        };
        Run {
            seconds: completed.iter().map(second).collect(),
            gap: Some(Gap { until_seconds: 1.5, micros: gap_millis * 1000 }),
            device: Some(DeviceProbe {
                writes: 9,
                micros: [1, 2, device_millis * 1000],
                ..DeviceProbe::default()
            }),
            samples: vec![sample],
            ..Run::default()
        }
    }

    fn met(run: &Run) -> [bool; 3] {
        let found = findings(run, Some(100 << 20));
        [0, 1, 2].map(|at| found[at].met)
    }

    #[test]
    fn each_rule_is_broken_by_itself() {
        let good = [100, 90, 110, 50, 100];
        assert_eq!(met(&run(&good, 300, 60, 176)), [true, true, true]);
        assert_eq!(met(&run(&[100, 90, 110, 44, 100], 300, 60, 176)), [false, true, true]);
        assert_eq!(met(&run(&good, 311, 60, 176)), [true, false, true]);
        assert_eq!(met(&run(&good, 300, 60, 178)), [true, true, false], "110 + 64 + 3 MiB");
    }

    /// Three of the ten seconds are low; in the first of them three quarters of the processors' work
    /// were taken, in the second the device was slow.
    #[test]
    fn what_comes_from_outside_is_told_but_excuses_nothing() {
        let mut run = run(&[100, 100, 30, 100, 100, 30, 100, 30, 100, 100], 10, 10, 100);
        let sample = |second: u64| Sample {
            seconds: second as f64,
            machine: Some(Machine {
                busy_micros: second * 2_000_000,
                stolen_micros: if second > 2 { 1_500_000 } else { 0 },
                ..Machine::default()
            }),
            ..Sample::default()
        };
        run.samples = (0..11).map(sample).collect();
        run.device.as_mut().expect("probed").slow = vec![(4.9, 400_000), (5.7, 400_000)];
        let found = &findings(&run, None)[0];
        assert!(!found.met);
        let text = "3 of 10 seconds; the least, second 2, has 30 % of 100; in those, other \
            machines took 0 to 75 % of the processors' work (of all seconds the median is 0 %), \
            and the device was held up 0 to 60 % of the time: 1 are below half of the rest";
        assert_eq!(found.found, text);
        run.samples[3].machine = None;
        assert!(!findings(&run, None)[0].found.contains("machines"), "not known");
    }

    #[test]
    fn what_was_not_measured_is_not_kept() {
        assert_eq!(met(&Run::default()), [false; 3]);
        let mut without_probe = run(&[100; 5], 10, 60, 100);
        without_probe.device = None;
        assert_eq!(met(&without_probe), [true, false, true]);
        assert!(!findings(&run(&[100; 5], 10, 60, 100), None)[2].met, "no pool is known");
    }
}
