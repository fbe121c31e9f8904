//! Fields that many answers carry alike.

use std::sync::Arc;

use http::header::{self, HeaderMap};

/// Fields of a head that many answers carry alike, written down once, which spares small answers
/// a copy of a map and a walk through it.
#[derive(Debug, Clone)]
pub struct Fields(Arc<Written>);

#[derive(Debug)]
struct Written {
    map: HeaderMap,
    text: Box<[u8]>,
}

impl Fields {
    /// These, but for what tells where a body or a connection ends: that is said by whoever sends it.
    pub fn new(mut map: HeaderMap) -> Fields {
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
            write(&mut text, name.as_str(), value.as_bytes());
        }
        let text = text.into();
        Fields(Arc::new(Written { map, text }))
    }

    /// As lines of HTTP/1.1 (RFC 9112 section 5).
    pub(crate) fn text(&self) -> &[u8] {
        &self.0.text
    }

    /// One by one.
    pub(crate) fn map(&self) -> &HeaderMap {
        &self.0.map
    }
}

/// Writes a field as a line of HTTP/1.1 (RFC 9112 section 5).
pub(crate) fn write(out: &mut Vec<u8>, name: &str, value: &[u8]) {
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
    fn what_frames_a_body_is_not_among_them() {
        let said = [
            ("etag", "\"a\""),
            ("content-length", "7"),
            ("date", "never"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("trailer", "etag"),
        ];
        let map = said.map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let fields = Fields::new(HeaderMap::from_iter(map));
        assert_eq!(fields.text(), b"etag: \"a\"\r\n");
        assert_eq!(fields.map().len(), 1);
    }
}
