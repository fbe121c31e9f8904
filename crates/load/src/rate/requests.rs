//! Files of requests in Vegeta's two formats: plain text, and a JSON object a line. Both are read
//! and written. A field of ours may be added to the JSON: `weight`, `sha256`, `length`.

use super::target::Target;
use crate::client::Check;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use url::Url;

/// Most requests of a file.
const REQUESTS_MAX: usize = 1_000_000;

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    #[serde(default = "get")]
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

fn get() -> String {
    "GET".into()
}

/// Reads a file of requests; `body` gives a file that an `@` line names.
///
/// # Errors
/// The line, and what is wrong with it.
pub fn read(
    text: &str,
    body: impl Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<Target>, String> {
    let json = text.trim_start().starts_with('{');
    let targets = if json {
        read_json(text)?
    } else {
        read_text(text, body)?
    };
    if targets.is_empty() {
        return Err("the file holds no request".into());
    }
    Ok(targets)
}

fn read_json(text: &str) -> Result<Vec<Target>, String> {
    let mut targets = Vec::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let wrong = |what: String| format!("line {}: {what}", number + 1);
        let line: Line = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        targets.push(from_line(line).map_err(wrong)?);
        if targets.len() > REQUESTS_MAX {
            return Err(format!("there are over {REQUESTS_MAX} requests"));
        }
    }
    Ok(targets)
}

fn from_line(line: Line) -> Result<Target, String> {
    let mut target = begin(&line.method, &line.url)?;
    for (name, values) in &line.header {
        values
            .iter()
            .try_for_each(|value| field(&mut target, name, value))?;
    }
    let body = STANDARD
        .decode(&line.body)
        .map_err(|error| format!("body: {error}"))?;
    target.body = Bytes::from(body);
    target.weight = line.weight.unwrap_or(1.0);
    if !(target.weight >= 0.0 && target.weight.is_finite()) {
        return Err("a weight is 0 or more".into());
    }
    let sha256 = line.sha256.as_deref().map(sha256).transpose()?;
    if sha256.is_some() || line.length.is_some() {
        target.check = Some(Check {
            length: line.length,
            sha256,
        });
    }
    Ok(target)
}

fn read_text(
    text: &str,
    body: impl Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<Target>, String> {
    let mut targets: Vec<Target> = Vec::new();
    // Whether lines still belong to the last request.
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: String| format!("line {}: {what}", number + 1);
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            open = false;
        } else if let (true, Some(path)) = (open, line.strip_prefix('@')) {
            let bytes = body(path).map_err(wrong)?;
            if let Some(target) = targets.last_mut() {
                target.body = Bytes::from(bytes);
            }
        } else if let Some((method, url)) = request_line(line) {
            targets.push(begin(method, url).map_err(wrong)?);
            open = true;
            if targets.len() > REQUESTS_MAX {
                return Err(format!("there are over {REQUESTS_MAX} requests"));
            }
        } else if let (true, Some((name, value))) = (open, line.split_once(':')) {
            if let Some(target) = targets.last_mut() {
                field(target, name.trim(), value.trim()).map_err(wrong)?;
            }
        } else {
            return Err(wrong(format!(
                "neither METHOD URL, nor a field of a request: {line:.80}"
            )));
        }
    }
    Ok(targets)
}

/// `METHOD URL`.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once(' ')?;
    let upper = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    (upper && !url.trim().contains(' ')).then_some((method, url.trim()))
}

