//! Recycled buffers for reads. Reading into new memory costs about twice as much, because the
//! kernel clears each page when it is first used.

use bytes::BytesMut;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The length of each kind of recycled buffer, and the maximum number of stored buffers of this
/// kind. The longest kind is first.
const SHELVES: [(usize, usize); 3] = [(256 << 10, 96), (64 << 10, 128), (16 << 10, 256)];
/// Maximum number of stored buffers that are checked in the search for a free buffer.
const PROBES: usize = 4;

/// A pool of buffers of a few lengths. Some stored buffers may still have readers. A buffer is free
/// once all bytes that were split off from it have been dropped.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    shelves: [Mutex<VecDeque<BytesMut>>; SHELVES.len()],
}

/// A buffer that is being filled.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: BytesMut,
    /// Index of the buffer's kind in `SHELVES`; `None` if the buffer is not recycled.
    shelf: Option<usize>,
}

impl ReadBuffers {
    /// Returns an empty buffer of at most `wanted` bytes. The received bytes may be cached in the
    /// buffer itself, so a longer buffer would waste memory.
    pub(crate) fn take_buffer(&self, wanted: usize) -> ReadBuffer {
        let Some(shelf) = SHELVES.iter().position(|(len, _)| *len <= wanted) else {
            return ReadBuffer::new_unrecycled(wanted);
        };
        let fresh = || BytesMut::with_capacity(SHELVES[shelf].0);
        ReadBuffer {
            bytes: self.take_free(shelf).unwrap_or_else(fresh),
            shelf: Some(shelf),
        }
    }

    fn take_free(&self, shelf: usize) -> Option<BytesMut> {
        let mut buffers = self.lock_shelf(shelf);
        // Starts with the most recently used buffer, which is likely to be in the processor's
        // cache.
        for _ in 0..PROBES {
            let mut buffer = buffers.pop_back()?;
            if buffer.try_reclaim(SHELVES[shelf].0) {
                return Some(buffer);
            }
            buffers.push_front(buffer);
        }
        None
    }

    /// Returns a buffer to the pool. The buffer may still have readers.
    pub(crate) fn recycle(&self, buffer: ReadBuffer) {
        let ReadBuffer { mut bytes, shelf } = buffer;
        let Some(shelf) = shelf else {
            return;
        };
        bytes.clear();
        let mut buffers = self.lock_shelf(shelf);
        if buffers.len() == SHELVES[shelf].1 {
            // Buffers at the front were in use when last checked, or were recycled longest ago.
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
    /// Creates a buffer of exactly `len` bytes, which is not recycled.
    pub(crate) fn new_unrecycled(len: usize) -> ReadBuffer {
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
        let mut first = buffers.take_buffer(300_000);
        let address = first.as_ptr();
        first.extend_from_slice(b"film");
        let split = first.split().freeze();
        buffers.recycle(first);
        let second = buffers.take_buffer(300_000);
        assert_ne!(second.as_ptr(), address, "its bytes are still in use");
        assert_eq!(&split[..], b"film");
        drop(split);
        let third = buffers.take_buffer(256 << 10);
        assert_eq!(third.as_ptr(), address);
        assert_eq!((third.len(), third.capacity()), (0, 256 << 10));
    }

    #[test]
    fn shelves_are_bounded_and_short_buffers_fit() {
        let buffers = ReadBuffers::default();
        let taken: Vec<_> = (0..2 * SHELVES[1].1)
            .map(|_| buffers.take_buffer(64 << 10))
            .collect();
        taken.into_iter().for_each(|buffer| buffers.recycle(buffer));
        assert_eq!(buffers.lock_shelf(1).len(), SHELVES[1].1);
        assert_eq!(buffers.take_buffer(100).capacity(), 100);
    }
}
