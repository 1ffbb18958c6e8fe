//! Memory accounts: who may hold how much. A session's account has the server's as its parent.
//!
//! 1. What an account holds never passes its limit, nor what its parent granted it.
//! 2. A child asks its parent for [`GRANT_BYTES`] at a time, or for exactly what is missing when
//!    so much is not to be had: sessions charge for every row, and would otherwise meet at the
//!    server's counter. So a parent's use is what its children may hold, not what they hold.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a child asks its parent for at once.
const GRANT_BYTES: u64 = 256 << 10;

/// A limit and what is charged against it. Charges are the caller's own estimate of what it
/// holds; nothing is allocated here.
#[derive(Debug)]
pub struct MemoryAccount {
    limit_bytes: AtomicU64,
    used_bytes: AtomicU64,
    high_water_bytes: AtomicU64,
    /// What is charged to the parent for this account.
    granted_bytes: AtomicU64,
    parent: Option<Arc<MemoryAccount>>,
}

/// A charge was refused: it would have passed the limit of the account or of a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryExceeded {
    /// The limit that would have been passed.
    pub limit_bytes: u64,
    /// What the account would have held.
    pub wanted_bytes: u64,
}

impl fmt::Display for MemoryExceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit_bytes, wanted_bytes } = self;
        write!(formatter, "memory limit of {limit_bytes} bytes exceeded: {wanted_bytes} needed")
    }
}

impl std::error::Error for MemoryExceeded {}

impl MemoryAccount {
    /// An account of its own.
    pub fn new(limit_bytes: u64) -> Arc<Self> {
        Self::with_parent(limit_bytes, None)
    }

    /// An account whose charges count against the parent too.
    pub fn child(self: &Arc<Self>, limit_bytes: u64) -> Arc<Self> {
        Self::with_parent(limit_bytes, Some(self.clone()))
    }

    fn with_parent(limit_bytes: u64, parent: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            limit_bytes: AtomicU64::new(limit_bytes),
            used_bytes: AtomicU64::new(0),
            high_water_bytes: AtomicU64::new(0),
            granted_bytes: AtomicU64::new(0),
            parent,
        })
    }

    /// Charges `bytes`, or changes nothing and says which limit is in the way.
    pub fn charge(&self, bytes: u64) -> Result<(), MemoryExceeded> {
        let limit_bytes = self.limit_bytes.load(Ordering::Relaxed);
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let wanted_bytes = before.saturating_add(bytes);
        if wanted_bytes > limit_bytes {
            self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(MemoryExceeded { limit_bytes, wanted_bytes });
        }
        if let Some(parent) = &self.parent {
            let granted_bytes = self.granted_bytes.load(Ordering::Relaxed);
            if wanted_bytes > granted_bytes
                && let Err(refusal) = self.ask(parent, wanted_bytes - granted_bytes)
            {
                self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
                return Err(refusal);
            }
        }
        if wanted_bytes > self.high_water_bytes.load(Ordering::Relaxed) {
            self.high_water_bytes.fetch_max(wanted_bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gets a grant of at least `missing_bytes`. Two charges at a time may both get what either
    /// misses: a little too much is granted, never too little.
    fn ask(&self, parent: &Self, missing_bytes: u64) -> Result<(), MemoryExceeded> {
        let generous = missing_bytes.max(GRANT_BYTES);
        let granted = match parent.charge(generous) {
            Ok(()) => generous,
            Err(_) => parent.charge(missing_bytes).map(|()| missing_bytes)?,
        };
        self.granted_bytes.fetch_add(granted, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back `bytes` charged before.
    pub fn release(&self, bytes: u64) {
        let before = self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "released more than was charged");
    }

    /// Gives back all that is charged, and to the parent all but one grant: the end of a
    /// statement. Nobody may charge at the same time.
    pub fn release_all(&self) {
        if self.used_bytes.load(Ordering::Relaxed) > 0 {
            self.used_bytes.store(0, Ordering::Relaxed);
        }
        let granted_bytes = self.granted_bytes.load(Ordering::Relaxed);
        if let Some(parent) = &self.parent
            && granted_bytes > GRANT_BYTES
        {
            parent.release(granted_bytes - GRANT_BYTES);
            self.granted_bytes.store(GRANT_BYTES, Ordering::Relaxed);
        }
    }

    /// What is charged now.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// The most that was ever charged at one time.
    pub fn high_water_bytes(&self) -> u64 {
        self.high_water_bytes.load(Ordering::Relaxed)
    }

    /// From now on the most is counted anew.
    pub fn restart_high_water(&self) {
        self.high_water_bytes.store(self.used_bytes(), Ordering::Relaxed);
    }

    /// The limit.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Changes the limit; charges above it stay, new ones are refused.
    pub fn set_limit_bytes(&self, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
    }
}

impl Drop for MemoryAccount {
    /// What was granted must not stay charged to the parent for ever.
    fn drop(&mut self) {
        let granted_bytes = *self.granted_bytes.get_mut();
        if let Some(parent) = &self.parent {
            parent.release(granted_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_above_the_limit_of_the_parent_too() {
        let server = MemoryAccount::new(100);
        let session = server.child(80);
        assert_eq!(session.charge(81), Err(MemoryExceeded { limit_bytes: 80, wanted_bytes: 81 }));
        session.charge(70).expect("within both limits");
        let other = server.child(80);
        assert_eq!(other.charge(40), Err(MemoryExceeded { limit_bytes: 100, wanted_bytes: 110 }));
        assert_eq!((other.used_bytes(), server.used_bytes()), (0, 70));
        drop(session);
        assert_eq!(server.used_bytes(), 0);
        assert_eq!(server.high_water_bytes(), 70);
    }

    #[test]
    fn a_child_keeps_one_grant_between_statements() {
        let server = MemoryAccount::new(10 * GRANT_BYTES);
        let session = server.child(u64::MAX);
        session.charge(1).expect("within the limit");
        assert_eq!(server.used_bytes(), GRANT_BYTES);
        for _ in 0..50 {
            session.charge(GRANT_BYTES / 10).expect("within the limit");
        }
        assert!(server.used_bytes() >= session.used_bytes());
        assert!(server.used_bytes() < session.used_bytes() + GRANT_BYTES);
        session.release_all();
        assert_eq!((session.used_bytes(), server.used_bytes()), (0, GRANT_BYTES));
        drop(session);
        assert_eq!(server.used_bytes(), 0);
    }
}
