//! Parsers for Cache-Control (RFC 9111 section 5.2), CDN-Cache-Control (RFC 9213) and Pragma.

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName};

use super::dictionary::{StructuredFieldValue, parse_dictionary};

const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// Maximum number of seconds in a directive. A larger number is reduced to this maximum (RFC 9111
/// section 1.2.2).
const SECONDS_MAX: u64 = 1 << 31;

/// The cache directives of a request or response. Directives without effect on shared caches are
/// omitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheDirectives {
    /// `no-store`: the response must not be stored.
    pub no_store: bool,
    /// `no-cache`: the response must be revalidated before each use. The form with field names,
    /// such as `no-cache="x"`, is treated like `no-cache`. The standard allows this.
    pub no_cache: bool,
    /// `private`: the response must not be stored in shared caches. The form with field names, such
    /// as `private="x"`, is treated like `private`.
    pub private: bool,
    /// `public`: any cache may store the response.
    pub public: bool,
    /// `must-revalidate` or `proxy-revalidate`: a stale response must not be used without
    /// revalidation.
    pub must_revalidate: bool,
    /// `must-understand`: the response may be stored only if the cache understands its status. In
    /// this case, `no-store` is ignored.
    pub must_understand: bool,
    /// `s-maxage`: freshness lifetime in shared caches.
    pub s_maxage: Option<Duration>,
    /// `max-age`: in a response, the freshness lifetime. In a request, the maximum age that the
    /// client accepts.
    pub max_age: Option<Duration>,
    /// `stale-while-revalidate` (RFC 5861 section 3).
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error` (RFC 5861 section 4).
    pub stale_if_error: Option<Duration>,
    /// `max-stale` of a request: the maximum staleness that the client accepts.
    pub max_stale: Option<Duration>,
    /// `min-fresh` of a request: the minimum remaining freshness that the client accepts.
    pub min_fresh: Option<Duration>,
    /// `only-if-cached` of a request: the edge must not contact the origin.
    pub only_if_cached: bool,
    /// Whether the directives are from CDN-Cache-Control, which replaces Cache-Control and Expires
    /// (RFC 9213).
    pub targeted: bool,
}

impl CacheDirectives {
    /// Parses the directives of a response. Reads CDN-Cache-Control if it is valid and not empty,
    /// and Cache-Control otherwise.
    pub fn from_response(headers: &HeaderMap) -> CacheDirectives {
        from_cdn_cache_control(headers)
            .unwrap_or_else(|| CacheDirectives::from_cache_control(headers))
    }

    /// Parses the directives of a request. `Pragma: no-cache` is used only if Cache-Control is
    /// absent (RFC 9111 section 5.4).
    pub fn from_request(headers: &HeaderMap) -> CacheDirectives {
        // Players usually send neither Cache-Control nor Pragma. One pass over the header names
        // costs less than the look-ups of both names.
        let is_directive =
            |name: &HeaderName| matches!(*name, header::CACHE_CONTROL | header::PRAGMA);
        if !headers.keys().any(is_directive) {
            return CacheDirectives::default();
        }
        let mut directives = CacheDirectives::from_cache_control(headers);
        if !headers.contains_key(header::CACHE_CONTROL) {
            let mut pragmas = headers.get_all(header::PRAGMA).iter();
            directives.no_cache = pragmas.any(|value| {
                let text = value.to_str().unwrap_or_default();
                text.split(',')
                    .any(|part| part.trim().eq_ignore_ascii_case("no-cache"))
            });
        }
        directives
    }

    /// Removes the directives with which a client demands a revalidation of a fresh response.
    pub fn ignore_revalidation(&mut self) {
        (self.no_cache, self.max_age, self.min_fresh) = (false, None, None);
    }

    fn from_cache_control(headers: &HeaderMap) -> CacheDirectives {
        let mut directives = CacheDirectives::default();
        for value in headers.get_all(header::CACHE_CONTROL) {
            let Ok(text) = value.to_str() else {
                // The value is not text and may contain any prohibition.
                directives.no_store = true;
                continue;
            };
            for (name, argument) in split_directives(text) {
                directives.apply_directive(&name.to_ascii_lowercase(), argument);
            }
        }
        directives
    }

    /// Applies a member of a targeted field. Returns `None` if the member's value has the wrong
    /// type.
    fn apply_cdn_directive(&mut self, key: &str, value: StructuredFieldValue) -> Option<()> {
        match (key, value) {
            (
                "s-maxage" | "max-age" | "stale-while-revalidate" | "stale-if-error",
                StructuredFieldValue::Integer(0..),
            ) => {}
            ("s-maxage" | "max-age" | "stale-while-revalidate" | "stale-if-error", _) => {
                return None;
            }
            // The value `?0` means that the directive is not set.
            (_, StructuredFieldValue::Boolean(false)) => return Some(()),
            (_, StructuredFieldValue::Boolean(true)) => {}
            // A string value is a list of field names.
            ("no-cache" | "private", StructuredFieldValue::Text) => {}
            (
                "no-store" | "no-cache" | "private" | "public" | "must-revalidate"
                | "proxy-revalidate" | "must-understand",
                _,
            ) => return None,
            _ => return Some(()),
        }
        let argument = match value {
            StructuredFieldValue::Integer(seconds) => Some(seconds.to_string()),
            _ => None,
        };
        self.apply_directive(key, argument.as_deref());
        Some(())
    }

    fn apply_directive(&mut self, name: &str, argument: Option<&str>) {
        match name {
            "no-store" => self.no_store = true,
            "no-cache" => self.no_cache = true,
            "private" => self.private = true,
            "public" => self.public = true,
            "must-revalidate" | "proxy-revalidate" => self.must_revalidate = true,
            "must-understand" => self.must_understand = true,
            "only-if-cached" => self.only_if_cached = true,
            "s-maxage" => keep_shorter(&mut self.s_maxage, parse_delta_seconds(argument)),
            "max-age" => keep_shorter(&mut self.max_age, parse_delta_seconds(argument)),
            "stale-while-revalidate" => {
                keep_shorter(
                    &mut self.stale_while_revalidate,
                    parse_delta_seconds(argument),
                );
            }
            "stale-if-error" => {
                keep_shorter(&mut self.stale_if_error, parse_delta_seconds(argument))
            }
            // `max-stale` without an argument accepts any staleness.
            "max-stale" => {
                let max_stale = argument.map_or(Duration::from_secs(SECONDS_MAX), |_| {
                    parse_delta_seconds(argument)
                });
                keep_shorter(&mut self.max_stale, max_stale);
            }
            "min-fresh" => keep_shorter(&mut self.min_fresh, parse_delta_seconds(argument)),
            _ => {}
        }
    }
}

/// Keeps the shorter of two times. If a directive occurs twice, RFC 9111 section 4.2.1 recommends
/// the first value or a stale response. The shorter value never exceeds the first value.
fn keep_shorter(slot: &mut Option<Duration>, new: Duration) {
    *slot = Some(slot.map_or(new, |old| old.min(new)));
}

/// Parses a number of seconds, with or without quotes (RFC 9111 section 5.2). An invalid number
/// becomes 0, so that a response with an invalid lifetime is stale (section 4.2.1).
fn parse_delta_seconds(argument: Option<&str>) -> Duration {
    let text = argument.unwrap_or_default().trim_matches('"');
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = if digits {
        text.parse().unwrap_or(SECONDS_MAX).min(SECONDS_MAX)
    } else {
        0
    };
    Duration::from_secs(count)
}

/// Splits a comma-separated list into the names and arguments of its members. Commas in quoted
/// strings do not separate members.
fn split_directives(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
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

/// Parses CDN-Cache-Control. The field is a dictionary of RFC 8941, so its syntax is stricter than
/// the syntax of Cache-Control. One syntax error, or one value of the wrong type, makes the whole
/// field invalid (RFC 9213 section 2.1).
fn from_cdn_cache_control(headers: &HeaderMap) -> Option<CacheDirectives> {
    let lines = headers.get_all(CDN_CACHE_CONTROL).iter();
    let lines: Result<Vec<&str>, _> = lines.map(|value| value.to_str()).collect();
    let text = lines.ok()?.join(", ");
    let members = parse_dictionary(&text).filter(|members| !members.is_empty())?;
    let mut directives = CacheDirectives {
        targeted: true,
        ..CacheDirectives::default()
    };
    for (key, value) in members {
        directives.apply_cdn_directive(key, value)?;
    }
    Some(directives)
}
