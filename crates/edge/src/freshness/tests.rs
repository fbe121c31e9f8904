//! Tests of RFC 9111, RFC 5861 and RFC 9213, grouped by section.

#![allow(clippy::too_many_lines)] // The tests contain long tables.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode};

use super::*;
use crate::cache_outcome::{RevalidationReason, UncacheableReason};

mod keep;
mod lifetime;
mod reuse;

const NOW_S: u64 = 1_700_000_000;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + s(NOW_S)
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(offset: i64) -> String {
    let seconds = NOW_S.checked_add_signed(offset).unwrap();
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + s(seconds))
}

/// Parses header lines of the form `Name: value`. A value such as `{-100}` becomes the date 100 s
/// before [`now`].
fn headers(lines: &[&str]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let value = match value.strip_prefix('{').and_then(|v| v.strip_suffix('}')) {
            Some(offset) => at(offset.parse().unwrap()),
            None => value.to_owned(),
        };
        let name: http::HeaderName = name.parse().unwrap();
        map.append(name, value.parse().unwrap());
    }
    map
}

fn lifetime_from(status: u16, lines: &[&str]) -> Result<FreshnessLifetime, UncacheableReason> {
    judge_with("", status, lines)
}

/// Judges whether a response may be stored. The letters in `request` mean Authorization (`A`),
/// Cookie (`C`) and the method POST (`P`).
fn judge_with(
    request: &str,
    status: u16,
    lines: &[&str],
) -> Result<FreshnessLifetime, UncacheableReason> {
    let method = if request.contains('P') {
        Method::POST
    } else {
        Method::GET
    };
    let exchange = StorageFacts {
        method: &method,
        has_authorization: request.contains('A'),
        has_cookies: request.contains('C'),
        delay: s(0),
    };
    let status = StatusCode::from_u16(status).unwrap();
    judge_storage(
        &exchange,
        status,
        &headers(lines),
        now(),
        &FreshnessPolicy::default(),
    )
}

fn directives(text: &str) -> CacheDirectives {
    let lines = [format!("Cache-Control: {text}")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    CacheDirectives::from_request(&headers(if text.is_empty() { &[] } else { &lines }))
}
