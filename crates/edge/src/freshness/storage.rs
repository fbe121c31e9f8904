//! Storage and freshness of responses (RFC 9111 sections 3 and 4.2).

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use store::planted_bugs::is_bug_planted;

use super::CacheDirectives;
use crate::cache_outcome::UncacheableReason;

/// Properties and timing of a request that affect the storage of its response.
#[derive(Debug, Clone, Copy)]
pub struct StorageFacts<'a> {
    /// Method of the request. Only responses to `GET` are stored.
    pub method: &'a Method,
    /// Whether the request contains Authorization.
    pub has_authorization: bool,
    /// Whether the request contains Cookie. The response then gets no heuristic lifetime.
    pub has_cookies: bool,
    /// Time from the request to the response head.
    pub delay: Duration,
}

/// The operator's settings for the freshness of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreshnessPolicy {
    /// Lifetime of 404 and 410 responses that declare no lifetime.
    pub negative: Duration,
    /// Maximum of the lifetime that is derived from Last-Modified.
    pub heuristic_max: Duration,
    /// Lifetime from a rule's `ttl`. It replaces the response's own lifetime. It does not permit
    /// the storage of a response that must not be stored, or of an error (4xx, 5xx) that would not
    /// be stored without the rule.
    pub ttl: Option<Duration>,
    /// Time for which a stale response may be used after a failure of the origin, if the response
    /// contains no `stale-if-error`.
    pub stale_if_error: Duration,
}

impl Default for FreshnessPolicy {
    fn default() -> FreshnessPolicy {
        FreshnessPolicy {
            negative: Duration::from_secs(1),
            heuristic_max: Duration::from_secs(3600),
            ttl: None,
            stale_if_error: Duration::ZERO,
        }
    }
}

/// The header, rule or policy that determined a freshness lifetime. The names of the variants are
/// part of the disk format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum LifetimeSource {
    /// A rule's `ttl`.
    Rule,
    /// CDN-Cache-Control.
    Targeted,
    /// `s-maxage`.
    SharedMaxAge,
    /// `max-age`.
    MaxAge,
    /// Expires minus Date.
    Expires,
    /// 10 % of the time from Last-Modified to Date.
    Heuristic,
    /// [`FreshnessPolicy::negative`].
    Negative,
    /// The response has no lifetime, so it is revalidated before each use.
    Nothing,
}

/// The freshness lifetime of a stored response, its age on arrival, and its permitted staleness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreshnessLifetime {
    /// Freshness lifetime.
    pub fresh: Duration,
    /// Header or setting that determined the freshness lifetime.
    pub source: LifetimeSource,
    /// Age on arrival (section 4.2.3).
    pub age: Duration,
    /// Whether the response must be revalidated before each use.
    pub no_cache: bool,
    /// Whether a stale response must not be used without revalidation.
    pub must_revalidate: bool,
    /// Acceptable staleness during a background revalidation.
    pub stale_while_revalidate: Duration,
    /// Acceptable staleness when the origin fails.
    pub stale_if_error: Duration,
}

const HEURISTIC_STATUSES: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];
/// Statuses that the edge understands, for `must-understand`.
const UNDERSTOOD_STATUSES: [u16; 15] = [
    200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 451, 501,
];

/// Decides whether a response may be stored, and computes its lifetime. `now` is the wall-clock
/// time at which the response arrived.
///
/// # Errors
/// The first reason why the response must not be stored.
pub fn judge_storage(
    exchange: &StorageFacts<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    now: SystemTime,
    policy: &FreshnessPolicy,
) -> Result<FreshnessLifetime, UncacheableReason> {
    let is_error = status.is_client_error() || status.is_server_error();
    if is_error && policy.ttl.is_some() {
        // A rule's `ttl` is for all responses of a URL. Errors that would not be stored without the
        // rule may be temporary or specific to one client, so the rule does not apply to them.
        let policy = FreshnessPolicy {
            ttl: None,
            ..*policy
        };
        judge_storage(exchange, status, headers, now, &policy)?;
    }
    let directives = CacheDirectives::from_response(headers);
    check_prohibitions(exchange, status, headers, &directives)?;
    let date = parse_date_header(headers, header::DATE).unwrap_or(now);
    let (fresh, source) = find_lifetime(exchange, status, headers, &directives, date, policy)?;
    // `s-maxage` forbids stale use, like `proxy-revalidate` (section 5.2.2.10). If the same
    // response also allows stale use (RFC 5861), the permission takes precedence. Otherwise, the
    // permission would never have an effect.
    let allows = directives.stale_while_revalidate.is_some() || directives.stale_if_error.is_some();
    let lifetime = FreshnessLifetime {
        fresh,
        source,
        age: initial_age(headers, date, now, exchange.delay),
        no_cache: directives.no_cache && policy.ttl.is_none(),
        must_revalidate: directives.must_revalidate || (directives.s_maxage.is_some() && !allows),
        stale_while_revalidate: directives.stale_while_revalidate.unwrap_or_default(),
        stale_if_error: directives.stale_if_error.unwrap_or(policy.stale_if_error),
    };
    let validator =
        headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED);
    let of_use = lifetime.age < lifetime.fresh && !lifetime.no_cache;
    let later = lifetime.stale_while_revalidate + lifetime.stale_if_error > Duration::ZERO;
    if of_use || validator || later {
        Ok(lifetime)
    } else {
        Err(UncacheableReason::NoLifetime)
    }
}

