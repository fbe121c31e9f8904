//! One frame of a body: a buffer, many that leave in one vectored write, or bytes in a pipe.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::ended::Progress;
use crate::conn::{InFlight, Piped};

/// Bytes on their way to a socket.
#[derive(Debug)]
pub struct Chunk {
    parts: Parts,
    progress: Option<Arc<Progress>>,
    /// With a body's last chunk: the response is in flight until it has left.
    in_flight: Option<InFlight>,
}

#[derive(Debug)]
enum Parts {
    One(Bytes),
    Many(Pieces),
    /// A slice that is not to be looked at stands for them.
    Piped(Piped),
}

/// Non-empty buffers, of which those before `first` are spent.
#[derive(Debug)]
struct Pieces {
    pieces: Vec<Bytes>,
    first: usize,
    left: usize,
}

impl Chunk {
    /// Many buffers in a row; empty ones are left out.
    pub fn pieces(mut pieces: Vec<Bytes>) -> Chunk {
        pieces.retain(|piece| !piece.is_empty());
        let left = pieces.iter().map(Bytes::len).sum();
        Chunk {
            parts: Parts::Many(Pieces {
                pieces,
                first: 0,
                left,
            }),
            progress: None,
            in_flight: None,
        }
    }

    /// The next `bytes` of those that are in a pipe now, `pipe` being its end for reading. They go from
    /// there to the socket without a copy, unless user code has to see them.
    pub fn piped(pipe: Arc<dyn AsFd + Send + Sync>, bytes: usize) -> Chunk {
        Chunk {
            parts: Parts::Piped(Piped::new(pipe, bytes)),
            progress: None,
            in_flight: None,
        }
    }

    /// The same for whoever sends it: bytes in a pipe are brought into memory, unless `unseen` says
    /// that nobody will look at them.
    ///
    /// # Errors
    /// When they are not there.
    pub(super) fn landed(self, unseen: impl Fn(&Piped) -> bool) -> io::Result<Chunk> {
        match &self.parts {
            Parts::Piped(piped) if !unseen(piped) => {
                let bytes = Bytes::from(piped.clone().read()?);
                let parts = Parts::One(bytes);
                Ok(Chunk { parts, ..self })
            }
            _ => Ok(self),
        }
    }

    /// Bytes left in it.
    pub fn len(&self) -> u64 {
        self.remaining() as u64
    }

    /// True when nothing is left in it.
    pub fn is_empty(&self) -> bool {
        !self.has_remaining()
    }

    /// The same, telling `progress` of each byte that leaves, and keeping `in_flight` until then.
    pub(super) fn watched(
        mut self,
        progress: Option<Arc<Progress>>,
        in_flight: Option<InFlight>,
    ) -> Chunk {
        self.progress = progress;
        self.in_flight = in_flight;
        self
    }
}

impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Chunk {
        Chunk {
            parts: Parts::One(bytes),
            progress: None,
            in_flight: None,
        }
    }
}

impl From<Vec<Bytes>> for Chunk {
    fn from(pieces: Vec<Bytes>) -> Chunk {
        Chunk::pieces(pieces)
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        match &self.parts {
            Parts::One(bytes) => bytes.len(),
            Parts::Many(pieces) => pieces.left,
            Parts::Piped(piped) => piped.left(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match &self.parts {
            Parts::One(bytes) => bytes,
            Parts::Many(pieces) => pieces.pieces.get(pieces.first).map_or(&[], |piece| piece),
            Parts::Piped(piped) => piped.stand_in(),
        }
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        match &self.parts {
            Parts::One(bytes) => bytes.chunks_vectored(into),
            Parts::Many(pieces) => pieces.chunks_vectored(into),
            Parts::Piped(piped) => match into.first_mut() {
                Some(slot) if piped.left() > 0 => {
                    *slot = IoSlice::new(piped.stand_in());
                    1
                }
                _ => 0,
            },
        }
    }

    fn advance(&mut self, count: usize) {
        match &mut self.parts {
            Parts::One(bytes) => bytes.advance(count),
            Parts::Many(pieces) => pieces.advance(count),
            Parts::Piped(piped) => piped.advance(count),
        }
        if let Some(progress) = &self.progress {
            progress.sent(count as u64);
        }
    }
}

impl Pieces {
    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let unsent = self.pieces.get(self.first..).unwrap_or(&[]);
        let slots = into.iter_mut().zip(unsent);
        slots
            .map(|(slot, piece)| *slot = IoSlice::new(piece))
            .count()
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.left, "advanced past the end of a chunk");
        self.left -= count;
        let mut count = count;
        while let Some(piece) = self.pieces.get_mut(self.first) {
            if count < piece.len() {
                piece.advance(count);
                return;
            }
            count -= piece.len();
            // A spent piece lets go of its memory at once.
            *piece = Bytes::new();
            self.first += 1;
        }
    }
}
