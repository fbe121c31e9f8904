//! Checks that no Range, If-Range or other condition causes a panic. Each accepted range must lie
//! within the resource, and each multipart body must have the declared length.

use crate::conditional::{self, Validators};
use crate::range::{self, Multipart, RANGES_MAX, RequestedRanges, parse_ranges};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use std::ops::Range;

/// The first two bytes of `data` are the length of the resource. The bytes up to the line break are
/// the Range header. The rest is a value that is tried in each conditional header.
pub fn run(data: &[u8]) {
    let Some((len, lines)) = data.split_first_chunk() else {
        return;
    };
    let len = u64::from(u16::from_be_bytes(*len));
    let mut lines = lines.splitn(2, |byte| *byte == b'\n');
    let (range, condition) = (lines.next().unwrap_or(&[]), lines.next().unwrap_or(&[]));
    if let Ok(text) = std::str::from_utf8(range) {
        check_ranges(&parse_ranges(text, len), len);
        check_ranges(&parse_ranges(text, u64::MAX), u64::MAX);
    }
    check_headers(range, condition, len);
}

fn check_ranges(requested: &RequestedRanges, len: u64) {
    let RequestedRanges::Ranges(ranges) = requested else {
        return;
    };
    assert!((1..=RANGES_MAX).contains(&ranges.len()));
    let mut total = 0u64;
    for range in ranges {
        assert!(
            range.start < range.end && range.end <= len,
            "{range:?} of {len}"
        );
        total += range.end - range.start;
        let text = range::content_range(range, len);
        let text = text.to_str().unwrap();
        assert_eq!(
            text,
            format!("bytes {}-{}/{len}", range.start, range.end - 1)
        );
        // The formatted Content-Range parses back to the same range.
        let back = text
            .replace("bytes ", "bytes=")
            .replace(&format!("/{len}"), "");
        assert_eq!(
            parse_ranges(&back, len),
            RequestedRanges::Ranges(Vec::from([range.clone()]))
        );
    }
    assert!(total <= len);
    if len <= u64::from(u16::MAX) {
        check_parts(ranges, len);
    }
}

/// Checks that a multipart body has the declared length, and that each part contains the bytes of
/// its range.
fn check_parts(ranges: &[Range<u64>], len: u64) {
    let whole: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
    let middle = whole.len() / 3;
    let pieces = [
        Bytes::copy_from_slice(&whole[..middle]),
        Bytes::copy_from_slice(&whole[middle..]),
    ];
    let multipart = Multipart::new(ranges.to_vec(), len, "video/mp4");
    let body = multipart.body_pieces(&pieces).concat();
    assert_eq!(body.len() as u64, multipart.len());
    let mut rest = &*body;
    for (head, range) in multipart.parts() {
        rest = rest.strip_prefix(&**head).expect("a head");
        let (part, after) = rest.split_at((range.end - range.start) as usize);
        assert_eq!(part, &whole[range.start as usize..range.end as usize]);
        rest = after;
    }
    assert_eq!(rest, multipart.tail());
}

fn check_headers(range: &[u8], condition: &[u8], len: u64) {
    let (Ok(range), Ok(condition)) = (
        HeaderValue::from_bytes(range),
        HeaderValue::from_bytes(condition),
    ) else {
        return;
    };
    let modified = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
    let ours = Validators::from_etag("\"v1\"").with_modification_time(modified);
    let conditions = [
        header::IF_RANGE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ];
    for name in conditions {
        let headers = HeaderMap::from_iter([
            (header::RANGE, range.clone()),
            (name.clone(), condition.clone()),
        ]);
        check_ranges(
            &range::requested_ranges(&Method::GET, &headers, &ours, len),
            len,
        );
        assert_eq!(
            range::requested_ranges(&Method::HEAD, &headers, &ours, len),
            RequestedRanges::Whole
        );
        let status = conditional::evaluate_conditions(&Method::GET, &headers, &ours).status();
        let expected = match name {
            header::IF_MATCH | header::IF_UNMODIFIED_SINCE => StatusCode::PRECONDITION_FAILED,
            _ => StatusCode::NOT_MODIFIED,
        };
        assert!(
            status.is_none_or(|status| status == expected),
            "{name}: {status:?}"
        );
    }
}
