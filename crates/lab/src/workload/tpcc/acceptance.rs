//! What TPC-C asks of a run: new orders per minute, the mix (clause 5.2.3), and response times of
//! nine in ten transactions (clause 5.2.5.7).

use super::requests::NAMES;
use crate::driver::Operation;
use crate::workload::Finding;
use std::time::Duration;

/// A transaction's least share in percent, and the longest response time of nine in ten in
/// seconds. New-Orders are the rest.
const LIMITS: [(&str, Option<f64>, u64); 5] = [
    ("new_order", None, 5),
    ("payment", Some(43.0), 5),
    ("order_status", Some(4.0), 5),
    ("delivery", Some(4.0), 80),
    ("stock_level", Some(4.0), 20),
];
/// Shares are those of a deck, and a run ends anywhere in it: so many deviations may be missing.
const DEVIATIONS: f64 = 3.0;
/// The share of transactions that must be in time.
const IN_TIME: f64 = 0.9;

/// By how much a share of so many draws may be off, in percent.
fn tolerance(percent: f64, draws: u64) -> f64 {
    DEVIATIONS * (percent * (100.0 - percent) / draws.max(1) as f64).sqrt()
}

/// Everything that is to be said. `operations` are those of [`NAMES`].
pub(super) fn findings(operations: &[Operation], measured: Duration) -> Vec<Finding> {
    let number = |name: &str| NAMES.iter().position(|known| *known == name);
    let named = |name: &str| operations.get(number(name)?);
    let completed = |name: &str| named(name).map_or(0, |operation| operation.latency.len());
    let rolled_back = completed(NAMES[5]);
    let all: u64 = NAMES.iter().map(|name| completed(name)).sum();
    let minutes = measured.as_secs_f64() / 60.0;
    let per_minute = |count: u64| count as f64 / minutes.max(1e-9);
    let orders = completed(NAMES[0]);
    let mut found = vec![
        Finding::figure("NOPM", format!("{:.0} new orders a minute", per_minute(orders))),
        Finding::figure(
            "NOPM with those rolled back",
            format!("{:.0} new orders a minute", per_minute(orders + rolled_back)),
        ),
        Finding::figure("TPM", format!("{:.0} transactions a minute", per_minute(all))),
    ];
    for (name, least, seconds) in LIMITS {
        let count = completed(name);
        let share = count as f64 * 100.0 / all.max(1) as f64;
        if let Some(least) = least {
            found.push(Finding {
                name: format!("share of {name}"),
                found: format!("{share:.2} %"),
                wanted: format!("at least {least} %"),
                met: share >= least - tolerance(least, all),
            });
        }
        let Some(operation) = named(name).filter(|_| count > 0) else { continue };
        let late = count - operation.latency.count_between(0, seconds * 1_000_000);
        let in_time = 1.0 - late as f64 / count as f64;
        found.push(Finding {
            name: format!("{name} within {seconds} s"),
            found: format!("{:.2} %, {late} late", in_time * 100.0),
            wanted: format!("at least {:.0} %", IN_TIME * 100.0),
            met: in_time >= IN_TIME,
        });
    }
    found
}
