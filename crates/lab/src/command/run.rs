//! `gannet-lab run`

use super::workload::Choice;
use super::{Outcome, Server};
use crate::driver::session::Protocol;
use crate::driver::{self, Load, Measured, OnConflict, Plan};
use crate::schedule::Arrivals;
use crate::statistics::stall::Stalls;
use crate::statistics::steady::{Verdict, trend};
use clap::Args;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    server: Server,
    /// Clients at the same time.
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// Seconds that are measured.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seconds before, that are not.
    #[arg(long, default_value_t = 5)]
    warm_up: u64,
    /// Operations a second of all clients together, by a schedule that does not wait for answers;
    /// without it each client begins as soon as it is answered.
    #[arg(long)]
    rate: Option<f64>,
    /// Equal gaps in place of independent arrivals.
    #[arg(long)]
    uniform: bool,
    /// Statements as text; they are prepared otherwise.
    #[arg(long)]
    text: bool,
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    let workload = arguments.choice.workload();
    let arrivals = if arguments.uniform { Arrivals::Uniform } else { Arrivals::Poisson };
    let load = match arguments.rate {
        Some(rate) if rate > 0.0 => Load::Open { arrivals, rate_per_second: rate },
        Some(_) => return Err("--rate must be above 0".into()),
        None => Load::Closed,
    };
    let plan = Plan {
        target: arguments.server.dsn,
        protocol: if arguments.text { Protocol::Text } else { Protocol::Prepared },
        clients: arguments.clients,
        load,
        warm_up: Duration::from_secs(arguments.warm_up),
        measured: Duration::from_secs(arguments.seconds),
        on_conflict: OnConflict::Retry,
        seed: arguments.choice.seed,
    };
    let measured = driver::run(&*workload, plan).map_err(|failure| failure.to_string())?;
    print(&measured);
    match measured.given_up {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

fn print(measured: &Measured) {
    let record = &measured.record;
    let per_second = record.completed_per_second();
    let total: u64 = per_second.iter().sum();
    let latency = record.latency();
    let millis = |share: f64| latency.value_at_quantile(share) as f64 / 1000.0;
    println!("operations: {total} ({:.1}/s)", total as f64 / per_second.len().max(1) as f64);
    println!(
        "latency ms: p50 {:.3} p95 {:.3} p99 {:.3} p99.9 {:.3} max {:.3}",
        millis(0.5),
        millis(0.95),
        millis(0.99),
        millis(0.999),
        millis(1.0)
    );
    for operation in &record.operations {
        let micros = |share: f64| operation.latency.value_at_quantile(share);
        println!(
            "  {:24} {:10} ok {:8} failed {:8} retried, us: p50 {} p95 {} p99 {} max {}",
            operation.name,
            operation.latency.len(),
            operation.failed,
            operation.retried,
            micros(0.5),
            micros(0.95),
            micros(0.99),
            micros(1.0)
        );
    }
    for ((number, state), count) in &record.errors {
        println!("  error {number} ({state}): {count}");
    }
    let stalls = Stalls::of(&per_second);
    println!(
        "stalls: {} of {} s below half of the median, the longest {} s, {} s without any",
        stalls.below_half, stalls.intervals, stalls.longest, stalls.empty
    );
    let trend = trend(&per_second);
    let change = trend.change * 100.0;
    match trend.verdict {
        Verdict::Steady => println!("trend: {change:+.1} % over the measured time: steady"),
        Verdict::NotSteady => println!("trend: {change:+.1} % over the measured time: NOT STEADY"),
        Verdict::TooShort => println!("trend: too short a run to tell"),
    }
}
