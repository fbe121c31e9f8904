//! No request or response head can make the freshness rules panic or cache what must not be cached.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::freshness::{
    CacheDirectives, ExchangeFacts, FreshnessPolicy, ReuseDecision, judge_reuse, judge_storage,
};

/// Two bytes are the status, one selects request headers, one is the age of the response. Lines of
/// the response head, an empty line and lines of a request head follow.
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
    let answer = parse_headers(lines.by_ref().take_while(|line| !line.is_empty()));
    let request = parse_headers(lines);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let asked = ExchangeFacts {
        method: &Method::GET,
        has_authorization: flags & 1 != 0,
        has_cookies: flags & 2 != 0,
        delay: Duration::from_secs(u64::from(flags >> 4)),
    };
    let Ok(kept) = judge_storage(&asked, status, &answer, now, &FreshnessPolicy::default()) else {
        return;
    };
    let said = CacheDirectives::from_response(&answer);
    assert!(!said.private && !answer.contains_key("set-cookie"));
    assert!(!said.no_store || said.must_understand);
    assert!(
        !asked.has_authorization || said.public || said.must_revalidate || said.s_maxage.is_some()
    );
    let resident = Duration::from_secs(u64::from(*hours) * 3600);
    let request = CacheDirectives::from_request(&request);
    match judge_reuse(&kept, resident, &request) {
        ReuseDecision::Fresh => {
            assert!(kept.age + resident < kept.fresh);
            assert!(!kept.no_cache && !request.no_cache);
        }
        ReuseDecision::WhileRevalidate | ReuseDecision::Stale => {
            assert!(!kept.must_revalidate && !kept.no_cache)
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
