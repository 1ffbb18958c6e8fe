//! Served connections: a state object and a socket, without a stack while nothing is to do.

use super::backlog::{Backlog, Queued};
use super::event_loop::{EventLoop, SEQUENCE_MASK, Token};
use super::group::RealTwin;
use super::net::{RealStream, real_here};
use super::outbox::Unsent;
use crate::clock::{Instant, ticks};
use crate::net::{Connection, Next, PREFETCH_STEPS, Stream};
use crate::prefetch;
use crate::timer::TimerId;
use crate::worker::{TimerTarget, Twin, Worker};
use base::metrics::Counter;
use std::cell::RefCell;
use std::os::fd::RawFd;
use std::time::Duration;

/// Connections that went to a worker with less to do.
static CONNECTIONS_MOVED: Counter =
    Counter::new("runtime_connections_moved", "connections moved to a worker with less to do");

/// Connections before whose runs a connection is prepared: the task, the connection's object, and
/// what that knows of.
const PREFETCH_DISTANCE: usize = 2 + PREFETCH_STEPS;

/// A served connection: its state object and its socket.
pub(crate) struct Task {
    connection: Box<dyn Connection>,
    stream: Stream,
    /// Its place in the present worker's table, from its first wait there until it ends or moves.
    place: Option<u32>,
    /// When it came into a backlog last.
    since_ticks: u64,
    /// What it said at the end of its last run: asking again would touch memory that nobody
    /// needs yet.
    is_urgent: bool,
}

impl Queued for Box<Task> {
    fn is_urgent(&self) -> bool {
        self.is_urgent
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
        Box::new(Self { connection, stream, place: None, since_ticks: 0, is_urgent: false })
    }

    /// It is to be run when so many others have been: what its run needs is asked for in steps,
    /// each of which reads what the one before has asked for.
    fn prefetch(&self, distance: usize, connections: &Connections) {
        match PREFETCH_DISTANCE - 1 - distance {
            0 => prefetch(self),
            1 => {
                self.stream.prefetch();
                prefetch(&*self.connection);
                connections.prefetch_place(self.place);
            }
            step => self.connection.prefetch(step - 2, self.stream.received()),
        }
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
    /// How long the present wait may take, without the time until the answer was sent.
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    timer: TimerId,
    /// When that timer fires. Kept here too, since the timers' own memory is far away.
    timer_nanos: u64,
    /// A fiber sends what the kernel did not take of the answer.
    sending: bool,
    /// Bytes came while that fiber was sending.
    readable: bool,
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
        loop {
            let Task { connection, stream, .. } = &mut *task;
            stream.begin_run();
            let next = crate::catch_panic(|| connection.run(stream));
            stream.end_run();
            let Ok((worker, real)) = real_here() else { return };
            match next {
                Ok(Next::WaitReadable { .. }) if stream.has_received() => {
                    // It left something: answered and run again, as if it had waited. A failure
                    // shows when it reads.
                    let _sent = stream.send_held();
                    stream.set_timed_out(false);
                    crate::yield_now();
                }
                Ok(Next::WaitReadable { timeout }) => {
                    task.is_urgent = task.connection.is_urgent();
                    return real.connections.wait(worker, task, timeout);
                }
                Ok(Next::Close) | Err(_) => {
                    // It is closed either way; the client may be gone.
                    let _sent = stream.send_held();
                    return real.connections.remove(worker, &real.event_loop, &task);
                }
            }
        }
    }

    /// Hands over the answer and asks for the next bytes, in this order.
    fn wait(&self, worker: &Worker, mut task: Box<Task>, timeout: Option<Duration>) {
        let Twin::Real(real) = &worker.twin else { return };
        task.stream.set_timed_out(false);
        let (fd, answer) = (task.fd(), task.stream.take_placed());
        let number = task.place.unwrap_or_else(|| {
            worker.admission.figures.connections.add(1);
            self.take_place()
        });
        task.place = Some(number);
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.sequence = (place.sequence + 1) & SEQUENCE_MASK;
        place.task = Some(task);
        place.timeout = timeout;
        place.set_deadline(worker, number);
        if let Some(answer) = answer {
            real.event_loop.send(fd, answer, number, place.sequence);
        }
        let token = Token::Connection { place: number, sequence: place.sequence };
        real.event_loop.receive(fd, token);
    }

    /// The kernel did not take all of an answer: a fiber sends the rest.
    pub(crate) fn unsent(&self, worker: &Worker, unsent: Unsent) {
        let mut places = self.places.borrow_mut();
        let Unsent { place: number, sequence, rest } = unsent;
        let Some(place) = places.get_mut(number as usize) else { return };
        let Some(task) = place.task.as_ref().filter(|_| place.sequence == sequence) else { return };
        let Some(stream) = task.stream.real().cloned() else { return };
        let Some(rest) = rest else {
            // The connection sees the end, at once.
            return stream.shutdown();
        };
        let limit = task.stream.write_timeout();
        place.sending = true;
        place.deadline = None;
        drop(places);
        worker.start("slow client", worker.number, move || {
            let sent = stream.write_all(&rest, || limit.map(|limit| crate::now() + limit));
            if sent.is_err() {
                stream.shutdown();
            }
            if let Ok((worker, real)) = real_here() {
                real.connections.sent(worker, real, number);
            }
        });
    }

    /// The rest of an answer was sent, or never will be.
    fn sent(&self, worker: &Worker, real: &RealTwin, number: u32) {
        let mut places = self.places.borrow_mut();
        let place = &mut places[number as usize];
        place.sending = false;
        place.set_deadline(worker, number);
        if !std::mem::take(&mut place.readable) {
            return;
        }
        let task = place.task.take();
        drop(places);
        if let Some(mut task) = task {
            task.since_ticks = worker.turn_ticks();
            self.enqueue_here_or_there(worker, real, task);
        }
    }

