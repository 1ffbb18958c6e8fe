//! What was agreed on: a latency that a share of the operations keeps, and the rate that was asked.

use crate::driver::{Load, bucket_begin_micros};
use crate::results::{Finding, Run, Second};
use crate::schedule::Profile;
use std::str::FromStr;
use std::time::Duration;

/// A rate is kept when no more than this share of it is missing.
const MISSING_MAX: f64 = 0.01;

/// A latency that is not to be exceeded at a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sla {
    quantile: f64,
    millis: f64,
}

impl FromStr for Sla {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "p95=20 is wanted: a quantile and milliseconds";
        let (quantile, millis) = text.split_once('=').ok_or(form)?;
        let quantile = match quantile.trim() {
            "max" => 1.0,
            word => {
                let percent = word.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
                percent.filter(|p| *p > 0.0 && *p <= 100.0).ok_or(form)? / 100.0
            }
        };
        let millis = millis.trim().trim_end_matches("ms").parse::<f64>();
        let millis = millis.ok().filter(|millis| *millis > 0.0).ok_or(form)?;
        Ok(Self { quantile, millis })
    }
}

/// A latency of some seconds at a quantile, milliseconds; from coarse buckets, their upper ends.
fn latency(seconds: &[Second], quantile: f64) -> f64 {
    let mut counts = [0; 256];
    for (bucket, count) in seconds.iter().flat_map(|second| &second.buckets) {
        counts[usize::from(*bucket)] += count;
    }
    let total: u64 = counts.iter().sum();
    let wanted = (total as f64 * quantile).ceil() as u64;
    let mut sum = 0;
    let bucket = counts.iter().position(|count| {
        sum += count;
        sum >= wanted && *count > 0
    });
    let exact = seconds.iter().map(|second| second.micros[4]).max().unwrap_or(0) as f64;
    let end = bucket.map_or(0.0, |bucket| bucket_begin_micros(bucket as u8 + 1));
    end.min(exact) / 1000.0
}

/// Stretches of a profile: where a step begins and how long it is; the whole time for others.
fn stretches(profile: &Profile, measured: Duration) -> Vec<(u64, u64)> {
    let seconds = measured.as_secs();
    let mut begins: Vec<u64> = profile.steps_within(measured);
    begins.push(seconds);
    begins.windows(2).map(|pair| (pair[0], pair[1])).filter(|(from, to)| to > from).collect()
}

/// What is to be said of a run.
pub fn findings(run: &Run, load: &Load, measured: Duration, sla: Option<Sla>) -> Vec<Finding> {
    let profile = match load {
        Load::Closed => None,
        Load::Open { rate, .. } => Some(rate),
    };
    let whole = vec![(0, measured.as_secs())];
    let stretches = profile.map_or(whole, |profile| stretches(profile, measured));
    let mut found = Vec::new();
    for (from, to) in &stretches {
        let end = (*to as usize).min(run.seconds.len());
        let Some(seconds) = run.seconds.get(*from as usize..end).filter(|some| !some.is_empty())
        else {
            continue;
        };
        let of = |what: &str| match stretches.len() {
            1 => what.to_string(),
            _ => format!("{what}, seconds {from} to {to}"),
        };
        if let Some(profile) = profile {
            let asked = profile.mean(Duration::from_secs(*from), Duration::from_secs(*to));
            let done = seconds.iter().map(|second| second.completed).sum::<u64>() as f64
                / seconds.len() as f64;
            found.push(Finding {
                name: of("rate"),
                found: format!("{done:.1} operations/s"),
                wanted: format!("{asked:.1} operations/s"),
                met: done >= asked * (1.0 - MISSING_MAX),
            });
        }
        if let Some(Sla { quantile, millis }) = sla {
            let is = latency(seconds, quantile);
            found.push(Finding {
                name: of(&format!("latency of {} %", quantile * 100.0)),
                found: format!("{is:.2} ms"),
                wanted: format!("at most {millis} ms"),
                met: is <= millis,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::bucket_of;
    use crate::schedule::Arrivals;

    #[test]
    fn words() {
        assert_eq!("p95=20".parse(), Ok(Sla { quantile: 0.95, millis: 20.0 }));
        assert_eq!("max=1.5ms".parse(), Ok(Sla { quantile: 1.0, millis: 1.5 }));
        for text in ["p95", "95=20", "p95=0", "p0=1", "p101=1", "p95=x"] {
            assert!(text.parse::<Sla>().is_err(), "{text}");
        }
    }

    fn second(completed: u64, micros: u64) -> Second {
        let buckets = vec![(bucket_of(micros), completed)];
        Second { completed, micros: [micros; 5], buckets, ..Second::default() }
    }

    #[test]
    fn each_step_is_judged_by_itself() {
        let seconds = [vec![second(100, 5000); 5], vec![second(150, 40_000); 5]].concat();
        let run = Run { seconds, ..Run::default() };
        let rate = Profile::steps(&[100.0, 200.0], Duration::from_secs(5));
        let load = Load::Open { arrivals: Arrivals::Uniform, rate, per_client: false };
        let sla = "p95=20".parse().ok();
        let found = findings(&run, &load, Duration::from_secs(10), sla);
        let met: Vec<(&str, bool)> = found.iter().map(|f| (f.name.as_str(), f.met)).collect();
        assert_eq!(
            met,
            [
                ("rate, seconds 0 to 5", true),
                ("latency of 95 %, seconds 0 to 5", true),
                ("rate, seconds 5 to 10", false),
                ("latency of 95 %, seconds 5 to 10", false),
            ]
        );
        let closed = findings(&run, &Load::Closed, Duration::from_secs(10), sla);
        assert_eq!(closed.len(), 1);
        assert!(!closed[0].met && findings(&run, &Load::Closed, Duration::MAX, None).is_empty());
    }
}
