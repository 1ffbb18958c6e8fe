//! What a run found, from what the kernel tells of its processes.

use crate::account::{Figures, Sample, between};
use std::time::Duration;

/// Looks at the processes of a run of ours in its measured time; each costs the client some of its
/// processor.
const LOOKS: u32 = 8;

/// Of the measured time; looks at a border of it that are further apart say too little of it.
const APART_MAX: f64 = 0.25;

/// The time between two looks.
pub(super) fn between_looks(seconds: u64) -> Duration {
    Duration::from_secs(seconds.max(1)) / LOOKS
}

/// What one run found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    /// Transactions a second.
    pub per_second: f64,
    /// Microseconds of the server's processor time for each.
    pub server_micros: f64,
    /// Microseconds of the client's.
    pub client_micros: f64,
}

impl Found {
    /// Of the processor time of server and client, microseconds, for so many transactions.
    pub fn of(
        (server, client): (f64, f64),
        transactions: f64,
        seconds: f64,
    ) -> Result<Self, String> {
        let all = [("server", server), ("client", client), ("transactions", transactions)];
        if let Some((what, _)) = all.into_iter().find(|(_, value)| *value <= 0.0) {
            return Err(match what {
                "transactions" => "a run completed no transaction".to_string(),
                _ => format!("a run took no processor time of the {what}: it is too short"),
            });
        }
        Ok(Self {
            per_second: transactions / seconds.max(1e-9),
            server_micros: server / transactions,
            client_micros: client / transactions,
        })
    }
}

/// Processor time that a process used between two moments, microseconds.
pub(super) fn used(before: &Figures, after: &Figures) -> f64 {
    after.cpu_micros().saturating_sub(before.cpu_micros()) as f64
}

/// The same from second 0 to `seconds`, by a straight line between the looks at each border.
pub(super) fn used_between(
    samples: &[Sample],
    figures: impl Fn(&Sample) -> Option<Figures>,
    seconds: f64,
) -> Result<f64, String> {
    let point = |sample: &Sample| Some((sample.seconds, figures(sample)?.cpu_micros() as f64));
    let points: Option<Vec<(f64, f64)>> = samples.iter().map(point).collect();
    let points = points.ok_or("there is a look without the process")?;
    for border in [0.0, seconds] {
        let around = points.windows(2).find(|two| two[0].0 <= border && border <= two[1].0);
        let Some([before, after]) = around else {
            return Err(format!("nobody looked on both sides of second {border}"));
        };
        let apart = after.0 - before.0;
        if apart > APART_MAX * seconds {
            return Err(format!("around second {border} nobody looked for {apart:.2} s"));
        }
    }
    Ok(between(&points, 0.0, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64, user_micros: u64) -> Sample {
        let server = Some(Figures { user_micros, ..Figures::default() });
        Sample { seconds, server, ..Sample::default() }
    }

    fn server_used(samples: &[Sample], seconds: f64) -> Result<f64, String> {
        used_between(samples, |sample| sample.server, seconds)
    }

    #[test]
    fn what_was_used_is_shared_by_transactions() {
        let expected = Found { per_second: 50.0, server_micros: 10.0, client_micros: 5.0 };
        assert_eq!(Found::of((1000.0, 500.0), 100.0, 2.0), Ok(expected));
    }

    #[test]
    fn a_figure_that_is_missing_is_no_zero() {
        for (used, transactions, word) in [
            ((0.0, 500.0), 100.0, "server"),
            ((1000.0, 0.0), 100.0, "client"),
            ((1000.0, 500.0), 0.0, "transaction"),
        ] {
            let why = Found::of(used, transactions, 1.0).expect_err("incomplete");
            assert!(why.contains(word), "{why}");
        }
    }

    /// A second's run of which the warm-up used twice as much, looked at between the borders.
    #[test]
    fn a_second_is_counted_from_border_to_border() {
        let used = |seconds: f64| match seconds <= 0.0 {
            true => 1.6e6 * (seconds + 1.0),
            false => 1.6e6 + 0.8e6 * seconds,
        };
        let looks = (-9..12).map(|look| f64::from(look) * 0.1 + 0.03);
        let samples: Vec<Sample> = looks.map(|seconds| at(seconds, used(seconds) as u64)).collect();
        let found = server_used(&samples, 1.0).expect("seen");
        assert!((found / 0.8e6 - 1.0).abs() < 0.03, "{found}");
    }

    #[test]
    fn an_account_that_looked_too_seldom_is_an_error() {
        let samples = [at(-1.02, 0), at(-0.02, 700_000), at(0.98, 1_400_000), at(1.02, 1_400_000)];
        let why = server_used(&samples, 1.0).expect_err("a second apart");
        assert!(why.contains("for 1.00 s"), "{why}");
        let why = server_used(&samples[1..], 8.0).expect_err("not to the end");
        assert!(why.contains("second 8"), "{why}");
        let mut gone = samples;
        gone[2].server = None;
        assert!(server_used(&gone, 1.0).is_err());
    }
}
