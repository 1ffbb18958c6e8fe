//! What wakes a sleeping worker: an eventfd that its event loop watches. In models
//! a flag that can be waited for stands for it, because `loom` cannot look into the kernel.

#[cfg(loom)]
pub(crate) use modelled::Bell;
#[cfg(not(loom))]
pub(crate) use real::Bell;

#[cfg(not(loom))]
mod real {
    use std::os::fd::RawFd;
    use std::sync::atomic::{AtomicI32, Ordering};

    /// See the head of the file.
    pub(crate) struct Bell(AtomicI32);

    impl Bell {
        pub(crate) fn new() -> Self {
            Self(AtomicI32::new(-1))
        }

        /// The descriptor, made at the first call and kept for ever.
        pub(crate) fn descriptor(&self) -> std::io::Result<RawFd> {
            let present = self.0.load(Ordering::Acquire);
            if present >= 0 {
                return Ok(present);
            }
            // SAFETY: no memory is passed.
            let made = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
            if made < 0 {
                return Err(std::io::Error::last_os_error());
            }
            self.0.store(made, Ordering::Release);
            Ok(made)
        }

        /// Wakes whoever waits for the descriptor, or will wait next.
        #[cold]
        pub(crate) fn ring(&self) {
            let descriptor = self.0.load(Ordering::Acquire);
            if descriptor >= 0 {
                let one = 1u64.to_ne_bytes();
                // SAFETY: eight valid bytes; the counter is far from full, so this does not block.
                unsafe { libc::write(descriptor, one.as_ptr().cast(), 8) };
            }
        }
    }
}

#[cfg(loom)]
mod modelled {
    use base::primitives::Notify;
    use std::os::fd::RawFd;

    /// See the head of the file.
    pub(crate) struct Bell(Notify);

    impl Bell {
        pub(crate) fn new() -> Self {
            Self(Notify::new())
        }

        pub(crate) fn descriptor(&self) -> std::io::Result<RawFd> {
            Err(std::io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn ring(&self) {
            self.0.notify();
        }

        /// What the event loop does: waits for the ring and takes it.
        #[cfg(test)]
        pub(crate) fn wait(&self) {
            self.0.wait();
        }
    }
}
