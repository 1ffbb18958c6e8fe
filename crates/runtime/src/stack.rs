//! Stacks of fibers: pooled per worker, carved from large mappings, with a guard page each, and
//! the handler that names the fiber when one overflows.

use corosensei::stack::{Stack, StackPointer};
use std::io;
use std::sync::Once;

const PAGE_BYTES: usize = 4096;
/// Stacks mapped at a time.
const STACKS_PER_MAPPING: usize = 32;
/// Idle stacks of a worker that keep their memory although nobody has used them for long.
const WARM_STACKS: usize = 64;
/// Memory of stacks is given back to the system when they were idle for so long at least.
const TRIM_NANOS: u64 = 1_000_000_000;
/// `MADV_GUARD_INSTALL` (kernel 6.13): a guard page without splitting the mapping, so that
/// thousands of stacks stay far below `vm.max_map_count`.
const MADV_GUARD_INSTALL: i32 = 102;

/// One stack; belongs to the pool's mapping.
pub(crate) struct FiberStack {
    base: StackPointer,
    limit: StackPointer,
}

// SAFETY: `base..limit` is a private mapping whose lowest page is a guard (installed in
// `StackPool::map_more`), it lives as long as the pool, and `StackPool::new` enforces the
// minimum size.
unsafe impl Stack for FiberStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.limit
    }
}

struct Mapping {
    start: *mut libc::c_void,
    length: usize,
}

/// The stacks of one worker. All stacks must be back before it is dropped.
pub(crate) struct StackPool {
    stack_bytes: usize,
    idle: Vec<FiberStack>,
    /// How many of the first idle stacks had their memory given back.
    cold: usize,
    /// Fewest idle stacks since the last trim: these were not used in the meantime.
    unused: usize,
    /// When the last trim was.
    trimmed_nanos: u64,
    mappings: Vec<Mapping>,
}

impl StackPool {
    /// A pool of stacks of at least `stack_bytes` without their guard page.
    pub(crate) fn new(stack_bytes: usize) -> Self {
        install_overflow_handler();
        let stack_bytes = stack_bytes.max(4 * PAGE_BYTES).next_multiple_of(PAGE_BYTES);
        Self {
            stack_bytes,
            idle: Vec::new(),
            cold: 0,
            unused: 0,
            trimmed_nanos: 0,
            mappings: Vec::new(),
        }
    }

    /// The addresses of the guard page of a stack whose limit is given.
    pub(crate) fn guard_range(limit: usize) -> std::ops::Range<usize> {
        limit..limit + PAGE_BYTES
    }

    /// Takes a stack, the most recently used one.
    #[inline]
    pub(crate) fn take(&mut self) -> io::Result<FiberStack> {
        if self.idle.is_empty() {
            self.map_more()?;
        }
        let stack = self.idle.pop();
        self.cold = self.cold.min(self.idle.len());
        self.unused = self.unused.min(self.idle.len());
        stack.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
    }

    /// Gives a stack back.
    #[inline]
    pub(crate) fn put(&mut self, stack: FiberStack) {
        self.idle.push(stack);
    }

    /// Gives the memory of long unused stacks back to the system; called when the worker is idle,
    /// which in a busy server is thousands of times a second, with most fibers waiting: so what
    /// counts is what was never needed since the last time. Returns how many stacks are idle.
    pub(crate) fn trim(&mut self, now_nanos: u64) -> usize {
        if now_nanos.saturating_sub(self.trimmed_nanos) < TRIM_NANOS {
            return self.idle.len();
        }
        self.trimmed_nanos = now_nanos;
        let keep_from = self.unused.saturating_sub(WARM_STACKS);
        for stack in &self.idle[self.cold.min(keep_from)..keep_from] {
            let start = stack.limit.get() + PAGE_BYTES;
            // SAFETY: the range is this idle stack without its guard; nobody uses its content.
            unsafe {
                libc::madvise(start as *mut _, stack.base.get() - start, libc::MADV_DONTNEED)
            };
        }
        self.cold = self.cold.max(keep_from);
        self.unused = self.idle.len();
        self.idle.len()
    }

    /// How long an idle worker may sleep until it should trim, if there is something to give back.
    pub(crate) fn trim_within_nanos(&self) -> Option<u64> {
        (self.idle.len() > self.cold + WARM_STACKS).then_some(TRIM_NANOS)
    }

