//! Conditional requests (RFC 9110 section 13).

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

/// What identifies the representation we would send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag as printed, quotes (and `W/`) included.
    pub etag: Option<HeaderValue>,
    /// When it last changed.
    pub modified: Option<Modified>,
}

/// When something last changed, in whole seconds as HTTP counts them, and as printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modified {
    /// Since 1970.
    seconds: u64,
    printed: HeaderValue,
}

impl Modified {
    /// `None` for times that no HTTP date can say.
    pub fn at(time: SystemTime) -> Option<Modified> {
        Some(Modified {
            seconds: seconds(time)?,
            printed: date_value(time)?,
        })
    }
}

/// What the request's conditions say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Answer as if there were no conditions.
    Proceed,
    /// The client has it: 304.
    NotModified,
    /// The client wanted another one: 412.
    Failed,
}

impl Verdict {
    /// The status to answer with instead of the representation.
    pub fn status(self) -> Option<StatusCode> {
        match self {
            Verdict::Proceed => None,
            Verdict::NotModified => Some(StatusCode::NOT_MODIFIED),
            Verdict::Failed => Some(StatusCode::PRECONDITION_FAILED),
        }
    }
}

impl Validators {
    /// Just a tag, printed as given: `"abc"` or `W/"abc"`. A tag that no header can carry is none.
    pub fn strong(etag: &str) -> Validators {
        Validators {
            etag: HeaderValue::from_str(etag).ok(),
            modified: None,
        }
    }

    /// What somebody else's answer prints. What is no tag or no date is none.
    pub fn of(headers: &HeaderMap) -> Validators {
        let etag = headers.get(header::ETAG);
        let is_tag = |value: &&HeaderValue| value.to_str().is_ok_and(|t| Tag::of(t).is_some());
        let modified = headers.get(header::LAST_MODIFIED);
        let time = |value: &HeaderValue| httpdate::parse_http_date(value.to_str().ok()?).ok();
        Validators {
            etag: etag.filter(is_tag).cloned(),
            modified: modified.and_then(time).and_then(Modified::at),
        }
    }

    /// The same, with a time of change.
    #[must_use]
    pub fn modified_at(mut self, modified: SystemTime) -> Validators {
        self.modified = Modified::at(modified);
        self
    }

    /// Prints them as ETag and Last-Modified.
    pub fn print(&self, headers: &mut HeaderMap) {
        if let Some(etag) = &self.etag {
            headers.insert(header::ETAG, etag.clone());
        }
        if let Some(modified) = &self.modified {
            headers.insert(header::LAST_MODIFIED, modified.printed.clone());
        }
    }

    fn tag(&self) -> Option<Tag<'_>> {
        self.etag
            .as_ref()
            .and_then(|value| Tag::of(value.to_str().ok()?))
    }

    fn modified_s(&self) -> Option<u64> {
        self.modified.as_ref().map(|modified| modified.seconds)
    }
}

/// Weighs the conditions in the order of section 13.2.2.
pub fn evaluate(method: &Method, headers: &HeaderMap, ours: &Validators) -> Verdict {
    let reads = method == Method::GET || method == Method::HEAD;
    if headers.contains_key(header::IF_MATCH) {
        if !any_tag(headers, header::IF_MATCH, ours, |a, b| a.same_strongly(b)) {
            return Verdict::Failed;
        }
    } else if let (Some(theirs), Some(ours)) = (
        date(headers, &header::IF_UNMODIFIED_SINCE),
        ours.modified_s(),
    ) && ours > theirs
    {
        return Verdict::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        return match any_tag(headers, header::IF_NONE_MATCH, ours, |a, b| {
            a.same_weakly(b)
        }) {
            true if reads => Verdict::NotModified,
            true => Verdict::Failed,
            false => Verdict::Proceed,
        };
    }
    match (date(headers, &header::IF_MODIFIED_SINCE), ours.modified_s()) {
        (Some(theirs), Some(ours)) if reads && ours <= theirs => Verdict::NotModified,
        _ => Verdict::Proceed,
    }
}

/// Whether If-Range, if there, names what we have (section 13.1.5): a strong tag, or the very date.
pub fn range_holds(headers: &HeaderMap, ours: &Validators) -> bool {
    let Some(value) = headers.get(header::IF_RANGE) else {
        return true;
    };
    let Ok(text) = value.to_str() else {
        return false;
    };
    match Tag::of(text.trim()) {
        Some(tag) => ours.tag().is_some_and(|own| own.same_strongly(&tag)),
        None => {
            let theirs = parse_date(text);
            theirs.is_some() && theirs == ours.modified_s()
        }
    }
}

/// An HTTP date (section 5.6.7); `None` for times that have none.
fn date_value(time: SystemTime) -> Option<HeaderValue> {
    // The formatter below accepts the years 1970 to 9999 only.
    const LAST: u64 = 253_402_300_799;
    let seconds = seconds(time).filter(|seconds| *seconds <= LAST)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    HeaderValue::from_str(&httpdate::fmt_http_date(time)).ok()
}

fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .map(|since| since.as_secs())
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    parse_date(headers.get(name)?.to_str().ok()?)
}

fn parse_date(text: &str) -> Option<u64> {
    httpdate::parse_http_date(text.trim())
        .ok()
        .and_then(seconds)
}

/// Whether a list of tags, or `*`, holds ours.
fn any_tag(
    headers: &HeaderMap,
    name: HeaderName,
    ours: &Validators,
    same: fn(&Tag<'_>, &Tag<'_>) -> bool,
) -> bool {
    let own = ours.tag();
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|text| {
            text.trim() == "*"
                || own
                    .as_ref()
                    .is_some_and(|own| tags(text).any(|tag| same(own, &tag)))
        })
}

/// An entity tag (section 8.8.3): opaque text in quotes, perhaps weak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tag<'a> {
    weak: bool,
    opaque: &'a str,
}

impl<'a> Tag<'a> {
    fn of(text: &'a str) -> Option<Tag<'a>> {
        let mut tags = tags(text);
        tags.next().filter(|_| tags.rest.is_empty())
    }

    fn same_strongly(&self, other: &Tag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    fn same_weakly(&self, other: &Tag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// The tags of a list, up to the first thing that is none. A tag may hold commas.
fn tags(text: &str) -> Tags<'_> {
    Tags { rest: text.trim() }
}

struct Tags<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        let text = self.rest.trim_start_matches([',', ' ', '\t']);
        let (weak, text) = text
            .strip_prefix("W/")
            .map_or((false, text), |text| (true, text));
        let (opaque, rest) = text.strip_prefix('"')?.split_once('"')?;
        self.rest = rest.trim_start_matches([' ', '\t']);
        Some(Tag { weak, opaque })
    }
}

#[cfg(test)]
mod tests;
