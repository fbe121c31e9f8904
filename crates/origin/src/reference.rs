//! Names in server manifests and index MP4s: where they lead, and where they may not. Pure.
//!
//! A name is a URI reference (RFC 3986). A relative one stays in the library that holds it,
//! whatever dots and escapes it is spelled with; an absolute one must begin with a prefix that
//! the settings allow. Nothing else is followed: no `file:`, no path from the root.

use std::fmt;
use store::{BadKey, Key};

/// Where absolute URLs may lead: all below one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(Url);

/// An http(s) URL in parts, so that two spellings of one address are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Url {
    /// `http` or `https`.
    scheme: &'static str,
    /// Host and port, in lower case, without the scheme's own port.
    authority: String,
    path: Vec<String>,
}

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Something where the name itself was found.
    Here(Key),
    /// Something below the prefix of this number.
    Below(usize, Key),
}

/// Why a name is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bad {
    /// It leads above the library's root.
    Outside,
    /// It begins with `/`: a path of the machine that wrote it.
    Absolute,
    /// A URL of another kind than http and https.
    Scheme,
    /// A URL with a user's name, a query or a fragment, or without a host.
    Url,
    /// No setting allows this address.
    NotAllowed,
    /// A name that no file of a library can have.
    Key(BadKey),
}

/// What `name` means in a file whose key is `holder`.
///
/// # Errors
/// [`Bad`], for whatever is not surely inside the library or below an allowed prefix.
pub fn resolve(holder: &Key, name: &str, prefixes: &[Prefix]) -> Result<Target, Bad> {
    if scheme(name).is_some() || name.starts_with("//") {
        let url = Url::parse(name)?;
        let below = prefixes.iter().enumerate().find_map(|(n, prefix)| {
            let rest = prefix.rest(&url)?;
            Some((n, rest))
        });
        let (n, rest) = below.ok_or(Bad::NotAllowed)?;
        return Ok(Target::Below(n, key(rest)?));
    }
    if name.starts_with('/') {
        return Err(Bad::Absolute);
    }
    let folder = holder.parent().unwrap_or_default();
    let mut path: Vec<String> = folder
        .as_str()
        .split('/')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    walk(&mut path, name)?;
    Ok(Target::Here(key(&path)?))
}

/// Continues `path` by a relative reference: `.` and `..` are resolved (section 5.2.4) after each
/// name is decoded, and no name may hold a `/` of its own.
fn walk(path: &mut Vec<String>, reference: &str) -> Result<(), Bad> {
    for name in reference.split('/') {
        let name = decoded(name);
        match name.as_str() {
            "." => {}
            ".." => {
                path.pop().ok_or(Bad::Outside)?;
            }
            name if name.contains('/') => return Err(Bad::Key(BadKey::Character)),
            _ => path.push(name),
        }
    }
    Ok(())
}

/// A name with its escapes read once; as it is, where those are none (writers that escape nothing
/// name `100%.mp4` so).
pub(crate) fn decoded(name: &str) -> String {
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

fn key(path: &[String]) -> Result<Key, Bad> {
    let key = Key::parse(&path.join("/")).map_err(Bad::Key)?;
    if key.is_root() {
        return Err(Bad::Key(BadKey::Empty));
    }
    Ok(key)
}

/// The scheme that a reference begins with (section 3.1), if it does.
fn scheme(name: &str) -> Option<&str> {
    let (scheme, _) = name.split_once(':')?;
    let first = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    (first && scheme.bytes().all(legal)).then_some(scheme)
}

impl Url {
    fn parse(text: &str) -> Result<Url, Bad> {
        let known = scheme(text).unwrap_or_default();
        let (scheme, port) = match () {
            () if known.eq_ignore_ascii_case("http") => ("http", ":80"),
            () if known.eq_ignore_ascii_case("https") => ("https", ":443"),
            () => return Err(Bad::Scheme),
        };
        let rest = text.get(known.len() + 1..).unwrap_or_default();
        let rest = rest.strip_prefix("//").ok_or(Bad::Url)?;
        if rest.contains(['?', '#', '\\']) || rest.chars().any(char::is_control) {
            return Err(Bad::Url);
        }
        let (authority, reference) = rest.split_once('/').unwrap_or((rest, ""));
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        if authority.is_empty() || !authority.bytes().all(legal) {
            return Err(Bad::Url);
        }
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(port).unwrap_or(&authority);
        let mut path = Vec::new();
        walk(&mut path, reference)?;
        Ok(Url {
            scheme,
            authority: authority.to_owned(),
            path,
        })
    }
}

impl Prefix {
    /// Reads `https://media.example.com/films/`, with or without the last slash.
    ///
    /// # Errors
    /// [`Bad`] where it is no plain http(s) URL.
    pub fn parse(text: &str) -> Result<Prefix, Bad> {
        let mut url = Url::parse(text)?;
        while url.path.last().is_some_and(String::is_empty) {
            url.path.pop();
        }
        match url.path.iter().any(String::is_empty) {
            true => Err(Bad::Key(BadKey::Empty)),
            false => Ok(Prefix(url)),
        }
    }

    /// What `url` names below this prefix.
    fn rest<'a>(&self, url: &'a Url) -> Option<&'a [String]> {
        let same = self.0.scheme == url.scheme && self.0.authority == url.authority;
        url.path
            .strip_prefix(self.0.path.as_slice())
            .filter(|_| same)
    }
}

