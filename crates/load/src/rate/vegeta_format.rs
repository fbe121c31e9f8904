//! Request files in the two formats of Vegeta: plain text, and one JSON object per line. Both
//! formats can be read, but only JSON can be written. Headwater adds the optional JSON fields
//! `weight`, `sha256` and `length`.

use super::request_target::RequestTarget;
use crate::client::ExpectedBody;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use url::Url;

/// Maximum number of requests in a file.
const REQUESTS_MAX: usize = 1_000_000;

#[derive(Debug, Serialize, Deserialize)]
struct VegetaRequest {
    #[serde(default = "default_method")]
    method: String,
    url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    body: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    header: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

fn default_method() -> String {
    "GET".into()
}

/// The reason why a request file cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum RequestFileError {
    /// The file contains no request.
    #[error("the file contains no request; write METHOD URL, or one JSON object per line")]
    Empty,
    /// The file contains too many requests.
    #[error("more than {REQUESTS_MAX} requests; split the file")]
    TooManyRequests,
    /// A line is malformed. Contains the number of the line, from 1, and the cause.
    #[error("line {0}: {1}")]
    Line(usize, RequestLineError),
}

/// The reason why a line of a request file is malformed.
#[derive(Debug, thiserror::Error)]
pub enum RequestLineError {
    /// The line is not the expected JSON object.
    #[error("invalid JSON request: {0}")]
    Json(#[from] serde_json::Error),
    /// The URL cannot be parsed.
    #[error("invalid URL: {0}: {1}")]
    Url(url::ParseError, String),
    /// The scheme of the URL is neither http nor https.
    #[error("unsupported scheme; use http or https: {0}")]
    Scheme(String),
    /// The method is not a token.
    #[error("invalid method: {0}")]
    Method(String),
    /// The header field is invalid.
    #[error("invalid header field: {0}")]
    Header(String),
    /// The body is not base64.
    #[error("invalid body: {0}; expected base64")]
    Body(base64::DecodeError),
    /// The file with the request body cannot be read.
    #[error("cannot read the body {0}: {1}")]
    BodyFile(String, std::io::Error),
    /// The weight is negative or not a finite number.
    #[error("invalid weight; use 0 or a larger number")]
    Weight,
    /// The SHA-256 hash is malformed.
    #[error(transparent)]
    Sha256(#[from] InvalidSha256),
    /// The line neither starts a request nor belongs to a request.
    #[error("expected METHOD URL, a header field or @FILE: {0}")]
    Syntax(String),
}

/// The error for a text that is not a SHA-256 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid SHA-256; use 64 hexadecimal digits")]
pub struct InvalidSha256;

/// Parses a request file. A line that starts with `@` contains the path of a file with the request
/// body, and `body` reads this file.
///
/// # Errors
/// The file contains no request, too many requests, or a malformed line.
pub fn parse_requests(
    text: &str,
    body: impl Fn(&str) -> std::io::Result<Vec<u8>>,
) -> Result<Vec<RequestTarget>, RequestFileError> {
    let json = text.trim_start().starts_with('{');
    let targets = if json {
        parse_json_targets(text)?
    } else {
        parse_text_targets(text, body)?
    };
    if targets.is_empty() {
        return Err(RequestFileError::Empty);
    }
    Ok(targets)
}

fn parse_json_targets(text: &str) -> Result<Vec<RequestTarget>, RequestFileError> {
    let mut targets = Vec::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let wrong = |error| RequestFileError::Line(number + 1, error);
        let line: VegetaRequest =
            serde_json::from_str(line).map_err(|error| wrong(error.into()))?;
        targets.push(target_from_vegeta(line).map_err(wrong)?);
        if targets.len() > REQUESTS_MAX {
            return Err(RequestFileError::TooManyRequests);
        }
    }
    Ok(targets)
}

fn target_from_vegeta(line: VegetaRequest) -> Result<RequestTarget, RequestLineError> {
    let mut target = new_target(&line.method, &line.url)?;
    for (name, values) in &line.header {
        values
            .iter()
            .try_for_each(|value| add_header_field(&mut target, name, value))?;
    }
    let body = STANDARD
        .decode(&line.body)
        .map_err(RequestLineError::Body)?;
    target.body = Bytes::from(body);
    target.weight = line.weight.unwrap_or(1.0);
    if !(target.weight >= 0.0 && target.weight.is_finite()) {
        return Err(RequestLineError::Weight);
    }
    let sha256 = line.sha256.as_deref().map(parse_sha256).transpose()?;
    if sha256.is_some() || line.length.is_some() {
        target.check = Some(ExpectedBody {
            length: line.length,
            sha256,
        });
    }
    Ok(target)
}

fn parse_text_targets(
    text: &str,
    body: impl Fn(&str) -> std::io::Result<Vec<u8>>,
) -> Result<Vec<RequestTarget>, RequestFileError> {
    let mut targets: Vec<RequestTarget> = Vec::new();
    // True while the next line may belong to the request that was parsed last.
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        let wrong = |error| RequestFileError::Line(number + 1, error);
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            open = false;
        } else if let (true, Some(path)) = (open, line.strip_prefix('@')) {
            let bytes = body(path)
                .map_err(|error| wrong(RequestLineError::BodyFile(path.into(), error)))?;
            if let Some(target) = targets.last_mut() {
                target.body = Bytes::from(bytes);
            }
        } else if let Some((method, url)) = parse_request_line(line) {
            targets.push(new_target(method, url).map_err(wrong)?);
            open = true;
            if targets.len() > REQUESTS_MAX {
                return Err(RequestFileError::TooManyRequests);
            }
        } else if let (true, Some((name, value))) = (open, line.split_once(':')) {
            if let Some(target) = targets.last_mut() {
                add_header_field(target, name.trim(), value.trim()).map_err(wrong)?;
            }
        } else {
            return Err(wrong(RequestLineError::Syntax(format!("{line:.80}"))));
        }
    }
    Ok(targets)
}

