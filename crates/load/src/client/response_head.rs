//! Parses response heads, and caches the last parsed head.

use super::{RequestFailure, ResponseSink};
use http1::{HeadLimits, ResponseHead};
use std::cell::RefCell;

thread_local! {
    /// The bytes of the previous head, and the parsed head. Servers often send the same head again,
    /// and comparing bytes costs less than parsing them.
    static PREVIOUS_HEAD: RefCell<(Vec<u8>, Option<ResponseHead>)> =
        const { RefCell::new((Vec::new(), None)) };
}

/// Parses a response head. Returns `None` while the head is incomplete.
pub(super) fn parse_head(
    bytes: &[u8],
    to_head: bool,
    sink: &mut impl ResponseSink,
) -> Result<Option<ResponseHead>, RequestFailure> {
    let repeated =
        PREVIOUS_HEAD.with_borrow(|(previous, head)| head.filter(|_| bytes.starts_with(previous)));
    if let Some(head) = repeated.filter(|head| !to_head && !sink.wants_fields(head.status)) {
        return Ok(Some(head));
    }
    let on_field = |status: u16, name: &str, value: &[u8]| {
        if sink.wants_fields(status) {
            sink.on_field(name, value);
        }
    };
    let head = ResponseHead::parse(bytes, HeadLimits::default(), to_head, on_field)?;
    if let Some(head) = head.filter(|_| !to_head) {
        PREVIOUS_HEAD.with_borrow_mut(|(previous, known)| {
            previous.clear();
            previous.extend_from_slice(&bytes[..head.len]);
            *known = Some(head);
        });
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{DiscardSink, FailureKind, MemorySink};
    use http1::BodyDecoder;

    fn parse_discarding(text: &str) -> Result<Option<ResponseHead>, FailureKind> {
        parse_head(text.as_bytes(), false, &mut DiscardSink).map_err(|failure| failure.fault)
    }

    #[test]
    fn a_repeated_head_has_the_same_meaning() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let first = parse_discarding(head).unwrap().unwrap();
        assert_eq!(parse_discarding(&format!("{head}12345")), Ok(Some(first)));
        // The cached head is not used for a response to HEAD, or if the sink wants the header
        // fields.
        let to_head = parse_head(head.as_bytes(), true, &mut DiscardSink);
        assert_eq!(to_head.unwrap().unwrap().body, BodyDecoder::Length(0));
        assert_eq!(
            parse_discarding(head).unwrap().unwrap().body,
            BodyDecoder::Length(5),
            "a response to HEAD is not cached"
        );
        let mut keep = MemorySink {
            max: 10,
            ..MemorySink::default()
        };
        parse_head(head.as_bytes(), false, &mut keep).unwrap();
        assert_eq!(keep.headers["content-length"], "5");
    }

    #[test]
    fn invalid_heads_are_counted_by_kind() {
        for (text, fault) in [
            ("ICY 200 OK\r\n\r\n".to_owned(), FailureKind::Head),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
                FailureKind::Head,
            ),
            (
                format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(64 << 10)),
                FailureKind::HeadTooLong,
            ),
        ] {
            assert_eq!(parse_discarding(&text), Err(fault), "{text:.60}");
        }
        assert_eq!(parse_discarding("HTTP/1.1 200 OK\r\nX: y\r\n"), Ok(None));
    }
}
