//! Memory that answers are read into: used again once nobody has bytes of it, since fresh memory
//! costs as much as the bytes do (the kernel clears each page when it is first touched).

use bytes::BytesMut;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Lengths of those that are kept, longest first, and how many of each at most.
const SIZES: [(usize, usize); 2] = [(256 << 10, 96), (64 << 10, 128)];
/// How many are looked at for one that is free.
const LOOKS: usize = 4;

/// Buffers of a few lengths. Those that somebody still has bytes of are among them: they are free
/// when the last of these are let go.
#[derive(Default)]
pub(super) struct Buffers {
    shelves: [Mutex<VecDeque<BytesMut>>; SIZES.len()],
}

/// One of them, while it is filled.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: BytesMut,
    /// Where it belongs.
    shelf: Option<usize>,
}

impl Buffers {
    /// An empty one for up to `wanted` bytes, or fewer, where those come in several. It is never
    /// longer than that, as its bytes may be kept.
    pub(super) fn take(&self, wanted: usize) -> Buffer {
        let Some(shelf) = SIZES.iter().position(|(len, _)| *len <= wanted) else {
            let bytes = BytesMut::with_capacity(wanted);
            return Buffer { bytes, shelf: None };
        };
        Buffer {
            bytes: self
                .free(shelf)
                .unwrap_or_else(|| BytesMut::with_capacity(SIZES[shelf].0)),
            shelf: Some(shelf),
        }
    }

    fn free(&self, shelf: usize) -> Option<BytesMut> {
        let mut all = self.lock(shelf);
        // The one that was used last is likely to be in the core's cache.
        for _ in 0..LOOKS {
            let mut buffer = all.pop_back()?;
            if buffer.try_reclaim(SIZES[shelf].0) {
                return Some(buffer);
            }
            all.push_front(buffer);
        }
        None
    }

    /// Takes one back, of which others may have bytes.
    pub(super) fn give(&self, buffer: Buffer) {
        let Buffer { mut bytes, shelf } = buffer;
        let Some(shelf) = shelf else {
            return;
        };
        bytes.clear();
        let mut all = self.lock(shelf);
        if all.len() == SIZES[shelf].1 {
            // Looked at longest ago, and not free then.
            all.pop_front();
        }
        all.push_back(bytes);
    }

    fn lock(&self, shelf: usize) -> std::sync::MutexGuard<'_, VecDeque<BytesMut>> {
        let shelf = &self.shelves[shelf];
        shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Buffer {
    type Target = BytesMut;

    fn deref(&self) -> &BytesMut {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_nobody_has_bytes_of_it() {
        let buffers = Buffers::default();
        let mut first = buffers.take(300_000);
        let place = first.as_ptr();
        first.extend_from_slice(b"film");
        let kept = first.split().freeze();
        buffers.give(first);
        let second = buffers.take(300_000);
        assert_ne!(second.as_ptr(), place, "somebody still has bytes of it");
        assert_eq!(&kept[..], b"film");
        drop(kept);
        let third = buffers.take(256 << 10);
        assert_eq!(third.as_ptr(), place);
        assert_eq!((third.len(), third.capacity()), (0, 256 << 10));
    }

    #[test]
    fn no_more_are_kept_than_there_may_be() {
        let buffers = Buffers::default();
        let all: Vec<_> = (0..2 * SIZES[1].1)
            .map(|_| buffers.take(64 << 10))
            .collect();
        all.into_iter().for_each(|one| buffers.give(one));
        assert_eq!(buffers.lock(1).len(), SIZES[1].1);
        assert!(
            buffers.take(100).capacity() < 64 << 10,
            "short ones are of their own length"
        );
    }
}
