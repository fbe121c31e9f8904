//! Checks that no request or response head makes the freshness rules panic, or cache a response
//! that must not be cached.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::freshness::{
    CacheDirectives, FreshnessPolicy, ReuseDecision, StorageFacts, judge_reuse, judge_storage,
};

/// The first two bytes are the status. The third byte selects facts about the exchange, and the
/// fourth byte is the time in the cache in hours. The lines of the response head, an empty line and
/// the lines of the request head follow.
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
    let response = parse_headers(lines.by_ref().take_while(|line| !line.is_empty()));
    let request = parse_headers(lines);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let facts = StorageFacts {
        method: &Method::GET,
        has_authorization: flags & 1 != 0,
        has_cookies: flags & 2 != 0,
        delay: Duration::from_secs(u64::from(flags >> 4)),
    };
    let Ok(lifetime) = judge_storage(&facts, status, &response, now, &FreshnessPolicy::default())
    else {
        return;
    };
    let directives = CacheDirectives::from_response(&response);
    assert!(!directives.private && !response.contains_key("set-cookie"));
    assert!(!directives.no_store || directives.must_understand);
    assert!(
        !facts.has_authorization
            || directives.public
            || directives.must_revalidate
            || directives.s_maxage.is_some()
    );
    let resident = Duration::from_secs(u64::from(*hours) * 3600);
    let request = CacheDirectives::from_request(&request);
    match judge_reuse(&lifetime, resident, &request) {
        ReuseDecision::Fresh => {
            assert!(lifetime.age + resident < lifetime.fresh);
            assert!(!lifetime.no_cache && !request.no_cache);
        }
        ReuseDecision::WhileRevalidate | ReuseDecision::Stale => {
            assert!(!lifetime.must_revalidate && !lifetime.no_cache)
        }
        ReuseDecision::Revalidate(_) => {}
    }
}

fn parse_headers<'a>(lines: impl Iterator<Item = &'a [u8]>) -> HeaderMap {
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
