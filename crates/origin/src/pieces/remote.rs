//! Pieces of a remote object: passed on as they come, uncopied.

use super::{Piece, ranges};
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use net::body::Cut;
use net::{Body, Chunk};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use store::{Error, Parts, Reason, RemoteObject};

/// A frame is sent when this much is at hand, or nothing more is.
const FRAME_BYTES: u64 = 1 << 20;

/// Pieces on their way: what we made, and what comes.
struct Coming {
    pieces: VecDeque<Piece>,
    parts: Parts,
}

/// Makes a body of pieces, the first of which is there when this returns.
pub(super) async fn body(
    object: &Arc<RemoteObject>,
    pieces: &[Piece],
    along: &[Range<u64>],
    reason: Reason,
) -> Result<Body, Error> {
    let len: u64 = pieces.iter().map(Piece::len).sum();
    let mut coming = Coming::new(object, pieces, along, reason).await?;
    let first = coming.frame().await?.unwrap_or_default();
    let had: u64 = first.iter().map(|part| part.len() as u64).sum();
    if had == len {
        return Ok(Body::pieces(first));
    }
    let frames = stream::try_unfold((Some(first), coming), |(first, mut coming)| async {
        let frame = match first {
            Some(first) => Some(first),
            None => coming.frame().await.map_err(Cut::new)?,
        };
        Ok::<_, Cut>(frame.map(|parts| (Chunk::pieces(parts), (None, coming))))
    });
    Ok(Body::stream(len, frames))
}

/// All pieces, each in one part.
pub(super) async fn read(
    object: &Arc<RemoteObject>,
    pieces: &[Piece],
    along: &[Range<u64>],
    reason: Reason,
) -> Result<Vec<Bytes>, Error> {
    let lens: Vec<u64> = pieces.iter().map(Piece::len).collect();
    let mut coming = Coming::new(object, pieces, along, reason).await?;
    let mut out = Vec::with_capacity(lens.len());
    let mut parts = VecDeque::new();
    for len in lens {
        let mut whole = Vec::new();
        while (whole.len() as u64) < len {
            let Some(mut part): Option<Bytes> = parts.pop_front() else {
                parts.extend(coming.frame().await?.ok_or(Error::Changed)?);
                continue;
            };
            let wanted = usize::try_from(len).unwrap_or(usize::MAX) - whole.len();
            let here = part.split_to(wanted.min(part.len()));
            whole.extend_from_slice(&here);
            if !part.is_empty() {
                parts.push_front(part);
            }
        }
        out.push(whole.into());
    }
    Ok(out)
}

impl Coming {
    async fn new(
        object: &Arc<RemoteObject>,
        pieces: &[Piece],
        along: &[Range<u64>],
        reason: Reason,
    ) -> Result<Coming, Error> {
        let wanted = ranges(pieces).collect();
        Ok(Coming {
            parts: object.parts(wanted, along, reason).await?,
            pieces: pieces.to_vec().into(),
        })
    }

    /// What there is now, at least something; none at the end.
    async fn frame(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        let (mut frame, mut len) = (Vec::new(), 0);
        while len < FRAME_BYTES {
            let Some(piece) = self.pieces.front_mut() else {
                break;
            };
            let parts = match piece {
                Piece::Made(bytes) => vec![std::mem::take(bytes)],
                Piece::Of(range) if range.is_empty() => Vec::new(),
                Piece::Of(range) => {
                    let parts = match self.parts.next().now_or_never() {
                        Some(parts) => parts?,
                        None if len > 0 => break,
                        None => self.parts.next().await?,
                    };
                    range.start += parts.iter().map(|part| part.len() as u64).sum::<u64>();
                    parts
                }
            };
            if matches!(piece, Piece::Made(_)) || piece.len() == 0 {
                self.pieces.pop_front();
            }
            len += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            frame.extend(parts);
        }
        Ok((len > 0).then_some(frame))
    }
}
