//! Conditional requests (RFC 9110 section 13).

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::http_date::parse_http_date;

/// The validators of the selected representation (RFC 9110 section 8.8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag as in the ETag header, including the quotes and an optional `W/`.
    pub etag: Option<HeaderValue>,
    /// Time of the last change.
    pub modified: Option<LastModified>,
    /// The `Date` header of a cached response. If `modified` is missing, If-Modified-Since is
    /// compared with this date (RFC 9111 section 4.3.2).
    pub date: Option<LastModified>,
}

/// The time of the last change in whole seconds, and the same time as an HTTP date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastModified {
    /// Seconds since the Unix epoch.
    seconds: u64,
    printed: HeaderValue,
}

impl LastModified {
    /// Returns `None` if an HTTP date cannot express `time`.
    pub fn from_time(time: SystemTime) -> Option<LastModified> {
        Some(LastModified {
            seconds: unix_seconds(time)?,
            printed: format_date(time)?,
        })
    }
}

/// The result of evaluating a request's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionOutcome {
    /// Serve the request as if it had no conditions.
    Proceed,
    /// The client's copy is current. The response is 304.
    NotModified,
    /// The client expected another representation. The response is 412.
    Failed,
}

impl ConditionOutcome {
    /// Returns the status 304 or 412, or `None` if the request proceeds.
    pub fn status(self) -> Option<StatusCode> {
        match self {
            ConditionOutcome::Proceed => None,
            ConditionOutcome::NotModified => Some(StatusCode::NOT_MODIFIED),
            ConditionOutcome::Failed => Some(StatusCode::PRECONDITION_FAILED),
        }
    }
}

impl Validators {
    /// Creates validators from an entity tag, such as `"abc"` or `W/"abc"`. A tag that is not a
    /// valid header value is ignored.
    pub fn from_etag(etag: &str) -> Validators {
        Validators {
            etag: HeaderValue::from_str(etag).ok(),
            ..Validators::default()
        }
    }

    /// Reads the validators of a received response. Invalid tags and dates are ignored.
    pub fn from_headers(headers: &HeaderMap) -> Validators {
        let etag = headers.get(header::ETAG);
        let is_tag = |value: &&HeaderValue| {
            value
                .to_str()
                .is_ok_and(|t| EntityTag::from_text(t).is_some())
        };
        let time = |name| {
            let text = headers.get(name)?.to_str().ok()?;
            parse_http_date(text).and_then(LastModified::from_time)
        };
        Validators {
            etag: etag.filter(is_tag).cloned(),
            modified: time(header::LAST_MODIFIED),
            date: time(header::DATE),
        }
    }

    /// Sets the time of the last change.
    #[must_use]
    pub fn with_modification_time(mut self, modified: SystemTime) -> Validators {
        self.modified = LastModified::from_time(modified);
        self
    }

    /// Inserts the validators into `headers` as ETag and Last-Modified.
    pub fn insert_validator_headers(&self, headers: &mut HeaderMap) {
        if let Some(etag) = &self.etag {
            headers.insert(header::ETAG, etag.clone());
        }
        if let Some(modified) = &self.modified {
            headers.insert(header::LAST_MODIFIED, modified.printed.clone());
        }
    }

    fn entity_tag(&self) -> Option<EntityTag<'_>> {
        self.etag
            .as_ref()
            .and_then(|value| EntityTag::from_text(value.to_str().ok()?))
    }

    fn modified_s(&self) -> Option<u64> {
        self.modified.as_ref().map(|modified| modified.seconds)
    }
}

/// Evaluates the conditions in the order of RFC 9110 section 13.2.2.
pub fn evaluate_conditions(
    method: &Method,
    headers: &HeaderMap,
    ours: &Validators,
) -> ConditionOutcome {
    // One pass over the header names costs less than four lookups.
    if !headers.keys().any(is_condition) {
        return ConditionOutcome::Proceed;
    }
    let reads = method == Method::GET || method == Method::HEAD;
    if headers.contains_key(header::IF_MATCH) {
        if !matches_any_tag(headers, header::IF_MATCH, ours, |a, b| a.same_strongly(b)) {
            return ConditionOutcome::Failed;
        }
    } else if let (Some(theirs), Some(ours)) = (
        parse_date_header(headers, &header::IF_UNMODIFIED_SINCE),
        ours.modified_s(),
    ) && ours > theirs
    {
        return ConditionOutcome::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        return match matches_any_tag(headers, header::IF_NONE_MATCH, ours, |a, b| {
            a.matches_weakly(b)
        }) {
            true if reads => ConditionOutcome::NotModified,
            true => ConditionOutcome::Failed,
            false => ConditionOutcome::Proceed,
        };
    }
    let date = ours.date.as_ref().map(|date| date.seconds);
    match (
        parse_date_header(headers, &header::IF_MODIFIED_SINCE),
        ours.modified_s().or(date),
    ) {
        (Some(theirs), Some(ours)) if reads && ours <= theirs => ConditionOutcome::NotModified,
        _ => ConditionOutcome::Proceed,
    }
}

