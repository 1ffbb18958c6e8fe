//! A run is looked after, looked at and interfered with.

use super::{Interval, Shared};
use crate::client::Handle;
use runtime::sync::Mutex;
use runtime::{Instant, JoinHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often the fiber that looks after the clients does so; how late it is, is how late the
/// driver is.
const TICK: Duration = Duration::from_millis(10);
/// Clients of a run that is over may wait so long for their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Something that happened during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Seconds since the measured time began; below 0 in the warm-up.
    pub seconds: f64,
    /// What it was.
    pub text: String,
}

/// Asks runs to end, from anywhere.
#[derive(Debug, Default)]
pub struct Stop {
    asked: AtomicBool,
}

impl Stop {
    /// Asks.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// What is told of intervals.
pub type Tell = Arc<dyn Fn(&Interval) + Send + Sync>;

/// Looking at a run while it goes on.
#[derive(Clone, Default)]
pub struct Watch {
    /// Told of every interval, with its length.
    pub tell: Option<(Duration, Tell)>,
    /// Ends the run when it is asked.
    pub stop: Arc<Stop>,
    /// What is done during the run.
    pub events: Vec<Planned>,
}

/// Something to be done during a run.
#[derive(Clone)]
pub struct Planned {
    /// When, since the begin of the measured time.
    pub at: Duration,
    /// What. It runs in a fiber of its own, and the run waits for its end.
    pub action: Arc<dyn Fn(&Control) + Send + Sync>,
}

impl Planned {
    pub(super) fn start(self, control: &Arc<Control>) -> JoinHandle<()> {
        let control = control.clone();
        runtime::spawn("event", move || {
            let then = control.begin + self.at;
            while runtime::now() < then {
                if control.is_over() || control.is_finished() {
                    return;
                }
                runtime::sleep((then - runtime::now()).min(TICK * 10));
            }
            if !control.is_finished() {
                control.under_way.fetch_add(1, Ordering::Relaxed);
                (self.action)(&control);
                control.under_way.fetch_sub(1, Ordering::Relaxed);
            }
        })
    }
}

/// A run as others may interfere with it.
pub struct Control {
    begin: Instant,
    end: Instant,
    /// Connections by client.
    handles: Mutex<Vec<Vec<Handle>>>,
    paused_until: AtomicU64,
    marks: Mutex<Vec<Mark>>,
    /// Events that have begun and not ended.
    under_way: AtomicUsize,
    over: AtomicBool,
    why_over: Mutex<Option<String>>,
    finished: AtomicBool,
}

impl Control {
    pub(super) fn new(begin: Instant, end: Instant) -> Self {
        Self {
            begin,
            end,
            handles: Mutex::new(Vec::new()),
            paused_until: AtomicU64::new(0),
            marks: Mutex::new(Vec::new()),
            under_way: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            why_over: Mutex::new(None),
            finished: AtomicBool::new(false),
        }
    }

    /// When the measured time begins.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// When it ends.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// Marks that something happens now.
    pub fn mark(&self, text: impl Into<String>) {
        let now = runtime::now();
        // One of the two is zero.
        let (after, before) = (now - self.begin, self.begin - now);
        let seconds = after.as_secs_f64() - before.as_secs_f64();
        self.marks.lock().push(Mark { seconds, text: text.into() });
    }

    /// Ends the run; the first reason counts.
    pub fn give_up(&self, why: impl Into<String>) {
        let mut known = self.why_over.lock();
        if known.is_none() && !self.is_finished() {
            *known = Some(why.into());
            self.over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was ended before its time.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Closes the connections of this share of the clients; returns how many there were.
    pub fn drop_connections(&self, share: f64) -> usize {
        let handles = self.handles.lock().clone();
        let clients = (handles.len() as f64 * share).ceil() as usize;
        let chosen = handles.iter().take(clients).flatten();
        chosen.map(|handle| handle.close()).count()
    }

    /// No client begins anything for so long. In an open load the schedule goes on.
    pub fn pause(&self, length: Duration) {
        let until = runtime::now() + length;
        self.paused_until.store(until.as_nanos(), Ordering::Relaxed);
    }

    pub(super) fn paused_until(&self) -> Instant {
        Instant::from_nanos(self.paused_until.load(Ordering::Relaxed))
    }

    /// Whether something is being done to the server: if it is away, it may come back.
    pub(super) fn is_interfered_with(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    pub(super) fn why_over(&self) -> Option<String> {
        self.why_over.lock().clone()
    }

    pub(super) fn take_marks(&self) -> Vec<Mark> {
        std::mem::take(&mut *self.marks.lock())
    }

    pub(super) fn keep_handles(&self, client: usize, handles: Vec<Handle>) {
        let mut all = self.handles.lock();
        if all.len() <= client {
            all.resize(client + 1, Vec::new());
        }
        all[client] = handles;
    }

    /// All clients have ended.
    pub(super) fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }
}

/// Measures how late the driver is, tells of intervals, ends what should end.
pub(super) fn look_after(shared: &Shared, watch: &Watch) {
    let control = &shared.control;
    let give_up = shared.plan.give_up;
    let mut next_told = watch.tell.as_ref().map(|(every, _)| shared.begin + *every);
    let mut over_since = None;
    while !control.is_finished() {
        let wanted = runtime::now() + TICK;
        runtime::sleep(TICK);
        let now = runtime::now();
        let silent = {
            let mut state = shared.state.lock();
            state.recorder.add_lateness(now - wanted);
            state.silent_for(now)
        };
        if watch.stop.is_asked() {
            control.give_up("interrupted");
        }
        if silent >= give_up * 2 {
            let seconds = (give_up * 2).as_secs();
            control.give_up(format!("the server has not answered anybody for {seconds} s"));
        }
        let is_late = now >= control.end + give_up * 2;
        if control.is_over() || is_late {
            let since = *over_since.get_or_insert(now);
            if now - since >= LAST_ANSWERS {
                control.drop_connections(1.0);
            }
        }
        if let (Some((every, tell)), Some(then)) = (&watch.tell, next_told)
            && now >= then
        {
            let interval = shared.state.lock().recorder.take_interval(now);
            interval.iter().for_each(|interval| tell(interval));
            next_told = Some(then + *every);
        }
    }
}
