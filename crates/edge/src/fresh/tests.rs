//! The standards' text, section by section.

#![allow(clippy::too_many_lines)] // Tables.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode};

use super::*;
use crate::reason::{Asking, NotKept};

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

/// Lines of `Name: value`; `{-100}` becomes the date 100 s before now.
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

fn kept(status: u16, lines: &[&str]) -> Result<Lifetime, NotKept> {
    kept_for("", status, lines)
}

/// `request` holds letters: `A`uthorization, `C`ookie, `P`OST.
fn kept_for(request: &str, status: u16, lines: &[&str]) -> Result<Lifetime, NotKept> {
    let method = if request.contains('P') {
        Method::POST
    } else {
        Method::GET
    };
    let asked = Asked {
        method: &method,
        authorized: request.contains('A'),
        cookies: request.contains('C'),
        delay: s(0),
    };
    let status = StatusCode::from_u16(status).unwrap();
    keep(&asked, status, &headers(lines), now(), &Policy::default())
}

fn directives(text: &str) -> Directives {
    let lines = [format!("Cache-Control: {text}")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Directives::of_request(&headers(if text.is_empty() { &[] } else { &lines }))
}
