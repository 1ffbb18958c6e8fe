//! What the system allows this process, and what it is to give back.

/// Blocks of the C library's allocator from this size on are mapped one by one.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 64 << 10;

/// Has libraries in C give back what they free, at once: contexts and tables for compression, which
/// many threads make. By itself the allocator keeps for each thread about twice as much as the
/// largest block that was ever freed.
pub fn return_freed_c_memory() {
    // SAFETY: sets a number of the allocator, which any thread may do.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
    }
}

/// Raises the limit of open descriptors as far as the system permits without privilege, and
/// returns it. In a simulation sockets are no descriptors, but the answer is the same.
pub fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the limit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return 0;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: a valid limit, not above the hard one.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } {
        0 => raised.rlim_cur,
        _ => limit.rlim_cur,
    }
}

#[cfg(test)]
mod tests {
    /// Resident memory of this process.
    #[cfg(target_os = "linux")]
    fn resident_bytes() -> usize {
        let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
        sizes.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    /// What a library in C does that makes large tables on each of some threads.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_libraries_in_c_have_freed_is_given_back() {
        super::return_freed_c_memory();
        let before = resident_bytes();
        let (freed, has_freed) = std::sync::mpsc::channel();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let freed = freed.clone();
                let (look, is_looked_at) = std::sync::mpsc::channel::<()>();
                let thread = std::thread::spawn(move || {
                    for bytes in [4 << 20, 3 << 20, 3 << 20] {
                        // SAFETY: two blocks of our own, filled and freed.
                        unsafe {
                            let blocks = [libc::malloc(bytes), libc::malloc(bytes)];
                            for block in blocks {
                                libc::memset(block, 7, bytes);
                            }
                            blocks.iter().for_each(|&block| libc::free(block));
                        }
                    }
                    freed.send(()).unwrap();
                    let _ = is_looked_at.recv();
                });
                (thread, look)
            })
            .collect();
        (0..8).for_each(|_| has_freed.recv().unwrap());
        let kept = resident_bytes().saturating_sub(before);
        for (thread, look) in threads {
            drop(look);
            thread.join().unwrap();
        }
        assert!(kept < 16 << 20, "{kept} bytes are still there");
    }

    #[test]
    fn the_limit_is_what_it_says() {
        let raised = super::raise_descriptor_limit();
        assert!(raised > 0);
        assert_eq!(super::raise_descriptor_limit(), raised);
    }
}
