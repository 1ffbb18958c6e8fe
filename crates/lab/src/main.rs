//! `gannet-lab`: see `gannet-lab --help`.
use lab::client::Target;
use lab::driver::session::Protocol;
use lab::driver::{self, Load, OnConflict, Plan};
use lab::workload::sysbench::{Load as SysbenchLoad, Options, Script, Sysbench};
use runtime::net::Address;
use std::time::Duration;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let port: u16 = words[1].parse().expect("port");
    let clients: u32 = words[2].parse().expect("clients");
    let seconds: u64 = words[3].parse().expect("seconds");
    let script = Script::of_name(&words[4]).expect("script");
    let text = words.get(5).is_some_and(|w| w == "text");
    let target = Target {
        address: Address::Tcp(([127, 0, 0, 1], port).into()),
        user: "root".into(),
        password: String::new(),
        database: "sbtest".into(),
        read_timeout: Duration::from_secs(60),
    };
    let runtime = runtime::Runtime::start(runtime::Config { workers: 1, ..Default::default() })
        .expect("threads");
    runtime.run(move || {
        let options = Options {
            table_size: 100_000,
            distribution: lab::distribution::access::Kind::Uniform,
            ..Options::new(script)
        };
        if words.get(5).is_some_and(|w| w == "load") {
            lab::load::load(
                &target,
                std::sync::Arc::new(SysbenchLoad::new(options, "")),
                4,
                true,
                |_| (),
            )
            .expect("load");
            return;
        }
        let workload = Sysbench::new(options);
        let plan = Plan {
            target,
            protocol: if text { Protocol::Text } else { Protocol::Prepared },
            clients,
            load: Load::Closed,
            warm_up: Duration::ZERO,
            measured: Duration::from_secs(seconds),
            on_conflict: OnConflict::Retry,
            seed: 1,
        };
        let measured = driver::run(&workload, plan).expect("run");
        let count: u64 = measured.record.completed_per_second().iter().sum();
        let latency = measured.record.latency();
        println!(
            "{} /s p95 {} us errors {:?}",
            count / seconds,
            latency.value_at_quantile(0.95),
            measured.record.errors
        );
        let stat = std::fs::read_to_string("/proc/self/stat").expect("stat");
        let f: Vec<&str> = stat.rsplit(')').next().expect("x").split_whitespace().collect();
        let (u, s): (f64, f64) = (f[11].parse().expect("u"), f[12].parse().expect("s"));
        println!("user {:.2} sys {:.2} us per op", u * 1e4 / count as f64, s * 1e4 / count as f64);
    });
}
