//! GET_LOCK and its family: locks that are nothing but names.
//!
//! 1. A lock belongs to a connection and counts how often that took it; it is free when it was
//!    given back as often.
//! 2. A waiter looks again whenever the lock it waits for becomes free; nobody is preferred.
//! 3. What has no owner is not in the table, so it is as small as what is in use.

use runtime::sync::Mutex;
use runtime::{Unparker, WaitClass, Wake};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use types::{SqlError, codes};

struct NamedLock {
    owner: u64,
    count: u64,
    waiters: Vec<Unparker>,
}

/// The named locks of a server.
#[derive(Default)]
pub struct NamedLocks {
    locks: Mutex<HashMap<String, NamedLock>>,
    /// How many there are: connections that end need not look when there is none.
    held: AtomicUsize,
}

impl std::fmt::Debug for NamedLocks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("NamedLocks")
    }
}

fn wake(waiters: Vec<Unparker>) {
    waiters.iter().for_each(Unparker::unpark);
}

impl NamedLocks {
    /// Takes a lock for a connection; false if the time was over before it was free.
    pub fn take(&self, name: &str, owner: u64, timeout: Duration) -> Result<bool, SqlError> {
        let deadline = runtime::now() + timeout;
        loop {
            {
                let mut locks = self.locks.lock();
                match locks.get_mut(name) {
                    None => {
                        let lock = NamedLock { owner, count: 1, waiters: Vec::new() };
                        locks.insert(name.to_string(), lock);
                        self.held.fetch_add(1, Ordering::Relaxed);
                        return Ok(true);
                    }
                    Some(lock) if lock.owner == owner => {
                        lock.count += 1;
                        return Ok(true);
                    }
                    Some(_) if timeout.is_zero() => return Ok(false),
                    Some(lock) => lock.waiters.push(runtime::current_unparker()),
                }
            }
            match runtime::park(WaitClass::Other, Some(deadline)) {
                Wake::Unparked => {}
                Wake::TimedOut => return Ok(false),
                Wake::Cancelled => return Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[])),
            }
        }
    }

    /// Gives a lock back: whether it was the connection's, none if nobody has it.
    pub fn release(&self, name: &str, owner: u64) -> Option<bool> {
        let mut locks = self.locks.lock();
        let lock = locks.get_mut(name)?;
        if lock.owner != owner {
            return Some(false);
        }
        lock.count -= 1;
        if lock.count == 0 {
            let waiters = locks.remove(name).map(|lock| lock.waiters);
            self.held.fetch_sub(1, Ordering::Relaxed);
            drop(locks);
            wake(waiters.unwrap_or_default());
        }
        Some(true)
    }

    /// All locks and the connections that have them, by name.
    pub fn all(&self) -> Vec<(String, u64)> {
        let locks = self.locks.lock();
        let mut all: Vec<_> = locks.iter().map(|(name, lock)| (name.clone(), lock.owner)).collect();
        all.sort();
        all
    }

    /// The connection that has a lock.
    pub fn owner(&self, name: &str) -> Option<u64> {
        self.locks.lock().get(name).map(|lock| lock.owner)
    }

    /// Gives all locks of a connection back; how often it had taken them.
    pub fn release_all(&self, owner: u64) -> u64 {
        if self.held.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let (mut count, mut waiters) = (0, Vec::new());
        let mut locks = self.locks.lock();
        locks.retain(|_, lock| {
            if lock.owner != owner {
                return true;
            }
            count += lock.count;
            waiters.append(&mut lock.waiters);
            self.held.fetch_sub(1, Ordering::Relaxed);
            false
        });
        drop(locks);
        wake(waiters);
        count
    }
}
