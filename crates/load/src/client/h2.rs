//! Exchanges on an HTTP/2 connection: many at a time.

use super::h1::{Answer, Defaults};
use super::stream::Stream;
use super::{Failure, Fault, Sink};
use bytes::Bytes;
use h2::client::SendRequest;
use std::future::poll_fn;
use std::time::Instant;
use url::Url;

/// What a stream may bring before we say more: bodies are discarded at once, so never a bound.
const WINDOW: u32 = 16 << 20;

/// A connection; clones share it.
#[derive(Clone)]
pub(crate) struct Shared(SendRequest<Bytes>);

/// Begins HTTP/2 on a connected socket. Its driver runs as a task of the current runtime until the
/// connection ends; `ended` is called then.
pub(crate) async fn begin(
    stream: Stream,
    ended: impl FnOnce() + Send + 'static,
) -> Result<Shared, Failure> {
    let handshake = h2::client::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(1 << 20)
        .max_header_list_size(super::head::BYTES_MAX as u32)
        .enable_push(false)
        .handshake(stream);
    let (send, connection) = handshake.await.map_err(failure)?;
    tokio::spawn(async move {
        // How it ended is what its streams say.
        let _ = connection.await;
        ended();
    });
    Ok(Shared(send))
}

/// A request without its body.
pub(crate) fn encode(
    method: &http::Method,
    url: &Url,
    headers: &http::HeaderMap,
    defaults: &Defaults<'_>,
) -> Result<http::Request<()>, Failure> {
    let mut request = http::Request::builder()
        .method(method.clone())
        .uri(url.as_str())
        .version(http::Version::HTTP_2);
    if let Some(all) = request.headers_mut() {
        all.extend(
            headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        // Of the connection, not of the request (RFC 9113, 8.2.2).
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
    }
    request
        .body(())
        .map_err(|error| Failure::new(Fault::Url, error))
}

/// Sends a request and takes its answer; as [`super::h1::exchange`].
pub(crate) async fn exchange(
    connection: &Shared,
    request: http::Request<()>,
    body: Bytes,
    body_max: u64,
    sink: &mut impl Sink,
    sent: &mut Option<Instant>,
    first: &mut Option<Instant>,
) -> Result<Answer, Failure> {
    let mut ready = connection.0.clone().ready().await.map_err(unanswered)?;
    *sent = Some(Instant::now());
    let (response, mut upload) = ready
        .send_request(request, body.is_empty())
        .map_err(unanswered)?;
    if !body.is_empty() {
        upload.send_data(body, true).map_err(failure)?;
    }
    let (head, mut body) = response.await.map_err(unanswered)?.into_parts();
    let first_byte = *first.insert(Instant::now());
    let status = head.status.as_u16();
    if sink.wants_fields(status) {
        for (name, value) in &head.headers {
            sink.field(name.as_str(), value.as_bytes());
        }
    }
    let mut body_bytes = 0;
    while let Some(data) = poll_fn(|cx| body.poll_data(cx)).await {
        let data = data.map_err(failure)?;
        body_bytes += data.len() as u64;
        if body_bytes > body_max {
            return Err(Fault::TooLong.into());
        }
        sink.bytes(&data)?;
        let given = body.flow_control().release_capacity(data.len());
        given.map_err(failure)?;
    }
    Ok(Answer {
        status,
        body_bytes,
        first_byte,
        last_byte: Instant::now(),
        keep_alive: true,
    })
}

fn failure(error: h2::Error) -> Failure {
    match error.get_io() {
        Some(io) => Failure::new(Fault::of(io), io),
        None => Failure::new(Fault::Http2, error),
    }
}

/// A failure before anything came: worth another connection where the server said it did nothing.
fn unanswered(error: h2::Error) -> Failure {
    let refused = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    let mut failure = failure(error).unanswered();
    failure.unanswered |= refused;
    failure
}
