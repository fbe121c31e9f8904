//! The body of a cached object. The body grows while the origin sends it, and is then complete.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use net::{Body, Chunk};
use store::cache::{BodyFailure, GrowingBody};
use store::{Arena, TierBodySource};

use crate::disk_body::DiskBody;

/// Size of a repacked chunk. Larger chunks would take longer to allocate, and smaller chunks would
/// need more system calls.
const PIECE_BYTES: usize = 1 << 20;
/// Minimum mean size, in bytes, of received chunks that are stored without repacking. Each chunk
/// costs a few hundred bytes of memory and one entry in the buffer list of a system call.
const LEFT_BYTES_MIN: u64 = 16 << 10;
/// Minimum size, in bytes, of bodies that move to the arena. Smaller bodies are copied into the
/// socket. Sending a smaller body from the arena would cost as much as this copy, because the arena
/// needs an extra system call and leaves part of a page unused.
const SENT_BYTES_MIN: usize = 64 << 10;
/// Weight of an open and mapped file in the memory tier, in bytes. The weight does not depend on
/// the file's size. It limits the open files to 16,384 per GiB of the memory tier.
const FILED_BYTES: u64 = 64 << 10;

/// A body that all its readers share.
#[derive(Debug, Default)]
pub struct SharedObjectBody {
    /// The chunks received so far. If the complete body is in memory, its chunks also stay here.
    pub growing: Arc<GrowingBody>,
    /// The complete body, readable without a lock.
    complete: OnceLock<CompleteBody>,
}

/// Location of a complete body.
#[derive(Debug)]
enum CompleteBody {
    Heap(Vec<Bytes>),
    /// In the arena, whose pages the kernel sends without a copy.
    Arena(Vec<Bytes>),
    File(DiskBody),
}

impl SharedObjectBody {
    /// Creates a complete body that is stored in a file of the disk tier.
    pub fn from_disk(filed: DiskBody) -> SharedObjectBody {
        SharedObjectBody {
            growing: Arc::default(),
            complete: OnceLock::from(CompleteBody::File(filed)),
        }
    }

    /// Returns the number of bytes received so far.
    pub fn len(&self) -> u64 {
        match self.complete.get() {
            Some(CompleteBody::Heap(pieces) | CompleteBody::Arena(pieces)) => {
                pieces.iter().map(|piece| piece.len() as u64).sum()
            }
            Some(CompleteBody::File(filed)) => filed.len(),
            None => self.growing.len(),
        }
    }

    /// Returns the body's weight in the memory tier, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match self.disk_file() {
            Some(_) => FILED_BYTES,
            None => self.len(),
        }
    }

    /// Returns whether the body is complete.
    pub fn is_complete(&self) -> bool {
        self.complete.get().is_some()
    }

    /// Returns the chunks of a complete body in memory.
    pub fn complete_chunks(&self) -> Option<&[Bytes]> {
        match self.complete.get() {
            Some(CompleteBody::Heap(pieces) | CompleteBody::Arena(pieces)) => Some(pieces),
            _ => None,
        }
    }

    /// Returns a response body that consists of `piece`, which must be this body's only chunk.
    pub fn single_chunk_response_body(&self, piece: &Bytes) -> Body {
        match self.complete.get() {
            Some(CompleteBody::Arena(_)) => Body::from_chunk(Chunk::from_arena(piece.clone())),
            _ => Body::from_bytes(piece.clone()),
        }
    }

    /// Returns a response body that consists of `slices`, which are slices of this body's chunks.
    pub fn response_body_from_slices(&self, slices: Vec<Bytes>) -> Body {
        match self.complete.get() {
            Some(CompleteBody::Arena(_)) => Body::from_arena(slices),
            _ => Body::from_pieces(slices),
        }
    }

    /// Returns the file of a complete body on disk.
    pub fn disk_file(&self) -> Option<&DiskBody> {
        match self.complete.get() {
            Some(CompleteBody::File(filed)) => Some(filed),
            _ => None,
        }
    }

    /// Returns a complete body in the form that the disk tier writes.
    pub fn to_tier_body(&self) -> Option<TierBodySource> {
        Some(match self.complete.get()? {
            CompleteBody::Heap(pieces) | CompleteBody::Arena(pieces) => {
                TierBodySource::Memory(pieces.clone())
            }
            CompleteBody::File(filed) => filed.to_tier_body(),
        })
    }

    /// Ends the body with an error.
    pub fn end_with_error(&self, why: &str) {
        self.growing.end_body(Err(BodyFailure(why.into())));
    }

    /// Completes the body. Chunks that are small, or that retain larger buffers, are repacked.
    /// Callers set `exact` if no chunk retains memory beyond its own bytes.
    pub fn mark_complete(&self, exact: bool) {
        self.growing.end_body(Ok(()));
        let Some(received) = self.growing.pieces_if_complete() else {
            return;
        };
        let pieces = if exact && self.len() >= received.len() as u64 * LEFT_BYTES_MIN {
            received
        } else {
            let pieces = repack_chunks(received);
            self.growing.replace_blocks(pieces.clone());
            pieces
        };
        // Only the fetch calls this function, and only once, so no body has been set before.
        let _ = self.complete.set(CompleteBody::Heap(pieces));
    }

    /// Returns whether the body should move to the arena, from which the kernel sends bytes without
    /// a copy.
    pub fn belongs_in_arena(&self) -> bool {
        let long =
            |pieces: &[Bytes]| pieces.iter().map(Bytes::len).sum::<usize>() >= SENT_BYTES_MIN;
        matches!(self.complete.get(), Some(CompleteBody::Heap(pieces)) if long(pieces))
    }

    /// Copies the body into the arena. Returns `None` if the body does not belong in the arena, or
    /// if the arena is full.
    pub fn copy_to_arena(&self, arena: &Arena) -> Option<SharedObjectBody> {
        let heap_body = self.complete.get().filter(|_| self.belongs_in_arena());
        let Some(CompleteBody::Heap(pieces)) = heap_body else {
            return None;
        };
        // If the arena is full, the body stays on the heap.
        let copied = arena
            .copy_into_arena(pieces.iter().map(AsRef::as_ref))
            .ok()?;
        let pieces = vec![copied.bytes().clone()];
        Some(SharedObjectBody {
            growing: Arc::new(GrowingBody::from_complete_body(pieces.clone())),
            complete: OnceLock::from(CompleteBody::Arena(pieces)),
        })
    }
}

