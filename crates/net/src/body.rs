//! A response body is one chunk or a stream of chunks.
//!
//! A [`Chunk`] consists of typed parts ([`BodyPart`]): bytes in memory, ranges of a file, pages of
//! an arena, or bytes in a pipe. On unencrypted HTTP/1.1 connections, our response writer chooses
//! the system call by the type of the part. The kernel then sends most parts without a copy.
//! `hyper` serves all other connections and receives copies of the bytes in small frames
//! (`copied_frames`).
//!
//! The length of a body is known exactly. Therefore, a response carries `Content-Length`, and a
//! client detects a body that ends early. Only a proxied response may have an unknown length. Over
//! HTTP/1.1, such a response uses chunked framing.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;

pub use self::body_error::BodyError;
pub use self::chunk::Chunk;
pub use self::completion::BodyCompletion;
use self::completion::SendProgress;
pub use self::copied_frames::CopiedFrame;
use self::copied_frames::CopyState;
pub use self::incoming::Incoming;
pub use self::part::{BodyFile, BodyPart, PipeBytes};
pub use self::request_body::{BodyFaultSlot, read_request_body, relay_request_body};
use crate::conn::InFlight;
use crate::headers::SerializedFields;

mod body_error;
mod chunk;
mod completion;
mod copied_frames;
mod incoming;
pub(crate) mod part;
mod request_body;

/// A producer of chunks. Each chunk is sent as soon as it is available.
type ChunkStream = Pin<Box<dyn Stream<Item = Result<Chunk, BodyError>> + Send>>;

enum BodySource {
    /// All chunks have been produced.
    Done,
    /// A single chunk.
    Once(Chunk),
    /// A stream of chunks. `left` is the number of bytes that are not produced yet, if the length
    /// is known.
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
    /// Counts the response as in flight on its connection.
    in_flight: Option<InFlight>,
    /// The state of copying chunks into frames. Present only if the connection needs copies.
    copying: Option<Box<CopyState>>,
    /// Header fields of the response that are not in the response's header map.
    fields: Option<SerializedFields>,
}

impl Body {
    /// Creates a body without bytes.
    pub fn empty() -> Body {
        Body::from_source(BodySource::Done)
    }

    /// Creates a body from one buffer.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Body {
        Body::from_chunk(Chunk::from(bytes.into()))
    }

    /// Creates a body from several buffers, which are sent as one chunk. Buffers may be empty.
    pub fn from_pieces(pieces: Vec<Bytes>) -> Body {
        Body::from_chunk(Chunk::from_pieces(pieces))
    }

    /// Creates a body from slices of arena memory (see [`BodyPart::Arena`]). The slices are sent as
    /// one chunk.
    pub fn from_arena(slices: Vec<Bytes>) -> Body {
        let parts = slices.into_iter().map(BodyPart::Arena).collect();
        Body::from_chunk(Chunk::from_parts(None, parts))
    }

    /// Creates a body of exactly `len` bytes from an asynchronous producer. The body is cut if the
    /// producer ends early, fails, or returns a chunk that exceeds the remaining length. After
    /// `len` bytes, the producer is not polled again.
    pub fn sized_stream<S, C, E>(len: u64, source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<BodyError>,
    {
        if len == 0 {
            return Body::empty();
        }
        Body::from_chunk_stream(Some(len), source)
    }

    /// Creates a body of unknown length. Use this only for proxied bodies. In HTTP/1.1, the body is
    /// sent in chunked framing. In HTTP/1.0, the end of the connection marks the end of the body.
    pub fn unsized_stream<S, C, E>(source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<BodyError>,
    {
        Body::from_chunk_stream(None, source)
    }

    fn from_chunk_stream<S, C, E>(left: Option<u64>, source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<BodyError>,
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

    /// Returns the number of bytes that the body still contains, or 0 if the length is unknown.
    pub fn len(&self) -> u64 {
        match &self.kind {
            BodySource::Done => 0,
            BodySource::Once(chunk) => chunk.len(),
            BodySource::Stream { left, .. } => left.unwrap_or(0),
        }
    }

    /// Returns whether the body contains no more bytes.
    pub fn is_empty(&self) -> bool {
        !self.is_unsized() && self.len() == 0
    }

    /// Returns whether the length is unknown.
    fn is_unsized(&self) -> bool {
        matches!(self.kind, BodySource::Stream { left: None, .. })
    }

    /// Calls `hook` once, when the last byte has been written to the connection or when the body is
    /// dropped earlier.
    ///
    /// Set the hook before the body is read. If several hooks are set, all of them are called.
    /// Times are measured only if `timed` is true.
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

    /// Adds `fields` to the header of the response. The response's header map must not contain the
    /// same fields.
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

    /// Discards the bytes of the body, as in the response to HEAD. Set `Content-Length` before this
    /// call, because the length of the body becomes 0.
    pub(crate) fn discard_bytes_for_head(&mut self) {
        self.kind = BodySource::Done;
        if let Some(progress) = &self.progress {
            progress.mark_bodiless();
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

    /// Returns the next chunk of the source. No bytes are lost if the future is dropped.
    ///
    /// # Errors
    /// An error if the source fails, or if the source does not produce the declared length.
    pub async fn next_chunk(&mut self) -> Option<Result<Chunk, BodyError>> {
        std::future::poll_fn(|cx| self.poll_source(cx)).await
    }

    /// Returns the next chunk for our own response writer. The chunk reports its sent bytes to the
    /// hooks. The last chunk keeps the response in flight until that chunk is sent.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
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

    /// Returns whether all chunks have been produced.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.kind, BodySource::Done)
    }

    /// Returns the number of bytes that the body still contains, if the length is known.
    pub(crate) fn known_len(&self) -> Option<u64> {
        (!self.is_unsized()).then(|| self.len())
    }

    fn note_failure(&self, cut: BodyError) -> BodyError {
        if let Some(progress) = &self.progress {
            progress.note_failure(&cut);
        }
        cut
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, BodyError>>> {
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
                    break Some(Err(BodyError::new(
                        "the source returned more bytes than declared",
                    )));
                }
                Some(Err(cut)) => break Some(Err(cut)),
                None => match left {
                    None => break None,
                    Some(left) => {
                        let what = format_args!("the source ended {left} bytes early");
                        break Some(Err(BodyError::new(what)));
                    }
                },
            }
        };
        let done = *left == Some(0) || !matches!(item, Some(Ok(_)));
        if item.is_none()
            && let Some(progress) = &self.progress
        {
            progress.set_expected_bytes(*given);
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
        Body::from_bytes(bytes)
    }
}

/// A stream that converts its items to [`Chunk`] and [`BodyError`].
struct ConvertedStream<S> {
    source: Pin<Box<S>>,
}

impl<S, C, E> Stream for ConvertedStream<S>
where
    S: Stream<Item = Result<C, E>>,
    C: Into<Chunk>,
    E: Into<BodyError>,
{
    type Item = Result<Chunk, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = std::task::ready!(self.source.as_mut().poll_next(cx));
        Poll::Ready(item.map(|result| result.map(Into::into).map_err(Into::into)))
    }
}

#[cfg(test)]
mod tests;
