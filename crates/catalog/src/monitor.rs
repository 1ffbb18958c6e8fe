//! The metrics of INNODB_METRICS: which there are, which are on, and since when.
//!
//! A row of `data/innodb_metrics.tsv` has, separated by tabs: the name, which is MariaDB's where
//! the meaning is the same; the subsystem; the module, by which several are switched at once; the
//! type; whether it is on from the start; where the number comes from (a status variable of the
//! engine, or a metric of the registry in `base`); a comment.
//!
//! 1. All numbers are counted anyway. A metric that is on remembers what they were when it was
//!    switched on, and costs nothing between two looks.
//! 2. COUNT of a counter is what was counted while it was on, in all periods together. COUNT of a
//!    value is the value, or the last one while it was on.
//! 3. MAX_COUNT and MIN_COUNT are of the looks there were: reads of the table and changes here.
//! 4. A reset begins the columns that end with RESET anew. A reset of all begins everything anew,
//!    as if the metric had never been on; only one that is off can be reset so.

use crate::Catalog;
use engine_api::Engine;
use runtime::sync::Mutex;
use std::sync::OnceLock;

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Grows.
    Counter,
    /// Grows, and is a status variable in MariaDB as well.
    StatusCounter,
    /// Goes up and down.
    Value,
}

impl MetricKind {
    /// The word in the column TYPE.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::StatusCounter => "status_counter",
            Self::Value => "value",
        }
    }
}

/// What is known of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricDefinition {
    /// Name.
    pub name: &'static str,
    /// Part of the engine.
    pub subsystem: &'static str,
    /// Name for all metrics of a part.
    module: &'static str,
    /// Type.
    pub kind: MetricKind,
    is_on_at_first: bool,
    /// Name of the number.
    source: &'static str,
    /// What it tells.
    pub comment: &'static str,
}

fn parse(line: &'static str) -> Option<MetricDefinition> {
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    Some(MetricDefinition {
        name: next()?,
        subsystem: next()?,
        module: next()?,
        kind: match next()? {
            "counter" => MetricKind::Counter,
            "status_counter" => MetricKind::StatusCounter,
            "value" => MetricKind::Value,
            _ => return None,
        },
        is_on_at_first: next()? == "on",
        source: next()?,
        comment: next()?,
    })
}

/// All metrics in the order of the table.
pub fn definitions() -> &'static [MetricDefinition] {
    static ALL: OnceLock<Vec<MetricDefinition>> = OnceLock::new();
    ALL.get_or_init(|| {
        let lines = include_str!("../data/innodb_metrics.tsv").lines();
        lines.filter(|line| !line.starts_with('#')).filter_map(parse).collect()
    })
}

/// What `innodb_monitor_*` do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorChange {
    /// innodb_monitor_enable.
    Enable,
    /// innodb_monitor_disable.
    Disable,
    /// innodb_monitor_reset.
    Reset,
    /// innodb_monitor_reset_all.
    ResetAll,
}

/// Greatest and smallest count that was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Greatest.
    pub max: Option<i64>,
    /// Smallest.
    pub min: Option<i64>,
}

impl Bounds {
    fn add(&mut self, count: i64) {
        self.max = Some(self.max.map_or(count, |max| max.max(count)));
        self.min = Some(self.min.map_or(count, |min| min.min(count)));
    }
}

/// A metric at a look. Times are microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metric {
    /// Whether it is on.
    pub is_on: bool,
    /// See invariant 2.
    pub count: i64,
    /// The same since the last reset.
    pub count_since_reset: i64,
    /// Of `count`.
    pub bounds: Bounds,
    /// Of `count_since_reset`.
    pub bounds_since_reset: Bounds,
    /// When it was switched on last.
    pub enabled_at: Option<i64>,
    /// When it was switched off last.
    pub disabled_at: Option<i64>,
    /// When it was reset last.
    pub reset_at: Option<i64>,
    /// The number when `count` was computed last.
    number: i64,
}

