//! Former versions as differences, in memory and in the log.

use base::TreeId;
use base::difference::Kept;
use wal::UndoKind;

/// How to get the former payload of an entry from the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeImage<'a> {
    /// The payload is the same; only flags changed.
    Same,
    /// The whole former payload.
    Full(&'a [u8]),
    /// Present first `prefix` bytes, then `middle`, then present last `suffix` bytes.
    Patch {
        /// Bytes kept at the start.
        prefix: u32,
        /// Bytes kept at the end.
        suffix: u32,
        /// What was between them.
        middle: &'a [u8],
    },
}

impl<'a> BeforeImage<'a> {
    /// The smaller image that leads from `new` back to `old`.
    pub fn between(old: &'a [u8], new: &[u8]) -> Self {
        Self::keeping(old, new.len(), Kept::between(old, new))
    }

    /// As [`BeforeImage::between`] where it is known what both have in common.
    pub fn keeping(old: &'a [u8], new_len: usize, kept: Kept) -> Self {
        let Kept { front, back } = kept;
        if front == old.len() && front == new_len {
            return Self::Same;
        }
        if front + back < 8 {
            return Self::Full(old);
        }
        let middle = &old[front..old.len() - back];
        Self::Patch { prefix: front as u32, suffix: back as u32, middle }
    }

    /// Replaces `payload`, the present one, by the former one. False when the image does not fit
    /// the payload (damage).
    #[must_use]
    pub fn apply(&self, payload: &mut Vec<u8>) -> bool {
        match *self {
            Self::Same => true,
            Self::Full(old) => {
                payload.clear();
                payload.extend_from_slice(old);
                true
            }
            Self::Patch { prefix, suffix, middle } => {
                let (prefix, suffix) = (prefix as usize, suffix as usize);
                if prefix + suffix > payload.len() {
                    return false;
                }
                let end = payload.len() - suffix;
                if end - prefix == middle.len() {
                    payload[prefix..end].copy_from_slice(middle);
                } else {
                    payload.splice(prefix..end, middle.iter().copied());
                }
                true
            }
        }
    }

    pub(crate) fn parts(&self) -> (u8, u32, u32, &'a [u8]) {
        match *self {
            Self::Same => (0, 0, 0, &[]),
            Self::Full(bytes) => (1, 0, 0, bytes),
            Self::Patch { prefix, suffix, middle } => (2, prefix, suffix, middle),
        }
    }

    pub(crate) fn from_parts(form: u8, prefix: u32, suffix: u32, bytes: &'a [u8]) -> Option<Self> {
        match form {
            0 => Some(Self::Same),
            1 => Some(Self::Full(bytes)),
            2 => Some(Self::Patch { prefix, suffix, middle: bytes }),
            _ => None,
        }
    }
}

/// One change about to be made, for [`crate::Transaction::add_undo`].
#[derive(Clone, Copy, Debug)]
pub struct NewUndo<'a> {
    /// Tree of the entry.
    pub tree: TreeId,
    /// What was done.
    pub kind: UndoKind,
    /// Key of the entry.
    pub key: &'a [u8],
    /// Flags before the change.
    pub before_flags: u8,
    /// Word before the change.
    pub before_word: u64,
    /// Payload before the change.
    pub before: BeforeImage<'a>,
}

/// The "before" bytes of a logged change (`wal::LogicalUndo::before`):
/// `word u64 | before word u64 | before flags u8 | form u8 | prefix u32 | suffix u32 | bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedUndo<'a> {
    /// The word that the change put into the entry.
    pub word: u64,
    /// Word before.
    pub before_word: u64,
    /// Flags before.
    pub before_flags: u8,
    /// Payload before.
    pub before: BeforeImage<'a>,
}

impl<'a> LoggedUndo<'a> {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (form, prefix, suffix, bytes) = self.before.parts();
        out.extend_from_slice(&self.word.to_le_bytes());
        out.extend_from_slice(&self.before_word.to_le_bytes());
        out.extend_from_slice(&[self.before_flags, form]);
        if form == 2 {
            out.extend_from_slice(&prefix.to_le_bytes());
            out.extend_from_slice(&suffix.to_le_bytes());
        }
        out.extend_from_slice(bytes);
    }

    /// Parses; `None` when malformed.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (word, rest) = bytes.split_first_chunk::<8>()?;
        let (before_word, rest) = rest.split_first_chunk::<8>()?;
        let (&[before_flags, form], mut rest) = rest.split_first_chunk::<2>()?;
        let (mut prefix, mut suffix) = (0, 0);
        if form == 2 {
            let (low, after) = rest.split_first_chunk::<4>()?;
            let (high, after) = after.split_first_chunk::<4>()?;
            (prefix, suffix) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
            rest = after;
        }
        Some(Self {
            word: u64::from_le_bytes(*word),
            before_word: u64::from_le_bytes(*before_word),
            before_flags,
            before: BeforeImage::from_parts(form, prefix, suffix, rest)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_lead_back() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"", b""),
            (b"0123456789", b"01234x6789"),
            (b"0123456789", b"01234xxxx6789"),
            (b"aaaaaaaaaaaaaaaa", b"aaaaaaaaaa"),
            (b"short", b"quite another"),
            (b"0123456789tail", b"0123456789"),
        ];
        for (old, new) in cases {
            let image = BeforeImage::between(old, new);
            let mut payload = new.to_vec();
            assert!(image.apply(&mut payload));
            assert_eq!(payload, old, "{image:?}");
            let logged = LoggedUndo { word: 9, before_word: 7, before_flags: 3, before: image };
            let mut bytes = Vec::new();
            logged.encode(&mut bytes);
            assert_eq!(LoggedUndo::parse(&bytes), Some(logged));
        }
        assert_eq!(LoggedUndo::parse(&[0; 17]), None);
        let image = BeforeImage::Patch { prefix: 9, suffix: 9, middle: b"x" };
        assert!(!image.apply(&mut vec![0; 10]));
    }
}