/// Returns whether If-Range is absent or matches our validators (RFC 9110 section 13.1.5). An
/// entity tag matches if it is strong and equal to our tag. A date matches if it is equal to our
/// time of the last change.
pub fn matches_if_range(headers: &HeaderMap, ours: &Validators) -> bool {
    let Some(value) = headers.get(header::IF_RANGE) else {
        return true;
    };
    let Ok(text) = value.to_str() else {
        return false;
    };
    match EntityTag::from_text(text.trim()) {
        Some(tag) => ours.entity_tag().is_some_and(|own| own.same_strongly(&tag)),
        None => {
            let theirs = parse_date(text);
            theirs.is_some() && theirs == ours.modified_s()
        }
    }
}

fn is_condition(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::IF_MATCH
            | header::IF_NONE_MATCH
            | header::IF_MODIFIED_SINCE
            | header::IF_UNMODIFIED_SINCE
    )
}

/// Formats an HTTP date (RFC 9110 section 5.6.7). Returns `None` if an HTTP date cannot express
/// `time`.
fn format_date(time: SystemTime) -> Option<HeaderValue> {
    // The formatter below accepts times up to the last second of the year 9999.
    const LAST: u64 = 253_402_300_799;
    let seconds = unix_seconds(time).filter(|seconds| *seconds <= LAST)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    HeaderValue::from_str(&httpdate::fmt_http_date(time)).ok()
}

fn unix_seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .map(|since| since.as_secs())
}

fn parse_date_header(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    parse_date(headers.get(name)?.to_str().ok()?)
}

fn parse_date(text: &str) -> Option<u64> {
    parse_http_date(text).and_then(unix_seconds)
}

/// Returns whether the header `name` is `*`, or lists an entity tag that matches our tag. `same`
/// compares two tags.
fn matches_any_tag(
    headers: &HeaderMap,
    name: HeaderName,
    ours: &Validators,
    same: fn(&EntityTag<'_>, &EntityTag<'_>) -> bool,
) -> bool {
    let own = ours.entity_tag();
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|text| {
            text.trim() == "*"
                || own
                    .as_ref()
                    .is_some_and(|own| parse_tags(text).any(|tag| same(own, &tag)))
        })
}

/// An entity tag (RFC 9110 section 8.8.3), which may be weak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntityTag<'a> {
    weak: bool,
    opaque: &'a str,
}

impl<'a> EntityTag<'a> {
    fn from_text(text: &'a str) -> Option<EntityTag<'a>> {
        let mut tags = parse_tags(text);
        tags.next().filter(|_| tags.rest.is_empty())
    }

    fn same_strongly(&self, other: &EntityTag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    fn matches_weakly(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// Iterates over the entity tags of a list, up to the first invalid tag. A valid tag may contain
/// commas.
fn parse_tags(text: &str) -> EntityTags<'_> {
    EntityTags { rest: text.trim() }
}

struct EntityTags<'a> {
    rest: &'a str,
}

impl<'a> Iterator for EntityTags<'a> {
    type Item = EntityTag<'a>;

    fn next(&mut self) -> Option<EntityTag<'a>> {
        let text = self.rest.trim_start_matches([',', ' ', '\t']);
        let (weak, text) = text
            .strip_prefix("W/")
            .map_or((false, text), |text| (true, text));
        let (opaque, rest) = text.strip_prefix('"')?.split_once('"')?;
        self.rest = rest.trim_start_matches([' ', '\t']);
        Some(EntityTag { weak, opaque })
    }
}

#[cfg(test)]
mod tests;
