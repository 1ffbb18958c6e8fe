//! A mutex that may be held across waits.

use super::Semaphore;
use crate::{Instant, WaitClass, Wake};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A mutex whose holder may park; waiters are served in order.
pub struct FiberMutex<T> {
    permit: Semaphore,
    value: UnsafeCell<T>,
}

// SAFETY: the one permit of the semaphore gives access to the value to one guard at a time.
unsafe impl<T: Send> Send for FiberMutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for FiberMutex<T> {}

impl<T> fmt::Debug for FiberMutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FiberMutex(locked: {})", self.permit.free() == 0)
    }
}

impl<T: Default> Default for FiberMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> FiberMutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self { permit: Semaphore::new(1, WaitClass::FiberMutex), value: UnsafeCell::new(value) }
    }

    /// Locks; a cancelled token does not end the wait.
    pub fn lock(&self) -> FiberMutexGuard<'_, T> {
        while self.permit.wait(1, None, false).is_err() {
            // Only a runtime that is ending gets here; its fibers are unwound.
            assert!(!crate::worker::current().is_halting(), "the runtime is ending");
        }
        self.guard()
    }

    /// Locks unless the deadline comes or the fiber is cancelled before.
    pub fn lock_cancellable(
        &self,
        deadline: Option<Instant>,
    ) -> Result<FiberMutexGuard<'_, T>, Wake> {
        self.permit.wait(1, deadline, true).map(|()| self.guard())
    }

    /// Locks if nobody holds it or waits for it.
    pub fn try_lock(&self) -> Option<FiberMutexGuard<'_, T>> {
        self.permit.take_now(1).then(|| self.guard())
    }

    fn guard(&self) -> FiberMutexGuard<'_, T> {
        FiberMutexGuard { mutex: self, _not_send: PhantomData }
    }

    /// The value, which nobody else can have locked.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Unlocks when dropped.
pub struct FiberMutexGuard<'a, T> {
    mutex: &'a FiberMutex<T>,
    _not_send: PhantomData<*mut ()>,
}

impl<T: fmt::Debug> fmt::Debug for FiberMutexGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl<T> Deref for FiberMutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard has the only permit.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for FiberMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard has the only permit.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for FiberMutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.permit.release(1);
    }
}
