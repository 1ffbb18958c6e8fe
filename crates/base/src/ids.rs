//! Identifiers as newtypes, so that a page number cannot be passed for a log position.

use std::fmt;

macro_rules! identifier {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The identifier zero, which stands for "none" wherever zero is not a real value.
            pub const ZERO: Self = Self(0);

            /// The plain number.
            #[inline]
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}", self.0)
            }
        }
    };
}

macro_rules! identifier_new {
    ($($name:ident($inner:ty)),*) => {$(
        impl $name {
            /// The identifier with this number.
            #[inline]
            pub const fn new(number: $inner) -> Self {
                Self(number)
            }
        }
    )*};
}

identifier! {
    /// Number of a logical page, an index into the translation array. 48 bits are used.
    PageId(u64)
}
identifier! {
    /// Log sequence number: a byte position in the one log, never reused.
    Lsn(u64)
}
identifier! {
    /// Identifier of a transaction.
    TrxId(u64)
}
identifier! {
    /// Identifier of a tree in the page store (a table's or an index's B+tree, a system tree).
    TreeId(u32)
}
identifier! {
    /// Identifier of a table, stable over renames and schema changes.
    TableId(u64)
}
identifier! {
    /// Identifier of an index within the server, stable over renames.
    IndexId(u32)
}
identifier_new!(Lsn(u64), TrxId(u64), TreeId(u32), TableId(u64), IndexId(u32));

impl PageId {
    /// Page numbers have this many bits on disk and in the translation array.
    pub const BITS: u32 = 48;
    /// The largest page number.
    pub const MAX: Self = Self((1 << Self::BITS) - 1);

    /// The page with this number. Panics above [`PageId::MAX`]: numbers read from disk are
    /// checked by the decoder with [`PageId::checked`].
    #[inline]
    pub const fn new(number: u64) -> Self {
        assert!(number <= Self::MAX.0, "page number above 48 bits");
        Self(number)
    }

    /// The page with this number, or `None` above [`PageId::MAX`].
    #[inline]
    pub const fn checked(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }
}

impl Lsn {
    /// The largest position, used as "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// The position this many bytes later.
    #[inline]
    pub const fn advance(self, length_bytes: u64) -> Self {
        Self(self.0 + length_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_numbers_have_48_bits() {
        assert_eq!(PageId::checked((1 << 48) - 1), Some(PageId::MAX));
        assert_eq!(PageId::checked(1 << 48), None);
        assert!(std::panic::catch_unwind(|| PageId::new(1 << 48)).is_err());
    }

    #[test]
    fn printing_names_the_kind() {
        assert_eq!(format!("{:?} {}", Lsn::new(7), Lsn::new(7).advance(3)), "Lsn(7) 10");
    }
}
