//! What the system allows this process.

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
    #[test]
    fn the_limit_is_what_it_says() {
        let raised = super::raise_descriptor_limit();
        assert!(raised > 0);
        assert_eq!(super::raise_descriptor_limit(), raised);
    }
}