fn begin(method: &str, url: &str) -> Result<Target, String> {
    let parsed = Url::parse(url).map_err(|error| format!("{error}: {url:.80}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("neither http nor https: {url:.80}"));
    }
    let method = method
        .parse::<Method>()
        .map_err(|_| format!("no method: {method:.20}"))?;
    Ok(Target {
        method,
        ..Target::get(parsed)
    })
}

fn field(target: &mut Target, name: &str, value: &str) -> Result<(), String> {
    let parsed = (name.parse::<HeaderName>(), value.parse::<HeaderValue>());
    let (Ok(name), Ok(value)) = parsed else {
        return Err(format!("no field that can be sent: {name:.40}"));
    };
    target.headers.append(name, value);
    Ok(())
}

/// Sixty-four hexadecimal digits.
///
/// # Errors
/// When they are not.
pub fn sha256(text: &str) -> Result<[u8; 32], String> {
    let wrong = || "a SHA-256 is 64 hexadecimal digits".to_owned();
    let mut sum = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    for (byte, digits) in sum.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(sum)
}

/// Writes requests as Vegeta reads them (`vegeta attack -format=json`).
pub fn write(targets: &[Target]) -> String {
    let mut text = String::new();
    for target in targets {
        let mut header: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in &target.headers {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            header
                .entry(canonical(name.as_str()))
                .or_default()
                .push(value);
        }
        let hex = |sum: [u8; 32]| sum.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = Line {
            method: target.method.to_string(),
            url: target.url.to_string(),
            body: STANDARD.encode(&target.body),
            header,
            weight: (target.weight != 1.0).then_some(target.weight),
            length: target.check.and_then(|check| check.length),
            sha256: target.check.and_then(|check| check.sha256).map(hex),
        };
        // Strings and numbers: always JSON.
        text += &serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
    }
    text
}

/// `content-type` as Go writes it: `Content-Type`.
fn canonical(name: &str) -> String {
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

    #[test]
    fn vegetas_text_is_read() {
        // After the examples of Vegeta's README.
        let text = "# a comment\nGET http://goku:9090/path/to/dragon?item=ball\nX-Account-ID: 99\n\n\
                    DELETE http://user:pass@goku:9090/path/to\nConfirmation-Token: 90215\n\
                    Authorization: Token DEADBEEF\n\n\
                    POST http://goku:9090/things\nContent-Type: application/json\n@/path/to/newthing.json\n";
        let targets = read(text, |path| Ok(path.as_bytes().to_vec())).unwrap();
        assert_eq!(targets.len(), 3);
        assert_eq!(targets[0].url.query(), Some("item=ball"));
        assert_eq!(targets[0].headers["x-account-id"], "99");
        assert_eq!(
            (targets[1].method.as_str(), targets[1].headers.len()),
            ("DELETE", 2)
        );
        assert_eq!(&targets[2].body[..], b"/path/to/newthing.json");
        let again = read(&write(&targets), |_| unreachable!()).unwrap();
        for (a, b) in targets.iter().zip(&again) {
            assert_eq!(
                (&a.url, &a.method, &a.headers, &a.body),
                (&b.url, &b.method, &b.headers, &b.body)
            );
        }
    }

    #[test]
    fn vegetas_json_is_read_and_written_back() {
        let text = "{\"method\":\"POST\",\"url\":\"http://goku:9090/1\",\"body\":\"aGVsbG8=\",\
                    \"header\":{\"Content-Type\":[\"text/plain\"]}}\n";
        let targets = read(text, |_| unreachable!()).unwrap();
        assert_eq!(&targets[0].body[..], b"hello");
        assert_eq!(write(&targets), text);
        let ours = format!(
            "{{\"url\":\"http://a/\",\"weight\":2,\"length\":5,\"sha256\":\"{}\"}}",
            "0a".repeat(32)
        );
        let target = &read(&ours, |_| unreachable!()).unwrap()[0];
        assert_eq!(
            (target.weight, target.check.unwrap().length),
            (2.0, Some(5))
        );
        assert_eq!(target.check.unwrap().sha256, Some([10; 32]));
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
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
            assert!(read(text, |_| Err("no file".into())).is_err(), "{text}");
        }
        let error = read("GET http://a/\n@x\n", |_| Err("no file".into())).unwrap_err();
        assert_eq!(error, "line 2: no file");
    }
}
