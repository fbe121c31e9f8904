//! Bodies from a remote object. The bytes are forwarded as they arrive, without a copy.

use super::body_parts::{PlannedPart, file_ranges};
use super::body_source::BodySource;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use net::body::BodyError;
use net::{Body, Chunk};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use store::{Error, RangeReader, RemoteObject, RequestReason};

/// A frame is sent when it has at least this size, or when no more bytes have arrived.
const FRAME_BYTES: u64 = 1 << 20;
/// Frame size on connections that copy bodies. This size is smaller, because each frame remains in
/// memory until the client has received the frame, and the client may be slow.
const COPIED_FRAME_BYTES: u64 = 128 << 10;

/// The parts that have not been sent yet, and the reader that delivers their bytes.
pub(crate) struct PartStream {
    pieces: VecDeque<PlannedPart>,
    parts: RangeReader,
    frame_bytes: u64,
}

/// Builds a body. The first bytes are available when this function returns.
pub(super) async fn build_remote_object_body(
    object: &Arc<RemoteObject>,
    pieces: &[PlannedPart],
    source: &BodySource,
) -> Result<Body, Error> {
    let len: u64 = pieces.iter().map(PlannedPart::len).sum();
    let mut stream_state =
        PartStream::request_parts(object, pieces, source.sibling_ranges(), source.reason).await?;
    if source.is_copied {
        stream_state.frame_bytes = COPIED_FRAME_BYTES;
    }
    let first = stream_state
        .next_chunk()
        .await?
        .unwrap_or_else(|| Chunk::from_pieces(Vec::new()));
    if first.len() == len {
        return Ok(Body::from_chunk(first));
    }
    let frames = stream::try_unfold(
        (Some(first), stream_state),
        |(first, mut stream_state)| async {
            let frame = match first {
                Some(first) => Some(first),
                None => stream_state.next_chunk().await.map_err(BodyError::new)?,
            };
            Ok::<_, BodyError>(frame.map(|chunk| (chunk, (None, stream_state))))
        },
    );
    Ok(Body::sized_stream(len, frames))
}

/// Reads parts into memory. The result contains one buffer per part.
pub(super) async fn read_parts(
    object: &Arc<RemoteObject>,
    pieces: &[PlannedPart],
    sibling_ranges: &[Range<u64>],
    reason: RequestReason,
) -> Result<Vec<Bytes>, Error> {
    let lens: Vec<u64> = pieces.iter().map(PlannedPart::len).collect();
    let mut stream_state =
        PartStream::request_parts(object, pieces, sibling_ranges, reason).await?;
    let mut out = Vec::with_capacity(lens.len());
    let mut parts = VecDeque::new();
    for len in lens {
        let mut part_bytes = Vec::new();
        while (part_bytes.len() as u64) < len {
            let Some(mut part): Option<Bytes> = parts.pop_front() else {
                let frame = stream_state.next_frame().await?.ok_or(Error::Changed)?;
                parts.extend(
                    frame
                        .iter()
                        .filter_map(PlannedPart::as_memory_bytes)
                        .cloned(),
                );
                continue;
            };
            let wanted = usize::try_from(len).unwrap_or(usize::MAX) - part_bytes.len();
            let taken = part.split_to(wanted.min(part.len()));
            part_bytes.extend_from_slice(&taken);
            if !part.is_empty() {
                parts.push_front(part);
            }
        }
        out.push(part_bytes.into());
    }
    Ok(out)
}

impl PartStream {
    pub(super) async fn request_parts(
        object: &Arc<RemoteObject>,
        pieces: &[PlannedPart],
        sibling_ranges: &[Range<u64>],
        reason: RequestReason,
    ) -> Result<PartStream, Error> {
        let wanted = file_ranges(pieces).collect();
        Ok(PartStream {
            parts: object
                .open_range_reader(wanted, sibling_ranges, reason)
                .await?,
            pieces: pieces.to_vec().into(),
            frame_bytes: FRAME_BYTES,
        })
    }

    async fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        let frame = self.next_frame().await?;
        let parts = |frame: Vec<PlannedPart>| frame.iter().map(PlannedPart::to_body_part).collect();
        Ok(frame.map(|frame| Chunk::from_parts(None, parts(frame))))
    }

    /// Waits until bytes are available, and returns the bytes that have arrived. Stops when the
    /// frame is full. The returned parts are in memory. Returns `None` at the end of the body.
    pub(crate) async fn next_frame(&mut self) -> Result<Option<Vec<PlannedPart>>, Error> {
        let (mut frame, mut len) = (Vec::new(), 0);
        while len < self.frame_bytes {
            let Some(piece) = self.pieces.front_mut() else {
                break;
            };
            let parts = match piece {
                PlannedPart::Generated(_) | PlannedPart::Arena(_) => {
                    len += piece.len();
                    frame.extend(self.pieces.pop_front());
                    continue;
                }
                PlannedPart::FileRange(range) if range.is_empty() => Vec::new(),
                PlannedPart::FileRange(range) => {
                    let parts = match self.parts.next_bytes().now_or_never() {
                        Some(parts) => parts?,
                        None if len > 0 => break,
                        None => self.parts.next_bytes().await?,
                    };
                    range.start += parts.iter().map(|part| part.len() as u64).sum::<u64>();
                    parts
                }
            };
            if piece.len() == 0 {
                self.pieces.pop_front();
            }
            len += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            frame.extend(parts.into_iter().map(PlannedPart::Generated));
        }
        Ok((len > 0).then_some(frame))
    }
}
