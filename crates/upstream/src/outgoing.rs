//! Writes a request to a connection.

use crate::{ClientStream, ExchangeError, InterimHandler, RequestUpload};
use http::{HeaderMap, Method, header};
use http1::HeadLimits;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// The part of a request that is still to be written.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    pub(crate) upload: Option<RequestUpload>,
    needs_flush: bool,
    /// Whether all available upload data has been written, and more data is expected.
    pub(crate) awaits_upload_data: bool,
    /// Whether any byte of the request has been written.
    pub(crate) has_started: bool,
}

/// A request's head, and the limits for reading its response.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// Path and query.
    pub target: &'a str,
    /// Header fields, including `Host`. `Content-Length` and `Transfer-Encoding` are ignored.
    pub headers: &'a HeaderMap,
    /// Limits on the response head.
    pub limits: HeadLimits,
    /// Expected length of the response body in bytes.
    pub expected_bytes: usize,
    /// Receives interim responses. Without a handler, interim responses are dropped.
    pub on_interim: Option<&'a InterimHandler>,
}

impl Outgoing {
    pub(crate) fn new(request: &ExchangeRequest<'_>, upload: Option<RequestUpload>) -> Outgoing {
        let mut bytes = Vec::with_capacity(1024);
        let len = match &upload {
            Some(upload) => upload.len(),
            // These methods are expected to have content, so a request without a body needs
            // `Content-Length: 0` (RFC 9110 section 8.6).
            None => matches!(*request.method, Method::POST | Method::PUT).then_some(0),
        };
        let len = len.map(|len| len.to_string());
        let framing = match (&len, &upload) {
            (Some(len), _) => Some((header::CONTENT_LENGTH, len.as_bytes())),
            (None, Some(_)) => Some((header::TRANSFER_ENCODING, &b"chunked"[..])),
            (None, None) => None,
        };
        let is_framing = |name| [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name);
        let fields = request
            .headers
            .iter()
            .filter(|(name, _)| !is_framing(*name));
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_bytes()));
        let framing = framing
            .as_ref()
            .map(|(name, value)| (name.as_str(), *value));
        let fields = fields.chain(framing);
        http1::write_request_head(&mut bytes, request.method, request.target, fields);
        Outgoing {
            bytes,
            upload,
            needs_flush: true,
            ..Outgoing::default()
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.bytes.is_empty() && self.upload.is_none() && !self.needs_flush
    }

    /// Drops the rest of the request. The connection must not be used again.
    pub(crate) fn discard_rest(&mut self) {
        self.bytes.clear();
        self.upload = None;
        // Makes `is_complete` return `false`, so that the connection is not reused.
        self.needs_flush = true;
        self.written = usize::MAX;
    }

    pub(crate) fn poll(
        &mut self,
        stream: &mut ClientStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ExchangeError>> {
        if self.written == usize::MAX || self.is_complete() {
            return Poll::Ready(Ok(()));
        }
        self.awaits_upload_data = false;
        loop {
            while let Some(rest) = self
                .bytes
                .get(self.written..)
                .filter(|rest| !rest.is_empty())
            {
                match ready!(Pin::new(&mut *stream).poll_write(cx, rest))? {
                    0 => return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into())),
                    count => self.written += count,
                }
                self.has_started = true;
                self.needs_flush = true;
            }
            self.bytes.clear();
            self.written = 0;
            let Some(upload) = &mut self.upload else {
                break;
            };
            match upload.poll_append_part(cx, &mut self.bytes) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => self.upload = None,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.awaits_upload_data = true;
                    // Flushes the written bytes while the next part of the body is awaited.
                    if self.needs_flush {
                        ready!(Pin::new(&mut *stream).poll_flush(cx))?;
                        self.needs_flush = false;
                    }
                    return Poll::Pending;
                }
            }
        }
        ready!(Pin::new(stream).poll_flush(cx))?;
        self.needs_flush = false;
        self.bytes = Vec::new();
        Poll::Ready(Ok(()))
    }
}
