//! Reports: one HTML file without anything from elsewhere, and a summary in Markdown.
//!
//! 1. Everything in a report is computed from [`Experiment`], so that it can be made again.
//! 2. A ratio is shown with its interval, or called what it is: a guess from too few runs.
//! 3. What voids a comparison stands above it, in red: unequal durability or memory, a driver
//!    without processor to spare, a run that ended early, data that break their rules.

mod charts;
mod html;
mod markdown;
pub mod svg;
mod tables;

pub use html::html;
pub use markdown::markdown;

use crate::results::Experiment;
use crate::statistics::ratio::{Ratio, compare};
use crate::statistics::steady::Verdict;
use std::collections::BTreeMap;

/// What B achieved over A with so many clients.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Clients.
    pub clients: u32,
    /// Of operations a second.
    pub throughput: Ratio,
    /// Of the 95th percentile of latency.
    pub latency: Ratio,
    /// Of processor time per operation, where it is known.
    pub cpu: Option<Ratio>,
}

/// All cells of two servers.
pub fn comparisons(experiment: &Experiment) -> Vec<Comparison> {
    if experiment.servers.len() != 2 {
        return Vec::new();
    }
    let of_cell = |clients: u32| {
        let [a, b] = [0, 1].map(|server| experiment.cell(server, clients));
        let ratio = |of: &dyn Fn(&crate::results::Run) -> f64| {
            let values =
                |runs: &[&crate::results::Run]| runs.iter().map(|r| of(r)).collect::<Vec<_>>();
            compare(&values(&a), &values(&b), experiment.seed)
        };
        let is_known = a.iter().chain(&b).all(|run| run.server_cost.is_some());
        let cpu = |run: &crate::results::Run| {
            run.server_cost.map_or(f64::NAN, |cost| cost.cpu_micros().max(1e-3))
        };
        Comparison {
            clients,
            throughput: ratio(&|run| run.throughput().max(1e-9)),
            latency: ratio(&|run| run.micros[1].max(1) as f64),
            cpu: is_known.then(|| ratio(&cpu)),
        }
    };
    experiment.client_counts().into_iter().map(of_cell).collect()
}

/// Variables that must be equal for figures to be compared.
const PARITY: [&str; 22] = [
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "log_bin",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_io_capacity",
    "innodb_compression_default",
    "innodb_compression_algorithm",
    "innodb_snapshot_isolation",
    "transaction_isolation",
    "tx_isolation",
    "autocommit",
    "sql_mode",
    "character_set_server",
    "collation_server",
    "have_ssl",
    "max_connections",
    "thread_handling",
    "performance_schema",
];
/// Those of them without which a comparison says nothing.
const VITAL: [&str; 4] =
    ["innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_buffer_pool_size"];

/// Variables of two servers side by side: name, value of A, value of B, whether they are equal,
/// whether it voids the comparison if they are not.
pub fn parity(experiment: &Experiment) -> Vec<(&'static str, String, String, bool, bool)> {
    let [a, b] = experiment.servers.as_slice() else { return Vec::new() };
    let value = |variables: &BTreeMap<String, String>, name: &str| {
        variables.get(name).cloned().unwrap_or_else(|| "–".into())
    };
    PARITY
        .into_iter()
        .map(|name| {
            let (a, b) = (value(&a.variables, name), value(&b.variables, name));
            let is_equal = a.eq_ignore_ascii_case(&b);
            (name, a, b, is_equal, VITAL.contains(&name))
        })
        .filter(|(_, a, b, ..)| a != "–" || b != "–")
        .collect()
}

/// What a reader must know before any figure.
pub fn warnings(experiment: &Experiment) -> Vec<String> {
    let mut found = Vec::new();
    for (name, a, b, is_equal, is_vital) in parity(experiment) {
        if !is_equal && is_vital {
            found.push(format!("the servers differ in {name}: {a} and {b}"));
        }
    }
    for (number, server) in experiment.servers.iter().enumerate() {
        let name = &server.name;
        let runs: Vec<_> = experiment.runs.iter().filter(|run| run.server == number).collect();
        for run in runs.iter().filter(|run| run.given_up.is_some()) {
            let why = run.given_up.as_deref().unwrap_or_default();
            found.push(format!("{name}, {} clients: ended early: {why}", run.clients));
        }
        let limited = runs.iter().filter(|run| run.is_client_limited()).count();
        if limited > 0 {
            found.push(format!(
                "{name}: in {limited} of {} runs the driver used more than 70 % of its processor: \
                 the server may be faster than shown",
                runs.len()
            ));
        }
        let unsteady = runs.iter().filter(|run| run.trend().verdict == Verdict::NotSteady).count();
        if unsteady > 0 {
            found.push(format!("{name}: {unsteady} of {} runs were not steady", runs.len()));
        }
        for broken in server.violations.iter().flatten() {
            found.push(format!("{name}: FAILED: {}: {} rows", broken.rule, broken.rows));
        }
    }
    found
}
