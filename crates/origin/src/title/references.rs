//! Resolves references in server manifests and index MP4s, and decides which references are
//! followed. This module does no I/O.
//!
//! A reference is a URI reference (RFC 3986). A relative reference never leads out of the library
//! that contains the reference, even if the reference contains `..` or percent escapes. An absolute
//! reference must start with a URL prefix that the settings allow. All other references are
//! refused, for example `file:` URLs and paths that start with a slash.

use std::fmt;
use store::{BadKey, Key};

/// A URL prefix that the settings allow for absolute references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedUrlPrefix(HttpUrl);

/// A parsed and normalized http(s) URL. Different spellings of the same address are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HttpUrl {
    /// `http` or `https`.
    scheme: &'static str,
    /// Host and port, in lower case. The default port of the scheme is omitted.
    authority: String,
    path: Vec<String>,
}

/// Target of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceTarget {
    /// A file in the store that contains the reference.
    SameStore(Key),
    /// A file below the prefix with this index.
    BelowPrefix(usize, Key),
}

/// Reasons why a reference is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceError {
    /// The path leads above the library's root.
    Outside,
    /// The path starts with `/`. Such a path is valid only on the machine where the reference was
    /// written.
    Absolute,
    /// The scheme is neither http nor https.
    Scheme,
    /// The URL has a user name, a query or a fragment, or lacks a host.
    Url,
    /// The address is not below an allowed prefix.
    NotAllowed,
    /// The name is not a valid file name in a library.
    Key(BadKey),
}

/// Resolves the reference `name` in the file with the key `holder`.
///
/// # Errors
/// Returns a [`ReferenceError`] if the reference does not lead to a file of the same store or to a
/// file below an allowed prefix.
pub fn resolve_reference(
    holder: &Key,
    name: &str,
    prefixes: &[AllowedUrlPrefix],
) -> Result<ReferenceTarget, ReferenceError> {
    if find_url_scheme(name).is_some() || name.starts_with("//") {
        let url = HttpUrl::parse_url(name)?;
        let below = prefixes.iter().enumerate().find_map(|(n, prefix)| {
            let rest = prefix.path_below_prefix(&url)?;
            Some((n, rest))
        });
        let (n, rest) = below.ok_or(ReferenceError::NotAllowed)?;
        return Ok(ReferenceTarget::BelowPrefix(n, file_key(rest)?));
    }
    if name.starts_with('/') {
        return Err(ReferenceError::Absolute);
    }
    let folder = holder.parent().unwrap_or_default();
    let mut path: Vec<String> = folder
        .as_str()
        .split('/')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    append_relative(&mut path, name)?;
    Ok(ReferenceTarget::SameStore(file_key(&path)?))
}

/// Appends a relative reference to `path`. Each name is decoded first, and `.` and `..` are then
/// resolved (RFC 3986, section 5.2.4). A name that contains an encoded `/` is an error.
fn append_relative(path: &mut Vec<String>, reference: &str) -> Result<(), ReferenceError> {
    for name in reference.split('/') {
        let name = decode_escapes(name);
        match name.as_str() {
            "." => {}
            ".." => {
                path.pop().ok_or(ReferenceError::Outside)?;
            }
            name if name.contains('/') => return Err(ReferenceError::Key(BadKey::Character)),
            _ => path.push(name),
        }
    }
    Ok(())
}

/// Decodes the percent escapes of a name once. Returns the name unchanged if an escape is
/// malformed, because some programs escape nothing and write `100%.mp4`.
pub(crate) fn decode_escapes(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|b| char::from(*b).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return name.to_owned();
        };
        bytes.push((high * 16 + low) as u8);
        rest = after.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_owned())
}

fn file_key(path: &[String]) -> Result<Key, ReferenceError> {
    let key = Key::parse(&path.join("/")).map_err(ReferenceError::Key)?;
    if key.is_root() {
        return Err(ReferenceError::Key(BadKey::Empty));
    }
    Ok(key)
}

/// Returns the scheme of a reference (RFC 3986, section 3.1), if the reference has a scheme.
fn find_url_scheme(name: &str) -> Option<&str> {
    let (scheme, _) = name.split_once(':')?;
    let first = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    (first && scheme.bytes().all(legal)).then_some(scheme)
}

