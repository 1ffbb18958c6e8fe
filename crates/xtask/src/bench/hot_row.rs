//! `cargo xtask bench hot-row`: many clients update one row, each in a transaction of its own.

use super::Plan;
use super::load::{Figures, Load, in_turn};
use super::report::{Limits, Spread};
use super::subject::Built;
use crate::Outcome;

const SQL: &str = "UPDATE sbtest1 SET k=k+1 WHERE id=1";
const CLIENTS: [u32; 1] = [64];
/// Rate against MariaDB's.
const RATIO: f64 = 3.0;

/// Runs both servers in turn.
pub fn run(plan: &Plan) -> Outcome {
    let built = Built::build()?;
    let subjects = [built.gannet("1G")?, built.mariadb("1G", false)?];
    let small = Plan { tables: 1, rows: 1000, ..plan.like() };
    for subject in &subjects {
        subject.fill(&small)?;
    }
    let mut limits = Limits::default();
    for clients in plan.clients(&CLIENTS, &CLIENTS)? {
        let load = Load::new(&small, SQL, clients);
        let before = rows_updated(&subjects)?;
        let runs = in_turn(2, plan.pairs, |place| load.run(&subjects[place]))?;
        for (place, subject) in subjects.iter().enumerate() {
            let of = |figure: fn(&Figures) -> f64| Spread::of(&runs[place], figure);
            println!(
                "{:8} {clients} clients: {}/s; CPU us {}; p50 {:.0} p95 {:.0} p99 {:.0} us; \
                 errors {:.0}",
                subject.name,
                of(|f| f.per_second),
                of(Figures::cpu_us),
                of(|f| f.p50_us).median,
                of(|f| f.p95_us).median,
                of(|f| f.p99_us).median,
                runs[place].iter().map(|f| f.errors).sum::<f64>(),
            );
        }
        let counted = rows_updated(&subjects)?;
        if (0..2).any(|place| counted[place] <= before[place]) {
            return Err("the row was not updated".to_string());
        }
        let rate = |place: usize| Spread::of(&runs[place], |f| f.per_second).median;
        let what = format!("one row, {clients} clients: rate / MariaDB's");
        limits.at_least(&what, rate(0) / rate(1), RATIO);
    }
    limits.finish()
}

/// The row's counter on each server.
fn rows_updated(subjects: &[super::subject::Subject]) -> Result<Vec<f64>, String> {
    subjects.iter().map(|subject| subject.number("SELECT k FROM sbtest1 WHERE id=1")).collect()
}
