//! Mutex and read-write lock for short critical sections.

use crate::guard::{AbortOnPanic, abort_on_panic};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError, TryLockError};

thread_local! {
    /// How many guards of this module the thread holds (not counted in release builds).
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// Called before every switch away from a fiber.
#[inline]
pub(crate) fn assert_none_held() {
    if cfg!(debug_assertions) {
        assert!(HELD.get() == 0, "a fiber waits while it holds a lock for short critical sections");
    }
}

/// Counts a held guard in debug builds, and ends the process when a panic passes it.
#[derive(Debug)]
struct Counted {
    _fatal: AbortOnPanic,
}

impl Counted {
    #[inline]
    fn new() -> Self {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() + 1);
        }
        Self { _fatal: abort_on_panic("a lock was held") }
    }
}

impl Drop for Counted {
    #[inline]
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() - 1);
        }
    }
}

/// A blocked lock within a simulation can only be one that a parked fiber of the same thread
/// holds: it would never become free.
fn refuse_to_block() {
    if crate::worker::try_current().is_some_and(|worker| worker.sim().is_some()) {
        panic!("a lock for short critical sections is held across a wait");
    }
}

/// A mutex for short critical sections; spins briefly, then blocks the worker. A panic while it
/// is held ends the process, because nobody knows what state the data is in.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized> {
    inner: sync::Mutex<T>,
}

/// Unlocks when dropped. Must not be held across a wait.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    _counted: Counted,
    inner: sync::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self { inner: sync::Mutex::new(value) }
    }

    /// The value, when nobody else can have it.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let inner = match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.lock_slowly(),
        };
        MutexGuard { _counted: Counted::new(), inner }
    }

    #[cold]
    fn lock_slowly(&self) -> sync::MutexGuard<'_, T> {
        refuse_to_block();
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks if nobody holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(MutexGuard { _counted: Counted::new(), inner }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(MutexGuard { _counted: Counted::new(), inner: poisoned.into_inner() })
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, which nobody else can have locked.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A read-write lock for short critical sections; rules as for [`Mutex`].
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized> {
    inner: sync::RwLock<T>,
}

/// Unlocks when dropped. Must not be held across a wait.
#[derive(Debug)]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    _counted: Counted,
    inner: sync::RwLockReadGuard<'a, T>,
}

/// Unlocks when dropped. Must not be held across a wait.
#[derive(Debug)]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    _counted: Counted,
    inner: sync::RwLockWriteGuard<'a, T>,
}

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self { inner: sync::RwLock::new(value) }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let inner = match self.inner.try_read() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                refuse_to_block();
                self.inner.read().unwrap_or_else(PoisonError::into_inner)
            }
        };
        RwLockReadGuard { _counted: Counted::new(), inner }
    }

    /// Locks for writing.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let inner = match self.inner.try_write() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                refuse_to_block();
                self.inner.write().unwrap_or_else(PoisonError::into_inner)
            }
        };
        RwLockWriteGuard { _counted: Counted::new(), inner }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
