//! Buffers for segments that are sent only once. The buffers are reused, so that the kernel need
//! not clear new memory for each segment.

use bytes::Bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Segments longer than this get new memory instead of a recycled buffer.
const BUFFER_BYTES_MAX: usize = 2 << 20;
/// Maximum number of unused buffers in the process. Together with [`BUFFER_BYTES_MAX`], this number
/// limits the memory of unused buffers.
const UNUSED_BUFFERS_MAX: usize = 8;
/// The length of each buffer is a multiple of this value, so that a buffer fits other segments of
/// similar length.
const LENGTH_STEP_BYTES: usize = 256 << 10;

static UNUSED: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A buffer that becomes one of the process's unused buffers when it is dropped.
pub(super) struct RecycledBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl RecycledBuffer {
    /// Returns a buffer of `len` bytes, which may contain bytes of earlier segments. Returns `None`
    /// if `len` exceeds [`BUFFER_BYTES_MAX`].
    pub(super) fn take_or_allocate(len: usize) -> Option<RecycledBuffer> {
        if len > BUFFER_BYTES_MAX {
            return None;
        }
        let new = || vec![0; len.next_multiple_of(LENGTH_STEP_BYTES)];
        let bytes = pop_unused_buffer(len).unwrap_or_else(new);
        Some(RecycledBuffer { bytes, len })
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }

    /// Returns the first `len` bytes.
    pub(super) fn into_bytes(mut self, len: usize) -> Bytes {
        self.len = self.len.min(len);
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for RecycledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for RecycledBuffer {
    fn drop(&mut self) {
        push_unused_buffer(std::mem::take(&mut self.bytes));
    }
}

/// Removes and returns the most recently used buffer that has at least this length.
fn pop_unused_buffer(len: usize) -> Option<Vec<u8>> {
    let mut unused = lock_unused_buffers();
    let fitting = unused.iter().rposition(|bytes| bytes.len() >= len)?;
    Some(unused.remove(fitting))
}

/// Stores an unused buffer. If the maximum number is reached, the least recently used buffer is
/// freed.
fn push_unused_buffer(bytes: Vec<u8>) {
    let mut unused = lock_unused_buffers();
    let _freed = (unused.len() >= UNUSED_BUFFERS_MAX).then(|| unused.remove(0));
    unused.push(bytes);
}

fn lock_unused_buffers() -> MutexGuard<'static, Vec<Vec<u8>>> {
    UNUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_only_after_its_last_slice() {
        let mut buffer = RecycledBuffer::take_or_allocate(300_000).unwrap();
        buffer.as_mut_slice().fill(7);
        let bytes = buffer.into_bytes(299_999);
        let slice = bytes.slice(5..10);
        drop(bytes);
        let mut other = RecycledBuffer::take_or_allocate(299_000).unwrap();
        other.as_mut_slice().fill(8);
        assert_eq!(slice, [7; 5][..]);
        assert_eq!(other.into_bytes(299_000), [8; 299_000][..]);
    }

    #[test]
    fn unused_buffers_hold_bounded_memory() {
        assert!(RecycledBuffer::take_or_allocate(BUFFER_BYTES_MAX + 1).is_none());
        let many: Vec<_> = (0..3 * UNUSED_BUFFERS_MAX)
            .map(|_| RecycledBuffer::take_or_allocate(BUFFER_BYTES_MAX).unwrap())
            .collect();
        drop(many);
        let unused = lock_unused_buffers();
        assert!(unused.len() <= UNUSED_BUFFERS_MAX);
        assert!(unused.iter().all(|bytes| bytes.len() <= BUFFER_BYTES_MAX));
    }
}