/// Checks the prohibitions of RFC 9111 section 3, in the order of that section. Also refuses to
/// store responses with `Set-Cookie`.
fn check_prohibitions(
    exchange: &StorageFacts<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    directives: &CacheDirectives,
) -> Result<(), UncacheableReason> {
    let understood = UNDERSTOOD_STATUSES.contains(&status.as_u16());
    if exchange.method != Method::GET {
        return Err(UncacheableReason::Method);
    }
    if status.is_informational() || matches!(status.as_u16(), 206 | 304 | 416) {
        return Err(UncacheableReason::Status);
    }
    if directives.must_understand && !understood {
        return Err(UncacheableReason::Status);
    }
    if directives.no_store && !(directives.must_understand && understood) {
        return Err(UncacheableReason::NoStore);
    }
    if directives.private && !is_bug_planted("private-stored") {
        return Err(UncacheableReason::Private);
    }
    if exchange.has_authorization
        && !(directives.public || directives.must_revalidate || directives.s_maxage.is_some())
    {
        return Err(UncacheableReason::Authorization);
    }
    // A cookie is for one client. The standard does not forbid the storage of a response with a
    // cookie, but shared caches usually do not store such a response.
    if headers.contains_key(header::SET_COOKIE) {
        return Err(UncacheableReason::SetCookie);
    }
    let mut vary = headers.get_all(header::VARY).iter();
    if vary.any(|value| value.to_str().map_or(true, |text| text.contains('*'))) {
        return Err(UncacheableReason::VaryStar);
    }
    Ok(())
}

/// Finds the lifetime in the order of section 4.2.1. A rule's `ttl` takes precedence.
fn find_lifetime(
    exchange: &StorageFacts<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    directives: &CacheDirectives,
    date: SystemTime,
    policy: &FreshnessPolicy,
) -> Result<(Duration, LifetimeSource), UncacheableReason> {
    if let Some(ttl) = policy.ttl {
        return Ok((ttl, LifetimeSource::Rule));
    }
    let targeted = |source| {
        if directives.targeted {
            LifetimeSource::Targeted
        } else {
            source
        }
    };
    if let Some(age) = directives.s_maxage {
        return Ok((age, targeted(LifetimeSource::SharedMaxAge)));
    }
    if let Some(age) = directives.max_age {
        return Ok((age, targeted(LifetimeSource::MaxAge)));
    }
    if !directives.targeted && headers.contains_key(header::EXPIRES) {
        // A response with an invalid Expires is treated as expired (section 5.3).
        let expires = self::parse_date_header(headers, header::EXPIRES);
        let fresh = expires.and_then(|at| at.duration_since(date).ok());
        return Ok((fresh.unwrap_or_default(), LifetimeSource::Expires));
    }
    let guessed = guess_lifetime(exchange, status, headers, date, policy);
    let explicit = directives.public || directives.no_cache;
    match guessed {
        Some(found) => Ok(found),
        None if explicit => Ok((Duration::ZERO, LifetimeSource::Nothing)),
        None if HEURISTIC_STATUSES.contains(&status.as_u16()) => {
            Ok((Duration::ZERO, LifetimeSource::Nothing))
        }
        None => Err(UncacheableReason::Status),
    }
}

/// Derives a heuristic lifetime (section 4.2.2).
fn guess_lifetime(
    exchange: &StorageFacts<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    date: SystemTime,
    policy: &FreshnessPolicy,
) -> Option<(Duration, LifetimeSource)> {
    if exchange.has_cookies || !HEURISTIC_STATUSES.contains(&status.as_u16()) {
        return None;
    }
    if matches!(status.as_u16(), 404 | 410) {
        return Some((policy.negative, LifetimeSource::Negative));
    }
    let modified = self::parse_date_header(headers, header::LAST_MODIFIED)?;
    let tenth = date.duration_since(modified).ok()? / 10;
    Some((tenth.min(policy.heuristic_max), LifetimeSource::Heuristic))
}

/// Computes the corrected initial age (section 4.2.3).
fn initial_age(
    headers: &HeaderMap,
    date: SystemTime,
    now: SystemTime,
    delay: Duration,
) -> Duration {
    let apparent = now.duration_since(date).unwrap_or_default();
    // If Age is a list, its first member is used (section 5.1). An invalid number is ignored.
    let age_s = headers.get(header::AGE).and_then(|value| {
        let text = value.to_str().ok()?.split(',').next()?.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(1 << 31).min(1 << 31))
    });
    let corrected = Duration::from_secs(age_s.unwrap_or(0)) + delay;
    apparent.max(corrected)
}

fn parse_date_header(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    net::http_date::parse_http_date(headers.get(name)?.to_str().ok()?)
}
