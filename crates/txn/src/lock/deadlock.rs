//! Search for cycles of waits, when a wait begins.

use super::LockTable;
use crate::owner::{Owner, VICTIM};
use runtime::sync::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// Looks for cycles through `start`, whose wait is registered, and decides the wait of one
/// member of each. True when a cycle was found.
///
/// Only cycles through `start` can be new. The edges are read one queue at a time, so a cycle
/// may be out of date when it is complete; it is confirmed edge by edge before a victim is
/// chosen.
pub(super) fn search(table: &LockTable, exclusion: &Mutex<()>, start: &Arc<Owner>) -> bool {
    let _one_at_a_time = exclusion.lock();
    let mut found = false;
    while let Some(cycle) = find_cycle(table, start) {
        if !is_current(table, &cycle) {
            base::probe!("txn.deadlock.stale_cycle");
            if start.wait_point().is_none() {
                break;
            }
            continue;
        }
        found = true;
        let victim = cycle
            .iter()
            .min_by_key(|owner| (owner.weight(), std::cmp::Reverse(owner.number())))
            .expect("a cycle has members");
        base::probe!("txn.deadlock.victim");
        table.deadlocks.remember(table, &cycle, victim);
        victim.decide(VICTIM);
        if Arc::ptr_eq(victim, start) {
            break;
        }
    }
    found
}

/// A path of waits from `start` back to it.
fn find_cycle(table: &LockTable, start: &Arc<Owner>) -> Option<Vec<Arc<Owner>>> {
    let mut path = vec![start.clone()];
    let mut pending = vec![table.blockers_of(start)];
    let mut visited = HashSet::from([start.number()]);
    while let Some(level) = pending.last_mut() {
        let Some(next) = level.pop() else {
            pending.pop();
            path.pop();
            continue;
        };
        if Arc::ptr_eq(&next, start) {
            return Some(path);
        }
        if visited.insert(next.number()) {
            pending.push(table.blockers_of(&next));
            path.push(next);
        }
    }
    None
}

fn is_current(table: &LockTable, cycle: &[Arc<Owner>]) -> bool {
    let next = cycle.iter().cycle().skip(1);
    cycle.iter().zip(next).all(|(waiter, blocker)| {
        table.blockers_of(waiter).iter().any(|other| Arc::ptr_eq(other, blocker))
    })
}
