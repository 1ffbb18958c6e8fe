//! Served connections: a state object and a socket, without a stack while nothing is to do.

use super::backlog::{Backlog, Queued};
use super::event_loop::{EventLoop, SEQUENCE_MASK, Token};
use super::group::RealTwin;
use super::net::{IN, RealStream, real_here};
use crate::clock::{Instant, ticks};
use crate::net::{Connection, Next, Stream};
use crate::timer::TimerId;
use crate::worker::{TimerTarget, Twin, Worker};
use base::metrics::Counter;
use std::cell::RefCell;
use std::os::fd::RawFd;
use std::time::Duration;

/// Connections that went to a worker with less to do.
static CONNECTIONS_MOVED: Counter =
    Counter::new("runtime_connections_moved", "connections moved to a worker with less to do");

/// A served connection: its state object and its socket.
pub(crate) struct Task {
    connection: Box<dyn Connection>,
    stream: Stream,
    /// Its place in the present worker's table, from its first wait there until it ends or moves.
    place: Option<u32>,
    /// When it came into a backlog last.
    since_ticks: u64,
}

impl Queued for Box<Task> {
    fn is_urgent(&self) -> bool {
        self.connection.is_urgent()
    }

    fn since_ticks(&self) -> u64 {
        self.since_ticks
    }
}

impl Task {
    /// See [`Connection::id`].
    pub(super) fn id(&self) -> u64 {
        self.connection.id()
    }

    pub(super) fn new(connection: Box<dyn Connection>, stream: Stream) -> Box<Self> {
        Box::new(Self { connection, stream, place: None, since_ticks: 0 })
    }

    fn fd(&self) -> RawFd {
        self.stream.real().map_or(-1, RealStream::raw)
    }
}

/// A place in the table. The timer is lazy: it stays where it is while the connection runs, and
/// when it fires early it is set again for the deadline of the present wait.
struct Place {
    task: Option<Box<Task>>,
    sequence: u32,
    deadline: Option<Instant>,
    timer: TimerId,
}

/// The connections of one worker that have waited at least once.
pub(crate) struct Connections {
    places: RefCell<Vec<Place>>,
    free: RefCell<Vec<u32>>,
}

impl Connections {
    pub(crate) fn new() -> Self {
        Self { places: RefCell::new(Vec::new()), free: RefCell::new(Vec::new()) }
    }

    /// Runs a connection in the current fiber, then lets it wait or drops it.
    pub(super) fn run(mut task: Box<Task>) {
        let Task { connection, stream, .. } = &mut *task;
        let next = crate::catch_panic(|| connection.run(stream));
        let Ok((worker, real)) = real_here() else { return };
        match next {
            Ok(Next::WaitReadable { timeout }) => real.connections.wait(worker, task, timeout),
            Ok(Next::Close) | Err(_) => real.connections.remove(worker, &real.event_loop, &task),
        }
    }

    fn wait(&self, worker: &Worker, mut task: Box<Task>, timeout: Option<Duration>) {
        let Twin::Real(real) = &worker.twin else { return };
        task.stream.set_timed_out(false);
        let fd = task.fd();
        let number = task.place.unwrap_or_else(|| {
            worker.admission.figures.connections.add(1);
            self.take_place()
        });
        task.place = Some(number);
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.sequence = (place.sequence + 1) & SEQUENCE_MASK;
        place.task = Some(task);
        place.deadline = timeout.map(|timeout| worker.now() + timeout);
        let mut timers = worker.timers.borrow_mut();
        if let Some(deadline) = place.deadline {
            let target = TimerTarget::Connection(number);
            let is_earlier = place.timer_deadline(&timers) > Some(deadline.as_nanos());
            if place.timer != TimerId::NONE && is_earlier {
                timers.remove(place.timer);
                place.timer = TimerId::NONE;
            }
            if place.timer == TimerId::NONE {
                place.timer = timers.insert(deadline.as_nanos(), target);
            }
        }
        let token = Token::Connection { place: number, sequence: place.sequence };
        real.event_loop.poll_add(fd, IN, token);
    }

