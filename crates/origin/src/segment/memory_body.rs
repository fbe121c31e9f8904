//! A segment's bytes in memory. Bytes that will be cached are written into the arena. Other bytes
//! are written into a recycled buffer, or into the arena if they do not fit into such a buffer. If
//! the arena has no room, the bytes are in ordinary memory.

use crate::segment::recycled_buffer::RecycledBuffer;
use crate::send::body_parts::PlannedPart;
use bytes::Bytes;
use net::Error;
use std::sync::Arc;
use store::{Arena, ArenaBytes};

/// A body in memory. Its parts are in the arena ([`PlannedPart::Arena`]) or in ordinary memory
/// ([`PlannedPart::Generated`]).
pub(crate) struct MemoryBody(pub(crate) Vec<PlannedPart>);

/// Memory for generated segments.
#[derive(Clone)]
pub(crate) struct SegmentAllocator {
    pub(crate) arena: Arc<Arena>,
    /// Segments with fewer bytes than this will be cached.
    pub(crate) cached_bytes_max: u64,
}

impl SegmentAllocator {
    /// Calls `write` to fill up to `len` bytes of memory. `write` returns the number of bytes that
    /// it wrote. The memory may initially contain any bytes, so `write` must not read bytes that it
    /// has not written.
    ///
    /// The arena is for bytes that are sent more than once. Arena memory must be cleared before
    /// each use, but saves one copy into the socket at each send. For bytes that are sent only
    /// once, clearing costs more than this copy.
    pub(crate) fn allocate_and_write(
        &self,
        len: usize,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, Error>,
    ) -> Result<MemoryBody, Error> {
        if len as u64 >= self.cached_bytes_max
            && let Some(mut buffer) = RecycledBuffer::take_or_allocate(len)
        {
            let len = write(buffer.as_mut_slice())?;
            return Ok(MemoryBody::from_bytes(buffer.into_bytes(len)));
        }
        if let Ok(arena_bytes) = self.arena.fill_with(len, &mut write) {
            return arena_bytes.map(|arena_bytes| MemoryBody::from_arena(&arena_bytes));
        }
        let mut bytes = vec![0; len];
        let len = write(&mut bytes)?;
        bytes.truncate(len);
        Ok(MemoryBody::from_bytes(bytes.into()))
    }

    /// Copies parts into one buffer.
    pub(crate) fn copy_parts(&self, parts: &[Bytes]) -> Result<MemoryBody, Error> {
        let len = parts.iter().map(Bytes::len).sum();
        self.allocate_and_write(len, |out| {
            let mut rest = &mut *out;
            for part in parts {
                let (start, after) = rest.split_at_mut_checked(part.len()).ok_or_else(|| {
                    Error::new_internal_error("a buffer is shorter than its parts")
                })?;
                start.copy_from_slice(part);
                rest = after;
            }
            Ok(len)
        })
    }
}

impl MemoryBody {
    /// Copies parts into the arena, or into ordinary memory if the arena is full.
    pub(crate) fn copy_from(parts: &[Bytes], arena: &Arena) -> MemoryBody {
        match arena.copy_into_arena(parts.iter().map(|part| &part[..])) {
            Ok(arena_bytes) => MemoryBody::from_arena(&arena_bytes),
            Err(_) => MemoryBody::from_bytes(parts.concat().into()),
        }
    }

    /// Returns the body with `head` as an additional part in front.
    pub(crate) fn with_head(mut self, head: Vec<u8>) -> MemoryBody {
        self.0.insert(0, PlannedPart::Generated(head.into()));
        self
    }

    fn from_arena(arena_bytes: &ArenaBytes) -> MemoryBody {
        MemoryBody(vec![PlannedPart::Arena(arena_bytes.bytes().clone())])
    }

    fn from_bytes(bytes: Bytes) -> MemoryBody {
        MemoryBody(vec![PlannedPart::Generated(bytes)])
    }
}
