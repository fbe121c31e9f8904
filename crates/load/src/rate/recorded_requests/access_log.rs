//! Reads access logs in three formats: the Common Log Format of NCSA HTTPd, the Combined format
//! (with referrer and user agent), and the Extended Log File Format (W3C, WD-logfile-960323). All
//! lines after a `#Fields:` line are parsed in the W3C format.
//!
//! Times in the Common and Combined formats have no fraction of a second. Therefore, requests of
//! the same second are spread evenly over this second, in the order of their lines. Otherwise,
//! these requests would all start at the same time.

use super::super::request_target::RequestTarget;
use super::civil_time::{parse_common_log_time, parse_w3c_time};
use super::log_fields::{QuoteEscapes, split_fields};
use super::{RecordedRequests, RecordingError, move_to_base};
use http::header::{HeaderName, REFERER, USER_AGENT};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};
use url::Url;

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Placeholder host for a log line that has only a path. `--base` replaces this host.
const NO_HOST: &str = "http://unknown.invalid";

/// The values that are taken from a line to build a request.
#[derive(Default)]
struct AccessLogEntry<'a> {
    time_s: f64,
    client: Cow<'a, str>,
    method: Cow<'a, str>,
    target: Cow<'a, str>,
    host: Option<Cow<'a, str>>,
    referrer: Option<Cow<'a, str>>,
    user_agent: Option<Cow<'a, str>>,
}

/// Reads a log. Skips requests with methods other than GET and HEAD, because a log contains no
/// request bodies.
pub(super) fn read_access_log(
    mut input: impl BufRead,
    base: Option<&Url>,
) -> Result<RecordedRequests, RecordingError> {
    let mut recording = RecordedRequests::default();
    let mut fields: Option<Vec<String>> = None;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limit = LINE_BYTES_MAX + 1;
        if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 > LINE_BYTES_MAX {
            return Err(RecordingError::Line(number, "longer than 64 KiB"));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        if let Some(names) = text.strip_prefix("#Fields:") {
            fields = Some(names.split_whitespace().map(str::to_owned).collect());
        }
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let entry = match &fields {
            Some(names) => parse_w3c_line(text, names),
            None => parse_common_line(text),
        };
        let entry = entry.map_err(|cause| RecordingError::Line(number, cause))?;
        match entry.into_target(base, number)? {
            Some(target) => recording.add_target(target)?,
            None => recording.skipped += 1,
        }
    }
    spread_within_seconds(&mut recording.targets);
    Ok(recording)
}

/// Parses a line of the form `client - - [time] "METHOD target HTTP/1.1" status bytes`, with or
/// without `"referrer" "user agent"` at its end.
fn parse_common_line(line: &str) -> Result<AccessLogEntry<'_>, &'static str> {
    const FORM: &str = "expected the Common or Combined format, or #Fields: of a W3C log";
    let mut fields = split_fields(line, QuoteEscapes::Backslash).ok_or(FORM)?;
    if fields.len() < 7 {
        return Err(FORM);
    }
    let mut take = |place: usize| fields.get_mut(place).map(std::mem::take);
    let present = |text: &Cow<'_, str>| !matches!(&**text, "-" | "");
    let request = take(4).unwrap_or_default();
    let (method, rest) = request.split_once(' ').unwrap_or(("", ""));
    let target = rest.rsplit_once(' ').map_or(rest, |(target, _)| target);
    Ok(AccessLogEntry {
        time_s: parse_common_log_time(&take(3).unwrap_or_default()).ok_or("invalid time")?,
        client: take(0).unwrap_or_default(),
        method: method.to_owned().into(),
        target: target.to_owned().into(),
        host: None,
        referrer: take(7).filter(present),
        user_agent: take(8).filter(present),
    })
}

/// Parses a line in the W3C format. `names` are the names of the fields in the line.
fn parse_w3c_line<'a>(line: &'a str, names: &[String]) -> Result<AccessLogEntry<'a>, &'static str> {
    let fields = split_fields(line, QuoteEscapes::Doubled).ok_or("a quote is not closed")?;
    let mut values: BTreeMap<&str, Cow<'a, str>> = BTreeMap::new();
    for (name, value) in names.iter().zip(fields) {
        if value != "-" {
            values.insert(name, value);
        }
    }
    let time_s = match (values.get("date"), values.get("time")) {
        (Some(date), Some(time)) => parse_w3c_time(date, time).ok_or("invalid date or time")?,
        _ => return Err("date or time is missing"),
    };
    let target = match (values.remove("cs-uri"), values.remove("cs-uri-stem")) {
        (Some(whole), _) => whole,
        (None, Some(stem)) => match values.get("cs-uri-query") {
            Some(query) => format!("{stem}?{query}").into(),
            None => stem,
        },
        (None, None) => return Err("cs-uri-stem is missing"),
    };
    let mut take = |name: &str| values.remove(name);
    Ok(AccessLogEntry {
        time_s,
        target,
        client: take("c-ip").unwrap_or_default(),
        method: take("cs-method").ok_or("cs-method is missing")?,
        host: take("cs-host").or_else(|| take("cs(Host)")),
        referrer: take("cs(Referer)"),
        // IIS writes `+` instead of spaces, and uses no quotes.
        user_agent: take("cs(User-Agent)").map(|text| match text.contains(' ') {
            true => text,
            false => text.replace('+', " ").into(),
        }),
    })
}

