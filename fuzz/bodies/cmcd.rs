//! No client data can make the CMCD parser panic or exceed its limits.

use http::{HeaderMap, HeaderValue};

use net::cmcd::CmcdData;

/// `data` contains the query, a line break, and a header value.
pub fn run(data: &[u8]) {
    let mut halves = data.splitn(2, |byte| *byte == b'\n');
    let query = String::from_utf8_lossy(halves.next().unwrap_or_default());
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(halves.next().unwrap_or_default()) {
        headers.insert("cmcd-request", value);
    }
    let cmcd = CmcdData::parse(Some(&query), &headers);
    assert!(cmcd.iter().count() <= 64);
    assert_eq!(cmcd.is_empty(), cmcd.iter().next().is_none());
    assert!(cmcd.iter().all(|(key, _)| !key.is_empty()));
}
