//! Atomics and the mutex of code that runs side by side without a lock around it all.
//!
//! Usually these are the standard library's. With `--cfg loom` they are those of `loom`, which
//! runs a test once for every order and every visibility of stores that the memory model allows:
//! so the model tests (`cargo xtask model`) run the very code that the server runs. Only what is
//! modelled uses them; everything else names the standard library.
//!
//! A model is worth what it finds: beside each stands a defect, planted by [`planted!`] at the
//! line that matters, which the model must find.

#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub use loom::sync::{Mutex, MutexGuard};
#[cfg(loom)]
pub use loom::{cell::UnsafeCell, sync::Notify, thread};

#[cfg(not(loom))]
pub use std::hint::spin_loop;
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub use std::sync::{Mutex, MutexGuard};

/// Locks; a mutex whose holder panicked is locked all the same, because whoever uses this keeps
/// nothing half changed across a call that may panic.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether the named defect was planted by [`explore`]; false, at no cost, outside models.
#[macro_export]
macro_rules! planted {
    ($name:literal) => {
        ::core::cfg!(loom) && $crate::mutant::is_on($name)
    };
}

/// Runs `model` in every order with up to `preemptions` switches away from a thread that could
/// go on, with the named defect planted if a name is given. Panics like the model does, and when
/// all threads wait.
#[cfg(loom)]
pub fn explore(preemptions: usize, defect: Option<&str>, model: impl Fn() + Send + Sync + 'static) {
    struct Healed;
    impl Drop for Healed {
        fn drop(&mut self) {
            crate::mutant::switch(None);
        }
    }
    // Defects are the process's: one model at a time.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let _healed = Healed;
    crate::mutant::switch(defect);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
