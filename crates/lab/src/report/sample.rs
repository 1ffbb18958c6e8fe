//! Small fixed results for tests.

use crate::account::TableSpace;
use crate::account::{
    Counters, Figures, FileKind, FileSpace, Machine, Sample, Space, SpaceAt, Wear, Worn,
};
use crate::results::{
    Cost, Event, Experiment, Finding, Limit, Loaded, Operation, Origin, Phase, PhaseKind, Point,
    Run, SCHEMA, Second, Subject,
};
use base::Random;
use std::collections::BTreeMap;

const WARM_UP: usize = 5;
const SECONDS: usize = 60;

/// So many subjects, each with so many rounds, of two runs, at each number of clients.
pub(crate) fn experiment(subjects: usize, clients: &[u32], rounds: usize) -> Experiment {
    let mut random = Random::new(1);
    let mut runs = Vec::new();
    for &clients in clients {
        for round in 0..rounds {
            for subject in (0..subjects).chain((0..subjects).rev()) {
                runs.push(run(subject, round, clients, &mut random));
            }
        }
    }
    Experiment {
        schema: SCHEMA,
        command: ["gannet-lab", "run", "a <spec>.toml"].map(String::from).to_vec(),
        spec: Some("[run]\nclients = [8]\n".into()),
        workload: "sysbench oltp_read_write, 1 x 10000 rows".into(),
        seed: 42,
        began_micros: 1_709_210_096_000_000,
        machine: BTreeMap::from([("processor".into(), "a processor & more".into())]),
        ended: None,
        notes: Vec::new(),
        subjects: (0..subjects).map(subject).collect(),
        parity: Vec::new(),
        runs,
    }
}

/// Takes a share of the throughput away from the runs of the last `count` subjects.
pub(crate) fn slow_down(experiment: &mut Experiment, count: usize, share: f64) {
    let first = experiment.subjects.len() - count;
    for run in experiment.runs.iter_mut().filter(|run| run.subject >= first) {
        for second in &mut run.seconds {
            second.completed = (second.completed as f64 * share) as u64;
        }
    }
}

fn subject(number: usize) -> Subject {
    let variables = [
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_buffer_pool_size", "134217728"),
        ("sql_mode", if number == 0 { "" } else { "STRICT_TRANS_TABLES" }),
    ];
    let file = |name: &str, bytes| FileSpace {
        name: name.into(),
        allocated_bytes: bytes,
        apparent_bytes: bytes * 2,
    };
    let files = vec![file("data/pages.000000", 30 << 20), file("wal/wal-1.log", 16 << 20)];
    let mut by_kind = [0; FileKind::ALL.len()];
    (by_kind[0], by_kind[2]) = (30 << 20, 16 << 20);
    let table = TableSpace {
        name: "sbtest1".into(),
        rows: 10_000,
        data_bytes: 2 << 20,
        index_bytes: 1 << 20,
    };
    let space = |files| SpaceAt { moment: "after load".into(), files, tables: vec![table.clone()] };
    let files = Space { allocated_bytes: 46 << 20, apparent_bytes: 92 << 20, by_kind, files };
    Subject {
        name: ["first", "second <b>", "third", "fourth"][number % 4].into(),
        origin: Some(Origin {
            kind: "gannet".into(),
            command_line: vec!["gannet".into(), "serve".into()],
            variant: String::new(),
        }),
        version: "Gannet 1".into(),
        variables: variables.map(|(name, value)| (name.into(), value.into())).into(),
        load: Some(Loaded { seconds: 1.5 + number as f64, rows: 10_000, bytes: 2_000_000 }),
        spaces: vec![space((number != 1).then_some(files))],
        violations: if number == 0 { Some(Vec::new()) } else { None },
    }
}

fn second(at: i64, rate: f64, random: &mut Random) -> Second {
    // A stall of two seconds in the middle.
    let share = if (30..32).contains(&at) { 0.1 } else { 0.95 + 0.1 * random.fraction() };
    let completed = (rate * share) as u64;
    let median = (5_000.0 / share) as u64;
    Second {
        completed,
        by_operation: vec![completed * 3 / 4, completed - completed * 3 / 4],
        failed: u64::from(at == 40),
        retried: u64::from(at % 10 == 0),
        reconnected: 0,
        micros: [1, 3, 6, 12, 20].map(|factor| median * factor),
        buckets: vec![(46, completed / 4), (49, completed / 2), (56, completed / 5), (60, 1)],
    }
}

