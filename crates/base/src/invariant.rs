//! Invariants that stay on in release builds.

/// Panics with the place and the message unless the condition holds; always on. For conditions
/// that only a bug in this program can break, never for input. Number the invariants at the head
/// of the file and name the number in the message.
#[macro_export]
macro_rules! invariant {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::invariant_failed(::core::format_args!($($message)+));
        }
    };
}

/// What [`invariant!`] calls; out of line so that the check itself stays small.
#[doc(hidden)]
#[cold]
#[inline(never)]
#[track_caller]
pub fn invariant_failed(message: std::fmt::Arguments<'_>) -> ! {
    panic!("broken invariant: {message}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_the_message() {
        let caught = std::panic::catch_unwind(|| invariant!(1 > 2, "1: order of {}", "numbers"));
        let message = caught.expect_err("the condition is false");
        assert_eq!(
            message.downcast_ref::<String>().map(String::as_str),
            Some("broken invariant: 1: order of numbers")
        );
    }
}
