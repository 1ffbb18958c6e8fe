//! Lines as sysbench has them, so that what reads them goes on reading.

use super::{clock, heading, left, millis, summary};
use crate::driver::Interval;
use crate::experiment::{Place, Watcher};
use crate::results::{Experiment, Run};
use std::io::Write;
use std::time::Duration;

/// A line for every interval.
pub struct Lines {
    every: Duration,
}

impl Lines {
    /// With so much time between two lines.
    pub fn new(every: Duration) -> Self {
        Self { every }
    }
}

/// Whoever reads may have gone, as in `| head`.
fn print(line: &str) {
    let _gone = writeln!(std::io::stdout().lock(), "{line}");
}

impl Watcher for Lines {
    fn phase(&self, text: &str) {
        print(text);
    }

    fn every(&self) -> Option<Duration> {
        Some(self.every)
    }

    fn begins(&self, place: &Place) {
        print(&format!("{}, {} left", heading(place), clock(left(place, Duration::ZERO))));
    }

    fn interval(&self, place: &Place, interval: &Interval) {
        print(&line(place, interval));
    }

    fn ended(&self, experiment: &Experiment, run: &Run) {
        print(&summary(experiment, run));
    }
}

fn line(place: &Place, interval: &Interval) -> String {
    let each = |count| interval.each_second(count);
    let statements = interval.statements;
    let mut line = format!(
        "[ {}s ] thds: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,95%): {:.2} \
         err/s: {:.2} reconn/s: {:.2}",
        interval.end.as_secs(),
        place.clients,
        each(interval.completed),
        each(statements.total()),
        each(statements.reads),
        each(statements.writes),
        each(statements.others),
        millis(interval, 0.95),
        each(interval.failed + interval.retried),
        each(interval.reconnected)
    );
    if interval.is_warm_up {
        line.push_str(" (warm-up)");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_line_is_the_one_of_sysbench() {
        let wanted = "[ 15s ] thds: 64 tps: 100.50 qps: 2020.00 (r/w/o: 1414.00/404.00/202.00) \
                      lat (ms,95%): 5.00 err/s: 0.50 reconn/s: 0.10";
        assert_eq!(line(&sample::place(), &sample::interval()), wanted);
    }
}
