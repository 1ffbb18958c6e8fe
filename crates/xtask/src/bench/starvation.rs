//! `cargo xtask bench starvation`: point reads beside clients that loop a heavy query.

use super::Plan;
use super::load::{Client, Figures, Load, in_turn};
use super::report::{Limits, Spread};
use super::subject::{Built, Subject};
use crate::Outcome;

const POINT: &str = "SELECT c FROM sbtest{table} WHERE id={id}";
/// Reads a whole table and sorts it.
const HEAVY: &str = "SELECT COUNT(*), SUM(k), MAX(x.c) FROM (SELECT k, c FROM sbtest{table} \
                     WHERE pad LIKE '%1%' ORDER BY c LIMIT 1000000) x";
const READERS: u32 = 16;
const LOOPERS: [u32; 4] = [1, 2, 4, 8];
const QUICK_LOOPERS: [u32; 2] = [1, 8];
/// The 99th percentile of the point reads, in microseconds.
const P99_US: f64 = 20_000.0;

/// Runs both servers in turn; the limit is Gannet's alone.
pub fn run(plan: &Plan) -> Outcome {
    let built = Built::build()?;
    let mut subjects = vec![built.gannet("1G")?];
    if !plan.arguments.has("--gannet-only") {
        subjects.push(built.mariadb("1G", false)?);
    }
    for subject in &subjects {
        subject.fill(plan)?;
    }
    let mut limits = Limits::default();
    for loopers in plan.clients(&QUICK_LOOPERS, &LOOPERS)? {
        let runs =
            in_turn(subjects.len(), plan.pairs, |place| beside(plan, &subjects[place], loopers))?;
        for (place, subject) in subjects.iter().enumerate() {
            let of = |figure: fn(&Figures) -> f64| Spread::of(&runs[place], figure);
            println!(
                "{:8} {READERS} readers beside {loopers} heavy: {}/s; p50 {:.0} p95 {:.0} us; \
                 p99 us {}; longest {:.0} us",
                subject.name,
                of(|f| f.per_second),
                of(|f| f.p50_us).median,
                of(|f| f.p95_us).median,
                of(|f| f.p99_us),
                of(|f| f.max_us).median,
            );
        }
        let p99 = Spread::of(&runs[0], |f| f.p99_us).median / 1000.0;
        let what = format!("p99 of point reads beside {loopers} heavy queries, ms");
        limits.at_most(&what, p99, P99_US / 1000.0);
    }
    limits.finish()
}

/// Point reads while the loopers run. What the loopers take is no disturbance: one run.
fn beside(plan: &Plan, subject: &Subject, loopers: u32) -> Result<Figures, String> {
    let heavy = Load {
        seconds: 2.0 * (plan.seconds + plan.warm_up) + 60.0,
        warm_up: 0.0,
        ..Load::new(plan, HEAVY, loopers)
    };
    let mut client = Client::start(&subject.tool, subject.server.port, &heavy.options())?;
    client.wait_for("measuring")?;
    Load::new(plan, POINT, READERS).run_once(subject)
}
