//! Helper threads: system calls that block, slow codecs, files where there is no io_uring.

use super::group::RealTwin;
use super::own_core::Cores;
use crate::mailbox::{FiberId, Mailbox, Message, Signal};
use crate::park::WaitClass;
use crate::worker;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: Vec<thread::JoinHandle<()>>,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.lock();
                continue;
            }
            if state.stopping {
                return;
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Threads made as they are needed, up to a number.
pub(crate) struct Helpers {
    shared: Arc<Shared>,
    cores: Arc<Cores>,
    threads_max: usize,
}

impl Helpers {
    pub(super) fn new(threads_max: usize, cores: Arc<Cores>) -> Self {
        Self { shared: Arc::default(), cores, threads_max }
    }

    /// Queues a job.
    pub(crate) fn run(&self, job: Job) {
        let mut state = self.shared.lock();
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && state.threads.len() < self.threads_max {
            let (shared, cores) = (self.shared.clone(), self.cores.clone());
            let name = format!("helper-{}", state.threads.len());
            let work = move || {
                cores.use_all();
                shared.work();
            };
            let thread = thread::Builder::new().name(name).spawn(work);
            match thread {
                Ok(thread) => state.threads.push(thread),
                // One thread is enough to make progress; without any there is none.
                Err(error) => assert!(!state.threads.is_empty(), "no helper thread: {error}"),
            }
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Lets the threads finish what is queued and ends them.
    pub(crate) fn stop(&self) {
        let mut state = self.shared.lock();
        state.stopping = true;
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.shared.changed.notify_all();
        for thread in threads {
            // Jobs catch their panics.
            let _ = thread.join();
        }
    }
}

/// Tells a fiber that (a part of) its operation has ended, from a helper thread.
pub(super) fn complete(mailbox: &'static Mailbox, fiber: FiberId, part: u8, result: i32) {
    mailbox.send(Message::Signal(fiber, Signal::Io { part, result }));
}

/// Runs `f` on a helper thread while the current fiber is parked.
pub(crate) fn run_on_helper<T: Send + 'static>(
    real: &RealTwin,
    f: impl FnOnce() -> T + Send + 'static,
) -> T {
    let worker = worker::current();
    assert!(!worker.is_halting(), "the runtime is ending");
    let place = Arc::new(Mutex::new(None));
    let (result, mailbox, fiber) = (place.clone(), worker.mailbox, worker.current_fiber());
    worker.begin_operation(1);
    real.group.helpers.run(Box::new(move || {
        let outcome = catch_unwind(AssertUnwindSafe(f));
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        complete(mailbox, fiber, 0, 0);
    }));
    worker.wait_operation(WaitClass::Helper, None);
    let outcome = place.lock().unwrap_or_else(PoisonError::into_inner).take();
    match outcome.expect("the helper stores before it tells") {
        Ok(value) => value,
        Err(payload) => resume_unwind(payload),
    }
}
