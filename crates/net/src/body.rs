//! Response bodies: one chunk, or a stream of chunks.
//!
//! A [`Chunk`] consists of typed parts ([`BodyPart`]): bytes in memory, ranges of a file, pages of an
//! arena, bytes in a pipe. On unencrypted HTTP/1.1 connections our response writer matches on the type
//! and lets the kernel send most parts without a copy. `hyper` serves all other connections; it receives
//! copies in small frames (`copied_frames`).
//!
//! The length is exact, so a response carries `Content-Length`, and a client detects a body that
//! ends early. Only a proxied response may have an unknown length; it then uses chunked framing.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;

pub use self::body_cut::BodyCut;
pub use self::chunk::Chunk;
pub use self::completion::BodyCompletion;
use self::completion::SendProgress;
pub use self::copied_frames::CopiedFrame;
use self::copied_frames::CopyState;
pub use self::incoming::Incoming;
pub use self::part::{BodyFile, BodyPart, PipeBytes};
pub use self::request_body::{RequestBodyFault, read_request_body, relay_request_body};
use crate::conn::InFlight;
use crate::headers::SerializedFields;

mod body_cut;
mod chunk;
mod completion;
mod copied_frames;
mod incoming;
pub(crate) mod part;
mod request_body;

/// A producer of chunks; each is sent as soon as it is available.
type ChunkStream = Pin<Box<dyn Stream<Item = Result<Chunk, BodyCut>> + Send>>;

enum BodySource {
    /// No chunk is left.
    Done,
    /// A single chunk.
    Once(Chunk),
    /// A stream of chunks. `left` bytes remain, if the length is known.
    Stream {
        source: ChunkStream,
        left: Option<u64>,
        given: u64,
    },
}

/// A body. Its exact length is usually known.
pub struct Body {
    kind: BodySource,
    progress: Option<Arc<SendProgress>>,
    /// Marks the response as in flight on its connection.
    in_flight: Option<InFlight>,
    /// The chunk that is being copied into frames, if the connection cannot send without copies.
    copying: Option<Box<CopyState>>,
    /// Fields of the response's head that are not in its map.
    fields: Option<SerializedFields>,
}

impl Body {
    /// Creates a body without bytes.
    pub fn empty() -> Body {
        Body::from_source(BodySource::Done)
    }

    /// Creates a body from one buffer.
    pub fn full(bytes: impl Into<Bytes>) -> Body {
        Body::from_chunk(Chunk::from(bytes.into()))
    }

    /// Creates a body from many buffers, sent as one chunk. Buffers may be empty.
    pub fn from_pieces(pieces: Vec<Bytes>) -> Body {
        Body::from_chunk(Chunk::from_pieces(pieces))
    }

    /// Creates a body from slices of arena memory, sent as one chunk: see [`BodyPart::Arena`].
    pub fn from_arena(slices: Vec<Bytes>) -> Body {
        let parts = slices.into_iter().map(BodyPart::Arena).collect();
        Body::from_chunk(Chunk::from_parts(None, parts))
    }

