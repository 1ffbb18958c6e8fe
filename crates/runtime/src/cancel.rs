//! Cancel tokens: KILL, statement timeouts, clients that went away.

use crate::park::{Unparker, WaitClass};
use crate::worker;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Why something was cancelled; a later reason overrides an earlier one of lower rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum CancelReason {
    /// `max_statement_time` passed.
    Timeout = 1,
    /// KILL QUERY.
    KillQuery = 2,
    /// The client closed the connection while its statement was running.
    ClientGone = 3,
    /// KILL CONNECTION, or the server shuts down.
    KillConnection = 4,
}

impl CancelReason {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Timeout, Self::KillQuery, Self::ClientGone, Self::KillConnection]
            .into_iter()
            .find(|&reason| reason as u8 == number)
    }
}

#[derive(Debug, Default)]
struct Shared {
    reason: AtomicU8,
    /// 0: it does not wait; else the number of the class plus one.
    waits_for: AtomicU8,
    phase: AtomicU8,
    fibers: Mutex<Vec<Unparker>>,
}

/// Cancels whatever runs under it, see [`with_cancel`]. Clones are the same token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels; may be called from any worker or thread. Every cancellable park of a fiber under
    /// this token returns `Cancelled`, the present one and all later ones.
    pub fn cancel(&self, reason: CancelReason) {
        self.shared.reason.fetch_max(reason as u8, Ordering::SeqCst);
        for fiber in self.fibers().iter() {
            fiber.cancel();
        }
    }

    /// Whether [`CancelToken::cancel`] was called.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.shared.reason.load(Ordering::Acquire) != 0
    }

    /// Why, or `None` when not cancelled.
    pub fn reason(&self) -> Option<CancelReason> {
        CancelReason::from_number(self.shared.reason.load(Ordering::Acquire))
    }

    /// Forgets a [`CancelReason::KillQuery`] or [`CancelReason::Timeout`], so that the session's
    /// next statement runs. False when the connection itself is to end.
    pub fn rearm(&self) -> bool {
        if !self.is_cancelled() {
            return true;
        }
        let forget = |number| (number <= CancelReason::KillQuery as u8).then_some(0);
        self.shared.reason.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forget).is_ok()
    }

    pub(crate) fn set_wait_class(&self, class: Option<WaitClass>) {
        let number = class.map_or(0, |class| class as u8 + 1);
        self.shared.waits_for.store(number, Ordering::Relaxed);
    }

    /// What the fiber under this token waits for now; `None` while it runs or is ready.
    pub fn wait_class(&self) -> Option<WaitClass> {
        let number = self.shared.waits_for.load(Ordering::Relaxed);
        let position = usize::from(number).checked_sub(1)?;
        WaitClass::ALL.get(position).copied()
    }

    /// Asks for its memory, see [`crate::prefetch`].
    #[inline]
    pub fn prefetch(&self) {
        crate::prefetch(&*self.shared);
    }

    /// Notes what the fiber under this token does; the numbers are the caller's.
    #[inline]
    pub fn set_phase(&self, phase: u8) {
        self.shared.phase.store(phase, Ordering::Relaxed);
    }

    /// The number given last to [`CancelToken::set_phase`], at first 0.
    pub fn phase(&self) -> u8 {
        self.shared.phase.load(Ordering::Relaxed)
    }

    fn fibers(&self) -> std::sync::MutexGuard<'_, Vec<Unparker>> {
        self.shared.fibers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `f` with `token` as the current fiber's token; the former one is back afterwards.
pub fn with_cancel<T>(token: &CancelToken, f: impl FnOnce() -> T) -> T {
    struct Restore<'t> {
        token: &'t CancelToken,
        unparker: Unparker,
        former: Option<CancelToken>,
    }
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            let mut fibers = self.token.fibers();
            if let Some(position) = fibers.iter().position(|fiber| *fiber == self.unparker) {
                fibers.swap_remove(position);
            }
            drop(fibers);
            worker::current().set_cancel_token(self.former.take());
        }
    }
    let unparker = crate::current_unparker();
    token.fibers().push(unparker);
    let former = worker::current().set_cancel_token(Some(token.clone()));
    let _restore = Restore { token, unparker, former };
    f()
}

/// Whether the current fiber runs under a token that is cancelled.
pub fn is_current_cancelled() -> bool {
    worker::current().is_current_cancelled()
}

/// The current fiber's token, if it runs under one.
pub fn current_cancel_token() -> Option<CancelToken> {
    worker::current().cancel_token()
}
