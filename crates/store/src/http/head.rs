//! Heads of HTTP/1.1: a request as bytes, bytes as an answer's head (RFC 9112).

use super::framing::Framing;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Version, response::Parts};
use object_store::client::HttpRequest;
use std::borrow::Cow;

/// Most fields in a head.
const FIELDS_MAX: usize = 128;

/// An answer's head, and what it says of what follows.
pub(super) struct Head {
    pub(super) parts: Parts,
    pub(super) framing: Framing,
    /// Whether another request may follow on the connection.
    pub(super) keep: bool,
    /// Its bytes.
    pub(super) len: usize,
}

/// A request's head as it is sent.
pub(super) fn request(request: &HttpRequest) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let target = request.uri().path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    out.extend(
        [request.method().as_str(), " ", target, " HTTP/1.1\r\n"]
            .concat()
            .bytes(),
    );
    let framing = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    for (name, value) in request.headers() {
        if !framing.contains(name) {
            field(&mut out, name, value.as_bytes());
        }
    }
    let len = request.body().content_length();
    if len > 0 || matches!(*request.method(), Method::POST | Method::PUT) {
        field(
            &mut out,
            &header::CONTENT_LENGTH,
            len.to_string().as_bytes(),
        );
    }
    out.extend(b"\r\n");
    out
}

fn field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// The head of an answer to a request by `method`; none while it is not whole.
///
/// # Errors
/// Why it is none.
pub(super) fn answer(bytes: &[u8], method: &Method) -> Result<Option<Head>, Cow<'static, str>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut read = httparse::Response::new(&mut fields);
    let len = match read.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("no head of an answer: {error}").into()),
    };
    let (mut parts, ()) = http::Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(read.code.unwrap_or(0)).map_err(|_| "no status")?;
    if read.version == Some(0) {
        parts.version = Version::HTTP_10;
    }
    for field in read.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| "no field's name")?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| "no field's value")?;
        parts.headers.append(name, value);
    }
    let (framing, sure) = framing(&parts, method)?;
    let closes = has_token(&parts.headers, &header::CONNECTION, b"close");
    let keep = sure && !closes && parts.version == Version::HTTP_11;
    Ok(Some(Head {
        parts,
        framing,
        keep,
        len,
    }))
}

/// How the body ends (RFC 9112 section 6.3), and whether there is no doubt about it.
fn framing(parts: &Parts, method: &Method) -> Result<(Framing, bool), &'static str> {
    let length = length(&parts.headers)?;
    let status = parts.status;
    let none = status.is_informational() || matches!(status.as_u16(), 204 | 304);
    if none || *method == Method::HEAD {
        return Ok((Framing::Length(0), true));
    }
    if parts.headers.contains_key(header::TRANSFER_ENCODING) {
        let last = parts
            .headers
            .get_all(header::TRANSFER_ENCODING)
            .iter()
            .next_back();
        let coded = last.map(|value| value.as_bytes().trim_ascii().to_ascii_lowercase());
        return match coded.as_deref() {
            Some(b"chunked") => Ok((Framing::chunked(), length.is_none())),
            // In a coding that was not asked for.
            _ => Err("a transfer coding that is not known"),
        };
    }
    Ok(match length {
        Some(length) => (Framing::Length(length), true),
        None => (Framing::Close, false),
    })
}

fn length(headers: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let mut found = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        let text = value.to_str().unwrap_or("").trim();
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|_| digits);
        let value: u64 = value.ok_or("a length that is no number")?;
        if found.is_some_and(|other| other != value) {
            return Err("two lengths");
        }
        found = Some(value);
    }
    Ok(found)
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &[u8]) -> bool {
    let values = headers.get_all(name).iter();
    let mut parts = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    parts.any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use object_store::client::HttpRequestBody;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_head_makes_it_panic(
            fields in "HTTP/1.1 [0-9]{1,4}(\r\n(Content-Length|Transfer-Encoding|x|Connection): ?[ -~]{0,12}){0,4}\r\n\r\n",
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            for text in [fields.as_bytes(), &bytes] {
                if let Ok(Some(head)) = answer(text, &Method::GET) {
                    prop_assert!(head.len <= text.len());
                }
            }
        }
    }

    #[test]
    fn a_request_as_bytes() {
        let mut get = Request::new(HttpRequestBody::empty());
        *get.uri_mut() = "/a%20b?c".parse().unwrap();
        get.headers_mut().insert("host", "h:1".parse().unwrap());
        get.headers_mut()
            .insert("range", "bytes=1-2".parse().unwrap());
        let text = b"GET /a%20b?c HTTP/1.1\r\nhost: h:1\r\nrange: bytes=1-2\r\n\r\n";
        assert_eq!(request(&get), text);
        let mut post = Request::new(HttpRequestBody::from("four".to_owned()));
        *post.method_mut() = Method::POST;
        post.headers_mut()
            .insert("content-length", "9".parse().unwrap());
        assert_eq!(
            request(&post),
            b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\n"
        );
    }

    fn said(text: &str) -> Result<Option<(Framing, bool)>, String> {
        let head = answer(text.as_bytes(), &Method::GET).map_err(|why| why.to_string())?;
        Ok(head.map(|head| (head.framing, head.keep)))
    }

    #[test]
    fn where_bodies_end() {
        for (fields, framing, keep) in [
            ("206 P\r\nContent-Length: 7", Framing::Length(7), true),
            (
                "206 P\r\nContent-Length: 7\r\ncontent-length: 7",
                Framing::Length(7),
                true,
            ),
            (
                "200 O\r\nContent-Length: 7\r\nConnection: x, Close",
                Framing::Length(7),
                false,
            ),
            (
                "200 O\r\nTransfer-Encoding: chunked",
                Framing::chunked(),
                true,
            ),
            (
                "200 O\r\nTransfer-Encoding: Chunked\r\nContent-Length: 7",
                Framing::chunked(),
                false,
            ),
            ("204 N", Framing::Length(0), true),
            ("304 N\r\nContent-Length: 7", Framing::Length(0), true),
            ("200 O", Framing::Close, false),
        ] {
            let text = format!("HTTP/1.1 {fields}\r\n\r\n");
            assert_eq!(said(&text), Ok(Some((framing, keep))), "{fields}");
            for cut in 0..text.len() {
                assert_eq!(said(&text[..cut]), Ok(None), "{fields} {cut}");
            }
        }
        let old = "HTTP/1.0 200 O\r\nContent-Length: 7\r\n\r\n";
        assert_eq!(said(old), Ok(Some((Framing::Length(7), false))));
        let head = answer(
            b"HTTP/1.1 200 O\r\nContent-Length: 7\r\n\r\n",
            &Method::HEAD,
        );
        assert_eq!(head.unwrap().unwrap().framing, Framing::Length(0));
    }

    #[test]
    fn what_is_no_head() {
        for fields in [
            "200 O\r\nContent-Length: 7\r\nContent-Length: 8",
            "200 O\r\nContent-Length: +7",
            "200 O\r\nContent-Length: ",
            "200 O\r\nContent-Length: 99999999999999999999",
            "200 O\r\nTransfer-Encoding: gzip",
            "99999 O",
            "200 O\r\nno field",
        ] {
            assert!(
                said(&format!("HTTP/1.1 {fields}\r\n\r\n")).is_err(),
                "{fields}"
            );
        }
        assert!(said("220 smtp.example.org ESMTP\r\n").is_err());
    }
}
