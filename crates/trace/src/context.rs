//! W3C Trace Context (Level 1): the `traceparent` header.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The header with the identity of the caller's span.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Length of a version 00 `traceparent` in bytes.
const HEADER_BYTES: usize = 55;
const SAMPLED: u8 = 1;

/// The identity of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Never zero.
    pub trace_id: u128,
    /// Never zero.
    pub span_id: u64,
    /// Whether this span is recorded.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Parses the caller's `traceparent` (section 3.2.2). Returns `None` if the header is missing
    /// or invalid.
    pub fn from_headers(headers: &HeaderMap) -> Option<TraceContext> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (value, None) = (values.next()?, values.next()) else {
            return None;
        };
        TraceContext::parse_traceparent(value.to_str().ok()?)
    }

    fn parse_traceparent(text: &str) -> Option<TraceContext> {
        let mut fields = text.split('-');
        let version: u8 = parse_hex(fields.next()?, 2)?.try_into().ok()?;
        let trace_id = parse_hex(fields.next()?, 32)?;
        let span_id = parse_hex(fields.next()?, 16)?.try_into().ok()?;
        let flags: u8 = parse_hex(fields.next()?, 2)?.try_into().ok()?;
        // Versions after 00 may add fields, so the length of the header is not checked for them.
        let is_known = version == 0 && text.len() == HEADER_BYTES || (1..0xff).contains(&version);
        (is_known && trace_id != 0 && span_id != 0).then_some(TraceContext {
            trace_id,
            span_id,
            is_sampled: flags & SAMPLED != 0,
        })
    }

    /// Returns the `traceparent` for outgoing requests of this span.
    pub fn to_header(self) -> Option<HeaderValue> {
        let flags = u8::from(self.is_sampled);
        let text = format!(
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        );
        HeaderValue::try_from(text).ok()
    }
}

/// Parses exactly `digits` lower-case hexadecimal digits.
fn parse_hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let is_valid = text.len() == digits && text.bytes().all(is_hex);
    is_valid.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases are from the W3C's test suite for Trace Context.
    #[test]
    fn invalid_headers_are_ignored() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parsed = TraceContext::parse_traceparent(valid).unwrap();
        assert_eq!(parsed.to_header().unwrap(), valid);
        assert!(parsed.is_sampled);
        let unsampled = TraceContext::parse_traceparent(&valid.replace("-01", "-00")).unwrap();
        assert!(!unsampled.is_sampled);
        let later = valid.replacen("00", "cc", 1);
        assert!(
            TraceContext::parse_traceparent(&format!("{later}-what-the-future-brings")).is_some()
        );
        for invalid in [
            "",
            "00",
            &valid.to_uppercase(),
            &valid.replacen("00", "ff", 1),
            &format!("{valid}-x"),
            &valid[..54],
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473+-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse_traceparent(invalid), None, "{invalid}");
        }
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static("x"));
        headers.append(TRACEPARENT, HeaderValue::try_from(valid).unwrap());
        assert_eq!(TraceContext::from_headers(&headers), None);
    }
}
