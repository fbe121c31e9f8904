//! Response heads: the status line, and the fields that determine the body's framing and the reuse
//! of the connection.

use crate::{BodyDecoder, ChunkedDecoder, ProtocolError};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::mem::MaybeUninit;

/// Maximum number of fields for any caller. The parser reserves stack memory for this number of
/// fields.
const FIELDS_MAX: usize = 128;

/// Limits on the size of a response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Maximum size of the status line and the fields, in bytes.
    pub bytes_max: usize,
    /// Maximum number of fields. Values above 128 have the same effect as 128.
    pub fields_max: usize,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits {
            bytes_max: 64 << 10,
            fields_max: FIELDS_MAX,
        }
    }
}

/// The facts of a response's head that decide how to read its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status code, from 100 to 999.
    pub status: u16,
    /// Length of the head in bytes. The body starts after the head.
    pub len: usize,
    /// The framing of the body.
    pub body: BodyDecoder,
    /// Whether the connection can be reused for another request after the body is complete (RFC
    /// 9112 section 9.3).
    pub keep_alive: bool,
}

/// The fields that frame the body, collected while the head is parsed.
#[derive(Default)]
struct FramingFields {
    content_length: Option<u64>,
    has_transfer_encoding: bool,
    /// Whether there is exactly one `Transfer-Encoding` field, and its value is `chunked`.
    is_chunked: bool,
    has_close: bool,
    has_keep_alive: bool,
}

impl ResponseHead {
    /// Parses the head at the start of `received`. For each field, calls `on_field` with the
    /// status, the field's name and the field's value. Returns `None` while the head is incomplete.
    ///
    /// `to_head` means that the request was `HEAD`, so no body follows, even if the fields declare
    /// a body.
    ///
    /// # Errors
    /// When the head is malformed, contradicts itself, or exceeds `limits`.
    pub fn parse(
        received: &[u8],
        limits: HeadLimits,
        to_head: bool,
        mut on_field: impl FnMut(u16, &str, &[u8]),
    ) -> Result<Option<ResponseHead>, ProtocolError> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let fields = &mut fields[..limits.fields_max.min(FIELDS_MAX)];
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let len = match config.parse_response_with_uninit_headers(&mut parsed, received, fields) {
            Ok(httparse::Status::Complete(len)) if len <= limits.bytes_max => len,
            Ok(httparse::Status::Partial) if received.len() < limits.bytes_max => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(ProtocolError::HeadTooLong),
            Err(error) => return Err(ProtocolError::Head(error)),
        };
        let status = parsed.code.filter(|status| *status >= 100);
        let status = status.ok_or(ProtocolError::Status)?;
        let mut framing = FramingFields::default();
        for field in parsed.headers.iter() {
            framing.record_framing_field(field.name, field.value)?;
            on_field(status, field.name, field.value);
        }
        let is_http11 = parsed.version == Some(1);
        let body = framing.body_decoder(status, to_head, is_http11)?;
        Ok(Some(ResponseHead {
            status,
            len,
            body,
            keep_alive: framing.allows_reuse(is_http11) && body != BodyDecoder::UntilClose,
        }))
    }

    /// Parses the head like [`ResponseHead::parse`], and returns all fields in a map.
    ///
    /// # Errors
    /// The same as for [`ResponseHead::parse`].
    pub fn parse_to_map(
        received: &[u8],
        limits: HeadLimits,
        to_head: bool,
    ) -> Result<Option<(ResponseHead, HeaderMap)>, ProtocolError> {
        let (mut headers, mut is_valid) = (HeaderMap::new(), true);
        let head = ResponseHead::parse(received, limits, to_head, |_, name, value| {
            let name = HeaderName::from_bytes(name.as_bytes());
            match (name, HeaderValue::from_bytes(value)) {
                (Ok(name), Ok(value)) => is_valid &= headers.try_append(name, value).is_ok(),
                _ => is_valid = false,
            }
        })?;
        match is_valid {
            true => Ok(head.map(|head| (head, headers))),
            false => Err(ProtocolError::Head(httparse::Error::HeaderName)),
        }
    }

    /// Returns whether the response is interim (1xx), which means that a final response follows.
    /// Status 101 is not interim here, because it ends the use of HTTP/1.1 on the connection.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

impl FramingFields {
    fn record_framing_field(&mut self, name: &str, value: &[u8]) -> Result<(), ProtocolError> {
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                self.has_close |= has_token(value, b"close");
                self.has_keep_alive |= has_token(value, b"keep-alive");
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                let len = parse_decimal(value).ok_or(ProtocolError::ContentLength)?;
                if self.content_length.is_some_and(|other| other != len) {
                    return Err(ProtocolError::ContentLengths);
                }
                self.content_length = Some(len);
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                let is_first = !std::mem::replace(&mut self.has_transfer_encoding, true);
                let is_chunked = value.trim_ascii().eq_ignore_ascii_case(b"chunked");
                self.is_chunked = is_first && is_chunked;
            }
            _ => {}
        }
        Ok(())
    }

    fn body_decoder(
        &self,
        status: u16,
        to_head: bool,
        is_http11: bool,
    ) -> Result<BodyDecoder, ProtocolError> {
        if to_head || matches!(status, 100..=199 | 204 | 304) {
            return Ok(BodyDecoder::Length(0));
        }
        match (self.has_transfer_encoding, self.content_length) {
            // A response may use only the transfer coding `chunked`, because our requests offer no
            // other coding. HTTP/1.0 has no transfer codings.
            (true, _) if !self.is_chunked || !is_http11 => Err(ProtocolError::TransferEncoding),
            (true, _) => Ok(BodyDecoder::Chunked(ChunkedDecoder::default())),
            (false, Some(len)) => Ok(BodyDecoder::Length(len)),
            (false, None) => Ok(BodyDecoder::UntilClose),
        }
    }

    /// Returns whether the connection may be reused. A response with both `Content-Length` and
    /// `Transfer-Encoding` may be an attempt at response splitting. Its body is read as chunks, and
    /// the connection is not reused.
    fn allows_reuse(&self, is_http11: bool) -> bool {
        let is_ambiguous = self.has_transfer_encoding && self.content_length.is_some();
        !is_ambiguous && !self.has_close && (is_http11 || self.has_keep_alive)
    }
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    let mut tokens = value.split(|byte| *byte == b',');
    tokens.any(|found| found.trim_ascii().eq_ignore_ascii_case(token))
}

fn parse_decimal(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_plain)?;
    text.parse().ok()
}
