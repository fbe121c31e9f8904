//! Tables of response heads, each with the framing of its body or with the expected error.
#![allow(clippy::unwrap_used)]

use http::{HeaderMap, Method};
use http1::{BodyDecoder, ChunkedDecoder, HeadLimits, ProtocolError, ResponseHead};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Option<ResponseHead>, ProtocolError> {
    ResponseHead::parse(text.as_bytes(), HeadLimits::default(), false, |_, _, _| {})
}

#[test]
fn heads_decide_how_their_body_ends() {
    let chunked = BodyDecoder::Chunked(ChunkedDecoder::default());
    for (fields, body, keep_alive) in [
        ("1 206 P\r\nContent-Length: 7", BodyDecoder::Length(7), true),
        ("1 200\r\nContent-Length: 7", BodyDecoder::Length(7), true),
        (
            "1 206 P\r\nContent-Length: 7\r\ncontent-length: 7",
            BodyDecoder::Length(7),
            true,
        ),
        (
            "1 200 O\r\nContent-Length: 7\r\nConnection: x, Close",
            BodyDecoder::Length(7),
            false,
        ),
        (
            "1 200 O\r\nContent-Length: 7\r\nConnection: close\r\nConnection: keep-alive",
            BodyDecoder::Length(7),
            false,
        ),
        ("1 200 O\r\nTransfer-Encoding: chunked", chunked, true),
        (
            "1 200 O\r\nTransfer-Encoding: Chunked\r\nContent-Length: 7",
            chunked,
            false,
        ),
        ("1 204 N", BodyDecoder::Length(0), true),
        ("1 304 N\r\nContent-Length: 7", BodyDecoder::Length(0), true),
        (
            "1 103 E\r\nTransfer-Encoding: chunked",
            BodyDecoder::Length(0),
            true,
        ),
        ("1 200 O", BodyDecoder::UntilClose, false),
        (
            "0 200 O\r\nContent-Length: 7",
            BodyDecoder::Length(7),
            false,
        ),
        (
            "0 200 O\r\nContent-Length: 7\r\nConnection: keep-alive",
            BodyDecoder::Length(7),
            true,
        ),
    ] {
        let text = format!("HTTP/1.{fields}\r\n\r\n");
        let head = parse(&text).unwrap().unwrap();
        assert_eq!(
            (head.body, head.keep_alive, head.len),
            (body, keep_alive, text.len()),
            "{fields}"
        );
        for cut in 0..text.len() {
            assert_eq!(parse(&text[..cut]), Ok(None), "{fields} {cut}");
        }
    }
    let text = b"HTTP/1.1 200 O\r\nContent-Length: 7\r\n\r\n";
    let head = ResponseHead::parse(text, HeadLimits::default(), true, |_, _, _| {});
    assert_eq!(
        head.unwrap().unwrap().body,
        BodyDecoder::Length(0),
        "no body follows HEAD"
    );
}