impl HttpUrl {
    fn parse_url(text: &str) -> Result<HttpUrl, ReferenceError> {
        let known = find_url_scheme(text).unwrap_or_default();
        let (scheme, port) = match () {
            () if known.eq_ignore_ascii_case("http") => ("http", ":80"),
            () if known.eq_ignore_ascii_case("https") => ("https", ":443"),
            () => return Err(ReferenceError::Scheme),
        };
        let rest = text.get(known.len() + 1..).unwrap_or_default();
        let rest = rest.strip_prefix("//").ok_or(ReferenceError::Url)?;
        if rest.contains(['?', '#', '\\']) || rest.chars().any(char::is_control) {
            return Err(ReferenceError::Url);
        }
        let (authority, reference) = rest.split_once('/').unwrap_or((rest, ""));
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        if authority.is_empty() || !authority.bytes().all(legal) {
            return Err(ReferenceError::Url);
        }
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(port).unwrap_or(&authority);
        let mut path = Vec::new();
        append_relative(&mut path, reference)?;
        Ok(HttpUrl {
            scheme,
            authority: authority.to_owned(),
            path,
        })
    }
}

impl AllowedUrlPrefix {
    /// Parses a URL prefix such as `https://media.example.com/films/`. The last slash is optional.
    ///
    /// # Errors
    /// [`ReferenceError`] if `text` is not an http(s) URL that consists only of a host and a path.
    pub fn parse_prefix(text: &str) -> Result<AllowedUrlPrefix, ReferenceError> {
        let mut url = HttpUrl::parse_url(text)?;
        while url.path.last().is_some_and(String::is_empty) {
            url.path.pop();
        }
        match url.path.iter().any(String::is_empty) {
            true => Err(ReferenceError::Key(BadKey::Empty)),
            false => Ok(AllowedUrlPrefix(url)),
        }
    }

    /// Returns the path of `url` below this prefix.
    fn path_below_prefix<'a>(&self, url: &'a HttpUrl) -> Option<&'a [String]> {
        let same = self.0.scheme == url.scheme && self.0.authority == url.authority;
        url.path
            .strip_prefix(self.0.path.as_slice())
            .filter(|_| same)
    }
}

/// Escapes a path as a relative reference, which [`resolve_reference`] decodes to the same path.
pub fn escape_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(byte.into()),
            _ if b"-._~!$'()*+,;=@/".contains(&byte) => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceError::Outside => f.write_str("the path leads out of the library"),
            ReferenceError::Absolute => f.write_str(
                "the path starts with a slash; use a path relative to the file that contains it",
            ),
            ReferenceError::Scheme => {
                f.write_str("only relative names and http(s) URLs are followed")
            }
            ReferenceError::Url => f.write_str("only URLs of a host and a path are followed"),
            ReferenceError::NotAllowed => {
                f.write_str("the address is not allowed; allow it with `media-from`")
            }
            ReferenceError::Key(bad) => bad.fmt(f),
        }
    }
}

