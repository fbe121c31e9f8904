//! One request and response on an HTTP/1.1 connection.

use super::connection_stream::ConnectionStream;
use super::response_head::parse_head;
use super::url_credentials::basic_authorization;
use super::{FailureKind, RequestFailure, ResponseSink};
use http1::{BodyDecoder, ResponseHead};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use url::Url;

/// Maximum number of interim responses (1xx) before the final response.
const INTERIM_MAX: u32 = 16;

/// Minimum number of missing bytes of a chunk for which the kernel discards these bytes. Fewer
/// missing bytes are read together with the chunk framing.
const SKIP_MIN: u64 = 8 << 10;

/// An encoded request.
pub(crate) struct EncodedRequest<'a> {
    /// Head and body of the request.
    pub(crate) bytes: &'a [u8],
    /// Whether the method is `HEAD`, so that the response has no body.
    pub(crate) head_only: bool,
    /// Maximum length of the response body, in bytes.
    pub(crate) body_max: u64,
}

/// A response and its times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeResponse {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) first_byte: Instant,
    pub(crate) last_byte: Instant,
    /// Whether the connection can be reused.
    pub(crate) keep_alive: bool,
}

/// Encodes a request. Header fields of the caller replace default fields of the same name.
pub(crate) fn encode_request(
    method: &http::Method,
    url: &Url,
    headers: &http::HeaderMap,
    body: &[u8],
    defaults: &DefaultHeaders<'_>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256 + body.len());
    let mut line = |parts: &[&[u8]]| parts.iter().for_each(|part| bytes.extend_from_slice(part));
    line(&[method.as_str().as_bytes(), b" ", url.path().as_bytes()]);
    if let Some(query) = url.query() {
        line(&[b"?", query.as_bytes()]);
    }
    line(&[b" HTTP/1.1\r\n"]);
    if !headers.contains_key(http::header::HOST) {
        line(&[b"Host: ", authority(url).as_bytes(), b"\r\n"]);
    }
    for (name, value) in headers {
        line(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    if !headers.contains_key(http::header::AUTHORIZATION)
        && let Some(credentials) = basic_authorization(url)
    {
        line(&[b"Authorization: ", credentials.as_bytes(), b"\r\n"]);
    }
    if !headers.contains_key(http::header::USER_AGENT) {
        line(&[b"User-Agent: ", defaults.user_agent.as_bytes(), b"\r\n"]);
    }
    if !headers.contains_key(http::header::ACCEPT) {
        line(&[b"Accept: */*\r\n"]);
    }
    if !body.is_empty() && !headers.contains_key(http::header::CONTENT_LENGTH) {
        line(&[
            b"Content-Length: ",
            body.len().to_string().as_bytes(),
            b"\r\n",
        ]);
    }
    if !defaults.keep_alive && !headers.contains_key(http::header::CONNECTION) {
        line(&[b"Connection: close\r\n"]);
    }
    line(&[b"\r\n", body]);
    bytes
}

/// Values of the default header fields, which a request can replace.
pub(crate) struct DefaultHeaders<'a> {
    pub(crate) user_agent: &'a str,
    pub(crate) keep_alive: bool,
}

/// Returns the host of a URL. Adds the port unless it is the default port of the scheme.
pub(super) fn authority(url: &Url) -> String {
    match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    }
}

/// Sends a request and receives its response. Sets `sent` just before the first byte is sent,
/// unless the caller has already set `sent`. Sets `first` when the first response byte arrives.
pub(crate) async fn send_and_receive(
    stream: &mut ConnectionStream,
    request: &EncodedRequest<'_>,
    sink: &mut impl ResponseSink,
    sent: &mut Option<Instant>,
    first: &mut Option<Instant>,
) -> Result<ExchangeResponse, RequestFailure> {
    sent.get_or_insert_with(Instant::now);
    let mut done = 0;
    // A server may respond and close the connection before it has read the whole request. The
    // client therefore reads the response even if sending fails.
    let sending = poll_fn(|cx| stream.poll_send(cx, request.bytes, &mut done)).await;
    let mut reading = ResponseReader {
        head: None,
        partial: Vec::new(),
        interim: 0,
        body_bytes: 0,
        reads: 0,
        surplus: false,
    };
    let response = poll_fn(|cx| reading.poll(cx, stream, request, sink, first)).await;
    match (sending, response) {
        (Ok(()), response) => response,
        (Err(_), Ok(response)) => Ok(ExchangeResponse {
            keep_alive: false,
            ..response
        }),
        (Err(error), Err(_)) => Err(RequestFailure::from(error).mark_unanswered()),
    }
}

/// A response being received.
struct ResponseReader {
    head: Option<ResponseHead>,
    /// The bytes of an incomplete head.
    partial: Vec<u8>,
    interim: u32,
    body_bytes: u64,
    reads: u64,
    /// Whether bytes arrived after the end of the response.
    surplus: bool,
}

