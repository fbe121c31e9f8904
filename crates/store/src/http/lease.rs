//! A connection as one request has it.

use super::Failed;
use super::pool::Host;
use super::shared::Stream;
use super::wire::{Came, Wire};
use crate::pipes::Pipe;
use bytes::Bytes;
use http::response::Parts;
use object_store::client::HttpRequest;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;

/// What carries one request and its answer.
pub(super) enum Carrier {
    /// A connection that is all its own: HTTP/1.1.
    Own(Box<Wire>),
    /// A stream of one that others use, too: HTTP/2.
    Shared(Stream),
}

/// A connection that is in use by one request; closed when dropped, if nobody else uses it.
pub(crate) struct Lease {
    carrier: Carrier,
    /// Its number in the process.
    pub(crate) number: u64,
    /// Whether it had carried another request before.
    pub(crate) reused: bool,
    host: Arc<Host>,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub(super) fn new(
        carrier: Carrier,
        number: u64,
        reused: bool,
        host: &Arc<Host>,
        permit: OwnedSemaphorePermit,
    ) -> Lease {
        Lease {
            carrier,
            number,
            reused,
            host: host.clone(),
            _permit: permit,
        }
    }

    /// Whether others use the connection, too.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.carrier, Carrier::Shared(_))
    }

    /// Whether bytes come on it as they are: neither TLS nor HTTP/2.
    pub(super) fn is_plain(&self) -> bool {
        match &self.carrier {
            Carrier::Own(wire) => wire.is_plain(),
            Carrier::Shared(_) => false,
        }
    }

    /// Sends a request and waits for the head of its answer. `expected`: bytes that its body is
    /// likely to have.
    pub(super) async fn ask(
        &mut self,
        request: &HttpRequest,
        expected: usize,
    ) -> Result<Parts, Failed> {
        match &mut self.carrier {
            Carrier::Own(wire) => wire.ask(request, expected).await,
            Carrier::Shared(stream) => stream.ask(request).await,
        }
    }

    /// The next bytes of the answer's body; none at its end.
    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failed>>> {
        match &mut self.carrier {
            Carrier::Own(wire) => wire.poll_data(cx),
            Carrier::Shared(stream) => stream.poll_data(cx),
        }
    }

    /// Ready when there is something of the answer's body, or it is over, where that can be told
    /// without taking it.
    pub(super) fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        match &mut self.carrier {
            Carrier::Own(wire) => wire.poll_begun(cx),
            Carrier::Shared(_) => Poll::Ready(Ok(())),
        }
    }

    /// The next bytes, in `pipe` where they can be moved there; none at the end.
    pub(super) fn poll_piped(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
    ) -> Poll<Option<Result<Came, Failed>>> {
        match &mut self.carrier {
            Carrier::Own(wire) => wire.poll_piped(cx, pipe),
            Carrier::Shared(stream) => stream.poll_data(cx).map_ok(Came::Bytes),
        }
    }

    /// Whether the answer has been read to its end.
    pub(super) fn is_over(&self) -> bool {
        match &self.carrier {
            Carrier::Own(wire) => wire.is_over(),
            Carrier::Shared(stream) => stream.is_over(),
        }
    }

    /// Bytes of the body that are still to come, where that is known.
    pub(super) fn left(&self) -> Option<u64> {
        match &self.carrier {
            Carrier::Own(wire) => wire.left(),
            Carrier::Shared(stream) => stream.left(),
        }
    }

    /// The answer was read to its end: the connection may carry another request.
    pub(super) fn done(self, keep: bool) {
        if let Carrier::Own(wire) = self.carrier
            && keep
        {
            self.host.keep(*wire, self.number);
        }
    }
}