impl Metric {
    /// Brings the counts up to date.
    fn look(&mut self, kind: MetricKind, number: i64) {
        if !self.is_on {
            return;
        }
        let grown = number.saturating_sub(self.number);
        self.number = number;
        if kind == MetricKind::Value {
            (self.count, self.count_since_reset) = (number, number);
        } else {
            self.count += grown;
            self.count_since_reset += grown;
        }
        self.bounds.add(self.count);
        self.bounds_since_reset.add(self.count_since_reset);
    }

    fn change(&mut self, change: MonitorChange, kind: MetricKind, number: i64, now: i64) {
        self.look(kind, number);
        match change {
            MonitorChange::Enable if !self.is_on => {
                (self.is_on, self.number) = (true, number);
                (self.enabled_at, self.disabled_at) = (Some(now), None);
                self.look(kind, number);
            }
            MonitorChange::Disable if self.is_on => {
                (self.is_on, self.disabled_at) = (false, Some(now));
            }
            MonitorChange::Enable | MonitorChange::Disable => {}
            MonitorChange::Reset => {
                self.count_since_reset = 0;
                self.bounds_since_reset = Bounds::default();
                self.reset_at = Some(now);
            }
            MonitorChange::ResetAll if self.is_on => {}
            MonitorChange::ResetAll => *self = Metric::default(),
        }
    }

    /// Seconds for which it is on, or was before it was switched off.
    pub fn elapsed_seconds(&self, now: i64) -> Option<f64> {
        let end = self.disabled_at.unwrap_or(now);
        self.enabled_at.map(|begin| (end - begin).max(0) as f64 / 1e6)
    }
}

/// The metrics of a server.
#[derive(Debug)]
pub struct Monitor(Mutex<Vec<Metric>>);

impl Default for Monitor {
    /// All numbers count from zero, when the server starts.
    fn default() -> Self {
        let now = runtime::wall_clock_micros();
        let metric = |definition: &MetricDefinition| Metric {
            is_on: definition.is_on_at_first,
            enabled_at: definition.is_on_at_first.then_some(now),
            ..Metric::default()
        };
        Self(Mutex::new(definitions().iter().map(metric).collect()))
    }
}

/// The numbers that metrics come from.
struct Numbers(Vec<(&'static str, u64)>);

impl Numbers {
    fn get(&self, source: &str) -> i64 {
        let known = self.0.iter().find(|(name, _)| *name == source);
        match known {
            Some((_, number)) => i64::try_from(*number).unwrap_or(i64::MAX),
            // Nothing was counted yet.
            None => base::metrics::value(source).unwrap_or(0),
        }
    }
}

/// Positions of the metrics that a value of `innodb_monitor_*` names: a name, a module, `all`, or
/// a pattern with `%`. Empty if it names none.
pub fn named(text: &str) -> Vec<usize> {
    let text = text.to_ascii_lowercase();
    let is_meant = |definition: &MetricDefinition| {
        text == "all"
            || text == definition.module
            || text == definition.name
            || (text.contains('%') && is_like(definition.name.as_bytes(), text.as_bytes()))
    };
    let all = definitions().iter().enumerate();
    all.filter(|(_, definition)| is_meant(definition)).map(|(index, _)| index).collect()
}

/// LIKE with `%` and `_`.
fn is_like(name: &[u8], pattern: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'%', rest)) => (0..=name.len()).any(|skipped| is_like(&name[skipped..], rest)),
        Some((b'_', rest)) => name.split_first().is_some_and(|(_, name)| is_like(name, rest)),
        Some((byte, rest)) => {
            name.split_first().is_some_and(|(first, name)| first == byte && is_like(name, rest))
        }
    }
}

impl Catalog {
    /// The metrics of INNODB_METRICS.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }
}

