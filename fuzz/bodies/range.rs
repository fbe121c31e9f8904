//! No Range, If-Range or other condition can make us panic, promise bytes that are not there, or
//! promise another number of them than we send.

use crate::conditional::{self, Validators};
use crate::range::{self, Multipart, RANGES_MAX, Wanted, parse};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use std::ops::Range;

/// The first two bytes of `data` are the length of what is asked for, the first line after them
/// the Range, the second one every condition.
pub fn run(data: &[u8]) {
    let Some((len, lines)) = data.split_first_chunk() else {
        return;
    };
    let len = u64::from(u16::from_be_bytes(*len));
    let mut lines = lines.splitn(2, |byte| *byte == b'\n');
    let (range, condition) = (lines.next().unwrap_or(&[]), lines.next().unwrap_or(&[]));
    if let Ok(text) = std::str::from_utf8(range) {
        check(&parse(text, len), len);
        check(&parse(text, u64::MAX), u64::MAX);
    }
    check_headers(range, condition, len);
}

fn check(wanted: &Wanted, len: u64) {
    let Wanted::Ranges(ranges) = wanted else {
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
        let said = range::content_range(range, len);
        let said = said.to_str().unwrap();
        assert_eq!(
            said,
            format!("bytes {}-{}/{len}", range.start, range.end - 1)
        );
        // What we say is understood as what we mean.
        let back = said
            .replace("bytes ", "bytes=")
            .replace(&format!("/{len}"), "");
        assert_eq!(
            parse(&back, len),
            Wanted::Ranges(Vec::from([range.clone()]))
        );
    }
    assert!(total <= len);
    if len <= u64::from(u16::MAX) {
        check_parts(ranges, len);
    }
}

/// All ranges in one body: as long as promised, each part what its head says.
fn check_parts(ranges: &[Range<u64>], len: u64) {
    let whole: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
    let middle = whole.len() / 3;
    let pieces = [
        Bytes::copy_from_slice(&whole[..middle]),
        Bytes::copy_from_slice(&whole[middle..]),
    ];
    let multipart = Multipart::new(ranges.to_vec(), len, "video/mp4");
    let body = multipart.pieces(&pieces).concat();
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
    let ours = Validators::strong("\"v1\"").modified_at(modified);
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
        check(&range::wanted(&Method::GET, &headers, &ours, len), len);
        assert_eq!(
            range::wanted(&Method::HEAD, &headers, &ours, len),
            Wanted::Whole
        );
        let status = conditional::evaluate(&Method::GET, &headers, &ours).status();
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
