//! The text formats of `/metrics`. The request's `Accept` header selects the format.

use std::fmt::Write;

use http::header::{ACCEPT, HeaderMap, HeaderValue};

use crate::content_coding::parse_weighted;

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpositionFormat {
    /// The Prometheus text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0, which also contains units and an end marker.
    OpenMetrics,
}

impl ExpositionFormat {
    /// Returns the format that a request prefers (RFC 9110 section 12.5.1). Without a preference,
    /// this is the Prometheus format, because every collector can read it. A client that accepts
    /// neither format also gets the Prometheus format, because this format is more useful to a
    /// collector than status 406.
    pub(super) fn from_accept(headers: &HeaderMap) -> ExpositionFormat {
        let lines = headers.get_all(ACCEPT).iter();
        let items = lines.filter_map(|line| line.to_str().ok());
        let (mut plain, mut open) = (FormatWeight::default(), FormatWeight::default());
        for item in items.flat_map(|line| line.split(',')) {
            plain.apply_media_range(item, ExpositionFormat::Prometheus);
            open.apply_media_range(item, ExpositionFormat::OpenMetrics);
        }
        let is_preferred = match open.thousandths.cmp(&plain.thousandths) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => open.thousandths > 0 && open.specificity >= NAMED,
            std::cmp::Ordering::Less => false,
        };
        match is_preferred {
            true => ExpositionFormat::OpenMetrics,
            false => ExpositionFormat::Prometheus,
        }
    }

    /// Returns the value of Content-Type.
    pub(super) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            ExpositionFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            ExpositionFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        })
    }

    /// Returns the type, the subtype and the version of the format's media type.
    fn media_type(self) -> (&'static str, &'static str, &'static str) {
        match self {
            ExpositionFormat::Prometheus => ("text", "plain", "0.0.4"),
            ExpositionFormat::OpenMetrics => ("application", "openmetrics-text", "1.0.0"),
        }
    }
}

/// Specificity of a media range that contains the type and subtype of a format. The ranges `text/*`
/// and `*/*` are less specific. A range that also contains the version is more specific.
const NAMED: u8 = 3;

/// The weight of a format, which the most specific matching media range determines.
#[derive(Debug, Default)]
struct FormatWeight {
    specificity: u8,
    thousandths: u16,
}

impl FormatWeight {
    fn apply_media_range(&mut self, item: &str, format: ExpositionFormat) {
        let (range, thousandths) = parse_weighted(item);
        let mut parameters = item.split(';').skip(1).map(str::trim);
        let version = parameters.find_map(|part| part.strip_prefix("version="));
        let version = version.map(|version| version.trim_matches('"'));
        let specificity = media_range_specificity(range, version, format);
        if specificity > self.specificity {
            *self = FormatWeight {
                specificity,
                thousandths,
            };
        }
    }
}

/// Returns how specifically a media range matches the format, or 0 if the range does not match.
fn media_range_specificity(range: &str, version: Option<&str>, format: ExpositionFormat) -> u8 {
    let (kind, subtype, own_version) = format.media_type();
    let Some((range_kind, range_subtype)) = range.split_once('/') else {
        return 0;
    };
    let is_kind = range_kind.eq_ignore_ascii_case(kind);
    match (range_kind, range_subtype) {
        ("*", "*") => 1,
        (_, "*") if is_kind => 2,
        (_, name) if is_kind && name.eq_ignore_ascii_case(subtype) => match version {
            None => NAMED,
            Some(version) if version == own_version => NAMED + 1,
            Some(_) => 0,
        },
        _ => 0,
    }
}

/// Converts OpenMetrics text to the Prometheus format, version 0.0.4.
///
/// Both formats write samples in the same way. In format 0.0.4, the names of counter and info
/// families contain the suffix of their samples. Format 0.0.4 has neither units nor an end marker.
pub(super) fn to_prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let comment = line.strip_prefix("# ").map(split_word);
        // Ignores the result because writing to a string cannot fail.
        let _ = match comment {
            None => writeln!(text, "{line}"),
            Some(("HELP", family)) => {
                help = split_word(family).1;
                Ok(())
            }
            Some(("TYPE", family)) => {
                let (suffix, kind) = convert_family_type(split_word(family).1);
                let name = split_word(family).0;
                writeln!(
                    text,
                    "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}"
                )
            }
            Some(_) => Ok(()),
        };
    }
    text
}

/// Returns two texts for format 0.0.4: the suffix of the family's name, and the family's type.
fn convert_family_type(open_metrics_type: &str) -> (&'static str, &str) {
    match open_metrics_type {
        "counter" => ("_total", "counter"),
        "info" => ("_info", "gauge"),
        "unknown" => ("", "untyped"),
        same => ("", same),
    }
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_for(accept: &str) -> ExpositionFormat {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
        ExpositionFormat::from_accept(&headers)
    }

    #[test]
    fn accept_selects_the_format() {
        use ExpositionFormat::{OpenMetrics, Prometheus};
        assert_eq!(ExpositionFormat::from_accept(&HeaderMap::new()), Prometheus);
        for (accept, expected) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Prometheus),
            ("image/png", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            ("Application/OpenMetrics-Text; version=1.0.0", OpenMetrics),
            (
                "application/openmetrics-text;version=\"1.0.0\"",
                OpenMetrics,
            ),
            ("application/openmetrics-text;version=0.0.1", Prometheus),
            ("application/openmetrics-text;q=0", Prometheus),
            ("application/*", OpenMetrics),
            ("*/*, text/plain;q=0", OpenMetrics),
            ("text/plain, application/openmetrics-text", OpenMetrics),
            (
                "text/plain;q=0.9, application/openmetrics-text;q=0.8",
                Prometheus,
            ),
            (
                "text/plain;q=0.8, application/openmetrics-text;q=0.9",
                OpenMetrics,
            ),
            (
                "text/*;q=0.5, application/openmetrics-text;q=0.4",
                Prometheus,
            ),
            // The more specific media range determines the weight, regardless of its position in
            // the header.
            ("*/*;q=1, application/openmetrics-text;q=0.1", Prometheus),
            // The `Accept` headers of Prometheus 2.42 and 3.1.
            (
                "application/openmetrics-text;version=1.0.0,\
                 application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 text/plain;version=0.0.4;q=0.4,*/*;q=0.2",
                OpenMetrics,
            ),
        ] {
            assert_eq!(format_for(accept), expected, "{accept}");
        }
    }

    #[test]
    fn families_have_the_names_of_their_samples() {
        let open_metrics = "# HELP a_bytes Bytes of # UNIT.\n# TYPE a_bytes counter\n\
            # UNIT a_bytes bytes\na_bytes_total{k=\"# HELP\"} 3\n\
            # HELP b Build.\n# TYPE b info\nb_info{version=\"1\"} 1\n\
            # HELP c Now.\n# TYPE c gauge\nc 2\n# EOF\n";
        let plain = "# HELP a_bytes_total Bytes of # UNIT.\n# TYPE a_bytes_total counter\n\
            a_bytes_total{k=\"# HELP\"} 3\n\
            # HELP b_info Build.\n# TYPE b_info gauge\nb_info{version=\"1\"} 1\n\
            # HELP c Now.\n# TYPE c gauge\nc 2\n";
        assert_eq!(to_prometheus_text(open_metrics), plain);
    }
}
