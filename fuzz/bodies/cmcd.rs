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
    let said = CmcdData::parse(Some(&query), &headers);
    assert!(said.iter().count() <= 64);
    assert_eq!(said.is_empty(), said.iter().next().is_none());
    assert!(said.iter().all(|(key, _)| !key.is_empty()));
}