fn repack_chunks(chunks: Vec<Bytes>) -> Vec<Bytes> {
    let mut rest: usize = chunks.iter().map(Bytes::len).sum();
    let (mut pieces, mut piece) = (Vec::new(), BytesMut::with_capacity(rest.min(PIECE_BYTES)));
    for mut part in chunks {
        while !part.is_empty() {
            let room = piece.capacity() - piece.len();
            let now = part.split_to(part.len().min(room.max(1)));
            piece.extend_from_slice(&now);
            rest -= now.len();
            if piece.len() >= PIECE_BYTES {
                pieces.push(std::mem::take(&mut piece).freeze());
                piece = BytesMut::with_capacity(rest.min(PIECE_BYTES));
            }
        }
    }
    if !piece.is_empty() {
        pieces.push(piece.freeze());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_body_is_repacked_without_changes() {
        for sizes in [
            &[][..],
            &[1],
            &[3, 5],
            &[PIECE_BYTES],
            &[700_000; 5],
            &[PIECE_BYTES + 1, 2],
        ] {
            let content = SharedObjectBody::default();
            let mut all = Vec::new();
            for (n, size) in sizes.iter().enumerate() {
                let part: Vec<u8> = (0..*size).map(|i| (i * 7 + n) as u8).collect();
                all.extend_from_slice(&part);
                content.growing.append_bytes(part.into());
            }
            assert_eq!(content.complete_chunks(), None);
            content.mark_complete(false);
            let pieces = content.complete_chunks().unwrap();
            assert_eq!(pieces.concat(), all);
            assert_eq!(content.len(), all.len() as u64);
            assert_eq!(pieces.len(), all.len().div_ceil(PIECE_BYTES));
            let laid = content.copy_to_arena(&Arena::new(1 << 30));
            assert_eq!(laid.is_some(), all.len() >= SENT_BYTES_MIN);
            if let Some(laid) = laid {
                assert_eq!(laid.complete_chunks().unwrap().concat(), all);
                assert_eq!(laid.growing.pieces_if_complete().unwrap().concat(), all);
            }
        }
    }

    #[test]
    fn large_exact_chunks_are_not_copied() {
        for (size, stays) in [(LEFT_BYTES_MIN, true), (LEFT_BYTES_MIN - 1, false)] {
            let content = SharedObjectBody::default();
            let came: Vec<Bytes> = (0..4u8).map(|n| vec![n; size as usize].into()).collect();
            came.iter()
                .for_each(|piece| content.growing.append_bytes(piece.clone()));
            content.mark_complete(true);
            let kept = content.complete_chunks().unwrap();
            assert_eq!(kept.concat(), came.concat());
            assert_eq!(kept[0].as_ptr() == came[0].as_ptr(), stays);
        }
    }
}
