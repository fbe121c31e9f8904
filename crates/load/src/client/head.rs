//! An answer's head (RFC 9112).

use super::framing::Framing;
use super::{Failure, Fault, Sink};
use std::cell::RefCell;

/// Longest head in bytes.
pub(super) const BYTES_MAX: usize = 64 << 10;

/// Most fields in a head.
const FIELDS_MAX: usize = 128;

/// What matters of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Its length in bytes.
    pub(super) len: usize,
    pub(super) framing: Framing,
    /// Whether the connection may be used again.
    pub(super) keep_alive: bool,
}

thread_local! {
    /// The head that came last, word for word, and what it says: servers repeat themselves.
    static LAST: RefCell<(Vec<u8>, Option<Head>)> = const { RefCell::new((Vec::new(), None)) };
}

/// Reads a head; None: it is not whole yet.
pub(super) fn parse(
    bytes: &[u8],
    head_only: bool,
    sink: &mut impl Sink,
) -> Result<Option<Head>, Failure> {
    let again = LAST.with_borrow(|(last, head)| head.filter(|_| bytes.starts_with(last)));
    if let Some(head) = again.filter(|head| !head_only && !sink.wants_fields(head.status)) {
        return Ok(Some(head));
    }
    let head = parse_anew(bytes, head_only, sink)?;
    if let Some(head) = head.filter(|_| !head_only) {
        LAST.with_borrow_mut(|(last, known)| {
            last.clear();
            last.extend_from_slice(&bytes[..head.len]);
            *known = Some(head);
        });
    }
    Ok(head)
}

fn parse_anew(
    bytes: &[u8],
    head_only: bool,
    sink: &mut impl Sink,
) -> Result<Option<Head>, Failure> {
    let mut fields = [const { std::mem::MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let len = match config.parse_response_with_uninit_headers(&mut response, bytes, &mut fields) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if bytes.len() >= BYTES_MAX => {
            return Err(Fault::HeadTooLong.into());
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Fault::HeadTooLong.into()),
        Err(error) => return Err(Failure::new(Fault::Head, error)),
    };
    let status = response.code.unwrap_or(0);
    let mut keep_alive = response.version == Some(1);
    let mut length = None;
    let mut chunked = false;
    let wanted = sink.wants_fields(status);
    for field in response.headers.iter() {
        if wanted {
            sink.field(field.name, field.value);
        }
        match field.name.len() {
            10 if field.name.eq_ignore_ascii_case("connection") => {
                if has_token(field.value, b"close") {
                    keep_alive = false;
                } else if has_token(field.value, b"keep-alive") {
                    keep_alive = true;
                }
            }
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                let value = decimal(field.value)?;
                if length.is_some_and(|other| other != value) {
                    return Err(Failure::new(Fault::Head, "two lengths"));
                }
                length = Some(value);
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                chunked = field.value.to_ascii_lowercase().ends_with(b"chunked");
            }
            _ => {}
        }
    }
    // RFC 9112, 6.3.
    let framing = match length {
        _ if head_only || matches!(status, 100..=199 | 204 | 304) => Framing::None,
        _ if chunked => Framing::chunked(),
        Some(length) => Framing::Length(length),
        None => Framing::Close,
    };
    Ok(Some(Head {
        status,
        len,
        framing,
        keep_alive: keep_alive && framing != Framing::Close,
    }))
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

fn decimal(value: &[u8]) -> Result<u64, Failure> {
    let text = value.trim_ascii();
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| digits)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::new(Fault::Head, "Content-Length is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Discard, Keep};

    fn parsed(text: &str) -> Result<Option<Head>, Fault> {
        parse(text.as_bytes(), false, &mut Discard).map_err(|failure| failure.fault)
    }

    #[test]
    fn heads_say_how_their_body_ends() {
        for (text, framing, keep_alive) in [
            ("200 OK\r\nContent-Length: 5", Framing::Length(5), true),
            (
                "200\r\nContent-Length: 5\r\nConnection: Close",
                Framing::Length(5),
                false,
            ),
            (
                "200 OK\r\nContent-Length: 5\r\ncontent-length: 5",
                Framing::Length(5),
                true,
            ),
            (
                "200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
                Framing::chunked(),
                true,
            ),
            ("200 OK", Framing::Close, false),
            ("204 No Content", Framing::None, true),
            ("304 Not Modified\r\nContent-Length: 5", Framing::None, true),
        ] {
            let head = parsed(&format!("HTTP/1.1 {text}\r\n\r\n"))
                .unwrap()
                .unwrap();
            assert_eq!(
                (head.framing, head.keep_alive),
                (framing, keep_alive),
                "{text}"
            );
        }
    }

    #[test]
    fn a_head_that_came_before_means_the_same() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let first = parsed(head).unwrap().unwrap();
        assert_eq!(parsed(&format!("{head}12345")), Ok(Some(first)));
        // Not so where it is an answer to HEAD, or where somebody looks at its fields.
        let to_head = parse(head.as_bytes(), true, &mut Discard).unwrap().unwrap();
        assert_eq!(to_head.framing, Framing::None);
        assert_eq!(
            parsed(head).unwrap().unwrap().framing,
            Framing::Length(5),
            "an answer to HEAD is not remembered"
        );
        let mut keep = Keep {
            max: 10,
            ..Keep::default()
        };
        parse(head.as_bytes(), false, &mut keep).unwrap();
        assert_eq!(keep.headers["content-length"], "5");
    }

    #[test]
    fn bad_heads_are_faults() {
        for (text, fault) in [
            ("ICY 200 OK\r\n\r\n", Fault::Head),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Fault::Head),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Fault::Head),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                Fault::Head,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Fault::Head,
            ),
        ] {
            assert_eq!(parsed(text), Err(fault), "{text}");
        }
        assert_eq!(parsed("HTTP/1.1 200 OK\r\nX: y\r\n"), Ok(None));
        let long = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(BYTES_MAX));
        assert_eq!(parsed(&long), Err(Fault::HeadTooLong));
        let many = format!(
            "HTTP/1.1 200 OK\r\n{}\r\n",
            "X: y\r\n".repeat(FIELDS_MAX + 1)
        );
        assert_eq!(parsed(&many), Err(Fault::HeadTooLong));
    }
}
