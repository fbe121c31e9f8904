//! Formats of the records file: JSON, and three access-log formats that log analysers can read.
//!
//! Each format escapes text from outside, such as paths and user agents. Such text can therefore
//! end neither a line nor a field.

use std::io::{self, Write};
use std::time::SystemTime;

use super::AccessRecord;
use super::time::UtcTime;

/// Format of the records file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordFormat {
    /// All kinds of records, one JSON object per line.
    #[default]
    Json,
    /// Access records in the Common Log Format of NCSA HTTPd.
    Common,
    /// Access records in Apache's Combined Log Format, which adds the referrer and the user agent
    /// to the Common Log Format.
    Combined,
    /// Access records in the Extended Log File Format (W3C, WD-logfile-960323).
    W3c,
}

/// Fields of [`RecordFormat::W3c`]. The prefix `x-` marks fields that the standard does not define.
const W3C_FIELDS: &str = "date time c-ip cs-method cs-uri-stem cs-uri-query cs-version sc-status \
    sc-bytes time-taken cs(Referer) cs(User-Agent) x-request-id x-kind x-cache";

impl RecordFormat {
    /// Parses the value of the setting `records-format`.
    pub(crate) fn from_name(name: &str) -> Result<RecordFormat, String> {
        match name {
            "json" => Ok(RecordFormat::Json),
            "common" => Ok(RecordFormat::Common),
            "combined" => Ok(RecordFormat::Combined),
            "w3c" => Ok(RecordFormat::W3c),
            _ => Err("expected json, common, combined or w3c".to_owned()),
        }
    }

    /// Writes the header lines. The recorder calls this method each time it has opened the file.
    /// Only [`RecordFormat::W3c`] has header lines.
    pub(super) fn write_header_lines(self, to: &mut impl Write) -> io::Result<()> {
        if self != RecordFormat::W3c {
            return Ok(());
        }
        let now = UtcTime::from_system(SystemTime::now());
        writeln!(
            to,
            "#Version: 1.0\n#Software: headwater/{}\n#Date: {} {}\n#Fields: {W3C_FIELDS}",
            env!("CARGO_PKG_VERSION"),
            now.date(),
            now.time_of_day(),
        )
    }

    /// Writes the line of an access record.
    pub(super) fn write_access(self, to: &mut impl Write, access: &AccessRecord) -> io::Result<()> {
        match self {
            RecordFormat::Json => {
                serde_json::to_writer(&mut *to, access)?;
            }
            RecordFormat::Common => write_common_log(to, access)?,
            RecordFormat::Combined => {
                write_common_log(to, access)?;
                for text in [&access.referer, &access.user_agent] {
                    to.write_all(b" \"")?;
                    write_backslashed(to, text.as_ref().map_or("-", |text| text.as_str()))?;
                    to.write_all(b"\"")?;
                }
            }
            RecordFormat::W3c => write_w3c(to, access)?,
        }
        to.write_all(b"\n")
    }
}

/// Writes `client - - [time] "request line" status bytes`. The two hyphens stand for the identity
/// (RFC 1413) and the authenticated user, which are never known.
fn write_common_log(to: &mut impl Write, access: &AccessRecord) -> io::Result<()> {
    let time = UtcTime::from_system(access.time);
    write!(to, "{} - - [{}] \"", access.client, time.common_log_time())?;
    write_backslashed(to, access.method.as_str())?;
    to.write_all(b" ")?;
    write_backslashed(to, access.path.as_str())?;
    write!(
        to,
        " {}\" {} ",
        access_log_protocol(access.version),
        access.status
    )?;
    match access.bytes {
        0 => to.write_all(b"-"),
        bytes => write!(to, "{bytes}"),
    }
}

fn write_w3c(to: &mut impl Write, access: &AccessRecord) -> io::Result<()> {
    let time = UtcTime::from_system(access.time);
    let (stem, query) = match access.path.as_str().split_once('?') {
        Some((stem, query)) => (stem, query),
        None => (access.path.as_str(), ""),
    };
    write!(
        to,
        "{} {} {} ",
        time.date(),
        time.time_of_day(),
        access.client
    )?;
    for text in [access.method.as_str(), stem, query] {
        write_percent_encoded(to, text)?;
        to.write_all(b" ")?;
    }
    let seconds = (access.total_us / 1_000_000, access.total_us % 1_000_000);
    write!(
        to,
        "{} {} {} {}.{:06}",
        access_log_protocol(access.version),
        access.status,
        access.bytes,
        seconds.0,
        seconds.1
    )?;
    let texts = [&access.referer, &access.user_agent].map(|text| text.as_ref());
    for text in texts.into_iter().chain([Some(&access.request_id)]) {
        match text {
            Some(text) => write!(to, " \"{}\"", text.as_str().replace('"', "\"\""))?,
            None => to.write_all(b" -")?,
        }
    }
    let cache = access.cached.as_ref().map_or("-", |cached| cached.cache);
    write!(to, " {} {cache}", access.kind)
}

/// Returns the protocol version in the notation of access logs, which write HTTP/2 as `HTTP/2.0`.
fn access_log_protocol(version: &str) -> &str {
    match version {
        "HTTP/2" => "HTTP/2.0",
        same => same,
    }
}

