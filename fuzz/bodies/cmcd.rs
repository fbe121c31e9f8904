//! Checks that no client data makes the CMCD parser panic or exceed its limits.

use http::{HeaderMap, HeaderValue};

use net::cmcd::CmcdData;

/// `data` contains the query, a line break, and a header value. Each line of `data` is also parsed
/// as an event.
pub fn run(data: &[u8]) {
    let mut halves = data.splitn(2, |byte| *byte == b'\n');
    let query = String::from_utf8_lossy(halves.next().unwrap_or_default());
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(halves.next().unwrap_or_default()) {
        headers.insert("cmcd-request", value);
    }
    let cmcd = CmcdData::parse_cmcd(Some(&query), &headers);
    assert!(cmcd.iter().count() <= 64);
    assert_eq!(cmcd.is_empty(), cmcd.iter().next().is_none());
    assert!(cmcd.iter().all(|(key, _)| !key.is_empty()));
    for line in data.split(|byte| *byte == b'\n') {
        check_event(&String::from_utf8_lossy(line));
    }
}

/// Checks that an accepted event has a version and a name, and that the record of the event
/// contains all keys.
fn check_event(line: &str) {
    let Some(event) = CmcdData::parse_event(line) else {
        return;
    };
    assert_eq!(event.numeric_value("v"), Some(2.0));
    assert!(event.string_value("e").is_some());
    let record = event.to_full_record();
    assert_eq!(record.len(), event.iter().count());
    for (key, value) in &record {
        let items = event.list_items(key).len();
        assert_eq!(value.as_array().map_or(0, Vec::len), items, "{key}");
        assert!(items <= 32);
    }
}
