//! Request bodies that are streamed to the server.

use crate::ExchangeError;
use bytes::{Buf, Bytes};
use http_body::Body;
use http1::ChunkEncoder;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// A request body that is being sent. The body is framed by its length, or in chunks if the length
/// is unknown.
pub struct RequestUpload {
    /// The mutex is never locked, and only makes the body `Sync`. A response must be `Sync`, and
    /// the connection of a response can contain this body.
    source: Mutex<Pin<Box<dyn UploadSource>>>,
    /// Number of remaining bytes; `None` for a chunked body.
    remaining: Option<u64>,
}

/// A request body of any type, which returns its data as [`Bytes`].
trait UploadSource: Send {
    fn poll_data(self: Pin<&mut Self>, cx: &mut Context<'_>)
    -> Poll<Option<Result<Bytes, String>>>;
}

impl<B> UploadSource for B
where
    B: Body + Send,
    B::Error: Display,
{
    fn poll_data(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, String>>> {
        loop {
            let frame = match ready!(self.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error.to_string()))),
                None => return Poll::Ready(None),
            };
            // Drops trailers. Skips empty data, because an empty chunk would end a chunked body.
            if let Ok(mut data) = frame.into_data()
                && data.has_remaining()
            {
                return Poll::Ready(Some(Ok(data.copy_to_bytes(data.remaining()))));
            }
        }
    }
}

impl RequestUpload {
    /// Creates an upload; `None` if the body is known to be empty.
    pub fn new<B>(body: B) -> Option<RequestUpload>
    where
        B: Body + Send + 'static,
        B::Error: Display,
    {
        if body.is_end_stream() {
            return None;
        }
        let remaining = body.size_hint().exact();
        let source: Pin<Box<dyn UploadSource>> = Box::pin(body);
        let source = Mutex::new(source);
        Some(RequestUpload { source, remaining })
    }

    /// Returns the number of remaining bytes, if it is known.
    pub fn len(&self) -> Option<u64> {
        self.remaining
    }

    /// Returns whether the body has a known length and has been sent completely.
    pub fn is_empty(&self) -> bool {
        self.remaining == Some(0)
    }

    /// Appends the next part of the body, with its framing, to `out`. Returns `false` when the end
    /// of the body has been appended.
    pub(crate) fn poll_append_part(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<bool, ExchangeError>> {
        let source = self
            .source
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let data = ready!(source.as_mut().poll_data(cx));
        let data = data.transpose().map_err(ExchangeError::Upload)?;
        match (&mut self.remaining, data) {
            (Some(0), None) => return Poll::Ready(Ok(false)),
            (Some(remaining), data) => {
                let data = data.unwrap_or_default();
                let rest = remaining.checked_sub(data.len() as u64);
                let rest = rest.filter(|_| !data.is_empty());
                let wrong =
                    || ExchangeError::Upload("its length differs from the declared one".into());
                *remaining = rest.ok_or_else(wrong)?;
                out.extend_from_slice(&data);
            }
            (None, Some(data)) => {
                ChunkEncoder::write_chunk_start(out, data.len());
                out.extend_from_slice(&data);
                out.extend_from_slice(ChunkEncoder::CHUNK_END);
            }
            (None, None) => {
                out.extend_from_slice(ChunkEncoder::BODY_END);
                return Poll::Ready(Ok(false));
            }
        }
        Poll::Ready(Ok(self.remaining != Some(0)))
    }
}

impl std::fmt::Debug for RequestUpload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RequestUpload(remaining: {:?})", self.remaining)
    }
}
