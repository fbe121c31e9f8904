//! Bodies: from memory, from many slices at once, or from a stream.
//!
//! The length is exact, so a response carries `Content-Length`, and a body that ends early is seen
//! by the client as cut, never as complete. Only a relay may not know it, and then sends chunks.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};

pub use self::arriving::{Fault, read, relayed};
pub use self::chunk::Chunk;
pub use self::ended::End;
use self::ended::Progress;
pub use self::incoming::Incoming;
use crate::conn::{InFlight, Mapped};
use crate::headers::Fields;

mod arriving;
mod chunk;
mod ended;
mod incoming;

/// Why a body could not be finished. The connection (HTTP/2: the stream) is cut.
#[derive(Debug, Clone)]
pub struct Cut {
    why: Arc<str>,
}

impl Cut {
    /// A cut for this reason; the reason is for the record, the client sees only the cut.
    pub fn new(why: impl fmt::Display) -> Cut {
        Cut {
            why: why.to_string().into(),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body cut: {}", self.why)
    }
}

impl std::error::Error for Cut {}

impl From<std::io::Error> for Cut {
    fn from(error: std::io::Error) -> Cut {
        Cut::new(error)
    }
}

/// A producer of chunks, each handed to the socket as it comes.
type Source = Pin<Box<dyn Stream<Item = Result<Chunk, Cut>> + Send>>;

enum Kind {
    /// Nothing, or nothing any more.
    Done,
    /// One frame.
    Once(Chunk),
    /// As many frames as the source gives; `left` bytes are still owed, where that is known.
    Stream {
        source: Source,
        left: Option<u64>,
        given: u64,
    },
}

/// A body, mostly of exactly known length.
pub struct Body {
    kind: Kind,
    progress: Option<Arc<Progress>>,
    /// Tells the connection that this response is still leaving.
    in_flight: Option<InFlight>,
    /// Whose mapped pages are among the bytes.
    file: Option<Mapped>,
    /// Fields of the answer's head that are not in its map.
    fields: Option<Fields>,
}

impl Body {
    /// No bytes.
    pub fn empty() -> Body {
        Body::of(Kind::Done)
    }

    /// One buffer, sent as it is.
    pub fn full(bytes: impl Into<Bytes>) -> Body {
        Body::once(Chunk::from(bytes.into()))
    }

    /// Many buffers as one frame: they leave together with the response's head in one vectored
    /// write, uncopied. Empty pieces are allowed.
    pub fn pieces(pieces: Vec<Bytes>) -> Body {
        Body::once(Chunk::pieces(pieces))
    }

