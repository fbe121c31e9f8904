//! A response's bytes before they are bytes: what we made, and ranges of an open file.

use crate::error;
use bytes::Bytes;
use futures_util::stream;
use net::body::Cut;
use net::{Body, Chunk, Error};
use std::ops::Range;
use std::sync::Arc;
use store::{Object, Reason};

/// A part of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of our own.
    Made(Bytes),
    /// Bytes of the file.
    Of(Range<u64>),
}

/// Parts of one file, and how they may be brought.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) object: Arc<Object>,
    pub(crate) reason: Reason,
    /// Whether user code will look at the bytes (TLS, HTTP/2): then they are read, not mapped.
    pub(crate) touched: bool,
}

/// Bodies up to this are one frame, so that head and body leave in one write.
const FRAME_BYTES_MAX: u64 = 4 << 20;
/// Longer ones leave in frames of this, each brought in while the one before leaves.
const CHUNK_BYTES: u64 = 1 << 20;
/// What is in memory and no longer than this is read at once; the rest by a thread that may wait.
const READ_NOW_BYTES_MAX: u64 = 1 << 20;

impl Piece {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Piece::Made(bytes) => bytes.len() as u64,
            Piece::Of(range) => range.end - range.start,
        }
    }

    /// The part of this piece that lies in `range`, counted from its own begin.
    fn cut(&self, range: Range<u64>) -> Piece {
        match self {
            // Within the piece's length, which is a usize.
            Piece::Made(bytes) => {
                Piece::Made(bytes.slice(range.start as usize..range.end as usize))
            }
            Piece::Of(of) => Piece::Of(of.start + range.start..of.start + range.end),
        }
    }
}

/// The pieces of `range`, which counts over all of them together.
pub(crate) fn cut(pieces: &[Piece], range: &Range<u64>) -> Vec<Piece> {
    let mut begin = 0;
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let end = begin + piece.len();
        let (from, to) = (range.start.max(begin), range.end.min(end));
        if from < to {
            out.push(piece.cut(from - begin..to - begin));
        }
        begin = end;
    }
    out
}

/// Makes a body of pieces. Short ones are complete when this returns, so that what is wrong can
/// still be said with a status.
pub(crate) async fn body(source: Source, pieces: Vec<Piece>) -> Result<Body, Error> {
    let len: u64 = pieces.iter().map(Piece::len).sum();
    if len <= FRAME_BYTES_MAX {
        let bytes = source
            .bring(pieces)
            .await
            .map_err(|e| error::of_store(&e))?;
        return Ok(Body::pieces(bytes));
    }
    let chunks = stream::try_unfold(
        (source, pieces, 0),
        move |(source, pieces, at)| async move {
            if at >= len {
                return Ok(None);
            }
            let next = len.min(at + CHUNK_BYTES);
            let bytes = source
                .bring(cut(&pieces, &(at..next)))
                .await
                .map_err(Cut::new)?;
            Ok::<_, Cut>(Some((Chunk::pieces(bytes), (source, pieces, next))))
        },
    );
    Ok(Body::stream(len, chunks))
}

impl Source {
    /// Turns pieces into bytes: slices of the mapped file where the kernel alone will see them,
    /// else copies.
    async fn bring(&self, pieces: Vec<Piece>) -> Result<Vec<Bytes>, store::Error> {
        if self.touched {
            return self.read(pieces).await;
        }
        let cold: Vec<_> = ranges(&pieces)
            .filter(|range| !self.object.resident(range))
            .collect();
        if !cold.is_empty() {
            let source = self.clone();
            blocking(move || {
                cold.into_iter()
                    .try_for_each(|range| source.object.warm(range, source.reason))
            })
            .await?;
        }
        if self.object.changed() {
            return Err(store::Error::Changed);
        }
        let slice = |piece: &Piece| match piece {
            Piece::Made(bytes) => Some(bytes.clone()),
            Piece::Of(range) => self.object.slice(range.clone(), self.reason),
        };
        match pieces.iter().map(slice).collect() {
            Some(slices) => Ok(slices),
            None => self.read(pieces).await,
        }
    }

    async fn read(&self, pieces: Vec<Piece>) -> Result<Vec<Bytes>, store::Error> {
        if self.is_quick(&pieces) {
            return self.read_now(&pieces);
        }
        let source = self.clone();
        blocking(move || source.read_now(&pieces)).await
    }

    /// Whether reading these takes so little that no other thread need be asked to.
    pub(crate) fn is_quick(&self, pieces: &[Piece]) -> bool {
        let len: u64 = ranges(pieces).map(|range| range.end - range.start).sum();
        len <= READ_NOW_BYTES_MAX && ranges(pieces).all(|range| self.object.resident(&range))
    }

    /// Reads pieces into memory, and makes sure that the file did not change meanwhile. Blocks.
    pub(crate) fn read_now(&self, pieces: &[Piece]) -> Result<Vec<Bytes>, store::Error> {
        let bytes = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Made(bytes) => Ok(bytes.clone()),
                Piece::Of(range) => self.object.read(range.clone(), self.reason),
            })
            .collect::<Result<_, _>>()?;
        if self.object.changed() {
            Err(store::Error::Changed)
        } else {
            Ok(bytes)
        }
    }
}

fn ranges(pieces: &[Piece]) -> impl Iterator<Item = Range<u64>> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Made(_) => None,
        Piece::Of(range) => Some(range.clone()),
    })
}

/// Runs what may wait on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, store::Error> + Send + 'static,
) -> Result<T, store::Error> {
    let task = tokio::task::spawn_blocking(work);
    task.await
        .unwrap_or_else(|e| Err(store::Error::Io(std::io::Error::other(e))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What pieces stand for, over a file in which every byte is its own place.
    fn flat(pieces: &[Piece]) -> Vec<u8> {
        let bytes = |piece: &Piece| match piece {
            Piece::Made(bytes) => bytes.to_vec(),
            Piece::Of(range) => (range.start as u8..range.end as u8).collect(),
        };
        pieces.iter().flat_map(bytes).collect()
    }

    fn any_piece() -> impl Strategy<Value = Piece> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Piece::Made(bytes.into())),
            (0u64..200, 0u64..50).prop_map(|(start, len)| Piece::Of(start..start + len)),
        ]
    }

    proptest! {
        #[test]
        fn cutting_pieces_is_cutting_their_bytes(
            pieces in prop::collection::vec(any_piece(), 0..6), a: u16, b: u16,
        ) {
            let all = flat(&pieces);
            prop_assert_eq!(all.len() as u64, pieces.iter().map(Piece::len).sum::<u64>());
            let (a, b) = (a as usize % (all.len() + 1), b as usize % (all.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            let part = cut(&pieces, &(from as u64..to as u64));
            prop_assert_eq!(flat(&part), &all[from..to]);
        }
    }
}
