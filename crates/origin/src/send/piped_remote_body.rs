//! Bodies with a single range of a remote object. The range passes through a pipe and is not
//! cached.

use super::body_parts::{PlannedPart, file_ranges};
use futures_util::stream;
use net::body::BodyError;
use net::{Body, BodyPart, Chunk};
use std::sync::Arc;
use store::{Error, RemoteObject, RequestReason, SplicedData, SplicedRange};

/// The parts that have not been sent yet. The order of the fields is the order of sending.
struct PipedRemoteBody {
    before: Vec<BodyPart>,
    spliced: Option<SplicedRange>,
    after: Vec<BodyPart>,
}

/// Builds a body if the parts contain exactly one file range and this range may be passed through.
/// The first bytes of the range have arrived when this function returns.
pub(super) async fn build_piped_remote_body(
    object: &Arc<RemoteObject>,
    pieces: &[PlannedPart],
    reason: RequestReason,
) -> Result<Option<Body>, Error> {
    let mut all = file_ranges(pieces);
    let (Some(range), None) = (all.next(), all.next()) else {
        return Ok(None);
    };
    let Some(spliced) = object.splice_range(range, reason).await? else {
        return Ok(None);
    };
    let made = |piece: &PlannedPart| piece.as_memory_bytes().map(|_| piece.to_body_part());
    let pass_through = PipedRemoteBody {
        before: pieces.iter().map_while(made).collect(),
        spliced: Some(spliced),
        after: pieces.iter().rev().map_while(made).collect(),
    };
    let len = pieces.iter().map(PlannedPart::len).sum();
    let frames = stream::try_unfold(pass_through, |mut pass_through| async {
        let chunk = pass_through.next_chunk().await.map_err(BodyError::new)?;
        Ok::<_, BodyError>(chunk.map(|chunk| (chunk, pass_through)))
    });
    Ok(Some(Body::sized_stream(len, frames)))
}

impl PipedRemoteBody {
    async fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        if !self.before.is_empty() {
            let before = std::mem::take(&mut self.before);
            return Ok(Some(Chunk::from_parts(None, before)));
        }
        if let Some(spliced) = &mut self.spliced {
            match spliced.next_data().await? {
                Some(SplicedData::Bytes(bytes)) => return Ok(Some(bytes.into())),
                Some(SplicedData::Piped(pipe, bytes)) => {
                    return Ok(Some(Chunk::from_pipe(pipe, bytes)));
                }
                None => self.spliced = None,
            }
        }
        let mut after = std::mem::take(&mut self.after);
        after.reverse();
        Ok((!after.is_empty()).then(|| Chunk::from_parts(None, after)))
    }
}