    fn take_place(&self) -> u32 {
        if let Some(number) = self.free.borrow_mut().pop() {
            return number;
        }
        let mut places = self.places.borrow_mut();
        places.push(Place { task: None, sequence: 0, deadline: None, timer: TimerId::NONE });
        places.len() as u32 - 1
    }

    /// The connection ends: gives its place back.
    fn remove(&self, worker: &Worker, event_loop: &EventLoop, task: &Task) {
        event_loop.forget(task.fd());
        if let Some(number) = task.place {
            self.give_back(worker, number);
        }
    }

    /// The connection of this place ended, or was stolen.
    fn give_back(&self, worker: &Worker, number: u32) {
        worker.admission.figures.connections.subtract(1);
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.deadline = None;
        if place.timer != TimerId::NONE {
            worker.timers.borrow_mut().remove(place.timer);
            place.timer = TimerId::NONE;
        }
        self.free.borrow_mut().push(number);
    }

    /// Bytes have come for an idle connection: it waits for its turn in the backlog.
    pub(crate) fn readable(&self, worker: &Worker, real: &RealTwin, number: u32, sequence: u32) {
        let mut places = self.places.borrow_mut();
        let Some(place) = places.get_mut(number as usize) else { return };
        if place.sequence != sequence {
            return;
        }
        let Some(mut task) = place.task.take() else { return };
        drop(places);
        if worker.is_stopping() {
            return;
        }
        let exact = real.group.admission.exact_times();
        task.since_ticks = if exact { ticks() } else { worker.turn_ticks() };
        let left = real.backlog(worker).push(task);
        for number in left {
            self.give_back(worker, number);
        }
    }

    /// A fiber for the connection of this worker's backlog that has waited longest.
    pub(super) fn start_next(worker: &Worker, real: &RealTwin) -> Option<u32> {
        let backlog = real.backlog(worker);
        let settings = &real.group.admission;
        let now = worker.turn_ticks();
        if backlog.len() == 0 || !worker.admission.is_open(settings, backlog.has_urgent(), now) {
            return None;
        }
        let task = backlog.pop(now.saturating_sub(settings.kick_up_ticks()))?;
        Some(worker.prepare_statement("connection", move || Self::run(task)))
    }

    /// Takes over connections that wait in another worker's backlog; true if there were any.
    pub(super) fn steal(worker: &Worker, real: &RealTwin) -> bool {
        let stolen = real.group.steal(worker.number, |task: &mut Box<Task>| task.place.take());
        let found = !stolen.is_empty();
        CONNECTIONS_MOVED.add(stolen.len() as u64);
        worker.admission.figures.stolen.add(stolen.len() as u64);
        for task in stolen {
            for number in real.backlog(worker).push(task) {
                real.connections.give_back(worker, number);
            }
        }
        found
    }

    /// The lazy timer of a place fires.
    pub(crate) fn timer(&self, worker: &Worker, real: &RealTwin, number: u32, now: Instant) {
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.timer = TimerId::NONE;
        let (Some(task), Some(deadline)) = (&place.task, place.deadline) else { return };
        if deadline > now {
            let target = TimerTarget::Connection(number);
            place.timer = worker.timers.borrow_mut().insert(deadline.as_nanos(), target);
            return;
        }
        let fd = task.fd();
        let token = Token::Connection { place: number, sequence: place.sequence };
        // The completion of the cancelled poll must find another sequence number.
        place.sequence = (place.sequence + 1) & SEQUENCE_MASK;
        let task = place.task.take();
        drop(places);
        real.event_loop.poll_cancel(worker, fd, token);
        if let Some(mut task) = task {
            task.stream.set_timed_out(true);
            worker.start("connection", worker.number, move || Self::run(task));
        }
    }

    /// Drops all connections that wait when the worker ends.
    pub(crate) fn close_all(&self, backlog: &Backlog<Box<Task>>) {
        let tasks: Vec<_> =
            self.places.borrow_mut().iter_mut().filter_map(|place| place.task.take()).collect();
        drop(tasks);
        drop(backlog.clear());
    }
}

impl Place {
    fn timer_deadline(&self, timers: &crate::timer::Timers<TimerTarget>) -> Option<u64> {
        (self.timer != TimerId::NONE).then(|| timers.deadline(self.timer))
    }
}