impl Monitor {
    /// Changes the metrics at these positions. Those that are on are not reset entirely.
    pub fn change(&self, change: MonitorChange, positions: &[usize], engine: &dyn Engine) {
        let (numbers, now) = (Numbers(engine.status()), runtime::wall_clock_micros());
        let mut metrics = self.0.lock();
        for &position in positions {
            let definition = &definitions()[position];
            let number = numbers.get(definition.source);
            metrics[position].change(change, definition.kind, number, now);
        }
    }

    /// All metrics as they are now, in the order of [`definitions`].
    pub fn look(&self, engine: &dyn Engine) -> Vec<Metric> {
        let numbers = Numbers(engine.status());
        let mut metrics = self.0.lock();
        for (metric, definition) in metrics.iter_mut().zip(definitions()) {
            metric.look(definition.kind, numbers.get(definition.source));
        }
        metrics.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MonitorChange::{Disable, Enable, Reset, ResetAll};

    #[test]
    fn every_row_of_the_data_is_understood() {
        let rows = include_str!("../data/innodb_metrics.tsv").lines();
        assert_eq!(definitions().len(), rows.filter(|row| !row.starts_with('#')).count());
        let mut names: Vec<_> = definitions().iter().map(|definition| definition.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), definitions().len(), "names are different");
    }

    #[test]
    fn values_of_the_variables_name_metrics() {
        assert_eq!(named("all").len(), definitions().len());
        assert_eq!(named("Lock_Timeouts").len(), 1);
        assert_eq!(named("module_lock"), named("lock_%"));
        assert_eq!(named("%_timeouts"), named("lock_timeouts"));
        assert_eq!(named("lock_timeout_"), [0; 0], "without % it is a name");
        assert_eq!(named("nothing%"), [0; 0]);
        assert_eq!(named(""), [0; 0]);
    }

    #[test]
    fn a_counter_counts_while_it_is_on() {
        let mut metric = Metric::default();
        let kind = MetricKind::Counter;
        metric.look(kind, 100);
        assert_eq!((metric.count, metric.bounds), (0, Bounds::default()));
        metric.change(Enable, kind, 100, 1_000_000);
        metric.look(kind, 130);
        metric.change(Reset, kind, 140, 2_000_000);
        metric.look(kind, 145);
        assert_eq!((metric.count, metric.count_since_reset), (45, 5));
        assert_eq!(metric.elapsed_seconds(3_500_000), Some(2.5));
        metric.change(ResetAll, kind, 145, 4_000_000);
        assert_eq!(metric.count, 45, "it is on");
        metric.change(Disable, kind, 150, 5_000_000);
        metric.look(kind, 1000);
        assert_eq!((metric.count, metric.count_since_reset), (50, 10), "what came later is not");
        assert_eq!(metric.elapsed_seconds(9_000_000), Some(4.0));
        metric.change(Enable, kind, 1000, 6_000_000);
        metric.look(kind, 1001);
        assert_eq!(metric.count, 51, "periods add up");
        assert_eq!((metric.bounds.max, metric.bounds.min), (Some(51), Some(0)));
        metric.change(Disable, kind, 1001, 7_000_000);
        metric.change(ResetAll, kind, 1002, 8_000_000);
        assert_eq!(metric, Metric::default());
    }

    #[test]
    fn a_value_is_the_present_one() {
        let mut metric = Metric::default();
        let kind = MetricKind::Value;
        metric.change(Enable, kind, 70, 0);
        metric.look(kind, 20);
        metric.change(Reset, kind, 20, 0);
        metric.look(kind, 30);
        assert_eq!((metric.count, metric.count_since_reset), (30, 30));
        assert_eq!((metric.bounds.max, metric.bounds.min), (Some(70), Some(20)));
        assert_eq!(metric.bounds_since_reset, Bounds { max: Some(30), min: Some(30) });
        metric.change(Disable, kind, 40, 0);
        metric.look(kind, 99);
        assert_eq!(metric.count, 40, "the last one while it was on");
    }
}