    /// Creates a body of exactly `len` bytes from an asynchronous producer. If the producer returns
    /// fewer bytes, more bytes or an error, the body is cut.
    pub fn sized_stream<S, C, E>(len: u64, source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<BodyCut>,
    {
        if len == 0 {
            return Body::empty();
        }
        Body::from_chunk_stream(Some(len), source)
    }

    /// Creates a body of unknown length, which only a proxied response should need. It is sent in
    /// chunked framing (HTTP/1.0: until the connection closes).
    pub fn unsized_stream<S, C, E>(source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<BodyCut>,
    {
        Body::from_chunk_stream(None, source)
    }

    fn from_chunk_stream<S, C, E>(left: Option<u64>, source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<BodyCut>,
    {
        let source = Box::pin(ConvertedStream {
            source: Box::pin(source),
        });
        Body::from_source(BodySource::Stream {
            source,
            left,
            given: 0,
        })
    }

    /// Returns the bytes that remain to be sent; 0 if the length is unknown.
    pub fn len(&self) -> u64 {
        match &self.kind {
            BodySource::Done => 0,
            BodySource::Once(chunk) => chunk.len(),
            BodySource::Stream { left, .. } => left.unwrap_or(0),
        }
    }

    /// Returns whether nothing remains to be sent.
    pub fn is_empty(&self) -> bool {
        !self.is_unsized() && self.len() == 0
    }

    /// Returns whether the length is unknown.
    fn is_unsized(&self) -> bool {
        matches!(self.kind, BodySource::Stream { left: None, .. })
    }

    /// Calls `hook` once: when the last byte has been written to the connection, or when the body
    /// is dropped before that.
    ///
    /// Call this before the body is read. If several hooks are set, all of them are called. Times
    /// are only measured if `timed` is set.
    pub fn on_end(
        &mut self,
        timed: bool,
        hook: impl FnOnce(&BodyCompletion) + Send + Sync + 'static,
    ) {
        let inner = self.progress.take();
        let expected = if self.is_unsized() {
            u64::MAX
        } else {
            self.len()
        };
        self.progress = Some(Arc::new(SendProgress::new(
            expected,
            timed,
            inner,
            Box::new(hook),
        )));
    }

    /// Adds these fields to the response's head. The response's header map must not contain them as
    /// well.
    #[must_use]
    pub fn with_serialized_fields(mut self, fields: SerializedFields) -> Body {
        self.fields = Some(fields);
        self
    }

    /// Takes the fields that are not in the response's header map.
    pub(crate) fn take_fields(&mut self) -> Option<SerializedFields> {
        self.fields.take()
    }

    /// Holds `guard` until the response has been sent.
    pub(crate) fn hold_guard(&mut self, guard: InFlight) {
        self.in_flight = Some(guard);
    }

    /// Keeps the length but sends no bytes: the response to HEAD.
    pub(crate) fn discard_bytes(&mut self) {
        self.kind = BodySource::Done;
        if let Some(progress) = &self.progress {
            progress.expect_nothing();
        }
    }

    /// Creates a body from one chunk, which is sent together with the response's head.
    pub fn from_chunk(chunk: Chunk) -> Body {
        if chunk.is_empty() {
            Body::empty()
        } else {
            Body::from_source(BodySource::Once(chunk))
        }
    }

    fn from_source(kind: BodySource) -> Body {
        Body {
            kind,
            progress: None,
            in_flight: None,
            copying: None,
            fields: None,
        }
    }

    /// Returns the next chunk of the source. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the source fails or does not produce the declared length.
    pub async fn next_chunk(&mut self) -> Option<Result<Chunk, BodyCut>> {
        std::future::poll_fn(|cx| self.poll_source(cx)).await
    }

    /// Returns the next chunk for our own response writer. The chunk reports the bytes sent, and
    /// the last chunk keeps the response in flight.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, BodyCut>>> {
        let next = std::task::ready!(self.poll_source(cx));
        Poll::Ready(next.map(|result| match result {
            Ok(chunk) => {
                let in_flight = self
                    .in_flight
                    .take_if(|_| matches!(self.kind, BodySource::Done));
                Ok(chunk.with_progress(self.progress.clone(), in_flight))
            }
            Err(cut) => Err(self.note_failure(cut)),
        }))
    }

    /// Returns whether nothing is left to be produced.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.kind, BodySource::Done)
    }

    /// Returns the length, if it is known.
    pub(crate) fn known_len(&self) -> Option<u64> {
        (!self.is_unsized()).then(|| self.len())
    }

    fn note_failure(&self, cut: BodyCut) -> BodyCut {
        if let Some(progress) = &self.progress {
            progress.note_failure(&cut);
        }
        cut
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, BodyCut>>> {
        let BodySource::Stream {
            source,
            left,
            given,
        } = &mut self.kind
        else {
            return match std::mem::replace(&mut self.kind, BodySource::Done) {
                BodySource::Once(chunk) => Poll::Ready(Some(Ok(chunk))),
                _ => Poll::Ready(None),
            };
        };
        let item = loop {
            match std::task::ready!(source.as_mut().poll_next(cx)) {
                Some(Ok(chunk)) if chunk.is_empty() => continue,
                Some(Ok(chunk)) if left.is_none_or(|left| chunk.len() <= left) => {
                    *given += chunk.len();
                    *left = left.map(|left| left - chunk.len());
                    break Some(Ok(chunk));
                }
                Some(Ok(_)) => {
                    break Some(Err(BodyCut::new(
                        "the source returned more bytes than declared",
                    )));
                }
                Some(Err(cut)) => break Some(Err(cut)),
                None => match left {
                    None => break None,
                    Some(left) => {
                        let what = format_args!("the source ended {left} bytes early");
                        break Some(Err(BodyCut::new(what)));
                    }
                },
            }
        };
        let done = *left == Some(0) || !matches!(item, Some(Ok(_)));
        if item.is_none()
            && let Some(progress) = &self.progress
        {
            progress.expect_bytes(*given);
        }
        if done {
            self.kind = BodySource::Done;
        }
        Poll::Ready(item)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len())
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::empty()
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Body {
        Body::full(bytes)
    }
}

/// A stream that converts its items to [`Chunk`] and [`BodyCut`].
struct ConvertedStream<S> {
    source: Pin<Box<S>>,
}

impl<S, C, E> Stream for ConvertedStream<S>
where
    S: Stream<Item = Result<C, E>>,
    C: Into<Chunk>,
    E: Into<BodyCut>,
{
    type Item = Result<Chunk, BodyCut>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = std::task::ready!(self.source.as_mut().poll_next(cx));
        Poll::Ready(item.map(|result| result.map(Into::into).map_err(Into::into)))
    }
}

#[cfg(test)]
mod tests;
