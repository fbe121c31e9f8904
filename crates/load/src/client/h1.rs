//! One exchange on an HTTP/1.1 connection.

use super::framing::Framing;
use super::head::{self, Head};
use super::stream::Stream;
use super::{Failure, Fault, Sink};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use url::Url;

/// Most interim answers (1xx) before the real one.
const INTERIM_MAX: u32 = 16;

/// Bodies' pieces shorter than this are read with their framing, not skipped alone.
const SKIP_MIN: u64 = 8 << 10;

/// A request as it is sent.
pub(crate) struct Asked<'a> {
    /// Head and body.
    pub(crate) bytes: &'a [u8],
    /// `HEAD`: the answer has no body.
    pub(crate) head_only: bool,
    /// Longest body of the answer.
    pub(crate) body_max: u64,
}

/// An exchange's answer, and its moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) first_byte: Instant,
    pub(crate) last_byte: Instant,
    /// Whether the connection may be used again.
    pub(crate) keep_alive: bool,
}

/// A request's bytes; fields that the caller brings replace the client's own.
pub(crate) fn encode(
    method: &http::Method,
    url: &Url,
    headers: &http::HeaderMap,
    body: &[u8],
    defaults: &Defaults<'_>,
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

/// What every request says unless it brings its own.
pub(crate) struct Defaults<'a> {
    pub(crate) user_agent: &'a str,
    pub(crate) keep_alive: bool,
}

/// Host, and port where it is not the scheme's own.
pub(super) fn authority(url: &Url) -> String {
    match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    }
}

/// Sends a request and takes its answer. `sent` is stamped just before the first byte leaves (unless
/// the caller has just done so), `first` when the first byte of the answer comes.
pub(crate) async fn exchange(
    stream: &mut Stream,
    asked: &Asked<'_>,
    sink: &mut impl Sink,
    sent: &mut Option<Instant>,
    first: &mut Option<Instant>,
) -> Result<Answer, Failure> {
    sent.get_or_insert_with(Instant::now);
    let mut done = 0;
    // A server may answer and close before it took all of a body: what it said is then read.
    let sending = poll_fn(|cx| stream.poll_send(cx, asked.bytes, &mut done)).await;
    let mut reading = Reading {
        head: None,
        partial: Vec::new(),
        interim: 0,
        body_bytes: 0,
        reads: 0,
        surplus: false,
    };
    let answer = poll_fn(|cx| reading.poll(cx, stream, asked, sink, first)).await;
    match (sending, answer) {
        (Ok(()), answer) => answer,
        (Err(_), Ok(answer)) => Ok(Answer {
            keep_alive: false,
            ..answer
        }),
        (Err(error), Err(_)) => Err(Failure::from(error).unanswered()),
    }
}

/// An answer on its way in.
struct Reading {
    head: Option<Head>,
    /// A head that did not come in one piece.
    partial: Vec<u8>,
    interim: u32,
    body_bytes: u64,
    reads: u64,
    /// More came than belongs to the answer.
    surplus: bool,
}

impl Reading {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        asked: &Asked<'_>,
        sink: &mut impl Sink,
        first: &mut Option<Instant>,
    ) -> Poll<Result<Answer, Failure>> {
        let all = sink.wants_bytes();
        loop {
            let ahead = self.head.as_ref().map_or(0, |head| head.framing.ahead());
            let whole = matches!(
                self.head,
                Some(Head {
                    framing: Framing::Length(_),
                    ..
                })
            );
            let skip = !all && stream.is_plain() && (whole || ahead >= SKIP_MIN);
            let count = if skip && ahead > 0 {
                let most = ahead.min(asked.body_max.saturating_add(1));
                let count = ready!(stream.poll_skip(cx, most)).map_err(|e| self.broken(e))?;
                self.skipped(count);
                count
            } else {
                let taken = ready!(stream.poll_take(cx, all, |bytes| {
                    if first.is_none() && !bytes.is_empty() {
                        *first = Some(Instant::now());
                    }
                    self.feed(bytes, asked.head_only, sink)?;
                    Ok::<u64, Failure>(bytes.len() as u64)
                }));
                taken.map_err(|e| self.broken(e))??
            };
            self.reads += 1;
            if self.body_bytes > asked.body_max || self.announced() > asked.body_max {
                return Poll::Ready(Err(Fault::TooLong.into()));
            }
            if let Some(answer) = self.done(count == 0, *first)? {
                return Poll::Ready(Ok(answer));
            }
        }
    }

    /// Bytes of the body that came or, as the head says, will.
    fn announced(&self) -> u64 {
        match self.head {
            Some(Head {
                framing: Framing::Length(rest),
                ..
            }) => self.body_bytes.saturating_add(rest),
            _ => self.body_bytes,
        }
    }

    fn skipped(&mut self, count: u64) {
        self.body_bytes += count;
        if let Some(head) = &mut self.head {
            head.framing.advance(count);
        }
    }

    /// Bytes as they came.
    fn feed(&mut self, bytes: &[u8], head_only: bool, sink: &mut impl Sink) -> Result<(), Failure> {
        if self.head.is_some() {
            return self.body(bytes, sink);
        }
        if self.partial.is_empty() {
            return self.begin(bytes, head_only, sink);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(bytes);
        self.begin(&partial, head_only, sink)
    }

    /// Bytes from the head's first on.
    fn begin(
        &mut self,
        mut bytes: &[u8],
        head_only: bool,
        sink: &mut impl Sink,
    ) -> Result<(), Failure> {
        loop {
            let Some(head) = head::parse(bytes, head_only, sink)? else {
                self.partial = bytes.to_vec();
                return Ok(());
            };
            bytes = &bytes[head.len..];
            if !(100..200).contains(&head.status) || head.status == 101 {
                self.head = Some(head);
                return self.body(bytes, sink);
            }
            self.interim += 1;
            if self.interim > INTERIM_MAX {
                return Err(Failure::new(Fault::Head, "interim answers without end"));
            }
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    fn body(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), Failure> {
        if let Some(head) = &mut self.head {
            let (used, body) = head.framing.feed(bytes, sink)?;
            self.body_bytes += body;
            self.surplus = used < bytes.len();
        }
        Ok(())
    }

    /// The answer, if it is whole; a fault where the stream ended before.
    fn done(&mut self, ended: bool, first: Option<Instant>) -> Result<Option<Answer>, Failure> {
        let Some(head) = &self.head else {
            return match ended {
                true if first.is_some() => Err(Failure::new(Fault::Closed, "within the head")),
                true => Err(Failure::from(Fault::Closed).unanswered()),
                false => Ok(None),
            };
        };
        let complete = head.framing.is_done() || (ended && head.framing == Framing::Close);
        if !complete {
            return match ended {
                true => Err(Fault::Truncated.into()),
                false => Ok(None),
            };
        }
        // What came in one read came at one time: the clock need not be read again.
        let now = match first {
            Some(first) if self.reads == 1 => first,
            _ => Instant::now(),
        };
        Ok(Some(Answer {
            status: head.status,
            body_bytes: self.body_bytes,
            first_byte: first.unwrap_or(now),
            last_byte: now,
            keep_alive: head.keep_alive && !self.surplus,
        }))
    }

    /// The connection broke.
    fn broken(&self, error: std::io::Error) -> Failure {
        let failure = Failure::from(error);
        match (&self.head, failure.fault) {
            // rustls: the peer closed without close_notify.
            (Some(_), Fault::Closed) => Fault::Truncated.into(),
            (Some(_), _) => failure,
            (None, _) if self.partial.is_empty() && self.interim == 0 => failure.unanswered(),
            (None, _) => failure,
        }
    }
}
