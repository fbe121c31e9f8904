//! Recycled memory for reads. Reading into fresh memory costs about twice as much, because the
//! kernel clears each page when it is first touched.

use bytes::BytesMut;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lengths of recycled buffers, longest first, and the number of each that is stored.
const SHELVES: [(usize, usize); 3] = [(256 << 10, 96), (64 << 10, 128), (16 << 10, 256)];
/// Maximum number of buffers that are checked to find a free one.
const PROBES: usize = 4;

/// Buffers of a few lengths. Some may still have readers: a buffer is free once all bytes that were
/// split off it have been dropped.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    shelves: [Mutex<VecDeque<BytesMut>>; SHELVES.len()],
}

/// A buffer while it is filled.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: BytesMut,
    /// Index in `SHELVES` of the list to which it returns; `None` for a length that is not
    /// recycled.
    shelf: Option<usize>,
}

impl ReadBuffers {
    /// Takes an empty buffer of at most `wanted` bytes. The bytes read into it may be cached in
    /// place, so a longer buffer would waste memory.
    pub(crate) fn take(&self, wanted: usize) -> ReadBuffer {
        let Some(shelf) = SHELVES.iter().position(|(len, _)| *len <= wanted) else {
            return ReadBuffer::new_exclusive(wanted);
        };
        let fresh = || BytesMut::with_capacity(SHELVES[shelf].0);
        ReadBuffer {
            bytes: self.take_free(shelf).unwrap_or_else(fresh),
            shelf: Some(shelf),
        }
    }

    fn take_free(&self, shelf: usize) -> Option<BytesMut> {
        let mut buffers = self.lock_shelf(shelf);
        // The buffer that was used last is likely to be in the core's cache.
        for _ in 0..PROBES {
            let mut buffer = buffers.pop_back()?;
            if buffer.try_reclaim(SHELVES[shelf].0) {
                return Some(buffer);
            }
            buffers.push_front(buffer);
        }
        None
    }

    /// Takes a buffer back, which may still have readers.
    pub(crate) fn recycle(&self, buffer: ReadBuffer) {
        let ReadBuffer { mut bytes, shelf } = buffer;
        let Some(shelf) = shelf else {
            return;
        };
        bytes.clear();
        let mut buffers = self.lock_shelf(shelf);
        if buffers.len() == SHELVES[shelf].1 {
            // This buffer was checked longest ago, and was not free then.
            buffers.pop_front();
        }
        buffers.push_back(bytes);
    }

    fn lock_shelf(&self, shelf: usize) -> MutexGuard<'_, VecDeque<BytesMut>> {
        let shelf = &self.shelves[shelf];
        shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadBuffer {
    /// A buffer of exactly this length, which is not recycled.
    pub(crate) fn new_exclusive(len: usize) -> ReadBuffer {
        ReadBuffer {
            bytes: BytesMut::with_capacity(len),
            shelf: None,
        }
    }
}

impl Deref for ReadBuffer {
    type Target = BytesMut;

    fn deref(&self) -> &BytesMut {
        &self.bytes
    }
}

impl DerefMut for ReadBuffer {
    fn deref_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_recycled_once_their_bytes_are_dropped() {
        let buffers = ReadBuffers::default();
        let mut first = buffers.take(300_000);
        let address = first.as_ptr();
        first.extend_from_slice(b"film");
        let split = first.split().freeze();
        buffers.recycle(first);
        let second = buffers.take(300_000);
        assert_ne!(second.as_ptr(), address, "its bytes are still in use");
        assert_eq!(&split[..], b"film");
        drop(split);
        let third = buffers.take(256 << 10);
        assert_eq!(third.as_ptr(), address);
        assert_eq!((third.len(), third.capacity()), (0, 256 << 10));
    }

    #[test]
    fn shelves_are_bounded_and_short_buffers_fit() {
        let buffers = ReadBuffers::default();
        let taken: Vec<_> = (0..2 * SHELVES[1].1)
            .map(|_| buffers.take(64 << 10))
            .collect();
        taken.into_iter().for_each(|buffer| buffers.recycle(buffer));
        assert_eq!(buffers.lock_shelf(1).len(), SHELVES[1].1);
        assert_eq!(buffers.take(100).capacity(), 100);
    }
}
