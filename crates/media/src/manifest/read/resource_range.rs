//! URLs with byte ranges, and resolution of URL references against a base URL.

use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;
use url::Url;

/// Maximum length of a URL, in bytes. Most servers refuse longer URLs.
pub const URL_BYTES_MAX: usize = 8192;

/// A resource or a byte range of a resource, which one request can fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRange {
    /// An absolute `http` or `https` URL without a fragment.
    pub url: Url,
    /// Byte range of the resource; `None` means the whole resource.
    pub range: Option<Range<u64>>,
}

/// Resolves a URL reference against a base URL (RFC 3986, 5.2), as browsers do (WHATWG URL
/// Standard). The fragment is dropped.
///
/// # Errors
/// `Malformed` if the reference is not a URL; `Unsupported` if the URL is neither `http` nor
/// `https`, because a manifest must not send a player to `file:`; `TooLarge` if the URL exceeds
/// [`URL_BYTES_MAX`].
pub fn resolve_url(base: &Url, reference: &str) -> Result<Url> {
    let reference = reference.trim();
    check_url_len(reference.len())?;
    let mut url = base.join(reference).map_err(|error| {
        Error::malformed(format!(
            "not a URL ({error}): {}",
            shorten_for_message(reference)
        ))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::unsupported(format!(
            "neither http nor https: {}",
            shorten_for_message(reference)
        )));
    }
    url.set_fragment(None);
    check_url_len(url.as_str().len())?;
    Ok(url)
}

fn check_url_len(len: usize) -> Result<()> {
    if len <= URL_BYTES_MAX {
        return Ok(());
    }
    let message = format!("a URL of {len} bytes; at most {URL_BYTES_MAX} are followed");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// Shortens and escapes untrusted text for an error message.
pub(crate) fn shorten_for_message(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", cut.escape_debug())
}

/// Parses a byte range of an MPD, which has the form `first-last` with inclusive ends. Returns
/// `None` if the text is invalid.
pub(super) fn parse_range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.trim().split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse::<u64>().ok()?);
    (first <= last).then_some(first..last.checked_add(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_in_rfc_3986() {
        let base = Url::parse("http://a/b/c/d;p?q").unwrap();
        // Examples from RFC 3986, 5.4.1 and 5.4.2, but the results have no fragments.
        for (reference, url) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(resolve_url(&base, reference).unwrap().as_str(), url);
        }
    }

    #[test]
    fn only_short_http_urls_are_followed() {
        let base = Url::parse("http://a/").unwrap();
        for bad in [
            "file:///etc/passwd",
            "ftp://x/",
            "data:,x",
            "http://[",
            "mailto:x",
        ] {
            assert!(resolve_url(&base, bad).is_err(), "{bad}");
        }
        let long = "x".repeat(URL_BYTES_MAX);
        assert_eq!(
            resolve_url(&base, &long).unwrap_err().kind,
            ErrorKind::TooLarge
        );
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(parse_range("0-0"), Some(0..1));
        assert_eq!(parse_range(" 10-19 "), Some(10..20));
        for bad in ["", "-", "5-4", "1-", "-1", "0-18446744073709551615", "a-b"] {
            assert_eq!(parse_range(bad), None, "{bad}");
        }
    }
}