/// A path as a relative reference: every name escaped, so that [`resolve`] gives it back.
pub fn escaped(path: &str) -> String {
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

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::Outside => f.write_str("it leads out of the library"),
            Bad::Absolute => f.write_str(
                "it begins with a slash: name files relative to the one that names them",
            ),
            Bad::Scheme => f.write_str("only relative names and http(s) URLs are followed"),
            Bad::Url => f.write_str("only URLs of a host and a path are followed"),
            Bad::NotAllowed => f.write_str("this address is not allowed: see `media-from`"),
            Bad::Key(bad) => bad.fmt(f),
        }
    }
}

impl std::error::Error for Bad {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixes() -> Vec<Prefix> {
        ["https://media.example.com/films/", "http://[::1]:8080"]
            .map(|text| Prefix::parse(text).unwrap())
            .into()
    }

    fn at(holder: &str, name: &str) -> Result<Target, Bad> {
        resolve(&Key::parse(holder).unwrap(), name, &prefixes())
    }

    fn here(key: &str) -> Result<Target, Bad> {
        Ok(Target::Here(Key::parse(key).unwrap()))
    }

    #[test]
    fn relative_names() {
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
            assert_eq!(at("tos/deep/tos.ism", name), here(key), "{name}");
        }
        assert_eq!(at("tos.ism", "a.mp4"), here("a.mp4"));
    }

    #[test]
    fn nothing_outside() {
        for name in [
            "../a.mp4",
            "x/../../a.mp4",
            "%2e%2e/a.mp4",
            ".%2e/a.mp4",
            "%2e./%2E%2E/etc/passwd",
            "..",
        ] {
            assert_eq!(at("tos.ism", name), Err(Bad::Outside), "{name}");
        }
        for name in ["/etc/passwd", "/a.mp4"] {
            assert_eq!(at("tos.ism", name), Err(Bad::Absolute), "{name}");
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
            assert_eq!(at("tos.ism", name), Err(Bad::Scheme), "{name}");
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
            assert!(matches!(bad, Bad::Key(_)), "{name}: {bad:?}");
        }
    }

    #[test]
    fn urls_that_are_allowed() {
        let below = |n, key| Ok(Target::Below(n, Key::parse(key).unwrap()));
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
    fn urls_that_are_not() {
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
            assert_eq!(at("tos.ism", url), Err(Bad::NotAllowed), "{url}");
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
            assert_eq!(at("tos.ism", url), Err(Bad::Url), "{url}");
        }
        let dots = "https://media.example.com/../films/a.mp4";
        assert_eq!(at("tos.ism", dots), Err(Bad::Outside));
        for url in [
            "https://media.example.com/films/",
            "https://media.example.com/films",
        ] {
            assert!(matches!(at("tos.ism", url), Err(Bad::Key(_))), "{url}");
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_read_back(path in "[^./\\\\\0-\x1f\x7f][^/\\\\\0-\x1f\x7f]{0,20}") {
            prop_assert_eq!(at("tos.ism", &escaped(&path)), here(&path));
        }

        #[test]
        fn any_name_stays_inside_or_is_refused(name in "(\\.|/|%2e|%2f|%|a|:|http|\\\\|\\?){0,12}") {
            if let Ok(Target::Here(key)) = at("a/b/c.ism", &name) {
                prop_assert!(key.as_str().split('/').all(|name| !name.starts_with('.') && !name.is_empty()));
            }
        }
    }
}
