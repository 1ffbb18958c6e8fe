//! What must end the process, and what must not: each case runs in a child process.

use runtime::{Config, Runtime};
use std::process::{Command, Output};

const CASE: &str = "GANNET_RUNTIME_TEST_CASE";

/// Runs one of the cases of [`child`] in a process of its own.
fn run_case(case: &str) -> Output {
    let this = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new(this);
    command.args(["child", "--exact", "--nocapture"]).env(CASE, case);
    command.env_remove("RUST_BACKTRACE").output().expect("the child starts")
}

fn recurse(depth: u64) -> u64 {
    let space = std::hint::black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + space[depth as usize % 64] }
}

/// Not a test of its own: what the children run.
#[test]
fn child() {
    let Ok(case) = std::env::var(CASE) else { return };
    if case == "no uring" {
        return without_uring();
    }
    let handle_signals = case == "signal";
    let config = Config { workers: 2, handle_signals, ..Config::default() };
    let runtime = Runtime::start(config).expect("started");
    runtime.run(move || match case.as_str() {
        "overflow" => {
            let fiber = runtime::spawn_on(1, "deep one", || recurse(0));
            drop(fiber.join());
        }
        "guard" => {
            let fiber = runtime::spawn("guarded", || {
                let _guard = runtime::abort_on_panic("a page is being split");
                panic!("planned");
            });
            drop(fiber.join());
        }
        "lock" => {
            let lock = runtime::sync::Mutex::new(());
            let _locked = lock.lock();
            panic!("planned");
        }
        "contained" => {
            let fiber = runtime::spawn_on(1, "contained", || {
                drop(runtime::abort_on_panic("nothing any more"));
                panic!("planned");
            });
            assert!(fiber.join().is_err());
            println!("went on");
        }
        "signal" => println!("{:?}", runtime::signal::wait()),
        other => panic!("no case {other}"),
    });
}

/// Forbids io_uring to this thread and its children as container runtimes do, then starts.
fn without_uring() {
    let statement = |code: u32, jump_true, jump_false, value| libc::sock_filter {
        code: code as u16,
        jt: jump_true,
        jf: jump_false,
        k: value,
    };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_io_uring_setup as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a valid program that outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
    let insisting = Config { ring: runtime::Ring::Uring, ..Config::default() };
    let refused = Runtime::start(insisting).expect_err("io_uring is forbidden");
    assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
    let runtime = Runtime::start(Config::default()).expect("the fall-back serves");
    assert!(!runtime.uses_uring());
    let content = runtime.run(|| runtime::fs::read("/proc/self/comm").expect("procfs"));
    println!("fell back, read {} bytes", content.len());
}

#[test]
fn without_io_uring_the_fall_back_serves() {
    let output = run_case("no uring");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("fell back"), "{output:?}");
}

#[test]
fn an_overflow_names_the_fiber() {
    let output = run_case("overflow");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("fiber 'deep one' has overflowed its stack"), "{text}");
}

#[test]
fn a_panic_under_a_guard_or_lock_ends_the_process() {
    for (case, message) in [("guard", "a page is being split"), ("lock", "a lock was held")] {
        let output = run_case(case);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(message), "{case}: {text}");
        assert!(text.contains("recovery is the repair"), "{case}: {text}");
    }
}

#[test]
fn a_panic_elsewhere_does_not() {
    let output = run_case("contained");
    assert!(output.status.success() && output.stdout.windows(7).any(|it| it == b"went on"));
}

#[test]
fn signals_arrive() {
    let this = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new(this);
    command.args(["child", "--exact", "--nocapture"]).env(CASE, "signal");
    command.stdout(std::process::Stdio::piped());
    let child = command.spawn().expect("the child starts");
    // Until the thread that waits for signals is there the signal would just end the child.
    let start = std::time::Instant::now();
    while !has_signals_thread(child.id()) {
        assert!(start.elapsed().as_secs() < 120, "the child does not wait for signals");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = Command::new("kill").arg(child.id().to_string()).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("the child ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Some(Terminate)"), "{text}");
}

fn has_signals_thread(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    threads.flatten().any(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        name.trim() == "signals"
    })
}
