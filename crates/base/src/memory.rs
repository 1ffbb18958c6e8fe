//! Memory accounts: who may hold how much. A statement's account has the server's as its parent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit and what is charged against it. Charges are the caller's own estimate of what it
/// holds; nothing is allocated here.
#[derive(Debug)]
pub struct MemoryAccount {
    limit_bytes: AtomicU64,
    used_bytes: AtomicU64,
    high_water_bytes: AtomicU64,
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
        if let Some(parent) = &self.parent
            && let Err(refusal) = parent.charge(bytes)
        {
            self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(refusal);
        }
        self.high_water_bytes.fetch_max(wanted_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back `bytes` charged before.
    pub fn release(&self, bytes: u64) {
        let before = self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "released more than was charged");
        if let Some(parent) = &self.parent {
            parent.release(bytes);
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
    /// What a statement forgot to release must not stay charged to the server for ever.
    fn drop(&mut self) {
        let left = *self.used_bytes.get_mut();
        if left > 0
            && let Some(parent) = &self.parent
        {
            parent.release(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_above_the_limit_of_the_parent_too() {
        let server = MemoryAccount::new(100);
        let statement = server.child(80);
        assert_eq!(statement.charge(81), Err(MemoryExceeded { limit_bytes: 80, wanted_bytes: 81 }));
        statement.charge(70).expect("within both limits");
        let other = server.child(80);
        assert_eq!(other.charge(40), Err(MemoryExceeded { limit_bytes: 100, wanted_bytes: 110 }));
        assert_eq!((other.used_bytes(), server.used_bytes()), (0, 70));
        drop(statement);
        assert_eq!(server.used_bytes(), 0);
        assert_eq!(server.high_water_bytes(), 70);
    }
}
