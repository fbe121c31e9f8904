//! May an answer be kept, and for how long is it fresh (RFC 9111 sections 3 and 4.2)?

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};

use super::Directives;
use crate::reason::NotKept;

/// What matters of the request that an answer answers.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Only `GET` is kept.
    pub method: &'a Method,
    /// It carried Authorization.
    pub authorized: bool,
    /// It carried Cookie: then nothing is kept by a guess.
    pub cookies: bool,
    /// From asking to the answer's head.
    pub delay: Duration,
}

/// What an operator may decide where the answer says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Lifetime of 404 and 410 that name none.
    pub negative: Duration,
    /// The most that is guessed from Last-Modified.
    pub heuristic_max: Duration,
    /// Lifetime whatever the answer says (a rule's `ttl`), for what may be kept at all.
    pub ttl: Option<Duration>,
    /// May be used stale when the origin fails, where the answer does not say.
    pub stale_if_error: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            negative: Duration::from_secs(1),
            heuristic_max: Duration::from_secs(3600),
            ttl: None,
            stale_if_error: Duration::ZERO,
        }
    }
}

/// Where a lifetime comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Source {
    /// A rule's `ttl`.
    Rule,
    /// CDN-Cache-Control.
    Targeted,
    /// `s-maxage`.
    SharedMaxAge,
    /// `max-age`.
    MaxAge,
    /// Expires less Date.
    Expires,
    /// A tenth of the time since Last-Modified.
    Heuristic,
    /// [`Policy::negative`].
    Negative,
    /// None: usable only after asking the origin.
    Nothing,
}

/// How long a kept answer may be used, counted from when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Freshness lifetime.
    pub fresh: Duration,
    /// Why so long.
    pub source: Source,
    /// Its age when it came (section 4.2.3).
    pub age: Duration,
    /// Ask before each use.
    pub no_cache: bool,
    /// Never use it stale.
    pub must_revalidate: bool,
    /// While it is asked for anew, stale by this much is good enough.
    pub stale_while_revalidate: Duration,
    /// When the origin fails, stale by this much is good enough.
    pub stale_if_error: Duration,
}

const HEURISTIC: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];
/// Statuses that we understand: for `must-understand`.
const UNDERSTOOD: [u16; 15] = [
    200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 451, 501,
];

/// Judges an answer that just came. `now` is the wall clock.
///
/// # Errors
/// The first reason why it must not be kept, or is not worth it.
pub fn keep(
    asked: &Asked<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    now: SystemTime,
    policy: &Policy,
) -> Result<Lifetime, NotKept> {
    let said = Directives::of_answer(headers);
    forbidden(asked, status, headers, &said)?;
    let date = date(headers, header::DATE).unwrap_or(now);
    let (fresh, source) = lifetime(asked, status, headers, &said, date, policy)?;
    // s-maxage forbids stale use like proxy-revalidate (section 5.2.2.10), unless the same answer
    // allows it by RFC 5861: who writes both means both.
    let allows = said.stale_while_revalidate.is_some() || said.stale_if_error.is_some();
    let lifetime = Lifetime {
        fresh,
        source,
        age: age(headers, date, now, asked.delay),
        no_cache: said.no_cache && policy.ttl.is_none(),
        must_revalidate: said.must_revalidate || (said.s_maxage.is_some() && !allows),
        stale_while_revalidate: said.stale_while_revalidate.unwrap_or_default(),
        stale_if_error: said.stale_if_error.unwrap_or(policy.stale_if_error),
    };
    let validator =
        headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED);
    let of_use = lifetime.age < lifetime.fresh && !lifetime.no_cache;
    let later = lifetime.stale_while_revalidate + lifetime.stale_if_error > Duration::ZERO;
    if of_use || validator || later {
        Ok(lifetime)
    } else {
        Err(NotKept::NoLifetime)
    }
}

/// Section 3, in its order, and what we add: cookies.
fn forbidden(
    asked: &Asked<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    said: &Directives,
) -> Result<(), NotKept> {
    let understood = UNDERSTOOD.contains(&status.as_u16());
    if asked.method != Method::GET {
        return Err(NotKept::Method);
    }
    if status.is_informational() || matches!(status.as_u16(), 206 | 304 | 416) {
        return Err(NotKept::Status);
    }
    if said.must_understand && !understood {
        return Err(NotKept::Status);
    }
    if said.no_store && !(said.must_understand && understood) {
        return Err(NotKept::NoStore);
    }
    if said.private {
        return Err(NotKept::Private);
    }
    if asked.authorized && !(said.public || said.must_revalidate || said.s_maxage.is_some()) {
        return Err(NotKept::Authorization);
    }
    // One client's cookie is not for another (not in the standard; all shared caches do so).
    if headers.contains_key(header::SET_COOKIE) {
        return Err(NotKept::SetCookie);
    }
    let mut vary = headers.get_all(header::VARY).iter();
    if vary.any(|value| value.to_str().map_or(true, |text| text.contains('*'))) {
        return Err(NotKept::VaryStar);
    }
    Ok(())
}

/// Section 4.2.1, in its order.
fn lifetime(
    asked: &Asked<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    said: &Directives,
    date: SystemTime,
    policy: &Policy,
) -> Result<(Duration, Source), NotKept> {
    if let Some(ttl) = policy.ttl {
        return Ok((ttl, Source::Rule));
    }
    let targeted = |source| {
        if said.targeted {
            Source::Targeted
        } else {
            source
        }
    };
    if let Some(age) = said.s_maxage {
        return Ok((age, targeted(Source::SharedMaxAge)));
    }
    if let Some(age) = said.max_age {
        return Ok((age, targeted(Source::MaxAge)));
    }
    if !said.targeted && headers.contains_key(header::EXPIRES) {
        // What is no date has expired (section 5.3).
        let expires = self::date(headers, header::EXPIRES);
        let fresh = expires.and_then(|at| at.duration_since(date).ok());
        return Ok((fresh.unwrap_or_default(), Source::Expires));
    }
    let guessed = guess(asked, status, headers, date, policy);
    let explicit = said.public || said.no_cache;
    match guessed {
        Some(found) => Ok(found),
        None if explicit => Ok((Duration::ZERO, Source::Nothing)),
        None if HEURISTIC.contains(&status.as_u16()) => Ok((Duration::ZERO, Source::Nothing)),
        None => Err(NotKept::Status),
    }
}

/// Section 4.2.2.
fn guess(
    asked: &Asked<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    date: SystemTime,
    policy: &Policy,
) -> Option<(Duration, Source)> {
    if asked.cookies || !HEURISTIC.contains(&status.as_u16()) {
        return None;
    }
    if matches!(status.as_u16(), 404 | 410) {
        return Some((policy.negative, Source::Negative));
    }
    let modified = self::date(headers, header::LAST_MODIFIED)?;
    let tenth = date.duration_since(modified).ok()? / 10;
    Some((tenth.min(policy.heuristic_max), Source::Heuristic))
}

/// Section 4.2.3: the corrected initial age.
fn age(headers: &HeaderMap, date: SystemTime, now: SystemTime, delay: Duration) -> Duration {
    let apparent = now.duration_since(date).unwrap_or_default();
    // Of a list, the first member counts (section 5.1); what is no number counts for nothing.
    let said = headers.get(header::AGE).and_then(|value| {
        let text = value.to_str().ok()?.split(',').next()?.trim();
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(1 << 31).min(1 << 31))
    });
    let corrected = Duration::from_secs(said.unwrap_or(0)) + delay;
    apparent.max(corrected)
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()
}
