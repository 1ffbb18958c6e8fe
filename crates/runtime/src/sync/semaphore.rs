//! Permits that fibers hold across waits.

use super::Mutex;
use crate::{Instant, Unparker, WaitClass, Wake};
use std::collections::VecDeque;

#[derive(Debug)]
struct State {
    free: u64,
    next_ticket: u64,
    /// Who waits, with how many permits they need. The head is served first, always.
    queue: VecDeque<(u64, u64, Unparker)>,
    /// Tickets whose permits are taken out for them already.
    granted: Vec<u64>,
}

impl State {
    /// Serves the head of the queue as long as it can be served.
    fn grant(&mut self, woken: &mut Vec<Unparker>) {
        while let Some(&(ticket, count, unparker)) = self.queue.front()
            && count <= self.free
        {
            self.free -= count;
            self.queue.pop_front();
            self.granted.push(ticket);
            woken.push(unparker);
        }
    }
}

/// A number of permits, given out in order of asking.
#[derive(Debug)]
pub struct Semaphore {
    state: Mutex<State>,
    class: WaitClass,
}

/// Permits of a [`Semaphore`], given back when dropped.
#[derive(Debug)]
pub struct Permits<'a> {
    semaphore: &'a Semaphore,
    count: u64,
}

impl Semaphore {
    /// A semaphore with this many permits; `class` is what its waiters wait for.
    pub const fn new(permits: u64, class: WaitClass) -> Self {
        let state =
            State { free: permits, next_ticket: 0, queue: VecDeque::new(), granted: Vec::new() };
        Self { state: Mutex::new(state), class }
    }

    /// Takes `count` permits, waiting for them; `Err` says why they were not got.
    pub fn acquire(&self, count: u64, deadline: Option<Instant>) -> Result<Permits<'_>, Wake> {
        self.wait(count, deadline, true).map(|()| Permits { semaphore: self, count })
    }

    /// Takes `count` permits now or not at all.
    pub fn try_acquire(&self, count: u64) -> Option<Permits<'_>> {
        self.take_now(count).then_some(Permits { semaphore: self, count })
    }

    /// Gives `count` permits more; also to give back what [`Permits::forget`] kept.
    pub fn release(&self, count: u64) {
        let mut woken = Vec::new();
        let mut state = self.state.lock();
        state.free += count;
        state.grant(&mut woken);
        drop(state);
        woken.iter().for_each(Unparker::unpark);
    }

    /// How many permits are free.
    pub fn free(&self) -> u64 {
        self.state.lock().free
    }

    pub(super) fn take_now(&self, count: u64) -> bool {
        let mut state = self.state.lock();
        let possible = state.queue.is_empty() && state.free >= count;
        if possible {
            state.free -= count;
        }
        possible
    }

    pub(super) fn wait(
        &self,
        count: u64,
        deadline: Option<Instant>,
        cancellable: bool,
    ) -> Result<(), Wake> {
        if self.take_now(count) {
            return Ok(());
        }
        let unparker = crate::current_unparker();
        let mut state = self.state.lock();
        state.next_ticket += 1;
        let ticket = state.next_ticket;
        state.queue.push_back((ticket, count, unparker));
        let mut woken = Vec::new();
        state.grant(&mut woken);
        drop(state);
        woken.iter().for_each(Unparker::unpark);
        loop {
            let wake = match cancellable {
                true => crate::park(self.class, deadline),
                false => crate::park_uncancellable(self.class, deadline),
            };
            if self.was_granted(ticket) {
                return Ok(());
            }
            if wake != Wake::Unparked {
                self.give_up(ticket);
                return Err(wake);
            }
        }
    }

    fn was_granted(&self, ticket: u64) -> bool {
        let mut state = self.state.lock();
        let place = state.granted.iter().position(|&granted| granted == ticket);
        place.map(|place| state.granted.swap_remove(place)).is_some()
    }

    fn give_up(&self, ticket: u64) {
        let mut woken = Vec::new();
        let mut state = self.state.lock();
        state.queue.retain(|waiter| waiter.0 != ticket);
        // Who stood behind may be content with less.
        state.grant(&mut woken);
        drop(state);
        woken.iter().for_each(Unparker::unpark);
    }
}

impl Permits<'_> {
    /// Keeps the permits taken until [`Semaphore::release`].
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        self.semaphore.release(self.count);
    }
}