impl ResponseReader {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut ConnectionStream,
        request: &EncodedRequest<'_>,
        sink: &mut impl ResponseSink,
        first: &mut Option<Instant>,
    ) -> Poll<Result<ExchangeResponse, RequestFailure>> {
        let all = sink.wants_bytes();
        loop {
            let ahead = self
                .head
                .as_ref()
                .map_or(0, |head| head.body.bytes_until_framing());
            let whole = matches!(
                self.head,
                Some(ResponseHead {
                    body: BodyDecoder::Length(_),
                    ..
                })
            );
            let skip = !all && stream.is_plain() && (whole || ahead >= SKIP_MIN);
            let count = if skip && ahead > 0 {
                let most = ahead.min(request.body_max.saturating_add(1));
                let count =
                    ready!(stream.poll_skip(cx, most)).map_err(|e| self.connection_failure(e))?;
                self.record_discarded_bytes(count);
                sink.on_progress(count);
                count
            } else {
                let taken = ready!(stream.poll_read_to_callback(cx, all, |bytes| {
                    if first.is_none() && !bytes.is_empty() {
                        *first = Some(Instant::now());
                    }
                    self.read_received(bytes, request.head_only, sink)?;
                    Ok::<u64, RequestFailure>(bytes.len() as u64)
                }));
                taken.map_err(|e| self.connection_failure(e))??
            };
            self.reads += 1;
            if self.body_bytes > request.body_max || self.declared_body_bytes() > request.body_max {
                return Poll::Ready(Err(FailureKind::TooLong.into()));
            }
            if let Some(response) = self.response_if_complete(count == 0, *first)? {
                return Poll::Ready(Ok(response));
            }
        }
    }

    /// Returns the declared length of the body, or the number of received body bytes if no length
    /// is declared.
    fn declared_body_bytes(&self) -> u64 {
        match self.head {
            Some(ResponseHead {
                body: BodyDecoder::Length(rest),
                ..
            }) => self.body_bytes.saturating_add(rest),
            _ => self.body_bytes,
        }
    }

    fn record_discarded_bytes(&mut self, count: u64) {
        self.body_bytes += count;
        if let Some(head) = &mut self.head {
            head.body.consume_data(count);
        }
    }

    /// Processes received bytes.
    fn read_received(
        &mut self,
        bytes: &[u8],
        head_only: bool,
        sink: &mut impl ResponseSink,
    ) -> Result<(), RequestFailure> {
        if self.head.is_some() {
            return self.read_body(bytes, sink);
        }
        if self.partial.is_empty() {
            return self.read_head(bytes, head_only, sink);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(bytes);
        self.read_head(&partial, head_only, sink)
    }

    /// Processes received bytes that start with a response head.
    fn read_head(
        &mut self,
        mut bytes: &[u8],
        head_only: bool,
        sink: &mut impl ResponseSink,
    ) -> Result<(), RequestFailure> {
        loop {
            let Some(head) = parse_head(bytes, head_only, sink)? else {
                self.partial = bytes.to_vec();
                return Ok(());
            };
            bytes = &bytes[head.len..];
            if !head.is_interim() {
                sink.on_status(head.status);
                self.head = Some(head);
                return self.read_body(bytes, sink);
            }
            self.interim += 1;
            if self.interim > INTERIM_MAX {
                return Err(RequestFailure::new(
                    FailureKind::Head,
                    "too many interim responses",
                ));
            }
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    fn read_body(
        &mut self,
        bytes: &[u8],
        sink: &mut impl ResponseSink,
    ) -> Result<(), RequestFailure> {
        if let Some(head) = &mut self.head {
            let (used, body) = pass_body_to_sink(&mut head.body, bytes, sink)?;
            self.body_bytes += body;
            sink.on_progress(body);
            self.surplus = used < bytes.len();
        }
        Ok(())
    }

    /// Returns the response if it is complete. Fails if the stream ended before the end of the
    /// response.
    fn response_if_complete(
        &mut self,
        ended: bool,
        first: Option<Instant>,
    ) -> Result<Option<ExchangeResponse>, RequestFailure> {
        let Some(head) = &self.head else {
            return match ended {
                true if first.is_some() => {
                    Err(RequestFailure::new(FailureKind::Closed, "within the head"))
                }
                true => Err(RequestFailure::from(FailureKind::Closed).mark_unanswered()),
                false => Ok(None),
            };
        };
        let complete = head.body.is_complete() || (ended && head.body == BodyDecoder::UntilClose);
        if !complete {
            return match ended {
                true => Err(FailureKind::Truncated.into()),
                false => Ok(None),
            };
        }
        // If the response arrived in one read, its first and last byte have the same time.
        let now = match first {
            Some(first) if self.reads == 1 => first,
            _ => Instant::now(),
        };
        Ok(Some(ExchangeResponse {
            status: head.status,
            body_bytes: self.body_bytes,
            first_byte: first.unwrap_or(now),
            last_byte: now,
            keep_alive: head.keep_alive && !self.surplus,
        }))
    }

    /// Converts an IO error of the connection to a failure.
    fn connection_failure(&self, error: std::io::Error) -> RequestFailure {
        let failure = RequestFailure::from(error);
        match (&self.head, failure.fault) {
            // If the peer closed the connection without close_notify, rustls returns
            // `UnexpectedEof`, which becomes `Closed`.
            (Some(_), FailureKind::Closed) => FailureKind::Truncated.into(),
            (Some(_), _) => failure,
            (None, _) if self.partial.is_empty() && self.interim == 0 => failure.mark_unanswered(),
            (None, _) => failure,
        }
    }
}

/// Passes received body bytes to the sink. Returns the number of received bytes that belong to the
/// response, and the number of body bytes among them.
fn pass_body_to_sink(
    body: &mut BodyDecoder,
    received: &[u8],
    sink: &mut impl ResponseSink,
) -> Result<(usize, u64), RequestFailure> {
    let (mut used, mut body_bytes) = (0, 0);
    while !body.is_complete() && used < received.len() {
        let rest = &received[used..];
        let data = body.next_data(rest)?;
        sink.on_body(&rest[data.clone()])?;
        used += data.end;
        body_bytes += data.len() as u64;
    }
    Ok((used, body_bytes))
}
