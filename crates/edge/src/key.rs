//! A request's name in the cache.

use std::borrow::{Borrow, Cow};
use std::fmt::Write;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};

/// What two requests must have in common to be given the same answer. Cheap to clone.
///
/// As text: the host (where it is passed on), the target, and for an answer that varies, a line
/// for each header that it names. Neither a host nor a target can hold a line break.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// The same text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Without the lines of a variant or a part.
    pub fn primary(&self) -> &str {
        self.0.split('\n').next().unwrap_or_default()
    }

    /// The key of the variant that a request with these headers is given.
    pub fn variant(&self, names: &[HeaderName], request: &HeaderMap) -> Key {
        let mut text = self.0.to_string();
        for name in names {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{name}:{}", selecting(request, name));
        }
        Key(text.into())
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        Key(text.into())
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A request's values of a header, in a form in which those that mean the same mostly are the same
/// (RFC 9111 section 4.1): all lines as one list; codings and languages, whose syntax is known,
/// also without white space and in lower case.
pub fn selecting(request: &HeaderMap, name: &HeaderName) -> String {
    use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};
    let mut text = String::new();
    for (count, value) in request.get_all(name).iter().enumerate() {
        if count > 0 {
            text.push(',');
        }
        match value.to_str() {
            Ok(value) => text.push_str(value.trim()),
            // Bytes that are no text: each its own, and none like text.
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

/// The target without the players' own words to whoever is on the way (CMCD, CTA-5004): they
/// change with each request and mean nothing to the origin.
pub fn without_cmcd(target: &str) -> Cow<'_, str> {
    let Some((path, query)) = target.split_once('?') else {
        return target.into();
    };
    let ours = |part: &&str| !(part.starts_with("CMCD=") || *part == "CMCD");
    if query.split('&').all(|part| ours(&part)) {
        return target.into();
    }
    let kept: Vec<&str> = query.split('&').filter(ours).collect();
    if kept.is_empty() {
        path.into()
    } else {
        format!("{path}?{}", kept.join("&")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_words_are_no_part_of_the_key() {
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
            assert_eq!(without_cmcd(target), expected);
        }
    }

    /// What was no text counted as absent, so that one client's variant became everybody's.
    #[test]
    fn values_that_are_no_text_are_variants_of_their_own() {
        let of = |value: &[u8]| {
            let mut map = HeaderMap::new();
            let value = http::HeaderValue::from_bytes(value).unwrap();
            map.append(http::header::ORIGIN, value);
            selecting(&map, &http::header::ORIGIN)
        };
        assert!(!of(b"\xff").is_empty());
        assert_ne!(of(b"\xff"), of(b"\xfe"));
        assert_ne!(of(b"\xff"), of(b"\\xff"));
    }

    #[test]
    fn requests_that_say_the_same_get_the_same_variant() {
        let key = Key::from("/a");
        let of = |lines: &[(&str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in lines {
                let name: HeaderName = name.parse().unwrap();
                map.append(name, value.parse().unwrap());
            }
            key.variant(&[http::header::ACCEPT_ENCODING, http::header::ORIGIN], &map)
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
