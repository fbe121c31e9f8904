//! The body of a request, while it is being received.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body that a client sends with a request. Most requests have no body.
#[derive(Debug, Default)]
pub struct Incoming(Option<hyper::body::Incoming>);

impl From<hyper::body::Incoming> for Incoming {
    fn from(incoming: hyper::body::Incoming) -> Incoming {
        Incoming(Some(incoming))
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Some(incoming) => Pin::new(incoming).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        self.0.as_ref().map_or_else(none, Body::size_hint)
    }
}
