//! Load from one thread: every connection sends its next statement when the last is answered.
//!
//! 1. Connecting, logging in and preparing is over before the warm-up begins.
//! 2. The line `measuring` is printed when the warm-up ends and the line of figures when the
//!    measured time ends, so that whoever reads them can look at the server's CPU in between.
//! 3. Latency is from the call that sends a statement to the moment its answer was read, so it
//!    contains the waiting in this thread: at full load it is connections / throughput.

use crate::Outcome;
use crate::answers::Ended;
use crate::histogram::Histogram;
use crate::link::{Link, Work};
use crate::options::Options;
use mio::{Events, Interest, Poll, Token};
use sqltest::client;
use sqltest::template::Values;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};

const EVENTS_PER_TURN: usize = 1024;
const BUFFER_BYTES: usize = 64 * 1024;
/// How long a turn may wait before the clock is looked at.
const TURN_LIMIT: Duration = Duration::from_millis(20);

/// What was measured.
#[derive(Default)]
struct Figures {
    latency: Histogram,
    errors: BTreeMap<u16, u64>,
    seconds: f64,
    /// How long the oldest statement without an answer had waited at the end.
    longest_wait: Duration,
}

/// Connects, warms up, measures, prints.
pub fn run(options: &Options) -> Outcome {
    let connections = options.number("--connections", 8)?;
    let server = client::Options {
        database: options.value("--database").unwrap_or("sbtest").to_string(),
        user: options.value("--user").unwrap_or("root").to_string(),
        ..client::Options::local(options.number("--port", 3306)? as u16)
    };
    let work = Work {
        sql: options.value("--sql").unwrap_or_default().to_string(),
        is_text: options.has("--text") || options.has("--idle"),
        statements: options.number("--statements", 1)?,
        tables: options.number("--tables", 1)?,
    };
    let begin = Instant::now();
    let opened: io::Result<Vec<Link>> =
        (0..connections).map(|number| Link::open(&server, &work, number)).collect();
    let mut links = opened.map_err(|error| format!("port {}: {error}", server.port))?;
    println!("connected connections={connections} seconds={:.2}", begin.elapsed().as_secs_f64());
    if !options.has("--idle") {
        let rows = options.number("--rows", 10_000)?;
        let warm_up = Duration::from_secs_f64(options.seconds("--warm-up", 1.0)?);
        let measured = Duration::from_secs_f64(options.seconds("--seconds", 5.0)?);
        let seed = u64::from(options.number("--seed", 1)?);
        let values = Values::new(seed, rows);
        let figures = drive(&mut links, values, warm_up, measured).map_err(|e| e.to_string())?;
        println!("{}", figures.line());
    }
    if options.has("--hold") || options.has("--idle") {
        let _ended = io::read_to_string(io::stdin());
    }
    Ok(())
}

fn drive(
    links: &mut [Link],
    mut values: Values,
    warm_up: Duration,
    measured: Duration,
) -> io::Result<Figures> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(EVENTS_PER_TURN);
    let mut buffer = vec![0; BUFFER_BYTES];
    let begin = Instant::now();
    for (number, link) in links.iter_mut().enumerate() {
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut link.stream, Token(number), interest)?;
        link.send(&mut values, Instant::now())?;
    }
    let mut figures = Figures::default();
    let mut measuring_since = None;
    loop {
        let now = Instant::now();
        match measuring_since {
            None if now - begin >= warm_up => {
                println!("measuring");
                measuring_since = Some(now);
                figures = Figures::default();
            }
            Some(since) if now - since >= measured => {
                figures.seconds = (now - since).as_secs_f64();
                let waits = links.iter().map(|link| now - link.sent);
                figures.longest_wait = waits.max().unwrap_or_default();
                return Ok(figures);
            }
            _ => {}
        }
        poll.poll(&mut events, Some(TURN_LIMIT))?;
        for event in events.iter() {
            let link = &mut links[event.token().0];
            if event.is_writable() {
                link.flush()?;
            }
            let Some(ended) = link.receive(&mut buffer)? else { continue };
            let now = Instant::now();
            figures.latency.add((now - link.sent).as_nanos() as u64);
            if let Ended::Error(number) = ended {
                *figures.errors.entry(number).or_default() += 1;
            }
            link.send(&mut values, now)?;
        }
    }
}

impl Figures {
    /// The line that a program reads: statements answered, errors among them, by number.
    fn line(&self) -> String {
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        let mut line = format!(
            "measured statements={} errors={} seconds={:.3} per_second={:.1} p50_us={:.1} \
             p95_us={:.1} p99_us={:.1} max_us={:.1}",
            self.latency.count(),
            self.errors.values().sum::<u64>(),
            self.seconds,
            self.latency.count() as f64 / self.seconds.max(1e-9),
            micros(self.latency.quantile(0.5)),
            micros(self.latency.quantile(0.95)),
            micros(self.latency.quantile(0.99)),
            micros(self.latency.max().max(self.longest_wait.as_nanos() as u64)),
        );
        for (number, count) in &self.errors {
            let _infallible = write!(line, " error_{number}={count}");
        }
        line
    }
}
