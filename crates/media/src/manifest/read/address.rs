//! Where bytes lie: URLs and ranges, and references resolved against a base.

use crate::error::{Error, Kind, Result};
use std::ops::Range;
use url::Url;

/// The longest URL that is followed, in bytes; servers refuse longer ones.
pub const URL_BYTES_MAX: usize = 8192;

/// Bytes that can be asked for with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Absolute, `http` or `https`, without a fragment.
    pub url: Url,
    /// Which bytes of it; all where `None`.
    pub range: Option<Range<u64>>,
}

/// Resolves a reference against a base (RFC 3986, 5.2, as the URL standard of browsers has it).
///
/// # Errors
/// `Malformed` if it is no URL, `Unsupported` if it is neither `http` nor `https` (a manifest may
/// not send a player to `file:`), `TooLarge` over [`URL_BYTES_MAX`].
pub fn resolve(base: &Url, reference: &str) -> Result<Url> {
    let reference = reference.trim();
    check_len(reference.len())?;
    let mut url = base
        .join(reference)
        .map_err(|error| Error::malformed(format!("not a URL ({error}): {}", short(reference))))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::unsupported(format!(
            "neither http nor https: {}",
            short(reference)
        )));
    }
    url.set_fragment(None);
    check_len(url.as_str().len())?;
    Ok(url)
}

fn check_len(len: usize) -> Result<()> {
    if len <= URL_BYTES_MAX {
        return Ok(());
    }
    let what = format!("a URL of {len} bytes; at most {URL_BYTES_MAX} are followed");
    Err(Error::new(Kind::TooLarge, what))
}

/// Text of others, cut for a message.
pub(crate) fn short(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", cut.escape_debug())
}

/// `first-last`, both counted, as MPDs write ranges; `None` if it is none.
pub(super) fn range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.trim().split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse::<u64>().ok()?);
    (first <= last).then_some(first..last.checked_add(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_rfc_3986_has_it() {
        let base = Url::parse("http://a/b/c/d;p?q").unwrap();
        // RFC 3986, 5.4.1 and 5.4.2; fragments are dropped, empty is the base.
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
            assert_eq!(resolve(&base, reference).unwrap().as_str(), url);
        }
    }

    #[test]
    fn only_http_is_followed_and_not_for_ever() {
        let base = Url::parse("http://a/").unwrap();
        for bad in [
            "file:///etc/passwd",
            "ftp://x/",
            "data:,x",
            "http://[",
            "mailto:x",
        ] {
            assert!(resolve(&base, bad).is_err(), "{bad}");
        }
        let long = "x".repeat(URL_BYTES_MAX);
        assert_eq!(resolve(&base, &long).unwrap_err().kind, Kind::TooLarge);
    }

    #[test]
    fn ranges_count_both_ends() {
        assert_eq!(range("0-0"), Some(0..1));
        assert_eq!(range(" 10-19 "), Some(10..20));
        for bad in ["", "-", "5-4", "1-", "-1", "0-18446744073709551615", "a-b"] {
            assert_eq!(range(bad), None, "{bad}");
        }
    }
}
