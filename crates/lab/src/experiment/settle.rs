//! Waiting until servers have done what they still had to do: writing back, merging, purging.

use super::subject::Subject;
use crate::account::Figures;
use std::time::Duration;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A server is calm when it writes less than that in a second.
const CALM_BYTES: u64 = 256 << 10;
/// And uses less of a processor than that.
const CALM_CPU_MICROS: u64 = 50_000;
/// It must be calm for so many looks: some work begins only after a while of rest, as compressing
/// what was put off does after ten seconds (Gannet).
const CALM_LOOKS: u32 = 12;

/// How servers settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing is known of the processes.
    Unknown,
    /// They were calm in the end.
    Calm,
    /// They were not, when the time was over.
    Busy,
}

/// Waits until all servers are calm, no longer than that; exactly that if nothing is known of
/// their processes.
pub fn settle(subjects: &[Subject], longest: Duration, is_stopped: &dyn Fn() -> bool) -> Settled {
    let ids: Vec<u32> = subjects.iter().filter_map(Subject::id).collect();
    settle_processes(&ids, longest, is_stopped, &Figures::of)
}

fn settle_processes(
    ids: &[u32],
    longest: Duration,
    is_stopped: &dyn Fn() -> bool,
    figures: &dyn Fn(u32) -> Option<Figures>,
) -> Settled {
    let look = || -> Vec<Figures> { ids.iter().filter_map(|id| figures(*id)).collect() };
    let end = runtime::now() + longest;
    let mut before = look();
    if before.is_empty() {
        while runtime::now() < end && !is_stopped() {
            runtime::sleep(LOOK_EVERY.min(end - runtime::now()));
        }
        return Settled::Unknown;
    }
    let mut calm_looks = 0;
    while runtime::now() < end && !is_stopped() {
        runtime::sleep(LOOK_EVERY);
        let now = look();
        let is_calm = now.len() == before.len()
            && now.iter().zip(&before).all(|(now, before)| {
                let cpu = |f: &Figures| f.user_micros + f.system_micros;
                now.written_bytes.saturating_sub(before.written_bytes) < CALM_BYTES
                    && cpu(now).saturating_sub(cpu(before)) < CALM_CPU_MICROS
            });
        calm_looks = if is_calm { calm_looks + 1 } else { 0 };
        if calm_looks == CALM_LOOKS {
            return Settled::Calm;
        }
        before = now;
    }
    Settled::Busy
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::sim::{SimConfig, Simulation};
    use std::cell::Cell;

    /// Settles a process that writes 1 MB a second for so many seconds; how it settled and when.
    fn settled(busy_seconds: u64, longest: u64) -> (Settled, u64) {
        let mut simulation = Simulation::new(SimConfig::new(1));
        let outcome = simulation.run(move || {
            let begin = runtime::now();
            let looks = Cell::new(0);
            let figures = |_| {
                looks.set(looks.get() + 1);
                let written = (looks.get() - 1u64).min(busy_seconds) << 20;
                Some(Figures { written_bytes: written, ..Figures::default() })
            };
            let how = settle_processes(&[1], Duration::from_secs(longest), &|| false, &figures);
            (how, (runtime::now() - begin).as_secs())
        });
        outcome.expect("it ends")
    }

    #[test]
    fn it_waits_for_twelve_calm_seconds_and_not_for_ever() {
        assert_eq!(settled(0, 60), (Settled::Calm, 12));
        assert_eq!(settled(7, 60), (Settled::Calm, 19));
        assert_eq!(settled(100, 20), (Settled::Busy, 20));
        assert_eq!(settled(0, 0), (Settled::Busy, 0));
    }
}
