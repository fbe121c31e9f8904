//! A segment's bytes in memory: in the arena if it has room, otherwise in ordinary memory.

use crate::send::body_parts::PlannedPart;
use bytes::Bytes;
use net::Error;
use store::{Arena, ArenaBytes};

/// A body in memory: [`PlannedPart::Arena`], or [`PlannedPart::Generated`] in ordinary memory.
pub(crate) struct MemoryBody(pub(crate) PlannedPart);

impl MemoryBody {
    /// Copies parts into the arena, or into ordinary memory if the arena is full.
    pub(crate) fn copy_from(parts: &[Bytes], arena: &Arena) -> MemoryBody {
        match arena.copy_parts(parts.iter().map(|part| &part[..])) {
            Ok(arena_bytes) => MemoryBody::from_arena(arena_bytes),
            Err(_) => MemoryBody::from_vec(parts.concat()),
        }
    }

    /// Lets `write` fill up to `len` bytes and return how many it wrote.
    pub(crate) fn write_with(
        arena: &Arena,
        len: usize,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, Error>,
    ) -> Result<MemoryBody, Error> {
        if let Ok(arena_bytes) = arena.fill_with(len, &mut write) {
            return arena_bytes.map(MemoryBody::from_arena);
        }
        let mut bytes = vec![0; len];
        let len = write(&mut bytes)?;
        bytes.truncate(len);
        Ok(MemoryBody::from_vec(bytes))
    }

    fn from_arena(arena_bytes: ArenaBytes) -> MemoryBody {
        MemoryBody(PlannedPart::Arena(arena_bytes.bytes().clone()))
    }

    fn from_vec(bytes: Vec<u8>) -> MemoryBody {
        MemoryBody(PlannedPart::Generated(bytes.into()))
    }
}
