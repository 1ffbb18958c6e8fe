//! What the memory for pages is used for.

use super::Frames;
use crate::header::{CLASS_MAX, CLASS_MIN, class_bytes};
use base::primitives::Ordering;

/// See [`crate::PageStore::pool`]. All bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// Of all frames.
    pub bytes: u64,
    /// Of frames that hold no page.
    pub free_bytes: u64,
    /// Of chunks that hold deltas instead of pages.
    pub lent_bytes: u64,
}

impl PoolFigures {
    /// Of frames that hold a page, are about to, or are of a chunk that is being emptied.
    pub fn data_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.free_bytes + self.lent_bytes)
    }
}

impl Frames {
    /// What the frames are used for, while that goes on changing.
    pub(crate) fn figures(&self) -> PoolFigures {
        let free_of =
            |class: u8| self.counts(class).free.load(Ordering::Relaxed) * class_bytes(class);
        let unassigned = self.unassigned.lock().len() * self.chunk_bytes();
        let free: usize = (CLASS_MIN..=CLASS_MAX).map(free_of).sum();
        PoolFigures {
            bytes: self.bytes() as u64,
            free_bytes: (free + unassigned) as u64,
            lent_bytes: (self.bytes() - self.page_bytes()) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_taken_is_not_free() {
        let frames = Frames::new(1 << 20, false, 1).expect("small pool");
        let fresh = frames.figures();
        assert_eq!((fresh.data_bytes(), fresh.lent_bytes), (0, 0));
        assert_eq!(fresh.free_bytes, fresh.bytes);
        let first = frames.take_free(13).expect("a free frame");
        assert!(frames.take_free(14).is_some());
        assert_eq!(frames.figures().data_bytes(), (8 << 10) + (16 << 10));
        frames.give_back(first, 13);
        assert_eq!(frames.figures().data_bytes(), 16 << 10);
    }
}
