//! What is shown while runs go on.

mod dashboard;
mod json;
mod lines;
mod prometheus;

pub use dashboard::Dashboard;
pub use json::Json;
pub use lines::Lines;
pub use prometheus::Prometheus;

use crate::driver::Interval;
use crate::experiment::{Place, Watcher};
use crate::results::{Experiment, Run};
use std::sync::Arc;
use std::time::Duration;

/// Several that are told the same.
pub struct Several(pub Vec<Arc<dyn Watcher>>);

impl Watcher for Several {
    fn phase(&self, text: &str) {
        self.0.iter().for_each(|watcher| watcher.phase(text));
    }

    fn every(&self) -> Option<Duration> {
        self.0.iter().filter_map(|watcher| watcher.every()).min()
    }

    fn begins(&self, place: &Place) {
        self.0.iter().for_each(|watcher| watcher.begins(place));
    }

    fn interval(&self, place: &Place, interval: &Interval) {
        self.0.iter().for_each(|watcher| watcher.interval(place, interval));
    }

    fn ended(&self, experiment: &Experiment, run: &Run) {
        self.0.iter().for_each(|watcher| watcher.ended(experiment, run));
    }
}

/// Nothing is shown.
pub struct Silent;

impl Watcher for Silent {}

/// `A, 64 clients, round 1: run 3 of 12`.
fn heading(place: &Place) -> String {
    let rate = place.rate.map(|rate| format!(", {rate:.0} operations/s")).unwrap_or_default();
    let plural = if place.clients == 1 { "" } else { "s" };
    format!(
        "{}, {} client{plural}{rate}, round {}: run {} of {}",
        place.name,
        place.clients,
        place.round + 1,
        place.runs.0 + 1,
        place.runs.1
    )
}

/// What is left of all runs after so much of this one, pauses between them not counted.
fn left(place: &Place, passed: Duration) -> Duration {
    let whole = place.runs.1.saturating_sub(place.runs.0) as u32;
    (place.length * whole).saturating_sub(passed)
}

/// `1:02:03`, `2:03`.
fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A latency of an interval, milliseconds.
fn millis(interval: &Interval, quantile: f64) -> f64 {
    match interval.latency.is_empty() {
        true => 0.0,
        false => interval.latency.value_at_quantile(quantile) as f64 / 1000.0,
    }
}

/// A line for a run that ended.
fn summary(experiment: &Experiment, run: &Run) -> String {
    let limited = run.limit.as_ref().filter(|_| run.is_client_limited());
    let limited = limited.map(|limit| format!("; limited by the client: {}", limit.why()));
    format!(
        "{}, {} clients, round {}: {:.1} operations/s, p95 {:.2} ms, longest {:.2} ms{}",
        experiment.subjects[run.subject].name,
        run.clients,
        run.round + 1,
        run.throughput(),
        run.micros[1] as f64 / 1000.0,
        run.micros[4] as f64 / 1000.0,
        limited.unwrap_or_default()
    )
}

#[cfg(test)]
mod sample {
    use crate::driver::{End, Ended, Interval, Recorder};
    use crate::experiment::Place;
    use crate::results::Statements;
    use runtime::Instant;
    use std::time::Duration;

    /// The second of two servers, in the first of four runs.
    pub(super) fn place() -> Place {
        Place {
            name: "B".into(),
            subject: 1,
            clients: 64,
            rate: None,
            round: 0,
            turn: 0,
            runs: (1, 4),
            length: Duration::from_secs(65),
        }
    }

    /// Ten seconds after the warm-up of five with 1,000 operations of 5 ms, 10 of 80 ms.
    pub(super) fn interval() -> Interval {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let times = (at(0), Duration::from_secs(5), Duration::from_secs(60));
        let mut recorder = Recorder::new(&["read"], times, true);
        let _warm_up = recorder.take_interval(at(5000));
        for number in 0..1010 {
            let end = 5100 + number;
            let length = if number % 101 == 7 { 80 } else { 5 };
            let how = match number % 202 {
                50 => End::Failed(1213, "40001".into()),
                _ => End::Completed,
            };
            recorder.add(Ended {
                operation: 0,
                intended: at(end - length),
                sent: at(end - length),
                end: at(end),
                how,
                retries: 0,
                statements: Statements { reads: 14, writes: 4, others: 2 },
            });
        }
        recorder.add_reconnected(at(6500));
        recorder.take_interval(at(15_000)).expect("watched")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_like_a_clock() {
        let texts = [0, 59, 60, 3599, 3600, 86_399].map(|s| clock(Duration::from_secs(s)));
        assert_eq!(texts, ["0:00", "0:59", "1:00", "59:59", "1:00:00", "23:59:59"]);
        let place = sample::place();
        assert_eq!(left(&place, Duration::from_secs(15)), Duration::from_secs(3 * 65 - 15));
        assert_eq!(heading(&place), "B, 64 clients, round 1: run 2 of 4");
    }
}
