//! A response's bytes before they are bytes: what we made, and ranges of an open object.

mod local;
mod remote;
mod several;
mod straight;

use crate::error;
use bytes::Bytes;
use net::{Body, Error};
use std::ops::Range;
use std::sync::Arc;
use store::{LocalFile, Object, Reason};

/// A part of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of our own.
    Made(Bytes),
    /// Bytes of the object.
    Of(Range<u64>),
}

/// Parts of one object (or of several, one behind the other), and how they may be brought.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) object: Arc<Object>,
    pub(crate) reason: Reason,
    /// Whether user code will look at the bytes (TLS, HTTP/2): then they are read, not mapped.
    pub(crate) touched: bool,
    /// What of the object is likely to be asked for soon: read along where it lies near, if the
    /// object is remote.
    pub(crate) along: Option<Arc<[Range<u64>]>>,
    /// Objects whose bytes count on where the object's, and then each other's, end.
    pub(crate) behind: Arc<[Arc<Object>]>,
}

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

/// Makes a body of pieces. Its first bytes are there when this returns, so that what is wrong can
/// still be said with a status.
pub(crate) async fn body(source: Source, pieces: Arc<[Piece]>) -> Result<Body, Error> {
    // What waits for a network is boxed: those who do not would keep room for it.
    if !source.behind.is_empty() {
        let body = Box::pin(several::body(source, &pieces)).await;
        return body.map_err(|e| error::of_store(&e));
    }
    if !source.touched
        && let Object::Remote(object) = &*source.object
    {
        let straight = Box::pin(straight::body(object, &pieces, source.reason)).await;
        if let Some(body) = straight.map_err(|e| error::of_store(&e))? {
            return Ok(body);
        }
    }
    one(source, pieces).await.map_err(|e| error::of_store(&e))
}

/// The same of one object, whose bytes may be looked at.
async fn one(source: Source, pieces: Arc<[Piece]>) -> Result<Body, store::Error> {
    match &*source.object {
        Object::Local(file) => local::body(source.local(file), pieces).await,
        // What we made ourselves has nothing to wait for.
        Object::Remote(_) if ranges(&pieces).next().is_none() => Ok(made(&pieces)),
        Object::Remote(object) => {
            let body = remote::body(object, &pieces, source.near(), source.reason);
            Box::pin(body).await
        }
    }
}

/// Brings pieces into memory, each in one part.
pub(crate) async fn read(source: &Source, pieces: &[Piece]) -> Result<Vec<Bytes>, Error> {
    let bytes = match &*source.object {
        Object::Local(file) => source.local(file).read(pieces).await,
        Object::Remote(object) => remote::read(object, pieces, source.near(), source.reason).await,
    };
    bytes.map_err(|e| error::of_store(&e))
}

impl Source {
    /// Whether reading these takes so little that no other thread need be asked to.
    pub(crate) fn is_quick(&self, pieces: &[Piece]) -> bool {
        match &*self.object {
            Object::Local(file) => self.local(file).is_quick(pieces),
            Object::Remote(_) => false,
        }
    }

    /// Whether its bytes are those of a file of this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(&*self.object, Object::Local(_))
    }

    /// Reads pieces into memory, and makes sure that the object did not change meanwhile. Blocks.
    pub(crate) fn read_now(&self, pieces: &[Piece]) -> Result<Vec<Bytes>, store::Error> {
        let piece = |piece: &Piece| match piece {
            Piece::Made(bytes) => Ok(bytes.clone()),
            Piece::Of(range) => self.object.read(range.clone(), self.reason),
        };
        let bytes = pieces.iter().map(piece).collect::<Result<_, _>>()?;
        match self.object.changed() {
            true => Err(store::Error::Changed),
            false => Ok(bytes),
        }
    }

    fn local(&self, file: &Arc<LocalFile>) -> local::Source {
        local::Source {
            file: file.clone(),
            reason: self.reason,
            touched: self.touched,
        }
    }

    fn near(&self) -> &[Range<u64>] {
        self.along.as_deref().unwrap_or_default()
    }
}

fn made(pieces: &[Piece]) -> Body {
    let bytes = pieces.iter().filter_map(|piece| match piece {
        Piece::Made(bytes) => Some(bytes.clone()),
        Piece::Of(_) => None,
    });
    Body::pieces(bytes.collect())
}

fn ranges(pieces: &[Piece]) -> impl Iterator<Item = Range<u64>> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Made(_) => None,
        Piece::Of(range) => Some(range.clone()),
    })
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
