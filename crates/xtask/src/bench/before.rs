//! Two builds of the server in turn within a second: which costs less for a transaction.
//!
//! 1. Each server has a sysbench of its own, connected from first to last; one runs, the other is
//!    stopped. What neighbours take of the machine changes from second to second, and runs of
//!    several seconds scatter by more than what is to be told.
//! 2. A round is A B B A, the next one B A A B. A server's processor time is counted from a round's
//!    begin to its end, whosever turn it was: what it does later for what was asked (purge,
//!    flushing) is part of the price, and so is what it does unasked.
//! 3. A look comes when nothing is on its way: what a client had asked when it was stopped is
//!    answered first ([`QUIET`]). Transactions are those that the server counts.
//! 4. A figure is the median of the rounds' ratios with its 95 % interval. Only an interval that is
//!    narrow enough for the limit decides; a wide one holds nothing.

use super::Plan;
use super::report::Limits;
use super::subject::Subject;
use crate::Outcome;
use lab::machine::Used;
use lab::statistics::rounds::Ratio;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Stands above the figures.
pub const HEAD: &str = "gannet / before, in turn within a second: CPU per transaction, medians; \
    ratio (95 % interval)";

/// CPU per transaction against an earlier build's.
const CPU_BEFORE: f64 = 1.03;
/// An interval as wide as this, in parts of 1, decides nothing.
const WIDTH_MAX: f64 = 0.06;
/// Rounds, if nothing is said.
const ROUNDS: u64 = 24;
/// One turn.
const SLICE: Duration = Duration::from_millis(250);
/// How long a server has for what is asked already.
const QUIET: Duration = Duration::from_millis(10);

/// A client that is stopped but in its turn. It is killed when this goes.
struct Client {
    child: Child,
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    fn start(mut sysbench: Command) -> Result<Self, String> {
        // Until it is killed.
        sysbench.args(["--time=0", "--events=0", "--rand-type=uniform", "run"]);
        let child = sysbench.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        child.map(|child| Self { child }).map_err(|e| format!("sysbench: {e}"))
    }

    fn signal(&mut self, name: &str) -> Outcome {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("sysbench ended by itself: {status}"));
        }
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("kill {name}: {status}")),
            Err(error) => Err(format!("kill: {error}")),
        }
    }

    /// Lets it run for a while.
    fn turn(&mut self, length: Duration) -> Outcome {
        self.signal("-CONT")?;
        std::thread::sleep(length);
        self.signal("-STOP")
    }
}

/// What one round cost, of this build and of the earlier one.
pub struct Round([Cost; 2]);

#[derive(Clone, Copy)]
struct Cost {
    /// Microseconds of the server's processors for a transaction.
    cpu_us: f64,
    transactions: f64,
}

/// Plays the rounds of one cell: this build, and the earlier one.
pub fn measure(
    plan: &Plan,
    subjects: &[Subject; 2],
    clients: [Command; 2],
    counter: &str,
) -> Result<Vec<Round>, String> {
    let count = |subject: &Subject| subject.status(counter);
    let mut started = Vec::new();
    for client in clients {
        let mut client = Client::start(client)?;
        std::thread::sleep(Duration::from_secs_f64(plan.warm_up));
        client.signal("-STOP")?;
        started.push(client);
    }
    let count_of_rounds = plan.arguments.number("--rounds", ROUNDS)?;
    let mut rounds = Vec::new();
    for round in 0..count_of_rounds {
        let first = (round % 2) as usize;
        let mut used = Vec::new();
        for subject in subjects {
            used.push((count(subject)?, Used::of(subject.server.id())?));
        }
        for place in [first, 1 - first, 1 - first, first] {
            started[place].turn(SLICE)?;
            std::thread::sleep(QUIET);
        }
        let mut costs = [Cost { cpu_us: 0.0, transactions: 0.0 }; 2];
        for ((cost, subject), (counted, before)) in costs.iter_mut().zip(subjects).zip(used) {
            let micros = Used::of(subject.server.id())?.since(&before) as f64 / 1e3;
            let transactions = count(subject)? - counted;
            if transactions < 1.0 {
                return Err(format!("{}: no transaction in a round", subject.name));
            }
            *cost = Cost { cpu_us: micros / transactions, transactions };
        }
        rounds.push(Round(costs));
    }
    Ok(rounds)
}

/// Prints a cell and holds it to the limit.
pub fn judge(name: &str, rounds: &[Round], limits: &mut Limits) {
    let of = |figure: fn(&Cost) -> f64| {
        let ratio = |round: &Round| figure(&round.0[0]) / figure(&round.0[1]);
        Ratio::of(rounds.iter().map(ratio).collect())
    };
    let middle = |place: usize| {
        let figures: Vec<f64> = rounds.iter().map(|round| round.0[place].cpu_us).collect();
        lab::statistics::median(&figures)
    };
    let cpu = of(|cost| cost.cpu_us);
    println!(
        "{name:36} CPU us {:.1} / {:.1} = {cpu}; transactions {}",
        middle(0),
        middle(1),
        of(|cost| cost.transactions)
    );
    let what = format!("{name}: CPU / before");
    match cpu.high - cpu.low <= WIDTH_MAX {
        true => limits.at_most(&what, cpu.median, CPU_BEFORE),
        false => limits.at_most(&format!("{what}, upper end"), cpu.high, CPU_BEFORE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ratios: &[f64]) -> Outcome {
        let cost = |cpu_us| Cost { cpu_us, transactions: 100.0 };
        let rounds: Vec<Round> =
            ratios.iter().map(|ratio| Round([cost(10.0 * ratio), cost(10.0)])).collect();
        let mut limits = Limits::default();
        judge("x", &rounds, &mut limits);
        limits.finish()
    }

    #[test]
    fn the_median_is_held_to_the_limit_where_it_is_known_well_enough() {
        let narrow = |middle: f64| [middle - 0.01, middle, middle + 0.01].repeat(4);
        assert!(verdict(&narrow(1.02)).is_ok());
        assert!(verdict(&narrow(1.04)).is_err());
    }

    #[test]
    fn a_wide_interval_does_not_pass() {
        assert!(verdict(&[0.8, 1.2].repeat(6)).is_err());
        assert!(verdict(&[0.7, 0.9].repeat(6)).is_ok(), "wide, and all of it below");
        assert!(verdict(&[1.0]).is_err(), "one round has no interval");
    }

    #[test]
    fn a_client_runs_in_its_turn_only() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        let mut client = Client { child: command.spawn().expect("a shell") };
        let id = client.child.id();
        client.signal("-STOP").expect("ours");
        std::thread::sleep(QUIET);
        let before = Used::of(id).expect("the kernel tells");
        std::thread::sleep(Duration::from_millis(50));
        // On a busy machine the kernel may count the last bit of its turn late.
        assert!(Used::of(id).expect("the kernel tells").since(&before) < 1_000_000);
        client.turn(Duration::from_millis(100)).expect("ours");
        assert!(Used::of(id).expect("the kernel tells").since(&before) > 1_000_000);
        client.child.kill().expect("ours");
        client.child.wait().expect("ours");
        assert!(client.turn(QUIET).is_err(), "one that has ended is told");
    }
}
