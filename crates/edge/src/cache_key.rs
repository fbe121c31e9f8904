//! Cache keys.

use std::borrow::{Borrow, Cow};
use std::fmt::Write;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use store::planted_bugs::is_bug_planted;

/// The properties that two requests must share to get the same response. Cheap to clone.
///
/// The text is the host (if it is forwarded) and the target, followed by a line with the origin pool
/// (if a rule selected one) and by one line for each header in Vary. The key of a block has a
/// further line. Neither a host nor a target can contain a line break.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey(Arc<str>);

impl CacheKey {
    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key of a URL whose responses come from the pool that a rule selected. The line of
    /// the pool starts with a character that no header name contains, so that it differs from the
    /// lines of variants.
    pub fn for_pool(url: &str, pool: &str) -> CacheKey {
        CacheKey(format!("{url}\n@pool:{pool}").into())
    }

    /// Returns the key without the lines of a pool, variant or block.
    pub fn primary_key(&self) -> &str {
        primary_key(&self.0)
    }

    /// Returns the key of the variant that these request headers select.
    pub fn for_variant(&self, names: &[HeaderName], request: &HeaderMap) -> CacheKey {
        let mut text = self.0.to_string();
        for name in names {
            if is_bug_planted("vary-ignored") {
                break;
            }
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{name}:{}", selecting_value(request, name));
        }
        CacheKey(text.into())
    }
}

/// Returns the primary key of a cache key, like [`CacheKey::primary_key`].
pub fn primary_key(key: &str) -> &str {
    key.split('\n').next().unwrap_or_default()
}

impl From<&str> for CacheKey {
    fn from(text: &str) -> CacheKey {
        CacheKey(text.into())
    }
}

impl Borrow<str> for CacheKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Returns a request's values of one header, normalized so that equivalent values usually compare
/// equal (RFC 9111 section 4.1). If the header occurs several times, its values are joined with
/// commas. In `Accept-Encoding` and `Accept-Language`, white space is removed and letters become
/// lower case.
pub fn selecting_value(request: &HeaderMap, name: &HeaderName) -> String {
    use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};
    let mut text = String::new();
    for (count, value) in request.get_all(name).iter().enumerate() {
        if count > 0 {
            text.push(',');
        }
        match value.to_str() {
            Ok(value) => text.push_str(value.trim()),
            // A value that is not valid text must differ from all valid values and from all other
            // invalid values.
            Err(_) => {
                let _ = write!(text, "\u{fffd}{}", value.as_bytes().escape_ascii());
            }
        }
    }
    if [ACCEPT_ENCODING, ACCEPT_LANGUAGE].contains(name) {
        text.retain(|c| !c.is_whitespace());
        text.make_ascii_lowercase();
    }
    text
}

/// Returns the target without the player's CMCD parameter (CTA-5004). The parameter changes with
/// each request and has no meaning for the origin.
pub fn strip_cmcd(target: &str) -> Cow<'_, str> {
    let Some((path, query)) = target.split_once('?') else {
        return target.into();
    };
    let is_not_cmcd = |part: &&str| !(part.starts_with("CMCD=") || *part == "CMCD");
    if query.split('&').all(|part| is_not_cmcd(&part)) {
        return target.into();
    }
    let remaining: Vec<&str> = query.split('&').filter(is_not_cmcd).collect();
    if remaining.is_empty() {
        path.into()
    } else {
        format!("{path}?{}", remaining.join("&")).into()
    }
}

/// Returns a target in which percent-encoded unreserved characters are decoded. The encoded and the
/// decoded form are equivalent (RFC 3986 section 6.2.2.2).
pub fn unescape_unreserved(target: &str) -> Cow<'_, str> {
    // Almost all targets contain no escapes. Such a target is returned without a copy.
    if !target.contains('%') {
        return target.into();
    }
    let mut parts = target.split('%');
    let mut text = String::from(parts.next().unwrap_or_default());
    let mut is_changed = false;
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(|c| c.is_ascii_alphanumeric() || b"-._~".contains(c)) {
            Some(code) => {
                is_changed = true;
                text.push(char::from(code));
                text.push_str(part.get(2..).unwrap_or_default());
            }
            None => {
                text.push('%');
                text.push_str(part);
            }
        }
    }
    match is_changed {
        true => text.into(),
        false => target.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_are_unescaped() {
        for (target, expected) in [
            ("/a", "/a"),
            ("/%6e%4E%7e%2E%2d%5f%30?%6e", "/nN~.-_0?n"),
            // Escapes of all other characters are not decoded.
            ("/%2f%25%20%3F%C3%A9%00", "/%2f%25%20%3F%C3%A9%00"),
            ("/%256e", "/%256e"),
            ("/%6", "/%6"),
            ("/%", "/%"),
            ("/%6g%+1%%6e", "/%6g%+1%n"),
            ("/%\u{e9}1", "/%\u{e9}1"),
        ] {
            assert_eq!(unescape_unreserved(target), expected);
        }
    }

    #[test]
    fn cmcd_is_not_part_of_the_key() {
        for (target, expected) in [
            ("/a", "/a"),
            ("/a?", "/a?"),
            ("/a?b=1&c", "/a?b=1&c"),
            ("/a?CMCD=bl%3D1", "/a"),
            ("/a?b=1&CMCD=bl%3D1&c", "/a?b=1&c"),
            ("/a?CMCD", "/a"),
            ("/a?XCMCD=1", "/a?XCMCD=1"),
            ("/a?b=CMCD=1", "/a?b=CMCD=1"),
        ] {
            assert_eq!(strip_cmcd(target), expected);
        }
    }

    #[test]
    fn a_header_called_pool_does_not_select_a_pool() {
        let mut map = HeaderMap::new();
        map.insert("pool", http::HeaderValue::from_static("archive"));
        let variant = CacheKey::from("/a").for_variant(&[HeaderName::from_static("pool")], &map);
        assert_ne!(variant, CacheKey::for_pool("/a", "archive"));
    }

    /// Regression: a header value that was not valid text was treated like an absent header.
    /// Therefore, the variant of one client was served to other clients.
    #[test]
    fn invalid_header_values_are_separate_variants() {
        let of = |value: &[u8]| {
            let mut map = HeaderMap::new();
            let value = http::HeaderValue::from_bytes(value).unwrap();
            map.append(http::header::ORIGIN, value);
            selecting_value(&map, &http::header::ORIGIN)
        };
        assert!(!of(b"\xff").is_empty());
        assert_ne!(of(b"\xff"), of(b"\xfe"));
        assert_ne!(of(b"\xff"), of(b"\\xff"));
    }

    #[test]
    fn equivalent_requests_get_the_same_variant() {
        let key = CacheKey::from("/a");
        let of = |lines: &[(&str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in lines {
                let name: HeaderName = name.parse().unwrap();
                map.append(name, value.parse().unwrap());
            }
            key.for_variant(&[http::header::ACCEPT_ENCODING, http::header::ORIGIN], &map)
        };
        let plain = of(&[]);
        assert_eq!(
            of(&[("accept-encoding", "gzip, BR")]),
            of(&[("accept-encoding", "GZIP"), ("accept-encoding", "br")])
        );
        assert_ne!(of(&[("accept-encoding", "gzip")]), plain);
        assert_ne!(of(&[("origin", "a")]), of(&[("origin", "A")]));
        assert_ne!(of(&[("origin", "a")]), of(&[("accept-encoding", "a")]));
        assert_ne!(of(&[("origin", "a b")]), of(&[("origin", "ab")]));
        assert_ne!(of(&[("origin", "")]), of(&[("origin", ""), ("origin", "")]));
    }
}
