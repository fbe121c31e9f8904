//! Forwards or reads request bodies, with limits on their size and duration.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::StatusCode;
use http_body::Body as _;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Body, BodyError, Incoming};
use crate::Error;

/// Minimum average rate of a body after the grace period.
const BYTES_PER_S_MIN: u64 = 1024;
/// The grace period of a body that [`read_request_body`] reads.
const GRACE: Duration = Duration::from_secs(10);

/// The error that the client caused in a request body, if there is one. The error is available
/// after the body has been read.
#[derive(Debug, Clone, Default)]
pub struct BodyFaultSlot(Arc<OnceLock<Error>>);

impl BodyFaultSlot {
    /// Returns the error that the client caused, if there is one.
    pub fn client_error(&self) -> Option<Error> {
        self.0.get().cloned()
    }
}

/// Forwards a request's body while the body is being received.
///
/// A body that is too long, or slower than 1 KiB/s on average after `grace`, is cut. The returned
/// [`BodyFaultSlot`] then contains the error. The average is computed only from the time in which
/// the returned body waits for the client.
///
/// # Errors
/// An error with status 413 if the declared length exceeds `max` bytes.
pub fn relay_request_body(
    incoming: Incoming,
    max: u64,
    grace: Duration,
) -> Result<(Body, BodyFaultSlot), Error> {
    let fault = BodyFaultSlot::default();
    let len = incoming.size_hint().exact();
    if len.is_some_and(|len| len > max) {
        return Err(body_too_long_error(max));
    }
    let body = match len {
        Some(0) => Body::empty(),
        Some(len) => Body::sized_stream(
            len,
            RequestBodyStream::new(incoming, max, grace, fault.clone()),
        ),
        None => Body::unsized_stream(RequestBodyStream::new(incoming, max, grace, fault.clone())),
    };
    Ok((body, fault))
}

/// Reads a request's body into memory.
///
/// # Errors
/// Status 413 if the body exceeds `max` bytes, 408 if the body arrives too slowly, and 400 if the
/// body is incomplete.
pub async fn read_request_body(incoming: Incoming, max: u64) -> Result<Bytes, Error> {
    let fault = BodyFaultSlot::default();
    let mut stream = RequestBodyStream::new(incoming, max, GRACE, fault.clone());
    let mut all = BytesMut::new();
    while let Some(piece) = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await {
        let cut = |cut| {
            fault
                .client_error()
                .unwrap_or_else(|| Error::new_client_error(StatusCode::BAD_REQUEST, cut))
        };
        all.extend_from_slice(&piece.map_err(cut)?);
    }
    Ok(all.freeze())
}

fn body_too_long_error(max: u64) -> Error {
    let what = format_args!("the request's body has more than {max} bytes");
    Error::new_client_error(StatusCode::PAYLOAD_TOO_LARGE, what)
}

struct RequestBodyStream {
    incoming: Incoming,
    max: u64,
    received_bytes: u64,
    /// Time spent waiting for the client before the current wait.
    waited: Duration,
    /// Start of the current wait for the client.
    waits_since: Option<Instant>,
    grace: Duration,
    late: Pin<Box<Sleep>>,
    fault: BodyFaultSlot,
}

impl RequestBodyStream {
    fn new(
        incoming: Incoming,
        max: u64,
        grace: Duration,
        fault: BodyFaultSlot,
    ) -> RequestBodyStream {
        RequestBodyStream {
            incoming,
            max,
            received_bytes: 0,
            waited: Duration::ZERO,
            waits_since: None,
            grace,
            late: Box::pin(sleep_until(Instant::now() + grace)),
            fault,
        }
    }

    fn cut_with(&self, error: Error) -> Poll<Option<Result<Bytes, BodyError>>> {
        let cut = BodyError::new(&error);
        // If an error is already stored, that error stays.
        let _ = self.fault.0.set(error);
        Poll::Ready(Some(Err(cut)))
    }
}

impl Stream for RequestBodyStream {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => {
                    let what = format_args!("the request's body is incomplete: {error}");
                    return self.cut_with(Error::new_client_error(StatusCode::BAD_REQUEST, what));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are ignored.
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    if let Some(since) = self.waits_since.take() {
                        self.waited += since.elapsed();
                    }
                    self.received_bytes += data.len() as u64;
                    if self.received_bytes > self.max {
                        return self.cut_with(body_too_long_error(self.max));
                    }
                    return Poll::Ready(Some(Ok(data)));
                }
                Poll::Pending => {}
            }
            let worth = Duration::from_secs(self.received_bytes / BYTES_PER_S_MIN);
            let allowed = (self.grace + worth).saturating_sub(self.waited);
            let deadline = *self.waits_since.get_or_insert_with(Instant::now) + allowed;
            if self.late.deadline() != deadline {
                self.late.as_mut().reset(deadline);
            }
            std::task::ready!(self.late.as_mut().poll(cx));
            let what =
                format_args!("the request's body arrives at less than {BYTES_PER_S_MIN} B/s");
            return self.cut_with(Error::new_client_error(StatusCode::REQUEST_TIMEOUT, what));
        }
    }
}
