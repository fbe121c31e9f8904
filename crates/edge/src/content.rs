//! The bytes of a kept answer: growing at first, then whole.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use net::{Body, Mapped};
use store::cache::{Broken, Growing};
use store::{Arena, ShelvedBody};

use crate::filed::Filed;

/// Pieces of a kept body: long enough for few system calls, short enough to be had at once.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that came are left as they are if they have so many bytes in the middle: each costs some
/// hundred to remember, and a place in a system call.
const LEFT_BYTES_MIN: u64 = 16 << 10;
/// Shorter bodies are copied: a call to the kernel, and the rest of a page, cost as much.
const SENT_BYTES_MIN: usize = 64 << 10;
/// What an open and mapped file costs, and a bound on how many are open: 16,384 in 1 GiB.
const FILED_BYTES: u64 = 64 << 10;

/// A body, shared by all who read it.
#[derive(Debug, Default)]
pub struct Content {
    /// As it comes; a whole one that lies in memory is here, too.
    pub growing: Arc<Growing>,
    /// Found without a lock.
    whole: OnceLock<Whole>,
}

/// Where a whole body lies.
#[derive(Debug)]
enum Whole {
    Memory(Vec<Bytes>),
    /// In pages that the kernel sends without copying them.
    Sent(Vec<Bytes>, Mapped),
    File(Filed),
}

impl Content {
    /// A whole body in a file.
    pub fn filed(filed: Filed) -> Content {
        Content {
            growing: Arc::default(),
            whole: OnceLock::from(Whole::File(filed)),
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        match self.whole.get() {
            Some(Whole::Memory(pieces) | Whole::Sent(pieces, _)) => {
                pieces.iter().map(|piece| piece.len() as u64).sum()
            }
            Some(Whole::File(filed)) => filed.len(),
            None => self.growing.len(),
        }
    }

    /// What it takes in memory.
    pub fn memory_bytes(&self) -> u64 {
        match self.file() {
            Some(_) => FILED_BYTES,
            None => self.len(),
        }
    }

    /// All of it is here.
    pub fn is_whole(&self) -> bool {
        self.whole.get().is_some()
    }

    /// The pieces of a whole body in memory.
    pub fn pieces(&self) -> Option<&[Bytes]> {
        match self.whole.get() {
            Some(Whole::Memory(pieces) | Whole::Sent(pieces, _)) => Some(pieces),
            _ => None,
        }
    }

    /// Tells a body of these pieces that the kernel can send them without a copy, if so.
    pub fn named(&self, body: Body) -> Body {
        match self.whole.get() {
            Some(Whole::Sent(_, mapped)) => body.of_file(mapped.clone()),
            _ => body,
        }
    }

    /// The file of a whole body on disk.
    pub fn file(&self) -> Option<&Filed> {
        match self.whole.get() {
            Some(Whole::File(filed)) => Some(filed),
            _ => None,
        }
    }

    /// A whole body, to be written to disk.
    pub fn shelved(&self) -> Option<ShelvedBody> {
        Some(match self.whole.get()? {
            Whole::Memory(pieces) | Whole::Sent(pieces, _) => ShelvedBody::Memory(pieces.clone()),
            Whole::File(filed) => filed.shelved(),
        })
    }

    /// It will not be whole, for this reason.
    pub fn cut(&self, why: &str) {
        self.growing.end(Err(Broken(why.into())));
    }

    /// All of it is here: it ends, in pieces that hold just its bytes, and not too short ones. What
    /// HTTP read holds on to buffers that are longer; with `exact`, the pieces are no parts of such.
    pub fn finish(&self, exact: bool) {
        self.growing.end(Ok(()));
        let Some(came) = self.growing.pieces() else {
            return;
        };
        let pieces = if exact && self.len() >= came.len() as u64 * LEFT_BYTES_MIN {
            came
        } else {
            let pieces = packed(came);
            self.growing.repack(pieces.clone());
            pieces
        };
        // Only whoever fetches it comes here, once.
        let _ = self.whole.set(Whole::Memory(pieces));
    }

    /// Whether it is of use to put its bytes where the kernel can send them from.
    pub fn is_to_be_laid(&self) -> bool {
        let long =
            |pieces: &[Bytes]| pieces.iter().map(Bytes::len).sum::<usize>() >= SENT_BYTES_MIN;
        matches!(self.whole.get(), Some(Whole::Memory(pieces)) if long(pieces))
    }

    /// The same bytes there; `None` where that is of no use.
    pub fn laid(&self, arena: &Arena) -> Option<Content> {
        let whole = self.whole.get().filter(|_| self.is_to_be_laid());
        let Some(Whole::Memory(pieces)) = whole else {
            return None;
        };
        // Without room there, ordinary memory will do.
        let kept = arena.keep(pieces.iter().map(AsRef::as_ref)).ok()?;
        let ((address, len), pieces) = (kept.place(), vec![kept.bytes().clone()]);
        let mapped = Mapped::memory(Arc::new(kept), address, len);
        Some(Content {
            growing: Arc::new(Growing::whole(pieces.clone())),
            whole: OnceLock::from(Whole::Sent(pieces, mapped)),
        })
    }
}

fn packed(came: Vec<Bytes>) -> Vec<Bytes> {
    let mut rest: usize = came.iter().map(Bytes::len).sum();
    let (mut pieces, mut piece) = (Vec::new(), BytesMut::with_capacity(rest.min(PIECE_BYTES)));
    for mut part in came {
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
    fn a_finished_body_is_repacked_and_the_same() {
        for sizes in [
            &[][..],
            &[1],
            &[3, 5],
            &[PIECE_BYTES],
            &[700_000; 5],
            &[PIECE_BYTES + 1, 2],
        ] {
            let content = Content::default();
            let mut all = Vec::new();
            for (n, size) in sizes.iter().enumerate() {
                let part: Vec<u8> = (0..*size).map(|i| (i * 7 + n) as u8).collect();
                all.extend_from_slice(&part);
                content.growing.push(part.into());
            }
            assert_eq!(content.pieces(), None);
            content.finish(false);
            let pieces = content.pieces().unwrap();
            assert_eq!(pieces.concat(), all);
            assert_eq!(content.len(), all.len() as u64);
            assert_eq!(pieces.len(), all.len().div_ceil(PIECE_BYTES));
            let laid = content.laid(&Arena::new(1 << 30));
            assert_eq!(laid.is_some(), all.len() >= SENT_BYTES_MIN);
            if let Some(laid) = laid {
                assert_eq!(laid.pieces().unwrap().concat(), all);
                assert_eq!(laid.growing.pieces().unwrap().concat(), all);
            }
        }
    }

    #[test]
    fn pieces_that_fit_stay_where_they_are_unless_they_are_short() {
        for (size, stays) in [(LEFT_BYTES_MIN, true), (LEFT_BYTES_MIN - 1, false)] {
            let content = Content::default();
            let came: Vec<Bytes> = (0..4u8).map(|n| vec![n; size as usize].into()).collect();
            came.iter()
                .for_each(|piece| content.growing.push(piece.clone()));
            content.finish(true);
            let kept = content.pieces().unwrap();
            assert_eq!(kept.concat(), came.concat());
            assert_eq!(kept[0].as_ptr() == came[0].as_ptr(), stays);
        }
    }
}
