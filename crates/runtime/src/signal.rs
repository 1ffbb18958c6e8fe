//! Signals that ask the server to do something: SIGTERM, SIGINT, SIGHUP.

use crate::sync::{Mutex, WaitQueue};
use crate::worker::{self, Twin};
use crate::{WaitClass, Wake};
use std::collections::VecDeque;

/// What the process was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGTERM: shut down.
    Terminate,
    /// SIGINT: shut down, asked for at the terminal.
    Interrupt,
    /// SIGHUP: read the configuration again.
    HangUp,
}

/// Signals that came and were not waited for yet.
#[derive(Default)]
pub(crate) struct Arrived {
    signals: Mutex<VecDeque<Signal>>,
    changed: WaitQueue,
}

impl Arrived {
    pub(crate) fn push(&self, signal: Signal) {
        self.signals.lock().push_back(signal);
        self.changed.wake_all();
    }

    fn wait(&self) -> Option<Signal> {
        let mut signal = None;
        let wake = self.changed.wait_until(WaitClass::Idle, None, || {
            signal = self.signals.lock().pop_front();
            signal.is_some()
        });
        signal.filter(|_| wake == Wake::Unparked)
    }
}

/// Parks until a signal comes; `None` when the fiber is cancelled. Signals reach the runtime only
/// with [`crate::Config::handle_signals`]; in a simulation none ever comes.
pub fn wait() -> Option<Signal> {
    match &worker::current().twin {
        Twin::Real(real) => real.group.arrived_signals().wait(),
        Twin::Sim(_) => Arrived::default().wait(),
    }
}
