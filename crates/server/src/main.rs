//! The `gannet` binary.

use mimalloc::MiMalloc;
use runtime::{Config, Ring, Runtime};
use std::ffi::{c_int, c_long};

/// Small blocks of one core are freed by another; glibc's arenas would lock for that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long free memory is kept for the next who wants some. By itself the allocator waits a
/// hundred times as long, in which what many clients send at once piles up.
const FREE_MEMORY_KEPT_MILLIS: c_long = 10;
/// `mi_option_purge_delay` of the allocator's header.
const PURGE_DELAY: c_int = 15;

unsafe extern "C" {
    /// Sets a number unless the environment does.
    fn mi_option_set_default(option: c_int, value: c_long);
}

fn main() {
    // SAFETY: a number of the allocator that is linked in, which any thread may set.
    unsafe { mi_option_set_default(PURGE_DELAY, FREE_MEMORY_KEPT_MILLIS) };
    runtime::return_freed_c_memory();
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let runtime = match Runtime::start(config(&arguments)) {
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

/// How the runtime is set up. The environment can say otherwise, for measurements: valgrind waits
/// for ever in `io_uring_enter`.
fn config(arguments: &[String]) -> Config {
    let mut config = Config { handle_signals: true, reserved_worker: true, ..Config::default() };
    if std::env::var("GANNET_RING").is_ok_and(|value| value == "fallback") {
        config.ring = Ring::Fallback;
    }
    if let Some(workers) = server::options::thread_pool_size(arguments) {
        config.workers = workers;
    }
    let workers = std::env::var("GANNET_WORKERS").ok().and_then(|value| value.parse().ok());
    if let Some(workers) = workers {
        config.workers = workers;
    }
    config
}