impl std::error::Error for ReferenceError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allowed_prefixes() -> Vec<AllowedUrlPrefix> {
        ["https://media.example.com/films/", "http://[::1]:8080"]
            .map(|text| AllowedUrlPrefix::parse_prefix(text).unwrap())
            .into()
    }

    fn at(holder: &str, name: &str) -> Result<ReferenceTarget, ReferenceError> {
        resolve_reference(&Key::parse(holder).unwrap(), name, &allowed_prefixes())
    }

    fn in_same_store(key: &str) -> Result<ReferenceTarget, ReferenceError> {
        Ok(ReferenceTarget::SameStore(Key::parse(key).unwrap()))
    }

    #[test]
    fn relative_names_resolve_against_the_holder() {
        for (name, key) in [
            ("a.mp4", "tos/deep/a.mp4"),
            ("./a.mp4", "tos/deep/a.mp4"),
            ("../a.mp4", "tos/a.mp4"),
            ("../../a.mp4", "a.mp4"),
            ("../../x/y/../a.mp4", "x/a.mp4"),
            ("a%20b.mp4", "tos/deep/a b.mp4"),
            ("a b.mp4", "tos/deep/a b.mp4"),
            ("100%.mp4", "tos/deep/100%.mp4"),
            ("%2525.mp4", "tos/deep/%25.mp4"),
            ("%C3%A4.mp4", "tos/deep/ä.mp4"),
            ("%ff.mp4", "tos/deep/%ff.mp4"),
            ("%2e%2E/a.mp4", "tos/a.mp4"),
            ("a%3ab.mp4", "tos/deep/a:b.mp4"),
        ] {
            assert_eq!(at("tos/deep/tos.ism", name), in_same_store(key), "{name}");
        }
        assert_eq!(at("tos.ism", "a.mp4"), in_same_store("a.mp4"));
    }

    #[test]
    fn names_outside_the_library_are_refused() {
        for name in [
            "../a.mp4",
            "x/../../a.mp4",
            "%2e%2e/a.mp4",
            ".%2e/a.mp4",
            "%2e./%2E%2E/etc/passwd",
            "..",
        ] {
            assert_eq!(at("tos.ism", name), Err(ReferenceError::Outside), "{name}");
        }
        for name in ["/etc/passwd", "/a.mp4"] {
            assert_eq!(at("tos.ism", name), Err(ReferenceError::Absolute), "{name}");
        }
        for name in [
            "file:///etc/passwd",
            "FILE:/etc/passwd",
            "//media.example.com/films/a.mp4",
            "ftp://media.example.com/a.mp4",
            "data:,x",
            "c:/films/a.mp4",
            "s3://bucket/a.mp4",
        ] {
            assert_eq!(at("tos.ism", name), Err(ReferenceError::Scheme), "{name}");
        }
        for name in [
            "..%2fa.mp4",
            "..%5ca.mp4",
            "..\\a.mp4",
            "a%00.mp4",
            "a\0.mp4",
            "",
            ".",
            "a//b.mp4",
            "a/",
            ".hidden/a.mp4",
            "%2ehidden",
            "...",
        ] {
            let bad = at("tos.ism", name).unwrap_err();
            assert!(matches!(bad, ReferenceError::Key(_)), "{name}: {bad:?}");
        }
    }

    #[test]
    fn urls_below_a_prefix_are_followed() {
        let below = |n, key| Ok(ReferenceTarget::BelowPrefix(n, Key::parse(key).unwrap()));
        for (url, target) in [
            ("https://media.example.com/films/a.mp4", below(0, "a.mp4")),
            (
                "HTTPS://Media.Example.com:443/films/x/a%20b.mp4",
                below(0, "x/a b.mp4"),
            ),
            (
                "https://media.example.com/x/../films/a.mp4",
                below(0, "a.mp4"),
            ),
            ("http://[::1]:8080/a.mp4", below(1, "a.mp4")),
        ] {
            assert_eq!(at("deep/tos.ism", url), target, "{url}");
        }
    }

    #[test]
    fn urls_outside_the_prefixes_are_refused() {
        for url in [
            "http://media.example.com/films/a.mp4",
            "https://media.example.com/a.mp4",
            "https://media.example.com/filmsandmore/a.mp4",
            "https://media.example.com/films/../a.mp4",
            "https://media.example.com/films/%2e%2e/a.mp4",
            "https://media.example.com:8443/films/a.mp4",
            "https://media.example.com.evil.example/films/a.mp4",
            "https://evil.example/https://media.example.com/films/a.mp4",
            "https://evil.example/films/a.mp4",
            "http://169.254.169.254/latest/meta-data",
            "http://localhost/a.mp4",
            "http://[::1]/a.mp4",
            "http://127.1/a.mp4",
        ] {
            assert_eq!(at("tos.ism", url), Err(ReferenceError::NotAllowed), "{url}");
        }
        for url in [
            "https://media.example.com@evil.example/films/a.mp4",
            "https://u:p@media.example.com/films/a.mp4",
            "https://evil.example\\@media.example.com/films/a.mp4",
            "https://media.example.com/films/a.mp4?to=http://evil",
            "https://media.example.com/films/a.mp4#x",
            "https://media.example.com\t/films/a.mp4",
            "https://mediа.example.com/films/a.mp4",
            "https:/media.example.com/films/a.mp4",
            "https:media.example.com/films/a.mp4",
            "https://",
            "https:///films/a.mp4",
        ] {
            assert_eq!(at("tos.ism", url), Err(ReferenceError::Url), "{url}");
        }
        let dots = "https://media.example.com/../films/a.mp4";
        assert_eq!(at("tos.ism", dots), Err(ReferenceError::Outside));
        for url in [
            "https://media.example.com/films/",
            "https://media.example.com/films",
        ] {
            assert!(
                matches!(at("tos.ism", url), Err(ReferenceError::Key(_))),
                "{url}"
            );
        }
    }

    proptest! {
        #[test]
        fn escaped_paths_decode_to_themselves(path in "[^./\\\\\0-\x1f\x7f][^/\\\\\0-\x1f\x7f]{0,20}") {
            prop_assert_eq!(at("tos.ism", &escape_path(&path)), in_same_store(&path));
        }

        #[test]
        fn any_name_stays_inside_or_is_refused(name in "(\\.|/|%2e|%2f|%|a|:|http|\\\\|\\?){0,12}") {
            if let Ok(ReferenceTarget::SameStore(key)) = at("a/b/c.ism", &name) {
                prop_assert!(key.as_str().split('/').all(|name| !name.starts_with('.') && !name.is_empty()));
            }
        }
    }
}
