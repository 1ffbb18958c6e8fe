//! What is going on at this moment, for simulations that cut it off: whoever collects a segment or
//! writes a checkpoint says so for the time, and a simulated crash asks what it interrupted.
//!
//! Kept per thread: a simulation has one, and a fiber does not leave its worker. Builds without
//! debug assertions keep nothing.

use std::cell::RefCell;

thread_local! {
    static NAMES: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Something is under way until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct UnderWay(&'static str);

/// Says that work of this name, such as `"pagestore.collection"`, begins.
pub fn begin(name: &'static str) -> UnderWay {
    if cfg!(debug_assertions) {
        NAMES.with_borrow_mut(|names| names.push(name));
    }
    UnderWay(name)
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            // At the end of a thread there is nobody left to ask.
            let _ = NAMES.try_with(|names| {
                let mut names = names.borrow_mut();
                if let Some(place) = names.iter().rposition(|name| *name == self.0) {
                    names.swap_remove(place);
                }
            });
        }
    }
}

/// What this thread has under way; each name once.
pub fn names() -> Vec<&'static str> {
    let mut names = NAMES.with_borrow(Vec::clone);
    names.sort_unstable();
    names.dedup();
    names
}

/// After a simulated crash: the fibers that had begun it are gone.
pub fn forget_all() {
    NAMES.with_borrow_mut(Vec::clear);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_is_no_longer_under_way() {
        let (first, second) = (begin("one"), begin("two"));
        let again = begin("one");
        drop(first);
        assert_eq!(names(), ["one", "two"]);
        drop((again, second));
        assert_eq!(names(), [""; 0]);
        std::mem::forget(begin("three"));
        forget_all();
        assert_eq!(names(), [""; 0]);
    }
}
