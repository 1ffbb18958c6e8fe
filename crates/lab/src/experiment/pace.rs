//! Whether a server under load goes on without stalls, in the memory it was given.
//!
//! 1. Every second completes at least half of what the median second does.
//! 2. The longest time in which nothing completes is at most [`GAP_MAX`] longer than the longest
//!    that the device took for a small synced write in the same run.
//! 3. The process never occupies more than its pool, a tenth of it, [`MEMORY_BASE`] and 0.3 % of
//!    its data.

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
    let mut found = vec![seconds(run), gap(run, run.device)];
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
    finding(
        "no second below half of the median",
        "0 seconds".into(),
        format!(
            "{below} of {} seconds; the least, second {at}, has {share:.0} % of {middle:.0}",
            completed.len()
        ),
        !completed.is_empty() && below == 0,
    )
}

fn gap(run: &Run, device: Option<DeviceProbe>) -> Finding {
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
            device: Some(DeviceProbe { writes: 9, micros: [1, 2, device_millis * 1000] }),
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

    #[test]
    fn what_was_not_measured_is_not_kept() {
        assert_eq!(met(&Run::default()), [false; 3]);
        let mut without_probe = run(&[100; 5], 10, 60, 100);
        without_probe.device = None;
        assert_eq!(met(&without_probe), [true, false, true]);
        assert!(!findings(&run(&[100; 5], 10, 60, 100), None)[2].met, "no pool is known");
    }
}