impl AccessLogEntry<'_> {
    /// Returns the target for the logged request, or none if the request cannot be repeated.
    fn into_target(
        self,
        base: Option<&Url>,
        line: u64,
    ) -> Result<Option<RequestTarget>, RecordingError> {
        if !matches!(&*self.method, "GET" | "HEAD") {
            return Ok(None);
        }
        let absolute = match (self.target.starts_with('/'), &self.host) {
            (false, _) => self.target.clone().into_owned(),
            (true, Some(host)) => format!("http://{host}{}", self.target),
            (true, None) if base.is_none() => return Err(RecordingError::NoHost(line)),
            (true, None) => format!("{NO_HOST}{}", self.target),
        };
        let url = Url::parse(&absolute).ok();
        let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else {
            return Ok(None);
        };
        let url = base.map_or_else(|| url.clone(), |base| move_to_base(&url, base));
        let mut target = RequestTarget::from_url(url);
        if self.method == "HEAD" {
            target.method = http::Method::HEAD;
        }
        target.recorded_at_s = Some(self.time_s);
        target.viewer = (!self.client.is_empty()).then(|| self.client.as_ref().into());
        insert_header_text(&mut target, REFERER, self.referrer);
        insert_header_text(&mut target, USER_AGENT, self.user_agent);
        Ok(Some(target))
    }
}

/// Inserts a header field, unless the text is missing or invalid as the value of a field.
fn insert_header_text(target: &mut RequestTarget, name: HeaderName, text: Option<Cow<'_, str>>) {
    if let Some(Ok(value)) = text.map(|text| text.parse()) {
        target.headers.insert(name, value);
    }
}

/// Spreads the requests of each second evenly over the second. Does not change times with a
/// fraction of a second.
fn spread_within_seconds(targets: &mut [RequestTarget]) {
    let whole = |target: &RequestTarget| {
        let time_s = target.recorded_at_s.unwrap_or_default();
        (time_s.fract() == 0.0).then_some(time_s as i64)
    };
    let mut counts: BTreeMap<i64, (u32, u32)> = BTreeMap::new();
    for second in targets.iter().filter_map(whole) {
        counts.entry(second).or_default().0 += 1;
    }
    for target in targets {
        let counted = whole(target).and_then(|second| counts.get_mut(&second));
        if let (Some((all, before)), Some(time_s)) = (counted, &mut target.recorded_at_s) {
            *time_s += f64::from(*before) / f64::from(*all);
            *before += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RecordedRequests, RecordingError> {
        let base = Url::parse("http://127.0.0.1:8080/").unwrap();
        read_access_log(text.as_bytes(), Some(&base))
    }

    #[test]
    fn lines_of_all_formats_are_the_same_request() {
        let common = "192.0.2.7 - - [29/Feb/2024:23:59:59 +0000] \"GET /film.mp4/.m3u8?x=1 HTTP/1.1\" 200 512";
        let combined = format!("{common} \"http://a/\" \"player/1\"");
        let w3c = "#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query \
                   cs-version sc-status sc-bytes time-taken cs(Referer) cs(User-Agent)\n\
                   2024-02-29 23:59:59 192.0.2.7 GET /film.mp4/.m3u8 x=1 HTTP/1.1 200 512 0.000120 \
                   \"http://a/\" \"player/1\"\n";
        for (text, fields) in [(common, 0), (&combined, 2), (w3c, 2)] {
            let targets = parse(text).unwrap().targets;
            let target = &targets[0];
            assert_eq!(
                target.url.as_str(),
                "http://127.0.0.1:8080/film.mp4/.m3u8?x=1"
            );
            assert_eq!(target.recorded_at_s, Some(1_709_251_199.0));
            assert_eq!(target.viewer.as_deref(), Some("192.0.2.7"));
            assert_eq!((targets.len(), target.headers.len()), (1, fields), "{text}");
        }
    }

    #[test]
    fn requests_of_a_second_are_spread_and_bodies_are_skipped() {
        let line = |method: &str| {
            format!("::1 - - [29/Feb/2024:23:59:59 +0000] \"{method} /a HTTP/1.1\" 200 -\n")
        };
        let text = [line("GET"), line("POST"), line("HEAD"), line("GET")].concat();
        let recording = parse(&text).unwrap();
        assert_eq!(recording.skipped, 1);
        let times = recording.targets.iter().map(|t| t.recorded_at_s.unwrap());
        let offsets: Vec<f64> = times.map(|time_s| time_s - 1_709_251_199.0).collect();
        for (offset, expected) in offsets.iter().zip([0.0, 1.0 / 3.0, 2.0 / 3.0]) {
            assert!((offset - expected).abs() < 1e-5, "{offsets:?}");
        }
    }

    #[test]
    fn invalid_lines_are_refused_with_their_number() {
        let valid = "::1 - - [29/Feb/2024:23:59:59 +0000] \"GET /a HTTP/1.1\" 200 -\n";
        for wrong in [
            "nonsense",
            "a b c [d] \"GET / HTTP/1.1\" 200 5",
            "::1 - - [29/F",
        ] {
            let error = parse(&format!("{valid}{wrong}\n")).unwrap_err();
            assert!(error.to_string().starts_with("line 2: "), "{error}");
        }
        let error = read_access_log(valid.as_bytes(), None).unwrap_err();
        assert!(error.to_string().contains("--base"), "{error}");
        let long = format!("{valid}{}", "x".repeat(70_000));
        assert!(parse(&long).unwrap_err().to_string().contains("64 KiB"));
    }
}