/// Escapes text between quotes. Quotes and backslashes get a backslash, and all bytes except
/// printable ASCII become `\xhh`. Apache has used the same escapes since version 2.0.46, but writes
/// line feeds and tabs as `\n` and `\t`.
fn write_backslashed(to: &mut impl Write, text: &str) -> io::Result<()> {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => to.write_all(&[b'\\', byte])?,
            b' '..=b'~' => to.write_all(&[byte])?,
            _ => write!(to, "\\x{byte:02x}")?,
        }
    }
    Ok(())
}

/// Writes a part of a URI. Quotes, spaces, control characters and non-ASCII bytes are
/// percent-encoded (RFC 3986 section 2.1). An empty part becomes `-`.
fn write_percent_encoded(to: &mut impl Write, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return to.write_all(b"-");
    }
    for byte in text.bytes() {
        match byte {
            b'"' => to.write_all(b"%22")?,
            b'!'..=b'~' => to.write_all(&[byte])?,
            _ => write!(to, "%{byte:02X}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample_access;
    use super::*;

    fn line_of(format: RecordFormat, access: &AccessRecord) -> String {
        let mut line = Vec::new();
        format.write_access(&mut line, access).unwrap();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn lines_have_the_forms_of_their_standards() {
        let access = AccessRecord {
            path: "/film.mp4/.m3u8?x=1".into(),
            referer: Some("http://a/".into()),
            ..sample_access()
        };
        let common = "192.0.2.7 - - [29/Feb/2024:23:59:59 +0000] \
            \"GET /film.mp4/.m3u8?x=1 HTTP/1.1\" 200 512";
        assert_eq!(
            line_of(RecordFormat::Common, &access),
            format!("{common}\n")
        );
        assert_eq!(
            line_of(RecordFormat::Combined, &access),
            format!("{common} \"http://a/\" \"player/1\"\n")
        );
        assert_eq!(
            line_of(RecordFormat::W3c, &access),
            "2024-02-29 23:59:59 192.0.2.7 GET /film.mp4/.m3u8 x=1 HTTP/1.1 200 512 0.000120 \
             \"http://a/\" \"player/1\" \"a1\" playlist miss\n"
        );
    }

    #[test]
    fn absent_values_are_dashes() {
        let access = AccessRecord {
            path: "/".into(),
            version: "HTTP/2",
            bytes: 0,
            user_agent: None,
            cached: None,
            ..sample_access()
        };
        let common = "192.0.2.7 - - [29/Feb/2024:23:59:59 +0000] \"GET / HTTP/2.0\" 200 -";
        assert_eq!(
            line_of(RecordFormat::Combined, &access),
            format!("{common} \"-\" \"-\"\n")
        );
        assert_eq!(
            line_of(RecordFormat::W3c, &access),
            "2024-02-29 23:59:59 192.0.2.7 GET / - HTTP/2.0 200 0 0.000120 - - \"a1\" playlist -\n"
        );
    }

    /// Returns the number of fields (words and quoted strings) that a log reader finds in a line.
    fn count_fields(line: &str, doubles_quotes: bool) -> usize {
        let (mut fields, mut quoted, mut escaped, mut inside) = (0, false, false, false);
        for byte in line.trim_end_matches('\n').bytes() {
            let was_escaped = std::mem::take(&mut escaped);
            match byte {
                b'\\' if quoted && !doubles_quotes => escaped = !was_escaped,
                b'"' if !was_escaped => quoted = !quoted,
                b' ' if !quoted => inside = false,
                _ => {}
            }
            if !inside && byte != b' ' {
                (inside, fields) = (true, fields + 1);
            }
        }
        assert!(!quoted, "{line}");
        fields
    }

    #[test]
    fn hostile_text_adds_neither_lines_nor_fields() {
        let hostile = [
            "\"",
            "\\",
            "\\\"",
            "\"\"",
            "a\nb",
            "a\r\n#Fields: x",
            "a\tb",
            "\" 200 1 \"",
            "é\u{2028}\u{85}",
            "\u{1b}[31m",
        ];
        for text in hostile {
            let access = AccessRecord {
                request_id: text.into(),
                method: text.replace(' ', "").into(),
                path: format!("/{}", text.replace(' ', "")).into(),
                referer: Some(text.into()),
                user_agent: Some(text.into()),
                ..sample_access()
            };
            for (format, fields) in [
                // The time in brackets counts as two fields, because it contains a space.
                (RecordFormat::Common, 8),
                (RecordFormat::Combined, 10),
                (RecordFormat::W3c, 15),
            ] {
                let is_w3c = format == RecordFormat::W3c;
                let line = line_of(format, &access);
                assert_eq!(line.lines().count(), 1, "{line}");
                assert!(!line.trim_end().chars().any(char::is_control), "{line}");
                assert_eq!(count_fields(&line, is_w3c), fields, "{line}");
            }
        }
    }

    #[test]
    fn the_head_declares_as_many_fields_as_lines_have() {
        let mut head = Vec::new();
        RecordFormat::W3c.write_header_lines(&mut head).unwrap();
        let head = String::from_utf8(head).unwrap();
        assert!(
            head.starts_with("#Version: 1.0\n#Software: headwater/"),
            "{head}"
        );
        let declared = head
            .lines()
            .last()
            .unwrap()
            .strip_prefix("#Fields: ")
            .unwrap();
        let line = line_of(RecordFormat::W3c, &sample_access());
        assert_eq!(declared.split(' ').count(), count_fields(&line, true));
    }
}
