//! The files of a folder of results.

use crate::results::{Experiment, RUN_JSON, Run};
use std::fmt::Write;
use std::path::Path;

/// Writes `run.json`, `report.html`, `summary.md`, `series.csv`,
/// `tenths.csv` and the histograms below `hdr`. The
/// error names the file, and says what is kept of a folder that could not be finished.
pub fn write(folder: &Path, experiment: &Experiment) -> Result<(), String> {
    let histograms = folder.join("hdr");
    std::fs::create_dir_all(&histograms)
        .map_err(|error| format!("{}: {error}", histograms.display()))?;
    // First that which everything else can be made from.
    put(folder, RUN_JSON, experiment.json())?;
    write_rest(folder, experiment).map_err(|why| {
        let folder = folder.display();
        format!(
            "{why}; all that was measured is in {folder}/{RUN_JSON}: mend that (a full disk needs \
             some space), then `gannet-lab plot {folder}` makes the rest"
        )
    })
}

fn put(folder: &Path, name: &str, text: String) -> Result<(), String> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn write_rest(folder: &Path, experiment: &Experiment) -> Result<(), String> {
    let put = |name: &str, text| put(folder, name, text);
    put("series.csv", series(experiment))?;
    put("tenths.csv", tenths(experiment))?;
    for (number, run) in experiment.runs.iter().enumerate() {
        for operation in &run.operations {
            let name = format!("hdr/{:03}-{}.hgrm", number + 1, file_name(&operation.name));
            put(&name, histogram(&operation.latencies))?;
        }
    }
    put("summary.md", super::markdown(experiment))?;
    put("report.html", super::html(experiment))
}

fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

const HEAD: &str = "run,subject,clients,rate,round,second,completed,failed,retried,p50_us,p95_us,\
    p99_us,p999_us,max_us,server_user_us,server_system_us,server_switches,server_read_bytes,\
    server_written_bytes,server_resident_bytes,server_open_files,client_user_us,client_system_us,\
    allocated_bytes,log_bytes,syncs\n";

/// A line for each second of each run; sums of processes are those of the last look before its end.
fn series(experiment: &Experiment) -> String {
    let mut out = HEAD.to_string();
    for (number, run) in experiment.runs.iter().enumerate() {
        let name = &experiment.subjects[run.subject].name;
        let name = name.replace(['"', '\n'], "'");
        let rate = run.rate.map_or(String::new(), |rate| rate.to_string());
        let begin = -(run.warm_up.len() as i64);
        for (second, at) in run.warm_up.iter().chain(&run.seconds).zip(begin..) {
            let _infallible = write!(
                out,
                "{},\"{name}\",{},{rate},{},{at},{},{},{}",
                number + 1,
                run.clients,
                run.round + 1,
                second.completed,
                second.failed,
                second.retried
            );
            second.micros.iter().for_each(|micros| {
                let _infallible = write!(out, ",{micros}");
            });
            put_usage(&mut out, run, at as f64 + 1.0);
            out.push('\n');
        }
    }
    out
}

/// A line for each tenth of a second of each run.
fn tenths(experiment: &Experiment) -> String {
    let mut out = "run,second,completed\n".to_string();
    for (number, run) in experiment.runs.iter().enumerate() {
        for (tenth, completed) in run.tenths.iter().enumerate() {
            let at = tenth as f64 / 10.0;
            let _infallible = writeln!(out, "{},{at:.1},{completed}", number + 1);
        }
    }
    out
}

fn put_usage(out: &mut String, run: &Run, until: f64) {
    let sample = run.samples.iter().rev().find(|sample| sample.seconds <= until);
    let server = sample.and_then(|sample| sample.server);
    let client = sample.and_then(|sample| sample.client);
    let counters = run.counters.iter().rev().find(|(at, _)| *at <= until).map(|(_, c)| *c);
    let cells = [
        server.map(|f| f.user_micros),
        server.map(|f| f.system_micros),
        server.map(|f| f.switches),
        server.map(|f| f.read_bytes),
        server.map(|f| f.written_bytes),
        server.map(|f| f.resident_bytes),
        server.map(|f| f.open_files),
        client.map(|f| f.user_micros),
        client.map(|f| f.system_micros),
        sample.and_then(|sample| sample.allocated_bytes),
        counters.and_then(|c| c.log_bytes),
        counters.and_then(|c| c.syncs),
    ];
    for cell in cells {
        let _infallible = match cell {
            Some(value) => write!(out, ",{value}"),
            None => write!(out, ","),
        };
    }
}

/// A histogram in the text that the plotters of HdrHistogram read, in milliseconds.
fn histogram(latencies: &[(u64, u64)]) -> String {
    let total: u64 = latencies.iter().map(|(_, count)| count).sum();
    let mut out = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n".to_string();
    let mut seen = 0;
    let (mut sum, mut squares) = (0.0, 0.0);
    for (micros, count) in latencies {
        seen += count;
        let millis = *micros as f64 / 1000.0;
        sum += millis * *count as f64;
        squares += millis * millis * *count as f64;
        let share = seen as f64 / total as f64;
        let _infallible = write!(out, "{millis:12.3} {share:.12} {seen:10}");
        let _infallible = match seen < total {
            true => writeln!(out, " {:.2}", 1.0 / (1.0 - share)),
            false => writeln!(out),
        };
    }
    let mean = sum / total.max(1) as f64;
    let deviation = (squares / total.max(1) as f64 - mean * mean).max(0.0).sqrt();
    let most = latencies.last().map_or(0.0, |(micros, _)| *micros as f64 / 1000.0);
    let _infallible = write!(
        out,
        "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]\n\
         #[Max     = {most:12.3}, Total count    = {total:12}]\n"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_ends_with_everything() {
        let text = histogram(&[(1000, 3), (2500, 1)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "       1.000 0.750000000000          3 4.00");
        assert_eq!(lines[3], "       2.500 1.000000000000          4");
        assert!(lines[4].starts_with("#[Mean    =        1.375"));
        assert!(!histogram(&[]).contains("NaN"));
    }
}