fn run(subject: usize, round: usize, clients: u32, random: &mut Random) -> Run {
    let rate = 1000.0 * f64::from(clients).sqrt() * (1.0 + subject as f64 * 0.2);
    let rate = rate * (0.99 + 0.02 * random.fraction());
    let warm_up: Vec<Second> =
        (0..WARM_UP).map(|at| second(at as i64 - WARM_UP as i64, rate / 2.0, random)).collect();
    let seconds: Vec<Second> = (0..SECONDS).map(|at| second(at as i64, rate, random)).collect();
    let operation = |name: &str, completed| Operation {
        name: name.into(),
        completed,
        failed: 1,
        retried: 3,
        micros: [5_000, 15_000, 30_000, 60_000, 900_000],
        service_micros: [4_000, 14_000, 29_000, 59_000, 890_000],
        latencies: vec![(5_003, completed / 2), (15_007, completed / 3), (900_000, 1)],
    };
    let completed: u64 = seconds.iter().map(|second| second.completed).sum();
    let sample = |at: i64| Sample {
        seconds: at as f64,
        server: Some(figures((at + WARM_UP as i64) as u64, 1 + subject as u64)),
        client: Some(figures((at + WARM_UP as i64) as u64, 0)),
        machine: Some(Machine::default()),
        device: None,
        allocated_bytes: Some((40 << 20) + (at.max(0) as u64) * 100_000),
        apparent_bytes: Some(90 << 20),
    };
    let all = -(WARM_UP as i64)..=SECONDS as i64;
    Run {
        subject,
        round,
        clients,
        rate: None,
        phases: vec![
            Phase { kind: PhaseKind::WarmUp, begin: -(WARM_UP as f64), end: 0.0 },
            Phase { kind: PhaseKind::Measure, begin: 0.0, end: SECONDS as f64 },
        ],
        warm_up,
        seconds,
        points: points(random),
        events: vec![
            Event { seconds: 30.0, text: "a pause <begins>".into() },
            Event { seconds: 32.0, text: "and ends".into() },
        ],
        samples: all.clone().map(sample).collect(),
        counters: all.map(|at| (at as f64, counters((at + WARM_UP as i64) as u64))).collect(),
        operations: vec![operation("read", completed * 3 / 4), operation("write", completed / 4)],
        micros: [5_000, 15_000, 30_000, 60_000, 900_000],
        errors: vec![(1213, "40001".into(), 2)],
        messages: BTreeMap::from([(1213, "Deadlock found".into())]),
        findings: vec![Finding {
            name: "rate".into(),
            found: "99 %".into(),
            wanted: "100 %".into(),
            met: subject > 0,
        }],
        lateness_micros: Some([60, 100, 200, 300, 400]),
        server_cost: Some(Cost {
            user_micros: 100.0,
            system_micros: 20.0 * (1.0 + subject as f64),
            written_bytes: 4_000.0,
            rows_changed: Some(4.0),
            log_bytes: Some(1_500.0),
            ..Cost::default()
        }),
        client_cost: Some(Cost { user_micros: 5.0, cores: 0.1, ..Cost::default() }),
        wear: Some(worn(subject, round as u64)),
        limit: Some(Limit::Processor("the processors were busy 95 % of the time".into())),
        ..Run::default()
    }
}

fn points(random: &mut Random) -> Vec<Point> {
    let point = |at: u32| Point { millis: at * 100, micros: 1_000 + random.below(30_000) };
    (0..600).map(point).collect()
}

/// Of the first subject, and of no other: ten megabytes a run, of which the flash takes fifteen.
fn worn(subject: usize, round: u64) -> Result<Worn, String> {
    let wear = |rounds: u64| Wear {
        written_bytes: rounds * 10_000_000,
        flash_bytes: Some(rounds * 15_000_000),
        used_percent: Some(3),
    };
    match subject {
        0 => Ok(Worn { before: wear(round), after: wear(round + 1) }),
        _ => Err("smartctl is not installed".into()),
    }
}

fn figures(seconds: u64, weight: u64) -> Figures {
    Figures {
        user_micros: seconds * 300_000 * (1 + weight),
        written_bytes: seconds * 5_000_000 * weight,
        resident_bytes: 200 << 20,
        ..Figures::default()
    }
}

fn counters(seconds: u64) -> Counters {
    Counters {
        log_bytes: Some(seconds * 1_000_000),
        data_bytes: Some(seconds * 2_000_000),
        doublewrite_bytes: Some(0),
        ..Counters::default()
    }
}
