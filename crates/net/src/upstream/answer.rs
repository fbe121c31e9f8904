//! An answer whose body is taken piece by piece.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::connect::Connection;
use super::pool::Pool;
use super::straight::Straight;
use super::{Failed, Timing, chain};

/// An answer whose head is here.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers, hop-by-hop ones included.
    pub headers: HeaderMap,
    /// What it took so far.
    pub timing: Timing,
    pub(super) rest: Rest,
    pub(super) patience: Duration,
    pub(super) pool: Arc<Pool>,
    /// Given back with the connection.
    pub(super) seat: Option<OwnedSemaphorePermit>,
}

/// What is still to come of the body, and the connection that it comes by, which goes back when the
/// body has been read.
#[derive(Debug)]
pub(super) enum Rest {
    Nothing,
    Framed(Incoming, Connection),
    Straight(Box<Straight>),
}

impl Answer {
    pub(super) fn seated(self, seat: OwnedSemaphorePermit) -> Answer {
        Answer {
            seat: Some(seat),
            ..self
        }
    }

    /// Bytes of the body still to come, where that is known.
    pub fn len(&self) -> Option<u64> {
        match &self.rest {
            Rest::Nothing => Some(0),
            Rest::Framed(body, _) => body.size_hint().exact(),
            Rest::Straight(straight) => Some(straight.left()),
        }
    }

    /// The body is known to have no more bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Its pieces lie in memory that holds nothing else, so that they can be kept as they are.
    pub fn is_exact(&self) -> bool {
        matches!(self.rest, Rest::Straight(_))
    }

    /// The next piece of the body; `None` at its end. When that was reached, the connection is
    /// kept for others; an answer dropped earlier closes it.
    ///
    /// # Errors
    /// [`Failed`], when the body was cut or nothing came for too long.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Failed> {
        let piece = timeout(self.patience, self.rest.next()).await;
        let piece = piece.map_err(|_| Failed {
            late: true,
            sent: true,
            why: format!("nothing of the body came for {:?}", self.patience),
        })?;
        let piece = piece.map_err(|why| Failed {
            late: false,
            sent: true,
            why: format!("the body was cut: {why}"),
        })?;
        if piece.is_none() || self.rest.is_over() {
            self.finish().await;
        }
        Ok(piece)
    }

    async fn finish(&mut self) {
        let connection = match std::mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::Nothing => None,
            Rest::Framed(_, connection) => Some(connection),
            Rest::Straight(straight) => straight.connection().await,
        };
        if let Some(connection) = connection {
            self.pool.give(connection);
        }
        self.seat = None;
    }
}

impl Rest {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Rest::Nothing => Ok(None),
            Rest::Framed(body, _) => loop {
                match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
                    Some(Ok(frame)) => {
                        // Trailers are for nobody here.
                        if let Ok(data) = frame.into_data() {
                            return Ok(Some(data));
                        }
                    }
                    Some(Err(error)) => return Err(chain(&error)),
                    None => return Ok(None),
                }
            },
            Rest::Straight(straight) => match straight.piece().await {
                Ok(piece) => Ok(Some(piece)),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// Nothing follows.
    fn is_over(&self) -> bool {
        match self {
            Rest::Nothing => false,
            Rest::Framed(body, _) => body.is_end_stream(),
            Rest::Straight(straight) => straight.left() == 0,
        }
    }
}
