//! The `gannet` binary.

use runtime::{Config, Runtime};

fn main() {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let config = Config { handle_signals: true, ..Config::default() };
    let runtime = match Runtime::start(config) {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("gannet: [ERROR] the runtime cannot start: {error}");
            std::process::exit(1);
        }
    };
    let code = runtime.run(move || server::run(&arguments));
    runtime.shutdown();
    std::process::exit(code);
}