#[test]
fn ambiguous_or_malformed_heads_are_errors() {
    for (fields, error) in [
        (
            "1 200 O\r\nContent-Length: 7\r\nContent-Length: 8",
            Some(ProtocolError::ContentLengths),
        ),
        (
            "1 200 O\r\nContent-Length: 7, 7",
            Some(ProtocolError::ContentLength),
        ),
        (
            "1 200 O\r\nContent-Length: +7",
            Some(ProtocolError::ContentLength),
        ),
        (
            "1 200 O\r\nContent-Length: -7",
            Some(ProtocolError::ContentLength),
        ),
        (
            "1 200 O\r\nContent-Length: 0x7",
            Some(ProtocolError::ContentLength),
        ),
        (
            "1 200 O\r\nContent-Length: ",
            Some(ProtocolError::ContentLength),
        ),
        (
            "1 200 O\r\nContent-Length: 99999999999999999999",
            Some(ProtocolError::ContentLength),
        ),
        (
            "1 200 O\r\nTransfer-Encoding: gzip",
            Some(ProtocolError::TransferEncoding),
        ),
        (
            "1 200 O\r\nTransfer-Encoding: gzip, chunked",
            Some(ProtocolError::TransferEncoding),
        ),
        // Regression: the parser checked only the last of several Transfer-Encoding fields.
        (
            "1 200 O\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            Some(ProtocolError::TransferEncoding),
        ),
        (
            "1 200 O\r\nTransfer-Encoding: xchunked",
            Some(ProtocolError::TransferEncoding),
        ),
        (
            "1 200 O\r\nTransfer-Encoding: chunked, gzip",
            Some(ProtocolError::TransferEncoding),
        ),
        (
            "0 200 O\r\nTransfer-Encoding: chunked",
            Some(ProtocolError::TransferEncoding),
        ),
        ("1 099 O", Some(ProtocolError::Status)),
        ("1 99999 O", None),
        ("1 200 O\r\nno field", None),
        ("1 200 O\r\nA : b", None),
        ("1 200 O\r\nA: b\r\n c", None),
        ("2 200 O", None),
    ] {
        let found = parse(&format!("HTTP/1.{fields}\r\n\r\n")).unwrap_err();
        assert!(
            error.is_none_or(|error| error == found),
            "{fields}: {found}"
        );
    }
    assert!(parse("220 smtp.example.org ESMTP\r\n").is_err());
    assert!(parse("ICY 200 OK\r\n\r\n").is_err());
}

#[test]
fn heads_are_bounded_in_bytes_and_fields() {
    let limits = HeadLimits {
        bytes_max: 100,
        fields_max: 2,
    };
    let parse = |text: &str| ResponseHead::parse(text.as_bytes(), limits, false, |_, _, _| {});
    assert!(parse("HTTP/1.1 200 O\r\nA: b\r\nA: b\r\n\r\n").is_ok());
    let many = "HTTP/1.1 200 O\r\nA: b\r\nA: b\r\nA: b\r\n\r\n";
    assert_eq!(parse(many), Err(ProtocolError::HeadTooLong));
    for end in ["", "\r\n\r\n"] {
        let long = format!("HTTP/1.1 200 O\r\nA: {}{end}", "b".repeat(100));
        assert_eq!(parse(&long), Err(ProtocolError::HeadTooLong), "{end:?}");
    }
}

#[test]
fn fields_are_shown_with_the_status_and_collected() {
    let text = b"HTTP/1.1 404 N\r\nA: b\r\na: c\r\nContent-Length: 0\r\n\r\n";
    let mut shown = Vec::new();
    ResponseHead::parse(text, HeadLimits::default(), false, |status, name, value| {
        shown.push((status, name.to_owned(), value.to_vec()));
    })
    .unwrap();
    assert_eq!(shown[1], (404, "a".to_owned(), b"c".to_vec()));
    let parsed = ResponseHead::parse_to_map(text, HeadLimits::default(), false);
    let (head, headers): (ResponseHead, HeaderMap) = parsed.unwrap().unwrap();
    assert_eq!((head.status, headers.len()), (404, 3));
    assert_eq!(headers.get_all("a").iter().count(), 2);
}

#[test]
fn request_heads_are_written_in_order() {
    let mut out = Vec::new();
    let fields = [("host", &b"h:1"[..]), ("range", b"bytes=1-2")];
    http1::write_request_head(&mut out, &Method::GET, "/a%20b?c", fields);
    assert_eq!(
        out,
        b"GET /a%20b?c HTTP/1.1\r\nhost: h:1\r\nrange: bytes=1-2\r\n\r\n"
    );
}

proptest! {
    #[test]
    fn parsing_never_panics(
        fields in "HTTP/1.1 [0-9]{1,4}(\r\n(Content-Length|Transfer-Encoding|x|Connection): ?[ -~]{0,12}){0,4}\r\n\r\n",
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for text in [fields.as_bytes(), &bytes] {
            let parsed = ResponseHead::parse_to_map(text, HeadLimits::default(), false);
            if let Ok(Some((head, _))) = parsed {
                prop_assert!(head.len <= text.len());
            }
        }
    }
}
