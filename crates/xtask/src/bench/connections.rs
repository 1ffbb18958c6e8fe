//! `cargo xtask bench connections`: resident memory of idle connections, and of active ones with
//! prepared statements.

use super::Plan;
use super::cpu;
use super::load::{Client, Load};
use super::report::Limits;
use super::subject::{Built, Subject};
use crate::Outcome;
use std::time::Duration;

const IDLE: u32 = 8000;
const QUICK_IDLE: u32 = 1000;
const ACTIVE: u32 = 4096;
const QUICK_ACTIVE: u32 = 256;
/// Prepared statements of an active connection.
const STATEMENTS: u32 = 8;
/// Buffer pool, small so that it does not hide the rest.
const POOL: &str = "128M";
const POOL_MB: f64 = 128.0;
const IDLE_KB: f64 = 16.0;
const ACTIVE_MB: f64 = 400.0;
const SQL: &str = "SELECT c FROM sbtest{table} WHERE id={id}";
/// Until what logging in used is given back.
const SETTLE: Duration = Duration::from_secs(3);

/// Measures one server after the other.
pub fn run(plan: &Plan) -> Outcome {
    let built = Built::build()?;
    let plan = &Plan { rows: 10_000, ..plan.like() };
    let mut limits = Limits::default();
    let gannet = measure(plan, &built.gannet(POOL)?)?;
    if !plan.arguments.has("--gannet-only") {
        measure(plan, &built.mariadb(POOL, false)?)?;
    }
    limits.at_most("resident memory of an idle connection, KiB", gannet.0, IDLE_KB);
    let what = "resident memory with active connections beyond the pool, MB";
    limits.at_most(what, gannet.1, ACTIVE_MB);
    limits.finish()
}

/// KiB of an idle connection; MB beyond the pool with active ones.
fn measure(plan: &Plan, subject: &Subject) -> Result<(f64, f64), String> {
    subject.fill(plan)?;
    let (idle, active) = if plan.is_quick { (QUICK_IDLE, QUICK_ACTIVE) } else { (IDLE, ACTIVE) };
    let id = subject.server.id();
    let load = Load::new(plan, SQL, 8);
    load.run_once(subject)?;
    let before = cpu::resident_kb(id)?;
    let mut words = Load { connections: idle, ..load.clone() }.options();
    words.push("--idle".to_string());
    let mut client = Client::start(&subject.tool, subject.server.port, &words)?;
    client.wait_for("connected")?;
    std::thread::sleep(SETTLE);
    let each = (cpu::resident_kb(id)? - before) / f64::from(idle);
    drop(client);
    std::thread::sleep(SETTLE);
    println!(
        "{:8} {idle} idle connections: {each:.1} KiB each (resident before them {:.0} MB)",
        subject.name,
        before / 1024.0
    );
    let load = Load { connections: active, statements: STATEMENTS, ..load };
    let figures = load.run_once(subject)?;
    let beyond = figures.resident_kb / 1024.0 - POOL_MB;
    println!(
        "{:8} {active} active connections with {STATEMENTS} prepared statements each: {:.0} MB \
         resident with a pool of {POOL}; {:.0} statements/s, errors {:.0}",
        subject.name,
        figures.resident_kb / 1024.0,
        figures.per_second,
        figures.errors
    );
    Ok((each, beyond))
}
