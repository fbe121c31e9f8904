//! Cache-Control (RFC 9111 section 5.2), CDN-Cache-Control (RFC 9213), Pragma.

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName};

const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// The longest time that a directive can name: RFC 9111 section 1.2.2.
const SECONDS_MAX: u64 = 1 << 31;

/// What a request or an answer says about caching. Directives that a shared cache does not heed
/// are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Directives {
    /// Keep nothing of it.
    pub no_store: bool,
    /// Ask the origin before each use (fields named by it: the same, which is allowed).
    pub no_cache: bool,
    /// Not for shared caches (fields named by it: the same).
    pub private: bool,
    /// Any cache may keep it.
    pub public: bool,
    /// Never use it stale (also `proxy-revalidate`).
    pub must_revalidate: bool,
    /// Keep it only if its status is understood; then `no-store` is not meant for us.
    pub must_understand: bool,
    /// Lifetime in shared caches.
    pub s_maxage: Option<Duration>,
    /// Lifetime; of a request: the most age.
    pub max_age: Option<Duration>,
    /// RFC 5861 section 3.
    pub stale_while_revalidate: Option<Duration>,
    /// RFC 5861 section 4.
    pub stale_if_error: Option<Duration>,
    /// Request: stale by this much is good enough.
    pub max_stale: Option<Duration>,
    /// Request: fresh for at least this long.
    pub min_fresh: Option<Duration>,
    /// Request: nothing that is not here.
    pub only_if_cached: bool,
    /// They come from a field for caches like ours, which replaces the others (RFC 9213).
    pub targeted: bool,
}

impl Directives {
    /// Of an answer: the targeted field if it holds anything valid, else Cache-Control.
    pub fn of_answer(headers: &HeaderMap) -> Directives {
        targeted(headers).unwrap_or_else(|| Directives::of(headers))
    }

    /// Of a request; `Pragma: no-cache` counts where there is no Cache-Control (section 5.4).
    pub fn of_request(headers: &HeaderMap) -> Directives {
        let mut found = Directives::of(headers);
        if !headers.contains_key(header::CACHE_CONTROL) {
            let mut pragmas = headers.get_all(header::PRAGMA).iter();
            found.no_cache = pragmas.any(|value| {
                let text = value.to_str().unwrap_or_default();
                text.split(',')
                    .any(|part| part.trim().eq_ignore_ascii_case("no-cache"))
            });
        }
        found
    }

    fn of(headers: &HeaderMap) -> Directives {
        let mut found = Directives::default();
        for value in headers.get_all(header::CACHE_CONTROL) {
            let Ok(text) = value.to_str() else {
                // What cannot be read may forbid anything.
                found.no_store = true;
                continue;
            };
            for (name, argument) in members(text) {
                found.set(&name.to_ascii_lowercase(), argument);
            }
        }
        found
    }

    fn set(&mut self, name: &str, argument: Option<&str>) {
        match name {
            "no-store" => self.no_store = true,
            "no-cache" => self.no_cache = true,
            "private" => self.private = true,
            "public" => self.public = true,
            "must-revalidate" | "proxy-revalidate" => self.must_revalidate = true,
            "must-understand" => self.must_understand = true,
            "only-if-cached" => self.only_if_cached = true,
            "s-maxage" => least(&mut self.s_maxage, seconds(argument)),
            "max-age" => least(&mut self.max_age, seconds(argument)),
            "stale-while-revalidate" => {
                least(&mut self.stale_while_revalidate, seconds(argument));
            }
            "stale-if-error" => least(&mut self.stale_if_error, seconds(argument)),
            // Without an argument: any staleness.
            "max-stale" => {
                let most = argument.map_or(Duration::from_secs(SECONDS_MAX), |_| seconds(argument));
                least(&mut self.max_stale, most);
            }
            "min-fresh" => least(&mut self.min_fresh, seconds(argument)),
            _ => {}
        }
    }
}

/// Said twice: the shorter one (section 4.2.1 lets us choose).
fn least(slot: &mut Option<Duration>, new: Duration) {
    *slot = Some(slot.map_or(new, |old| old.min(new)));
}

/// Delta seconds, quoted or not (section 5.2); what is none counts as 0, that is as stale
/// (section 4.2.1).
fn seconds(argument: Option<&str>) -> Duration {
    let text = argument.unwrap_or_default().trim_matches('"');
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = if digits {
        text.parse().unwrap_or(SECONDS_MAX).min(SECONDS_MAX)
    } else {
        0
    };
    Duration::from_secs(count)
}

/// The members of a comma-separated list, with commas in quoted strings left alone.
fn members(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut quoted, mut escaped) = (false, false);
        let end = rest.find(|c: char| {
            let comma = c == ',' && !quoted;
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ => {}
            }
            comma
        });
        let (member, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.strip_prefix(',').unwrap_or("");
        Some(match member.split_once('=') {
            Some((name, argument)) => (name.trim(), Some(argument.trim())),
            None => (member.trim(), None),
        })
    })
}

/// CDN-Cache-Control: a dictionary of RFC 9651, so stricter than Cache-Control: one error and the
/// whole field counts for nothing (RFC 9213 section 2.1).
fn targeted(headers: &HeaderMap) -> Option<Directives> {
    let mut found = Directives {
        targeted: true,
        ..Directives::default()
    };
    let mut any = false;
    for value in headers.get_all(CDN_CACHE_CONTROL) {
        for (key, argument) in members(value.to_str().ok()?) {
            let plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
            };
            let (key, _) = key.split_once(';').unwrap_or((key, ""));
            if key.is_empty() || !key.bytes().all(plain) {
                return None;
            }
            // `?0`: not said. Parameters mean nothing to us.
            let argument = argument.map(|text| text.split(';').next().unwrap_or_default().trim());
            match argument {
                Some("") => return None,
                Some("?0") => {}
                Some("?1") | None => found.set(key, None),
                Some(text) => found.set(key, Some(text)),
            }
            any = true;
        }
    }
    any.then_some(found)
}
