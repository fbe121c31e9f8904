//! Concurrent requests on an HTTP/2 connection.

use super::connection_stream::ConnectionStream;
use super::http1_exchange::{DefaultHeaders, ExchangeResponse};
use super::url_credentials::{basic_authorization, without_credentials};
use super::{FailureKind, RequestFailure, ResponseSink};
use bytes::Bytes;
use h2::client::SendRequest;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;
use url::Url;

/// Flow-control window of each stream and of the connection, in bytes. The client releases received
/// bytes at once, so the window should never limit a stream.
const WINDOW: u32 = 16 << 20;

/// A shared HTTP/2 connection. Clones refer to the same connection.
#[derive(Clone)]
pub(crate) struct Http2Connection {
    send: SendRequest<Bytes>,
    /// Identifies the connection, because all clones of a connection share this pointer.
    identity: Arc<()>,
}

impl Http2Connection {
    /// Returns whether both values refer to the same connection.
    pub(crate) fn is_same_connection(&self, other: &Http2Connection) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity)
    }
}

/// Starts HTTP/2 on a connected socket. A task of the current runtime drives the connection, and
/// calls `ended` after the connection has closed.
pub(crate) async fn start_http2(
    stream: ConnectionStream,
    ended: impl FnOnce() + Send + 'static,
) -> Result<Http2Connection, RequestFailure> {
    let handshake = h2::client::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(1 << 20)
        .max_header_list_size(http1::HeadLimits::default().bytes_max as u32)
        .enable_push(false)
        .handshake(stream);
    let (send, connection) = handshake.await.map_err(to_failure)?;
    tokio::spawn(async move {
        // The error is ignored because the streams report it.
        let _ = connection.await;
        ended();
    });
    Ok(Http2Connection {
        send,
        identity: Arc::default(),
    })
}

/// Builds a request head.
pub(crate) fn build_request(
    method: &http::Method,
    url: &Url,
    headers: &http::HeaderMap,
    defaults: &DefaultHeaders<'_>,
) -> Result<http::Request<()>, RequestFailure> {
    let mut request = http::Request::builder()
        .method(method.clone())
        .uri(without_credentials(url).as_str())
        .version(http::Version::HTTP_2);
    if let Some(all) = request.headers_mut() {
        all.extend(
            headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        // Remove connection-specific fields (RFC 9113, 8.2.2), and `Host`, which the URL replaces.
        for name in [
            http::header::CONNECTION,
            http::header::HOST,
            http::header::TRANSFER_ENCODING,
        ] {
            all.remove(name);
        }
        if let (false, Ok(agent)) = (
            all.contains_key(http::header::USER_AGENT),
            defaults.user_agent.parse(),
        ) {
            all.insert(http::header::USER_AGENT, agent);
        }
        if let (false, Some(Ok(credentials))) = (
            all.contains_key(http::header::AUTHORIZATION),
            basic_authorization(url).map(|text| text.parse()),
        ) {
            all.insert(http::header::AUTHORIZATION, credentials);
        }
    }
    request
        .body(())
        .map_err(|error| RequestFailure::new(FailureKind::Url, error))
}

/// The HTTP/2 counterpart of [`super::http1_exchange::send_and_receive`]. Sets `sent` when the
/// connection is ready for the request, and `first` when the response head arrives.
pub(crate) async fn send_and_receive(
    connection: &Http2Connection,
    request: http::Request<()>,
    body: Bytes,
    body_max: u64,
    sink: &mut impl ResponseSink,
    sent: &mut Option<Instant>,
    first: &mut Option<Instant>,
) -> Result<ExchangeResponse, RequestFailure> {
    let mut ready = connection
        .send
        .clone()
        .ready()
        .await
        .map_err(to_retryable_failure)?;
    *sent = Some(Instant::now());
    let (response, mut upload) = ready
        .send_request(request, body.is_empty())
        .map_err(to_retryable_failure)?;
    if !body.is_empty() {
        upload.send_data(body, true).map_err(to_failure)?;
    }
    let (head, mut body) = response.await.map_err(to_retryable_failure)?.into_parts();
    let first_byte = *first.insert(Instant::now());
    let status = head.status.as_u16();
    sink.on_status(status);
    if sink.wants_fields(status) {
        for (name, value) in &head.headers {
            sink.on_field(name.as_str(), value.as_bytes());
        }
    }
    let mut body_bytes = 0;
    while let Some(data) = poll_fn(|cx| body.poll_data(cx)).await {
        let data = data.map_err(to_body_failure)?;
        body_bytes += data.len() as u64;
        if body_bytes > body_max {
            return Err(FailureKind::TooLong.into());
        }
        sink.on_body(&data)?;
        sink.on_progress(data.len() as u64);
        let given = body.flow_control().release_capacity(data.len());
        given.map_err(to_failure)?;
    }
    Ok(ExchangeResponse {
        status,
        body_bytes,
        first_byte,
        last_byte: Instant::now(),
        keep_alive: true,
    })
}

fn to_failure(error: h2::Error) -> RequestFailure {
    match error.get_io() {
        Some(io) => RequestFailure::new(FailureKind::from_io_error(io), io),
        None => RequestFailure::new(FailureKind::Http2, error),
    }
}

/// Converts an error that occurred in the response body.
fn to_body_failure(error: h2::Error) -> RequestFailure {
    let mut failure = to_failure(error);
    let detail = failure.detail.unwrap_or_default();
    failure.detail = Some(format!("in the body: {detail}").into());
    failure
}

/// Converts an error that occurred before the response. A graceful GOAWAY means that the server did
/// not process the request, so the request can be sent again on another connection.
fn to_retryable_failure(error: h2::Error) -> RequestFailure {
    let refused = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    let mut failure = to_failure(error).mark_unanswered();
    failure.unanswered |= refused;
    failure
}
