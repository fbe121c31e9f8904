//! No answer's or request's head can make the rules of freshness panic, or keep what must not be.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::fresh::{Asked, Directives, Policy, Use, judge, keep};

/// Two bytes are the status, one says what the request carried, one for how long the answer has been
/// here; then lines of the answer's head, an empty line, and lines of a request's.
pub fn run(data: &[u8]) {
    let Some(([status_high, status_low, flags, hours], text)) = data.split_first_chunk::<4>()
    else {
        return;
    };
    let code = u16::from_be_bytes([*status_high, *status_low]) % 500 + 100;
    let Ok(status) = StatusCode::from_u16(code) else {
        return;
    };
    let mut lines = text.split(|byte| *byte == b'\n');
    let answer = headers(lines.by_ref().take_while(|line| !line.is_empty()));
    let request = headers(lines);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let asked = Asked {
        method: &Method::GET,
        authorized: flags & 1 != 0,
        cookies: flags & 2 != 0,
        delay: Duration::from_secs(u64::from(flags >> 4)),
    };
    let Ok(kept) = keep(&asked, status, &answer, now, &Policy::default()) else {
        return;
    };
    let said = Directives::of_answer(&answer);
    assert!(!said.private && !answer.contains_key("set-cookie"));
    assert!(!said.no_store || said.must_understand);
    assert!(!asked.authorized || said.public || said.must_revalidate || said.s_maxage.is_some());
    let resident = Duration::from_secs(u64::from(*hours) * 3600);
    let request = Directives::of_request(&request);
    match judge(&kept, resident, &request) {
        Use::Fresh => {
            assert!(kept.age + resident < kept.fresh);
            assert!(!kept.no_cache && !request.no_cache);
        }
        Use::WhileRevalidate | Use::Stale => assert!(!kept.must_revalidate && !kept.no_cache),
        Use::Ask(_) => {}
    }
}

fn headers<'a>(lines: impl Iterator<Item = &'a [u8]>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines.take(64) {
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (halves.next(), halves.next()) else {
            continue;
        };
        let (name, value) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    map
}
