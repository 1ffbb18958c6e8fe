//! Figures for Prometheus, in its text format (version 0.0.4), over HTTP.
//!
//! A thread of its own answers: a slow scraper delays no client.

use super::heading;
use crate::driver::Interval;
use crate::experiment::{Place, Watcher};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Figures are brought up to date so often.
const EVERY: Duration = Duration::from_secs(1);
/// A scraper that does not ask or read for so long is left.
const PATIENCE: Duration = Duration::from_secs(5);
/// Upper ends of the buckets of latencies, seconds.
const BUCKETS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// See the module.
pub struct Prometheus {
    figures: Arc<Mutex<Figures>>,
    address: SocketAddr,
}

#[derive(Default)]
struct Figures {
    /// By the name of the subject.
    servers: BTreeMap<String, Sums>,
    run: String,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    completed: u64,
    failed: u64,
    retried: u64,
    reconnected: u64,
    statements: [u64; 3],
    clients: u32,
    seconds: f64,
    /// Of each of [`BUCKETS`], and of all that are above.
    latencies: [u64; BUCKETS.len() + 1],
}

impl Prometheus {
    /// Listens.
    pub fn listen(address: SocketAddr) -> Result<Self, String> {
        let wrong = |error: std::io::Error| format!("--prometheus {address}: {error}");
        let listener = TcpListener::bind(address).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let figures = Arc::new(Mutex::new(Figures::default()));
        let shown = figures.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A scraper that went away has had what it wanted.
                let _gone = answer(stream, &shown);
            }
        });
        Ok(Self { figures, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Watcher for Prometheus {
    fn every(&self) -> Option<Duration> {
        Some(EVERY)
    }

    fn begins(&self, place: &Place) {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.run = heading(place);
    }

    fn interval(&self, place: &Place, interval: &Interval) {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.servers.entry(place.name.clone()).or_default().add(place, interval);
    }
}

impl Sums {
    fn add(&mut self, place: &Place, interval: &Interval) {
        self.completed += interval.completed;
        self.failed += interval.failed;
        self.retried += interval.retried;
        self.reconnected += interval.reconnected;
        let statements = interval.statements;
        for (sum, more) in
            self.statements.iter_mut().zip([statements.reads, statements.writes, statements.others])
        {
            *sum += more;
        }
        self.clients = place.clients;
        for value in interval.latency.iter_recorded() {
            let seconds = value.value_iterated_to() as f64 / 1e6;
            let bucket = BUCKETS.partition_point(|end| *end < seconds);
            self.latencies[bucket] += value.count_at_value();
            self.seconds += seconds * value.count_at_value() as f64;
        }
    }
}

fn answer(stream: TcpStream, figures: &Mutex<Figures>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_string();
    while line != "\r\n" && line != "\n" && !line.is_empty() {
        line.clear();
        reader.read_line(&mut line)?;
    }
    let (status, body) = match path.as_str() {
        "/metrics" | "/" => {
            ("200 OK", text(&figures.lock().unwrap_or_else(PoisonError::into_inner)))
        }
        _ => ("404 Not Found", "there is /metrics\n".into()),
    };
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A value of a label, as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn text(figures: &Figures) -> String {
    let mut out = String::new();
    let mut put = |name: &str, kind: &str, help: &str, of: &dyn Fn(&Sums) -> Vec<(String, f64)>| {
        let _infallible = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (server, sums) in &figures.servers {
            for (rest, value) in of(sums) {
                let (suffix, labels) = rest.split_once('|').unwrap_or((&rest, ""));
                let server = escaped(server);
                let _infallible =
                    writeln!(out, "{name}{suffix}{{subject=\"{server}\"{labels}}} {value}");
            }
        }
    };
    let one = |value: u64| vec![(String::new(), value as f64)];
    let counts: [(&str, &str, fn(&Sums) -> u64); 4] = [
        ("gannet_lab_operations_total", "Operations that completed.", |sums| sums.completed),
        ("gannet_lab_failures_total", "Operations that ended with an error.", |sums| sums.failed),
        ("gannet_lab_retries_total", "Repetitions after conflicts.", |sums| sums.retried),
        ("gannet_lab_reconnects_total", "Connections opened again.", |sums| sums.reconnected),
    ];
    for (name, help, of) in counts {
        put(name, "counter", help, &|sums| one(of(sums)));
    }
    put("gannet_lab_statements_total", "counter", "Statements sent.", &|sums| {
        let kinds = ["read", "write", "other"].into_iter().zip(sums.statements);
        kinds.map(|(kind, count)| (format!("|,kind=\"{kind}\""), count as f64)).collect()
    });
    put("gannet_lab_clients", "gauge", "Clients of the last run.", &|sums| {
        one(u64::from(sums.clients))
    });
    put("gannet_lab_latency_seconds", "histogram", "From the intended start.", &|sums| {
        let mut count = 0;
        let mut rows = Vec::new();
        for (end, more) in BUCKETS.into_iter().chain([f64::INFINITY]).zip(sums.latencies) {
            count += more;
            let end = if end.is_finite() { end.to_string() } else { "+Inf".into() };
            rows.push((format!("_bucket|,le=\"{end}\""), count as f64));
        }
        rows.push(("_sum|".into(), sums.seconds));
        rows.push(("_count|".into(), count as f64));
        rows
    });
    let run = escaped(&figures.run);
    let _infallible = write!(
        out,
        "# HELP gannet_lab_run_info What runs now.\n# TYPE gannet_lab_run_info gauge\n\
         gannet_lab_run_info{{run=\"{run}\"}} 1\n"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use std::io::Read;

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn sums_of_intervals_are_scraped() {
        let prometheus = Prometheus::listen(([127, 0, 0, 1], 0).into()).expect("a free port");
        let place = Place { name: "a \"B\"".into(), ..sample::place() };
        prometheus.begins(&place);
        prometheus.interval(&place, &sample::interval());
        prometheus.interval(&place, &sample::interval());
        let text = get(prometheus.address(), "/metrics");
        for line in [
            "HTTP/1.1 200 OK",
            "# TYPE gannet_lab_latency_seconds histogram",
            "gannet_lab_operations_total{subject=\"a \\\"B\\\"\"} 2010",
            "gannet_lab_failures_total{subject=\"a \\\"B\\\"\"} 10",
            "gannet_lab_statements_total{subject=\"a \\\"B\\\"\",kind=\"write\"} 8080",
            "gannet_lab_latency_seconds_bucket{subject=\"a \\\"B\\\"\",le=\"0.0025\"} 0",
            "gannet_lab_latency_seconds_bucket{subject=\"a \\\"B\\\"\",le=\"0.1\"} 2010",
            "gannet_lab_latency_seconds_count{subject=\"a \\\"B\\\"\"} 2010",
            "gannet_lab_run_info{run=\"a \\\"B\\\", 64 clients, round 1: run 2 of 4\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(get(prometheus.address(), "/else").starts_with("HTTP/1.1 404"));
    }
}
