//! What figures of runs say, and what they do not.

pub mod ratio;
pub mod rounds;
pub mod stall;
pub mod steady;

/// The middle of values; `NaN` of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}