    fn map_more(&mut self) -> io::Result<()> {
        let each = self.stack_bytes + PAGE_BYTES;
        let length = each * STACKS_PER_MAPPING;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.mappings.push(Mapping { start, length });
        // Huge pages would make every idle fiber cost 2 MiB.
        // SAFETY: the range is the mapping just made.
        unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
        for number in 0..STACKS_PER_MAPPING {
            let limit = start as usize + number * each;
            install_guard(limit)?;
            let pointers = (StackPointer::new(limit + each), StackPointer::new(limit));
            if let (Some(base), Some(limit)) = pointers {
                self.idle.push(FiberStack { base, limit });
            }
        }
        Ok(())
    }
}

impl Drop for StackPool {
    fn drop(&mut self) {
        for mapping in &self.mappings {
            // SAFETY: the mapping is ours and every fiber that ran on it has ended.
            unsafe { libc::munmap(mapping.start, mapping.length) };
        }
    }
}

fn install_guard(address: usize) -> io::Result<()> {
    // SAFETY: the page is the lowest of a stack nobody uses yet.
    unsafe {
        if libc::madvise(address as *mut _, PAGE_BYTES, MADV_GUARD_INSTALL) == 0
            || libc::mprotect(address as *mut _, PAGE_BYTES, libc::PROT_NONE) == 0
        {
            return Ok(());
        }
    }
    Err(io::Error::last_os_error())
}

static mut PREVIOUS_HANDLER: std::mem::MaybeUninit<libc::sigaction> =
    std::mem::MaybeUninit::uninit();

/// Installs the handler once per process. It runs on the alternate signal stack that the standard
/// library gives every thread.
fn install_overflow_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is async-signal-safe; `PREVIOUS_HANDLER` is written here only,
        // before the handler can run.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_segmentation_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(libc::SIGSEGV, &action, (&raw mut PREVIOUS_HANDLER).cast());
        }
    });
}

unsafe extern "C" fn on_segmentation_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo; write, sigaction and abort are
    // async-signal-safe; the fiber's name is a static string.
    unsafe {
        let address = (*info).si_addr() as usize;
        if let Some(name) = crate::worker::name_of_overflowed_fiber(address) {
            for part in ["fiber '", name, "' has overflowed its stack\n"] {
                libc::write(2, part.as_ptr().cast(), part.len());
            }
            libc::abort();
        }
        // Not ours: put the former handler back and let the instruction fault again.
        libc::sigaction(signal, (&raw const PREVIOUS_HANDLER).cast(), std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_reused_last_in_first_out() {
        let mut pool = StackPool::new(64 * 1024);
        let first = pool.take().expect("memory");
        let base = first.base.get();
        let guard = StackPool::guard_range(first.limit.get());
        assert!(guard.contains(&first.limit.get()) && !guard.contains(&(base - 1)));
        pool.put(first);
        pool.trim(TRIM_NANOS);
        assert_eq!(pool.take().expect("memory").base.get(), base);
    }

    #[test]
    fn trimming_keeps_the_warm_ones() {
        let mut pool = StackPool::new(64 * 1024);
        let stacks: Vec<_> = (0..100).map(|_| pool.take().expect("memory")).collect();
        stacks.into_iter().for_each(|stack| pool.put(stack));
        assert!(pool.trim_within_nanos().is_some());
        pool.trim(TRIM_NANOS);
        assert_eq!(pool.cold, 0, "they were in use a moment ago");
        pool.trim(2 * TRIM_NANOS - 1);
        assert_eq!(pool.cold, 0, "too early");
        pool.trim(2 * TRIM_NANOS);
        assert_eq!(pool.cold, pool.idle.len() - WARM_STACKS);
        assert_eq!(pool.trim_within_nanos(), None, "the worker may sleep for good");
    }

    /// Fibers that come and go by the hundred keep their memory, and what is cold stays so: both
    /// were given back again at every sleep once.
    #[test]
    fn what_is_used_again_and_again_stays_warm() {
        let mut pool = StackPool::new(64 * 1024);
        for round in 0..10 {
            let stacks: Vec<_> = (0..200).map(|_| pool.take().expect("memory")).collect();
            pool.trim(round * TRIM_NANOS);
            stacks.into_iter().for_each(|stack| pool.put(stack));
            pool.trim(round * TRIM_NANOS + TRIM_NANOS / 2);
            assert_eq!(pool.cold, 0);
        }
        pool.trim(20 * TRIM_NANOS);
        pool.trim(21 * TRIM_NANOS);
        let cold = pool.cold;
        assert!(cold > 0);
        let stack = pool.take().expect("memory");
        pool.trim(22 * TRIM_NANOS);
        pool.put(stack);
        pool.trim(23 * TRIM_NANOS);
        assert_eq!(pool.cold, cold, "cold ones are not given back twice");
    }
}
