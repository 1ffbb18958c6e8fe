//! `cargo xtask bench limit`: how far a statement is from a server that answers with a constant,
//! and whether throughput and latency stay up to 4,096 connections.

use super::Plan;
use super::load::{Figures, Load, in_turn};
use super::report::{Limits, Spread};
use super::subject::{Built, Subject};
use crate::Outcome;
use std::path::Path;

/// Statements; the first is also compared with the constant's CPU.
const WORKLOADS: [(&str, &str); 2] = [
    ("point_select", "SELECT c FROM sbtest{table} WHERE id={id}"),
    ("update_non_index", "UPDATE sbtest{table} SET c={c} WHERE id={id}"),
];
const CLIENTS: [u32; 5] = [8, 64, 256, 1024, 4096];
const QUICK_CLIENTS: [u32; 3] = [8, 64, 512];
/// CPU that a point select may cost more than the constant, in microseconds.
const ABOVE_LIMIT_US: f64 = 4.0;
/// Throughput at the most clients, against the best.
const KEPT: f64 = 0.9;
/// 95th percentile against clients / throughput.
const P95_RATIO: f64 = 1.5;

/// Medians of a cell's runs.
struct Cell {
    cpu_us: f64,
    per_second: f64,
    p95_us: f64,
}

/// Runs all cells.
pub fn run(plan: &Plan) -> Outcome {
    let built = Built::build()?;
    let mut subjects = vec![built.constant()?, built.gannet("1G")?];
    if let Some(binary) = plan.arguments.value("--before") {
        subjects.push(built.before(Path::new(binary), "1G")?);
    } else if !plan.arguments.has("--gannet-only") {
        subjects.push(built.mariadb("1G", false)?);
        subjects.push(built.mariadb("1G", true)?);
    }
    for subject in &subjects[1..] {
        subject.fill(plan)?;
    }
    let mut limits = Limits::default();
    for (name, sql) in WORKLOADS.into_iter().filter(|(name, _)| plan.chooses(name)) {
        workload(plan, name, sql, &subjects, &mut limits)?;
    }
    limits.finish()
}

fn workload(
    plan: &Plan,
    name: &str,
    sql: &str,
    subjects: &[Subject],
    limits: &mut Limits,
) -> Outcome {
    let clients = plan.clients(&QUICK_CLIENTS, &CLIENTS)?;
    // By subject, then by number of clients.
    let mut cells: Vec<Vec<Cell>> = subjects.iter().map(|_| Vec::new()).collect();
    println!("\n{name}, prepared, one client thread");
    for &count in &clients {
        let load = Load::new(plan, sql, count);
        let runs = in_turn(subjects.len(), plan.pairs, |place| load.run(&subjects[place]))?;
        for (place, runs) in runs.iter().enumerate() {
            print(&subjects[place], count, runs);
            cells[place].push(Cell {
                cpu_us: Spread::of(runs, Figures::cpu_us).median,
                per_second: Spread::of(runs, |f| f.per_second).median,
                p95_us: Spread::of(runs, |f| f.p95_us).median,
            });
        }
    }
    for (place, subject) in subjects.iter().enumerate().filter(|(place, _)| *place != 1) {
        let kept = kept(&cells[place]);
        println!("{} keeps {:.0} % of its best with the most clients", subject.name, kept * 100.0);
    }
    let (constant, gannet) = (&cells[0], &cells[1]);
    for (place, count) in clients.iter().enumerate() {
        let above = gannet[place].cpu_us - constant[place].cpu_us;
        if name == "point_select" {
            let what = format!("{name}, {count} clients: CPU above the constant, us");
            limits.at_most(&what, above, ABOVE_LIMIT_US);
        } else {
            println!("{name}, {count} clients: {above:.1} us of CPU above the constant");
        }
        let even_us = f64::from(*count) / gannet[place].per_second * 1e6;
        let what = format!("{name}, {count} clients: p95 / (clients / throughput)");
        let ratio = gannet[place].p95_us / even_us;
        match place + 1 == clients.len() {
            true => limits.at_most(&what, ratio, P95_RATIO),
            // With few clients it is the time slice of the kernel, which shares two cores among
            // three threads.
            false => println!("{what}: {ratio:.2}"),
        }
    }
    let most = clients.last().copied().unwrap_or_default();
    let what = format!("{name}: throughput at {most} clients / best");
    limits.at_least(&what, kept(gannet), KEPT);
    Ok(())
}

/// Throughput of the last cell against the best.
fn kept(cells: &[Cell]) -> f64 {
    let best = cells.iter().map(|cell| cell.per_second).fold(0.0, f64::max);
    cells.last().map_or(0.0, |cell| cell.per_second / best)
}

fn print(subject: &Subject, clients: u32, runs: &[Figures]) {
    let of = |figure: fn(&Figures) -> f64| Spread::of(runs, figure);
    println!(
        "{:12} {clients:5} clients: CPU us {} = user {:.1} + sys {:.1}; {}/s; p50 {:.0} p95 {:.0} \
         p99 {:.0} us; errors {:.0}; others {:.0} %",
        subject.name,
        of(Figures::cpu_us),
        of(|f| f.user_us).median,
        of(|f| f.system_us).median,
        of(|f| f.per_second),
        of(|f| f.p50_us).median,
        of(|f| f.p95_us).median,
        of(|f| f.p99_us).median,
        runs.iter().map(|f| f.errors).sum::<f64>(),
        of(|f| f.others_percent).median,
    );
}
