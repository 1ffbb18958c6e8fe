//! The `gannet` binary.

use mimalloc::MiMalloc;
use runtime::{Config, Runtime};

/// Small blocks of one core are freed by another; glibc's arenas would lock for that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

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
