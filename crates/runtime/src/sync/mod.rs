//! Locks and queues for fibers.
//!
//! [`Mutex`] and [`RwLock`] protect short critical sections and are never held across a wait
//! (debug builds check it at every park). What may be held across a wait is [`FiberMutex`] and
//! [`Semaphore`]; conditions are waited for with [`Event`] and [`WaitQueue`].

mod fiber_mutex;
mod lock;
mod queue;
mod semaphore;

pub use fiber_mutex::{FiberMutex, FiberMutexGuard};
pub(crate) use lock::assert_none_held;
pub use lock::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use queue::{Event, WaitQueue};
pub use semaphore::{Permits, Semaphore};
