//! Request heads as bytes.

use http::Method;

/// Appends the head of a request: the request line, the fields in the given order, and the empty
/// line.
///
/// Field names and values must be valid, as they are in an [`http::HeaderMap`]. `target` must be
/// free of spaces and control characters, as it is in an [`http::Uri`]. The caller must include the
/// fields that frame the body.
pub fn write_request_head<'a>(
    out: &mut Vec<u8>,
    method: &Method,
    target: &str,
    fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) {
    for part in [method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in fields {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
}
