//! A connection that carries several requests at once: HTTP/2.

use super::Failed;
use super::connect::{Spoken, Target};
use super::lease::Carrier;
use super::pool::Pool;
use bytes::Bytes;
use http::response::Parts;
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use object_store::client::{HttpRequest, HttpRequestBody};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The one connection to an address that all its requests share, where the server offers it.
#[derive(Default)]
pub(super) struct Shared {
    /// Whoever makes it holds this, so that the others wait for it.
    open: Mutex<Option<Open>>,
    refused: AtomicBool,
}

struct Open {
    sender: SendRequest<HttpRequestBody>,
    number: u64,
    since: Instant,
    /// Held by each of its streams.
    used: Arc<()>,
}

/// One request and its answer on it.
pub(super) struct Stream {
    sender: SendRequest<HttpRequestBody>,
    incoming: Option<Incoming>,
    _used: Arc<()>,
}

impl Shared {
    /// Whether the server did not choose HTTP/1.1 when it was offered both.
    pub(super) fn is_likely(&self) -> bool {
        !self.refused.load(Relaxed)
    }

    /// A stream of it, its number, and whether it had carried another; made if there is none, or
    /// none newer than `failed`. A connection of one's own where that is all the server offers.
    pub(super) async fn take(
        &self,
        pool: &Arc<Pool>,
        target: &Target,
        failed: Option<u64>,
    ) -> Result<(Carrier, u64, bool), Failed> {
        let mut open = self.open.lock().await;
        let sound = |open: &&mut Open| {
            !open.sender.is_closed() && failed.is_none_or(|failed| failed < open.number)
        };
        if let Some(open) = open.as_mut().filter(sound) {
            open.since = Instant::now();
            return Ok((Carrier::Shared(open.stream()), open.number, true));
        }
        let number = pool.number();
        match pool.open_shared(target).await? {
            Spoken::One(counted) => {
                self.refused.store(true, Relaxed);
                Ok((Carrier::Own(Box::new(pool.wire(counted))), number, false))
            }
            Spoken::Two(sender) => {
                let new = open.insert(Open {
                    sender,
                    number,
                    since: Instant::now(),
                    used: Arc::default(),
                });
                Ok((Carrier::Shared(new.stream()), number, false))
            }
        }
    }

    /// Closes it if nobody used it for so long.
    pub(super) fn sweep(&self, idle_max: Duration) {
        // Somebody who makes it uses it, too.
        if let Ok(mut open) = self.open.try_lock()
            && open.as_ref().is_some_and(|open| open.is_idle(idle_max))
        {
            *open = None;
        }
    }
}

impl Open {
    fn stream(&self) -> Stream {
        Stream {
            sender: self.sender.clone(),
            incoming: None,
            _used: self.used.clone(),
        }
    }

    fn is_idle(&self, idle_max: Duration) -> bool {
        let unused = Arc::strong_count(&self.used) == 1 && self.since.elapsed() >= idle_max;
        unused || self.sender.is_closed()
    }
}

impl Stream {
    pub(super) async fn ask(&mut self, request: &HttpRequest) -> Result<Parts, Failed> {
        let answer = self.sender.send_request(request.clone()).await;
        let (parts, incoming) = answer
            .map_err(|error| Failed::of_hyper(&error))?
            .into_parts();
        self.incoming = Some(incoming);
        Ok(parts)
    }

    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failed>>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(None);
        };
        let frame = std::task::ready!(Pin::new(incoming).poll_frame(cx));
        Poll::Ready(frame.map(|frame| match frame {
            // Trailers are no bytes.
            Ok(frame) => Ok(frame.into_data().unwrap_or_default()),
            Err(error) => Err(Failed::of_hyper(&error)),
        }))
    }

    pub(super) fn is_over(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    pub(super) fn left(&self) -> Option<u64> {
        self.incoming.as_ref()?.size_hint().exact()
    }
}