    /// Asks for the memory of a place.
    fn prefetch_place(&self, number: Option<u32>) {
        let places = self.places.borrow();
        if let Some(place) = number.and_then(|number| places.get(number as usize)) {
            prefetch(place);
        }
    }

    /// The receive of this place has ended and is to be delivered soon, see [`Self::received`]:
    /// asks for what that needs, in steps.
    pub(crate) fn prefetch_received(&self, number: u32, step: usize) {
        let places = self.places.borrow();
        let Some(place) = places.get(number as usize) else { return };
        match (step, &place.task) {
            (0, _) => prefetch(place),
            (1, Some(task)) => prefetch(&**task),
            (2, Some(task)) => task.stream.prefetch_room(),
            _ => {}
        }
    }

    fn take_place(&self) -> u32 {
        if let Some(number) = self.free.borrow_mut().pop() {
            return number;
        }
        let mut places = self.places.borrow_mut();
        places.push(Place {
            task: None,
            sequence: 0,
            timeout: None,
            deadline: None,
            timer: TimerId::NONE,
            timer_nanos: 0,
            sending: false,
            readable: false,
        });
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

    /// The receive of an idle connection has ended: with these bytes, or there are some in the
    /// socket, or its end has come, or its timer took the receive back. It waits for its turn in
    /// the backlog.
    pub(crate) fn received(
        &self,
        worker: &Worker,
        real: &RealTwin,
        (number, sequence): (u32, u32),
        result: i32,
        bytes: &[u8],
    ) {
        let mut places = self.places.borrow_mut();
        let Some(place) = places.get_mut(number as usize) else { return };
        if place.sequence != sequence {
            return;
        }
        let Some(task) = &mut place.task else { return };
        task.stream.set_timed_out(result == -libc::ECANCELED);
        task.stream.receive(bytes);
        if place.sending {
            place.readable = true;
            return;
        }
        let task = place.task.take();
        drop(places);
        if let Some(mut task) = task.filter(|_| !worker.is_stopping()) {
            let exact = real.group.admission.exact_times();
            task.since_ticks = if exact { ticks() } else { worker.turn_ticks() };
            self.enqueue_here_or_there(worker, real, task);
        }
    }

    /// Into this worker's backlog; behind a long statement into that of a worker without one; or
    /// into that of a worker that is enough for two.
    fn enqueue_here_or_there(&self, worker: &Worker, real: &RealTwin, task: Box<Task>) {
        let relief = worker.has_long().then(|| real.group.relief_for(worker)).flatten();
        if relief.is_some() {
            real.group.note_spread(worker);
        }
        match relief.or_else(|| real.balance.merges_into()) {
            None => self.enqueue(worker, real, task),
            Some(target) => self.move_to(worker, real, target, task),
        }
    }

    /// Gives a connection that nobody runs, and that has nothing to send, to another worker: what
    /// is to be sent lies in the memory of its worker.
    fn move_to(&self, worker: &Worker, real: &RealTwin, target: usize, mut task: Box<Task>) {
        if let Some(number) = task.place.take() {
            self.give_back(worker, number);
        }
        CONNECTIONS_MOVED.add(1);
        let arrive = move || {
            if let Ok((worker, real)) = real_here() {
                real.connections.enqueue(worker, real, task);
            }
        };
        real.group.start(target, "connection", Box::new(arrive));
    }

    fn enqueue(&self, worker: &Worker, real: &RealTwin, task: Box<Task>) {
        for number in real.backlog(worker).push(task) {
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
        let kick_up = now.saturating_sub(settings.kick_up_ticks());
        let task = backlog.pop_and_look_ahead(kick_up, PREFETCH_DISTANCE, |distance, next| {
            next.prefetch(distance, &real.connections);
        })?;
        real.alone.note_run((&raw const *task).addr(), now);
        Some(worker.prepare_statement("connection", move || Self::run(task)))
    }

    /// Takes over connections that wait in another worker's backlog; true if there were any.
    pub(super) fn steal(worker: &Worker, real: &RealTwin) -> bool {
        let stolen = real.group.steal(worker.number, |task: &mut Box<Task>| task.place.take());
        let found = !stolen.is_empty();
        CONNECTIONS_MOVED.add(stolen.len() as u64);
        worker.admission.figures.stolen.add(stolen.len() as u64);
        if found {
            real.group.note_spread(worker);
        }
        for task in stolen {
            real.connections.enqueue(worker, real, task);
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
            return place.arm(worker, number, deadline);
        }
        let fd = task.fd();
        let token = Token::Connection { place: number, sequence: place.sequence };
        drop(places);
        // Bytes that come at the same moment are not lost: then it was no timeout.
        real.event_loop.poll_cancel(worker, fd, token);
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
    /// The wait begins now.
    fn set_deadline(&mut self, worker: &Worker, number: u32) {
        self.deadline = self.timeout.map(|timeout| worker.turn_time() + timeout);
        let Some(deadline) = self.deadline else { return };
        if self.timer != TimerId::NONE {
            if self.timer_nanos <= deadline.as_nanos() {
                return;
            }
            worker.timers.borrow_mut().remove(self.timer);
        }
        self.arm(worker, number, deadline);
    }

    fn arm(&mut self, worker: &Worker, number: u32, deadline: Instant) {
        let target = TimerTarget::Connection(number);
        self.timer_nanos = deadline.as_nanos();
        self.timer = worker.timers.borrow_mut().insert(self.timer_nanos, target);
    }
}
