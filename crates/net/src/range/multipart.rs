//! Responses of type multipart/byteranges, which contain several ranges (RFC 9110 section 14.6).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use bytes::Bytes;
use http::HeaderValue;

use super::{format_content_range, into_header_value};

/// The multipart framing, which consists of a head before each range and a tail after the last
/// range.
#[derive(Debug, Clone)]
pub struct Multipart {
    boundary: String,
    parts: Vec<(Bytes, Range<u64>)>,
    tail: Bytes,
}

impl Multipart {
    /// Creates the framing for these ranges of a representation of `len` bytes.
    pub fn new(ranges: Vec<Range<u64>>, len: u64, content_type: &str) -> Multipart {
        Multipart::with_boundary(random_boundary(), ranges, len, content_type)
    }

    fn with_boundary(
        boundary: String,
        ranges: Vec<Range<u64>>,
        len: u64,
        content_type: &str,
    ) -> Multipart {
        let head = |range: &Range<u64>| {
            let content_range = format_content_range(range, len);
            Bytes::from(format!(
                "\r\n--{boundary}\r\nContent-Type: {content_type}\r\n\
                 Content-Range: {content_range}\r\n\r\n"
            ))
        };
        let parts = ranges
            .into_iter()
            .map(|range| (head(&range), range))
            .collect();
        let tail = Bytes::from(format!("\r\n--{boundary}--\r\n"));
        Multipart {
            boundary,
            parts,
            tail,
        }
    }

    /// The response's Content-Type.
    pub fn content_type(&self) -> HeaderValue {
        into_header_value(format!("multipart/byteranges; boundary={}", self.boundary))
    }

    /// Returns the exact length of the body in bytes.
    pub fn len(&self) -> u64 {
        let parts = self.parts.iter().map(|(head, range)| {
            (head.len() as u64).saturating_add(range.end.saturating_sub(range.start))
        });
        parts.fold(self.tail.len() as u64, u64::saturating_add)
    }

    /// Returns `false`, because the body always contains the tail.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns each part's head and the byte range that follows it.
    pub fn parts(&self) -> &[(Bytes, Range<u64>)] {
        &self.parts
    }

    /// Returns the bytes after the last part.
    pub fn tail(&self) -> Bytes {
        self.tail.clone()
    }

    /// Returns the whole body. `pieces` contains all bytes of the representation, in order.
    pub fn body_pieces(&self, pieces: &[Bytes]) -> Vec<Bytes> {
        let part = |(head, range): &(Bytes, Range<u64>)| {
            std::iter::once(head.clone())
                .chain(super::slice_pieces(pieces, range))
                .collect::<Vec<_>>()
        };
        self.parts
            .iter()
            .flat_map(part)
            .chain([self.tail()])
            .collect()
    }
}

/// Returns 128 random bits as hexadecimal digits. The author of the media cannot predict these bits
/// and therefore cannot put the boundary into the media.
fn random_boundary() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_as_the_standard_prints_it_and_as_long_as_promised() {
        let ranges = vec![0..2, 4..5];
        let multipart = Multipart::with_boundary("B".into(), ranges, 6, "video/mp4");
        let pieces = [
            Bytes::from_static(b"ab"),
            Bytes::new(),
            Bytes::from_static(b"cdef"),
        ];
        let body = multipart.body_pieces(&pieces).concat();
        let expected = "\r\n--B\r\nContent-Type: video/mp4\r\nContent-Range: bytes 0-1/6\r\n\r\nab\
                        \r\n--B\r\nContent-Type: video/mp4\r\nContent-Range: bytes 4-4/6\r\n\r\ne\
                        \r\n--B--\r\n";
        assert_eq!(String::from_utf8(body).unwrap(), expected);
        assert_eq!(multipart.len(), expected.len() as u64);
        assert_eq!(multipart.content_type(), "multipart/byteranges; boundary=B");
    }

    #[test]
    fn boundaries_differ() {
        assert_ne!(random_boundary(), random_boundary());
        assert_eq!(random_boundary().len(), 32);
    }
}
