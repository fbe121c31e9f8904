//! A request's body on its way through us: bounded in bytes and in time.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::StatusCode;
use http_body::Body as _;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Body, Cut, Incoming};
use crate::Error;

/// A body must come at least so fast, after a grace.
const BYTES_PER_S_MIN: u64 = 1024;
/// That of a body that is read here.
const GRACE: Duration = Duration::from_secs(10);

/// What was wrong with a body, once it has been read.
#[derive(Debug, Clone, Default)]
pub struct Fault(Arc<OnceLock<Error>>);

impl Fault {
    /// The client's error, if it made one.
    pub fn found(&self) -> Option<Error> {
        self.0.get().cloned()
    }
}

/// Hands a request's body on as it comes. What is too long, or after `grace` too slow (less than
/// 1 KiB a second in all), is cut, and the fault says so.
///
/// # Errors
/// 413 when the request says already that it has more than `max` bytes.
pub fn relayed(incoming: Incoming, max: u64, grace: Duration) -> Result<(Body, Fault), Error> {
    let fault = Fault::default();
    let len = incoming.size_hint().exact();
    if len.is_some_and(|len| len > max) {
        return Err(too_long(max));
    }
    let body = match len {
        Some(0) => Body::empty(),
        Some(len) => Body::stream(len, Arriving::new(incoming, max, grace, fault.clone())),
        None => Body::unsized_stream(Arriving::new(incoming, max, grace, fault.clone())),
    };
    Ok((body, fault))
}

/// Reads all of a request's body.
///
/// # Errors
/// 413 when it has more than `max` bytes, 408 when it comes too slowly, 400 when it breaks off.
pub async fn read(incoming: Incoming, max: u64) -> Result<Bytes, Error> {
    let fault = Fault::default();
    let mut arriving = Arriving::new(incoming, max, GRACE, fault.clone());
    let mut all = BytesMut::new();
    while let Some(piece) = std::future::poll_fn(|cx| Pin::new(&mut arriving).poll_next(cx)).await {
        let cut = |cut| {
            fault
                .found()
                .unwrap_or_else(|| Error::client(StatusCode::BAD_REQUEST, cut))
        };
        all.extend_from_slice(&piece.map_err(cut)?);
    }
    Ok(all.freeze())
}

fn too_long(max: u64) -> Error {
    let what = format_args!("the request's body has more than {max} bytes");
    Error::client(StatusCode::PAYLOAD_TOO_LARGE, what)
}

struct Arriving {
    incoming: Incoming,
    max: u64,
    came: u64,
    began: Instant,
    grace: Duration,
    late: Pin<Box<Sleep>>,
    fault: Fault,
}

impl Arriving {
    fn new(incoming: Incoming, max: u64, grace: Duration, fault: Fault) -> Arriving {
        let began = Instant::now();
        Arriving {
            incoming,
            max,
            came: 0,
            began,
            grace,
            late: Box::pin(sleep_until(began + grace)),
            fault,
        }
    }

    fn cut(&self, error: Error) -> Poll<Option<Result<Bytes, Cut>>> {
        let cut = Cut::new(&error);
        // The first fault is the one that counts.
        let _ = self.fault.0.set(error);
        Poll::Ready(Some(Err(cut)))
    }
}

impl Stream for Arriving {
    type Item = Result<Bytes, Cut>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => {
                    let what = format_args!("the request's body broke off: {error}");
                    return self.cut(Error::client(StatusCode::BAD_REQUEST, what));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are for nobody here.
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    self.came += data.len() as u64;
                    if self.came > self.max {
                        return self.cut(too_long(self.max));
                    }
                    return Poll::Ready(Some(Ok(data)));
                }
                Poll::Pending => {}
            }
            let worth = Duration::from_secs(self.came / BYTES_PER_S_MIN);
            let deadline = self.began + self.grace + worth;
            if self.late.deadline() != deadline {
                self.late.as_mut().reset(deadline);
            }
            std::task::ready!(self.late.as_mut().poll(cx));
            let what =
                format_args!("the request's body comes with less than {BYTES_PER_S_MIN} B/s");
            return self.cut(Error::client(StatusCode::REQUEST_TIMEOUT, what));
        }
    }
}