    /// Exactly `len` bytes from an asynchronous producer. If it gives fewer, more or an error, the
    /// body is cut.
    pub fn stream<S, C, E>(len: u64, source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<Cut>,
    {
        if len == 0 {
            return Body::empty();
        }
        Body::streamed(Some(len), source)
    }

    /// As many bytes as the producer gives, which only a relay of somebody else's answer should
    /// need: it leaves in chunks (HTTP/1.0: until the connection closes).
    pub fn unsized_stream<S, C, E>(source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<Cut>,
    {
        Body::streamed(None, source)
    }

    fn streamed<S, C, E>(left: Option<u64>, source: S) -> Body
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Chunk>,
        E: Into<Cut>,
    {
        let source = Box::pin(Converted {
            source: Box::pin(source),
        });
        Body::of(Kind::Stream {
            source,
            left,
            given: 0,
        })
    }

    /// Bytes still to be sent; 0 where that is not known.
    pub fn len(&self) -> u64 {
        match &self.kind {
            Kind::Done => 0,
            Kind::Once(chunk) => chunk.len(),
            Kind::Stream { left, .. } => left.unwrap_or(0),
        }
    }

    /// True when nothing is left to be sent.
    pub fn is_empty(&self) -> bool {
        !self.is_unsized() && self.len() == 0
    }

    /// True when nobody knows how much is left.
    fn is_unsized(&self) -> bool {
        matches!(self.kind, Kind::Stream { left: None, .. })
    }

    /// Calls `hook` once, when the last byte was written to the connection or the body was dropped
    /// before that. Call it on a whole body; a second hook replaces nothing, both are called. When the
    /// first byte left is only looked at if it is to be `timed`.
    #[must_use]
    pub fn on_end(mut self, timed: bool, hook: impl FnOnce(&End) + Send + Sync + 'static) -> Body {
        let inner = self.progress.take();
        let expected = if self.is_unsized() {
            u64::MAX
        } else {
            self.len()
        };
        self.progress = Some(Arc::new(Progress::new(
            expected,
            timed,
            inner,
            Box::new(hook),
        )));
        self
    }

    /// Says that pieces of this body are slices of `file`'s mapping, so that the kernel can be
    /// asked to send the file instead. Without effect where user code sees the bytes.
    #[must_use]
    pub fn of_file(mut self, file: Mapped) -> Body {
        self.file = Some(file);
        self
    }

    /// Says these fields in the head of the answer, beside those of its map, which must not have
    /// them too: nobody sees them there until the answer leaves.
    #[must_use]
    pub fn with_fields(mut self, fields: Fields) -> Body {
        self.fields = Some(fields);
        self
    }

    /// The fields that are not in the map of the answer's head; they are only said once.
    pub(crate) fn take_fields(&mut self) -> Option<Fields> {
        self.fields.take()
    }

    /// Keeps `guard` until the response has left.
    pub(crate) fn guarded(mut self, guard: InFlight) -> Body {
        if let Some(file) = &self.file {
            guard.sends(file);
        }
        self.in_flight = Some(guard);
        self
    }

    /// Promises the length, but sends nothing: the answer to HEAD.
    pub(crate) fn silenced(mut self) -> Body {
        self.kind = Kind::Done;
        if let Some(progress) = &self.progress {
            progress.waive();
        }
        self
    }

    fn once(chunk: Chunk) -> Body {
        if chunk.is_empty() {
            Body::empty()
        } else {
            Body::of(Kind::Once(chunk))
        }
    }

    fn of(kind: Kind) -> Body {
        Body {
            kind,
            progress: None,
            in_flight: None,
            file: None,
            fields: None,
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Cut>>> {
        let Kind::Stream {
            source,
            left,
            given,
        } = &mut self.kind
        else {
            return match std::mem::replace(&mut self.kind, Kind::Done) {
                Kind::Once(chunk) => Poll::Ready(Some(Ok(chunk))),
                _ => Poll::Ready(None),
            };
        };
        let answer = loop {
            match std::task::ready!(source.as_mut().poll_next(cx)) {
                Some(Ok(chunk)) if chunk.is_empty() => continue,
                Some(Ok(chunk)) if left.is_none_or(|left| chunk.len() <= left) => {
                    *given += chunk.len();
                    *left = left.map(|left| left - chunk.len());
                    break Some(Ok(chunk));
                }
                Some(Ok(_)) => {
                    break Some(Err(Cut::new("the source gave more bytes than promised")));
                }
                Some(Err(cut)) => break Some(Err(cut)),
                None => match left {
                    None => break None,
                    Some(left) => {
                        let what = format_args!("the source ended {left} bytes early");
                        break Some(Err(Cut::new(what)));
                    }
                },
            }
        };
        let done = *left == Some(0) || !matches!(answer, Some(Ok(_)));
        if answer.is_none()
            && let Some(progress) = &self.progress
        {
            progress.expect(*given);
        }
        if done {
            self.kind = Kind::Done;
        }
        Poll::Ready(answer)
    }
}

impl http_body::Body for Body {
    type Data = Chunk;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Cut>>> {
        let answer = std::task::ready!(self.poll_chunk(cx));
        let in_flight = self.in_flight.as_ref();
        let unseen = |piped: &_| in_flight.is_some_and(|in_flight| in_flight.pipes(piped));
        let answer = answer.map(|result| result.and_then(|chunk| Ok(chunk.landed(unseen)?)));
        Poll::Ready(answer.map(|result| match result {
            Ok(chunk) => {
                // HTTP/2 drops a body once it has its last chunk, long before that has left.
                let done = matches!(self.kind, Kind::Done);
                let in_flight = if done { self.in_flight.take() } else { None };
                Ok(Frame::data(chunk.watched(self.progress.clone(), in_flight)))
            }
            Err(cut) => {
                if let Some(progress) = &self.progress {
                    progress.fail(&cut);
                }
                Err(cut)
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Done)
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_unsized() {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.len())
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

/// A stream whose items become ours.
struct Converted<S> {
    source: Pin<Box<S>>,
}

impl<S, C, E> Stream for Converted<S>
where
    S: Stream<Item = Result<C, E>>,
    C: Into<Chunk>,
    E: Into<Cut>,
{
    type Item = Result<Chunk, Cut>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = std::task::ready!(self.source.as_mut().poll_next(cx));
        Poll::Ready(item.map(|result| result.map(Into::into).map_err(Into::into)))
    }
}

#[cfg(test)]
mod tests;
