//! Atomics and the mutex of code that runs side by side without a lock around it all.
//!
//! Usually these are the standard library's. With `--cfg loom` they are those of `loom`, which
//! runs a test once for every order and every visibility of stores that the memory model allows:
//! so the model tests (`cargo xtask model`) run the very code that the server runs. Only what is
//! modelled uses them; everything else names the standard library.

#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(loom)]
pub use loom::{model, thread};

#[cfg(not(loom))]
pub use std::hint::spin_loop;
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub use std::sync::{Arc, Mutex, MutexGuard};

/// Locks; a mutex whose holder panicked is locked all the same, because whoever uses this keeps
/// nothing half changed across a call that may panic.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