/// Parses a line of the form `METHOD URL`.
fn parse_request_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once(' ')?;
    let upper = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    (upper && !url.trim().contains(' ')).then_some((method, url.trim()))
}

fn new_target(method: &str, url: &str) -> Result<RequestTarget, RequestLineError> {
    let parsed =
        Url::parse(url).map_err(|error| RequestLineError::Url(error, format!("{url:.80}")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(RequestLineError::Scheme(format!("{url:.80}")));
    }
    let method = method
        .parse::<Method>()
        .map_err(|_| RequestLineError::Method(format!("{method:.20}")))?;
    Ok(RequestTarget {
        method,
        ..RequestTarget::from_url(parsed)
    })
}

fn add_header_field(
    target: &mut RequestTarget,
    name: &str,
    value: &str,
) -> Result<(), RequestLineError> {
    let parsed = (name.parse::<HeaderName>(), value.parse::<HeaderValue>());
    let (Ok(name), Ok(value)) = parsed else {
        return Err(RequestLineError::Header(format!("{name:.40}")));
    };
    target.headers.append(name, value);
    Ok(())
}

/// Parses a SHA-256 hash of 64 hexadecimal digits.
///
/// # Errors
/// The text is not a SHA-256 hash.
pub fn parse_sha256(text: &str) -> Result<[u8; 32], InvalidSha256> {
    let mut sum = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return Err(InvalidSha256);
    }
    for (byte, digits) in sum.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| InvalidSha256)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| InvalidSha256)?;
    }
    Ok(sum)
}

/// Formats requests in the JSON format that `vegeta attack -format=json` reads.
pub fn format_vegeta_json(targets: &[RequestTarget]) -> String {
    let mut text = String::new();
    for target in targets {
        let mut header: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in &target.headers {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            header
                .entry(canonical_header_name(name.as_str()))
                .or_default()
                .push(value);
        }
        let hex = |sum: [u8; 32]| sum.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = VegetaRequest {
            method: target.method.to_string(),
            url: target.url.to_string(),
            body: STANDARD.encode(&target.body),
            header,
            weight: (target.weight != 1.0).then_some(target.weight),
            length: target.check.and_then(|check| check.length),
            sha256: target.check.and_then(|check| check.sha256).map(hex),
        };
        // Encoding strings and finite numbers as JSON does not fail.
        text += &serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
    }
    text
}

/// Capitalizes the name of a header field as Go does, so that `content-type` becomes
/// `Content-Type`.
fn canonical_header_name(name: &str) -> String {
    let mut start = true;
    let letters = name.chars().map(|c| {
        let letter = if start { c.to_ascii_uppercase() } else { c };
        start = c == '-';
        letter
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing_body(_: &str) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    #[test]
    fn vegeta_text_files_are_parsed() {
        // This text is based on the examples in the README of Vegeta.
        let text = "# a comment\nGET http://goku:9090/path/to/dragon?item=ball\nX-Account-ID: 99\n\n\
                    DELETE http://user:pass@goku:9090/path/to\nConfirmation-Token: 90215\n\
                    Authorization: Token DEADBEEF\n\n\
                    POST http://goku:9090/things\nContent-Type: application/json\n@/path/to/newthing.json\n";
        let targets = parse_requests(text, |path| Ok(path.as_bytes().to_vec())).unwrap();
        assert_eq!(targets.len(), 3);
        assert_eq!(targets[0].url.query(), Some("item=ball"));
        assert_eq!(targets[0].headers["x-account-id"], "99");
        assert_eq!(
            (targets[1].method.as_str(), targets[1].headers.len()),
            ("DELETE", 2)
        );
        assert_eq!(&targets[2].body[..], b"/path/to/newthing.json");
        let again = parse_requests(&format_vegeta_json(&targets), |_| unreachable!()).unwrap();
        for (a, b) in targets.iter().zip(&again) {
            assert_eq!(
                (&a.url, &a.method, &a.headers, &a.body),
                (&b.url, &b.method, &b.headers, &b.body)
            );
        }
    }

    #[test]
    fn vegeta_json_files_are_parsed_and_written() {
        let text = "{\"method\":\"POST\",\"url\":\"http://goku:9090/1\",\"body\":\"aGVsbG8=\",\
                    \"header\":{\"Content-Type\":[\"text/plain\"]}}\n";
        let targets = parse_requests(text, |_| unreachable!()).unwrap();
        assert_eq!(&targets[0].body[..], b"hello");
        assert_eq!(format_vegeta_json(&targets), text);
        let ours = format!(
            "{{\"url\":\"http://a/\",\"weight\":2,\"length\":5,\"sha256\":\"{}\"}}",
            "0a".repeat(32)
        );
        let target = &parse_requests(&ours, |_| unreachable!()).unwrap()[0];
        assert_eq!(
            (target.weight, target.check.unwrap().length),
            (2.0, Some(5))
        );
        assert_eq!(target.check.unwrap().sha256, Some([10; 32]));
    }

    #[test]
    fn invalid_files_are_refused_with_their_line() {
        for text in [
            "",
            "nonsense",
            "GET",
            "GET nowhere",
            "GET ftp://a/",
            "X: y",
            "{}",
            "{\"url\":1}",
            "GET http://a/\nno field",
            "{\"url\":\"http://a/\",\"sha256\":\"12\"}",
        ] {
            assert!(parse_requests(text, missing_body).is_err(), "{text}");
        }
        let error = parse_requests("GET http://a/\n@x\n", missing_body).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("line 2: cannot read the body x")
        );
    }
}
