//! A response whose body is received part by part.

use crate::{Connection, ExchangeError, IdleConnections, UpstreamError};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// Bodies with fewer bytes than this are read into recycled buffers, and copied if they are cached.
/// For short bodies, this costs less than new memory of the exact length.
const EXCLUSIVE_BODY_BYTES_MIN: u64 = 64 << 10;

/// The durations of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamTiming {
    /// Whether the connection had already carried another request.
    pub is_reused: bool,
    /// Time to connect; zero on a pooled connection.
    pub connect: Duration,
    /// Time from sending the request to the response's head.
    pub first_byte: Duration,
}

/// A response whose head has been received.
#[derive(Debug)]
pub struct UpstreamResponse {
    /// The status.
    pub status: StatusCode,
    /// All headers, including hop-by-hop headers.
    pub headers: HeaderMap,
    /// The durations of the exchange so far.
    pub timing: UpstreamTiming,
    /// The connection and the in-flight permit; `None` once the body is complete.
    connection: Option<(Connection, OwnedSemaphorePermit)>,
    idle: Arc<IdleConnections>,
    has_exclusive_memory: bool,
    body_gap_timeout: Duration,
}

pub(crate) struct UpstreamResponseParts {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) connection: Connection,
    pub(crate) timing: UpstreamTiming,
    pub(crate) body_gap_timeout: Duration,
    pub(crate) idle: Arc<IdleConnections>,
}

impl UpstreamResponse {
    pub(crate) fn new(
        parts: UpstreamResponseParts,
        permit: OwnedSemaphorePermit,
    ) -> UpstreamResponse {
        let mut connection = parts.connection;
        let len = connection.remaining().unwrap_or(0);
        let has_exclusive_memory = len >= EXCLUSIVE_BODY_BYTES_MIN;
        if has_exclusive_memory {
            connection.use_exclusive_buffer();
        }
        let idle = parts.idle;
        let connection = match connection.is_complete() {
            true => {
                idle.return_connection(connection);
                None
            }
            false => Some((connection, permit)),
        };
        UpstreamResponse {
            // The HTTP codec has already checked the range of the status.
            status: StatusCode::from_u16(parts.status).unwrap_or(StatusCode::BAD_GATEWAY),
            headers: parts.headers,
            timing: parts.timing,
            connection,
            idle,
            has_exclusive_memory,
            body_gap_timeout: parts.body_gap_timeout,
        }
    }

    /// Returns the number of remaining body bytes, if it is known.
    pub fn remaining(&self) -> Option<u64> {
        match &self.connection {
            Some((connection, _)) => connection.remaining(),
            None => Some(0),
        }
    }

    /// Returns whether the body is known to have no more bytes.
    pub fn is_empty(&self) -> bool {
        self.remaining() == Some(0)
    }

    /// Returns whether the body's buffers contain only bytes of this body, so that the body can be
    /// cached without a copy.
    pub fn has_exclusive_memory(&self) -> bool {
        self.has_exclusive_memory
    }

    /// Returns the next part of the body; `None` at the end of the body. The connection then
    /// returns to the pool. If the response is dropped earlier, the connection is closed.
    ///
    /// # Errors
    /// When the body is malformed or truncated, or nothing arrives within the timeout.
    pub async fn next_data(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        let Some((connection, _)) = &mut self.connection else {
            return Ok(None);
        };
        let data = timeout(
            self.body_gap_timeout,
            poll_fn(|cx| connection.poll_data(cx)),
        )
        .await;
        let data = match data {
            Ok(data) => data.transpose().map_err(|error| body_error(&error))?,
            Err(_) => {
                return Err(UpstreamError {
                    is_timeout: true,
                    may_have_arrived: true,
                    is_upload: false,
                    is_request_limit: false,
                    reason: format!(
                        "nothing of the body was received for {:?}",
                        self.body_gap_timeout
                    ),
                });
            }
        };
        if connection.is_complete()
            && let Some((connection, _)) = self.connection.take()
        {
            self.idle.return_connection(connection);
        }
        Ok(data)
    }
}

fn body_error(error: &ExchangeError) -> UpstreamError {
    UpstreamError {
        is_timeout: false,
        may_have_arrived: true,
        is_upload: false,
        is_request_limit: false,
        reason: format!("the response was interrupted: {error}"),
    }
}
