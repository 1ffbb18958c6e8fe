//! Lines of JSON, for programs.

use super::millis;
use crate::driver::Interval;
use crate::experiment::{Place, Watcher};
use crate::results::{Experiment, Run};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

/// An object a line; `event` says what it is about: `phase`, `begin`, `interval`, `run`.
pub struct Json {
    every: Duration,
}

impl Json {
    /// With so much time between two intervals.
    pub fn new(every: Duration) -> Self {
        Self { every }
    }
}

fn print(value: &Value) {
    let _gone = writeln!(std::io::stdout().lock(), "{value}");
}

impl Watcher for Json {
    fn phase(&self, text: &str) {
        print(&json!({"event": "phase", "text": text}));
    }

    fn every(&self) -> Option<Duration> {
        Some(self.every)
    }

    fn begins(&self, place: &Place) {
        print(&json!({
            "event": "begin", "subject": place.name, "clients": place.clients,
            "rate": place.rate, "round": place.round + 1,
            "run": place.runs.0 + 1, "runs": place.runs.1,
        }));
    }

    fn interval(&self, place: &Place, interval: &Interval) {
        print(&object(place, interval));
    }

    fn ended(&self, experiment: &Experiment, run: &Run) {
        print(&json!({
            "event": "run", "subject": experiment.subjects[run.subject].name,
            "clients": run.clients, "rate": run.rate, "round": run.round + 1,
            "operations_per_second": run.throughput(),
            "p50_us": run.micros[0], "p95_us": run.micros[1], "p99_us": run.micros[2],
            "p999_us": run.micros[3], "max_us": run.micros[4],
            "client_limited": run.is_client_limited(), "given_up": run.given_up,
        }));
    }
}

fn object(place: &Place, interval: &Interval) -> Value {
    json!({
        "event": "interval", "subject": place.name, "clients": place.clients,
        "second": interval.end.as_secs_f64(), "warm_up": interval.is_warm_up,
        "tps": interval.each_second(interval.completed),
        "qps": interval.each_second(interval.statements.total()),
        "p95_ms": millis(interval, 0.95), "max_ms": millis(interval, 1.0),
        "failed": interval.failed, "retried": interval.retried,
        "reconnected": interval.reconnected,
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn an_interval_is_an_object() {
        let value = object(&sample::place(), &sample::interval());
        assert_eq!((value["tps"].as_f64(), value["failed"].as_u64()), (Some(100.5), Some(5)));
        assert_eq!(value["subject"], "B");
    }
}
