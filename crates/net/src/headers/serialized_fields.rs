//! Header fields that many responses share.

use std::sync::Arc;

use http::header::{self, HeaderMap};

/// Header fields that many responses share, serialized only once. A small response then need not
/// copy a map or iterate over it.
#[derive(Debug, Clone)]
pub struct SerializedFields(Arc<HeaderMapAndLines>);

#[derive(Debug)]
struct HeaderMapAndLines {
    map: HeaderMap,
    text: Box<[u8]>,
}

impl SerializedFields {
    /// Serializes `map` without the fields that the response writer adds. These fields frame a
    /// body, manage a connection, or contain the date.
    pub fn new(mut map: HeaderMap) -> SerializedFields {
        for name in [
            header::CONNECTION,
            header::CONTENT_LENGTH,
            header::DATE,
            header::TRAILER,
            header::TRANSFER_ENCODING,
        ] {
            map.remove(name);
        }
        let mut text = Vec::new();
        for (name, value) in &map {
            write_field(&mut text, name.as_str(), value.as_bytes());
        }
        let text = text.into();
        SerializedFields(Arc::new(HeaderMapAndLines { map, text }))
    }

    /// Returns the fields as HTTP/1.1 field lines (RFC 9112 section 5).
    pub(crate) fn header_lines(&self) -> &[u8] {
        &self.0.text
    }

    /// Returns the fields as a map.
    pub(crate) fn header_map(&self) -> &HeaderMap {
        &self.0.map
    }
}

/// Writes a field as an HTTP/1.1 field line (RFC 9112 section 5).
pub(crate) fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn framing_fields_are_removed() {
        let rows = [
            ("etag", "\"a\""),
            ("content-length", "7"),
            ("date", "never"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("trailer", "etag"),
        ];
        let map = rows.map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let fields = SerializedFields::new(HeaderMap::from_iter(map));
        assert_eq!(fields.header_lines(), b"etag: \"a\"\r\n");
        assert_eq!(fields.header_map().len(), 1);
    }
}
