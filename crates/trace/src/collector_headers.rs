//! Headers that a collector requires, such as an API key. The headers are in a file, because they
//! are secret.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Limits on the header file. A large file that is named by mistake thus cannot exhaust the memory.
const FILE_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 16;

/// Headers that the file must not contain. The exporter sets some of these headers itself. The
/// other headers would change the framing of the message or the use of the connection.
const RESERVED: [HeaderName; 7] = [
    header::HOST,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::EXPECT,
];

/// The headers in a file that has one line `Name: value` for each header.
#[derive(Debug)]
pub struct CollectorHeaders {
    path: PathBuf,
    /// All values are marked as sensitive.
    headers: HeaderMap,
    has_failed: bool,
}

impl CollectorHeaders {
    /// Reads the headers from the file at `path`.
    ///
    /// # Errors
    /// When the file is unreadable or contains an invalid line. The error contains the file's name,
    /// but never a header's value, which may be secret.
    pub fn from_file(path: PathBuf) -> io::Result<CollectorHeaders> {
        let headers = read_headers(&path)?;
        Ok(CollectorHeaders {
            path,
            headers,
            has_failed: false,
        })
    }

    /// Reads the file again, and returns the headers. If the file is invalid, returns the previous
    /// headers.
    pub(crate) fn reload_headers(&mut self) -> &HeaderMap {
        match read_headers(&self.path) {
            Ok(headers) => {
                self.headers = headers;
                self.has_failed = false;
            }
            Err(error) if !self.has_failed => {
                tracing::warn!(%error, "the previous headers remain in use");
                self.has_failed = true;
            }
            Err(_) => {}
        }
        &self.headers
    }
}

fn read_headers(path: &Path) -> io::Result<HeaderMap> {
    let named = |what: &dyn std::fmt::Display| {
        let text = format!("cannot use headers file {}: {what}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| {
        let limit = FILE_BYTES_MAX as u64 + 1;
        file.take(limit).read_to_string(&mut text)
    });
    match read.map_err(|error| named(&error))? {
        0..=FILE_BYTES_MAX => parse_headers(&text).map_err(|error| named(&error)),
        _ => Err(named(&"it has more than 64 KiB")),
    }
}

/// Parses lines of `Name: value`. Empty lines and lines that begin with `#` are skipped.
fn parse_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let invalid = || format!("line {number} is invalid; write Name: value");
        let (name, value) = parse_line(line).ok_or_else(invalid)?;
        if RESERVED.contains(&name) {
            return Err(format!("line {number}: {name} cannot be set"));
        }
        headers.append(name, value);
    }
    match headers.len() {
        0 => Err("it contains no header; write Name: value".to_owned()),
        1..=HEADERS_MAX => Ok(headers),
        _ => Err(format!("it contains more than {HEADERS_MAX} headers")),
    }
}

fn parse_line(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let mut value = HeaderValue::try_from(value.trim()).ok()?;
    value.set_sensitive(true);
    let name = HeaderName::try_from(name.trim()).ok()?;
    (!value.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_header() {
        let headers =
            parse_headers("# Key of the vendor\nX-Api-Key: a:b \n\nx-team:films\n").unwrap();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["x-api-key"], "a:b");
        assert_eq!(headers["x-team"], "films");
        assert!(!format!("{headers:?}").contains("a:b"));
    }

    #[test]
    fn invalid_lines_are_named_without_their_value() {
        for (text, error) in [
            ("", "no header"),
            ("x: 1\nsecret", "line 2 is invalid"),
            ("x y: secret", "line 1 is invalid"),
            ("x: secret\u{7}", "line 1 is invalid"),
            ("x:", "line 1 is invalid"),
            ("Content-Length: 7", "line 1: content-length cannot be set"),
            (&"x: 1\n".repeat(HEADERS_MAX + 1), "more than 16 headers"),
        ] {
            let found = parse_headers(text).unwrap_err();
            assert!(
                found.contains(error) && !found.contains("secret"),
                "{found}"
            );
        }
    }

    #[test]
    fn an_invalid_file_leaves_the_headers_unchanged() {
        let path = std::env::temp_dir().join(format!("headwater-headers-{}", std::process::id()));
        std::fs::write(&path, "x: 1").unwrap();
        let mut headers = CollectorHeaders::from_file(path.clone()).unwrap();
        std::fs::write(&path, "x: 2").unwrap();
        assert_eq!(headers.reload_headers()["x"], "2");
        std::fs::write(&path, "y").unwrap();
        assert_eq!(headers.reload_headers()["x"], "2");
        std::fs::write(&path, "x".repeat(FILE_BYTES_MAX + 1)).unwrap();
        let error = CollectorHeaders::from_file(path.clone()).unwrap_err();
        assert!(error.to_string().contains("more than 64 KiB"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(headers.reload_headers()["x"], "2");
        assert!(CollectorHeaders::from_file(path).is_err());
    }
}
