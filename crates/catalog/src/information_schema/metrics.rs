//! INNODB_METRICS: see monitor.rs.

use super::VirtualType::{BigInt, Char, DateTime, Float, Int, Varchar};
use super::columns::{optional, required};
use super::innodb::check_privilege;
use super::{Row, Scope, VirtualColumn};
use crate::Result;
use crate::monitor::{self, Metric, MetricDefinition, MetricKind};
use types::{Timestamp, Value};

pub(super) const INNODB_METRICS: &[VirtualColumn] = &[
    required("NAME", Varchar(193)),
    required("SUBSYSTEM", Varchar(193)),
    required("COUNT", BigInt(21)),
    optional("MAX_COUNT", BigInt(21)),
    optional("MIN_COUNT", BigInt(21)),
    optional("AVG_COUNT", Float),
    required("COUNT_RESET", BigInt(21)),
    optional("MAX_COUNT_RESET", BigInt(21)),
    optional("MIN_COUNT_RESET", BigInt(21)),
    optional("AVG_COUNT_RESET", Float),
    optional("TIME_ENABLED", DateTime(0)),
    optional("TIME_DISABLED", DateTime(0)),
    optional("TIME_ELAPSED", BigInt(21)),
    optional("TIME_RESET", DateTime(0)),
    required("ENABLED", Int(1)),
    required("TYPE", Char(14)),
    required("COMMENT", Varchar(193)),
];

/// Whole seconds, as MariaDB's.
fn time(scope: &Scope<'_>, micros: Option<i64>) -> Value {
    micros.map_or(Value::Null, |micros| {
        let second = micros.div_euclid(1_000_000) * 1_000_000;
        Value::DateTime(scope.session.time_zone().to_local(Timestamp(second)))
    })
}

/// A second's share of what a counter has counted; a value has none.
fn average(kind: MetricKind, count: i64, seconds: Option<f64>) -> Value {
    match seconds {
        Some(seconds) if kind != MetricKind::Value && seconds > 0.0 => {
            Value::Float((count as f64 / seconds) as f32)
        }
        _ => Value::Null,
    }
}

fn row(scope: &Scope<'_>, definition: &MetricDefinition, metric: &Metric, now: i64) -> Row {
    let optional = |count: Option<i64>| count.map_or(Value::Null, Value::Int);
    let elapsed = metric.elapsed_seconds(now);
    let since_reset = metric.reset_at.map(|reset| {
        let end = metric.disabled_at.unwrap_or(now);
        (end - reset.max(metric.enabled_at.unwrap_or(reset))).max(0) as f64 / 1e6
    });
    vec![
        Value::text(definition.name),
        Value::text(definition.subsystem),
        Value::Int(metric.count),
        optional(metric.bounds.max),
        optional(metric.bounds.min),
        average(definition.kind, metric.count, elapsed),
        Value::Int(metric.count_since_reset),
        optional(metric.bounds_since_reset.max),
        optional(metric.bounds_since_reset.min),
        average(definition.kind, metric.count_since_reset, since_reset),
        time(scope, metric.enabled_at),
        time(scope, metric.disabled_at),
        elapsed.map_or(Value::Null, |seconds| Value::Int(seconds as i64)),
        time(scope, metric.reset_at),
        Value::Int(i64::from(metric.is_on)),
        Value::text(definition.kind.word()),
        Value::text(definition.comment),
    ]
}

pub(super) fn rows(scope: &Scope<'_>) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let metrics = scope.catalog.monitor().look(&**scope.catalog.engine());
    let now = scope.session.wall_clock_micros();
    let all = monitor::definitions().iter().zip(&metrics);
    Ok(all.map(|(definition, metric)| row(scope, definition, metric, now)).collect())
}
