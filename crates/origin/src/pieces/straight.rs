//! Pieces around one range of a remote object that passes straight through.

use super::{Piece, ranges};
use bytes::Bytes;
use futures_util::stream;
use net::body::Cut;
use net::{Body, Chunk};
use std::sync::Arc;
use store::{Came, Error, Reason, RemoteObject, Straight};

/// What is still to be sent, in this order.
struct Coming {
    before: Vec<Bytes>,
    straight: Option<Straight>,
    after: Vec<Bytes>,
}

/// Makes a body of pieces, if they are such, and their bytes may pass so. It has begun to come when
/// this returns.
pub(super) async fn body(
    object: &Arc<RemoteObject>,
    pieces: &[Piece],
    reason: Reason,
) -> Result<Option<Body>, Error> {
    let mut all = ranges(pieces);
    let (Some(range), None) = (all.next(), all.next()) else {
        return Ok(None);
    };
    let Some(straight) = object.straight(range, reason).await? else {
        return Ok(None);
    };
    let made = |piece: &Piece| match piece {
        Piece::Made(bytes) => Some(bytes.clone()),
        Piece::Of(_) => None,
    };
    let coming = Coming {
        before: pieces.iter().map_while(made).collect(),
        straight: Some(straight),
        after: pieces.iter().rev().map_while(made).collect(),
    };
    let len = pieces.iter().map(Piece::len).sum();
    let frames = stream::try_unfold(coming, |mut coming| async {
        let chunk = coming.next().await.map_err(Cut::new)?;
        Ok::<_, Cut>(chunk.map(|chunk| (chunk, coming)))
    });
    Ok(Some(Body::stream(len, frames)))
}

impl Coming {
    async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        if !self.before.is_empty() {
            return Ok(Some(Chunk::pieces(std::mem::take(&mut self.before))));
        }
        if let Some(straight) = &mut self.straight {
            match straight.next().await? {
                Some(Came::Bytes(bytes)) => return Ok(Some(bytes.into())),
                Some(Came::Piped(pipe, bytes)) => return Ok(Some(Chunk::piped(pipe, bytes))),
                None => self.straight = None,
            }
        }
        let mut after = std::mem::take(&mut self.after);
        after.reverse();
        Ok((!after.is_empty()).then(|| Chunk::pieces(after)))
    }
}
