//! Search for cycles of waits, when a wait begins.

use super::LockTable;
use crate::owner::{Owner, VICTIM, WaitNumber};
use runtime::sync::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// Looks for cycles through `start`, whose wait is registered, and decides the wait of one
/// member of each. True when a cycle was found.
///
/// Only cycles through `start` are looked for: who begins a wait names a start that all the new
/// edges lead to or from (invariant 7 of the room). The edges are read one queue at a time, so a
/// cycle may be out of date when it is complete; it is confirmed before a victim is chosen.
pub(super) fn search(table: &LockTable, exclusion: &Mutex<()>, start: &Arc<Owner>) -> bool {
    let _one_at_a_time = exclusion.lock();
    let mut found = false;
    while let Some(cycle) = find_cycle(table, start) {
        let decided = confirm(table, &cycle).and_then(|waits| choose(table, &cycle, &waits));
        let Some(victim) = decided else {
            base::probe!("txn.deadlock.stale_cycle");
            if start.wait_number().is_none() {
                break;
            }
            continue;
        };
        found = true;
        base::probe!("txn.deadlock.victim");
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
        if !visited.insert(next.number()) {
            continue;
        }
        let blockers = table.blockers_of(&next);
        path.push(next);
        // The short way back comes first: a victim on it ends the longer ones, too.
        if blockers.iter().any(|it| Arc::ptr_eq(it, start)) {
            return Some(path);
        }
        pending.push(blockers);
    }
    None
}

/// The waits of the members, if each waits for the next now. An edge between two that wait lasts
/// as long as both waits do: whoever waits neither gives locks back nor takes a request out.
fn confirm(table: &LockTable, cycle: &[Arc<Owner>]) -> Option<Vec<WaitNumber>> {
    let waits = || cycle.iter().map(|owner| owner.wait_number()).collect::<Option<Vec<_>>>();
    let before = waits()?;
    let next = cycle.iter().cycle().skip(1);
    let all_wait = cycle.iter().zip(next).all(|(waiter, blocker)| {
        table.blockers_of(waiter).iter().any(|other| Arc::ptr_eq(other, blocker))
    });
    (all_wait && waits()? == before).then_some(before)
}

/// Tells the lightest member; `None` when its wait has ended meanwhile. What the deadlock was is
/// put together while all wait, and remembered if it was one to the end.
fn choose<'a>(
    table: &LockTable,
    cycle: &'a [Arc<Owner>],
    waits: &[WaitNumber],
) -> Option<&'a Arc<Owner>> {
    let weights = cycle.iter().enumerate();
    let lightest =
        weights.min_by_key(|(_, owner)| (owner.reluctance(), std::cmp::Reverse(owner.number())));
    let (at, victim) = lightest?;
    let view = table.deadlocks.describe(table, cycle, at);
    if !victim.decide_wait(waits[at], VICTIM) {
        return None;
    }
    table.deadlocks.remember(view);
    Some(victim)
}
