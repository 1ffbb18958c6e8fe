//! The requests for one key, in order: who waits for whom.

use super::LockMode;
use super::table::KeyBytes;
use crate::owner::{GRANTED, Owner};
use base::TreeId;
use smallvec::SmallVec;
use std::sync::Arc;

/// A lock that is held or wanted.
pub(super) struct Request {
    pub(super) owner: Arc<Owner>,
    pub(super) mode: LockMode,
    pub(super) granted: bool,
}

/// Of one key.
pub(super) type Requests = SmallVec<[Request; 2]>;

/// See invariant 1 of the room.
pub(super) struct Queue {
    pub(super) hash: u64,
    pub(super) tree: TreeId,
    pub(super) key: KeyBytes,
    pub(super) requests: Requests,
}

impl Queue {
    pub(super) fn new(hash: u64, tree: TreeId, key: &[u8]) -> Self {
        Self { hash, tree, key: KeyBytes::from_slice(key), requests: Requests::new() }
    }

    pub(super) fn is_for(&self, tree: TreeId, key: &[u8]) -> bool {
        self.tree == tree && self.key.as_slice() == key
    }

    /// Requests of others that the one at `position` waits for (or would, at the end). A
    /// conversion does not wait for those who wait themselves.
    pub(super) fn blockers<'a>(
        &'a self,
        owner: &'a Arc<Owner>,
        mode: LockMode,
        position: usize,
    ) -> impl Iterator<Item = &'a Request> {
        let converts = self.requests.iter().any(|it| it.granted && Arc::ptr_eq(&it.owner, owner));
        let ahead = self.requests.iter().enumerate();
        ahead
            .filter(move |(at, other)| {
                !Arc::ptr_eq(&other.owner, owner)
                    && (other.granted || (*at < position && !converts))
                    && mode.conflicts(other.mode)
            })
            .map(|(_, other)| other)
    }

    /// Grants what can be granted now.
    pub(super) fn grant(&mut self) {
        // A request ahead that keeps most others waiting: usually it spares looking at the rest.
        let mut barrier = None;
        for position in 0..self.requests.len() {
            let request = &self.requests[position];
            if request.granted {
                if request.mode == LockMode::Exclusive {
                    barrier = Some(position);
                }
                continue;
            }
            let waits_at_barrier = barrier.is_some_and(|at| self.waits_for(position, at));
            let blocked = waits_at_barrier
                || self.blockers(&request.owner, request.mode, position).next().is_some();
            if !blocked {
                self.requests[position].granted = true;
                self.requests[position].owner.decide(GRANTED);
            }
            if !blocked && self.requests[position].mode == LockMode::Exclusive {
                barrier = Some(position);
            }
        }
    }

    /// Whether the request at `position` certainly waits for the granted one at `other`.
    fn waits_for(&self, position: usize, other: usize) -> bool {
        let (request, other) = (&self.requests[position], &self.requests[other]);
        other.granted
            && !Arc::ptr_eq(&request.owner, &other.owner)
            && request.mode.conflicts(other.mode)
    }
}
