//! The page that shows the viewers. Session ids, titles and pathways come from clients and may be
//! hostile. [`EscapedText`] therefore escapes each text, and the Content-Security-Policy permits no
//! inline script.

use std::fmt::{self, Write};

use bytes::Bytes;
use http::Response;
use http::header::{self, HeaderValue};

use crate::Body;

use super::session_view::{SessionView, TcpView};
use super::summary::{ViewerGroup, ViewersSummary};

const HEAD: &str = include_str!("viewers.html");
const SCRIPT: &str = include_str!("viewers.js");

/// The Content-Security-Policy of the page. The page may load its script and its updates only from
/// this server.
const POLICY: &str = "default-src 'none'; connect-src 'self'; script-src 'self'; \
                      style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Returns the page, with the current state.
pub(super) fn page_response(summary: &ViewersSummary) -> Response<Body> {
    let mut page = HEAD.to_owned();
    // Writing to a string cannot fail.
    let _ = write_main(&mut page, summary);
    page += "</html>\n";
    let mut response = text_response(page.into(), "text/html; charset=utf-8");
    let policy = HeaderValue::from_static(POLICY);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// Returns the state as JSON.
pub(super) fn json_response(summary: &ViewersSummary) -> Response<Body> {
    let text = serde_json::to_vec(summary).unwrap_or_default();
    text_response(text.into(), "application/json")
}

/// Returns the script that updates the page.
pub(super) fn script_response() -> Response<Body> {
    text_response(SCRIPT.into(), "text/javascript; charset=utf-8")
}

fn text_response(text: Bytes, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(text));
    let rows = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in rows {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn write_main(out: &mut String, summary: &ViewersSummary) -> fmt::Result {
    out.write_str("<main>\n<section class=\"cards\">\n")?;
    let total = &summary.total;
    let rebuffering = summary.by_state.get("rebuffering").copied().unwrap_or(0);
    write_card(out, &summary.viewers, "viewers")?;
    write_card(out, &rebuffering, "rebuffering now")?;
    write_card(out, &total.stalls, "stalls of these sessions")?;
    write_card(out, &DurationText(Some(total.stalled_ms as f64)), "stalled")?;
    write_card(out, &DurationText(total.start_up_ms), "median start-up")?;
    write_card(out, &RateText(total.bitrate_kbps), "median bitrate")?;
    write_card(out, &total.errors, "errors")?;
    write_card(out, &summary.sessions, "sessions")?;
    out.write_str("</section>\n")?;
    write_groups(out, "Networks", "network", &summary.network_names)?;
    write_groups(out, "Title classes", "title class", &summary.title_classes)?;
    write_groups(out, "Titles", "title", &summary.titles)?;
    write_groups(out, "Pathways", "pathway (cdn)", &summary.pathways)?;
    write_groups(out, "Addresses", "prefix", &summary.networks)?;
    write_sessions(out, &summary.latest)?;
    out.write_str("</main>\n")
}

fn write_card(out: &mut String, value: &dyn fmt::Display, name: &str) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"card\"><b>{value}</b><span>{name}</span></div>"
    )
}

fn write_groups(
    out: &mut String,
    heading: &str,
    name: &str,
    groups: &[ViewerGroup],
) -> fmt::Result {
    write!(
        out,
        "<h2>{heading}</h2>\n<div class=\"wide\"><table>\n<tr><th>{name}"
    )?;
    write_column_headings(
        out,
        &[
            "viewers", "stalls", "stalled", "errors", "start-up", "bitrate", "buffer",
        ],
    )?;
    write_column_headings(out, &TCP_COLUMNS)?;
    out.write_str("</tr>\n")?;
    for group in groups {
        let name = EscapedText(group.name.as_deref().unwrap_or("–"));
        write!(out, "<tr><td class=\"key\">{name}")?;
        write_number_cells(
            out,
            &[
                &group.viewers,
                &group.stalls,
                &DurationText(Some(group.stalled_ms as f64)),
                &group.errors,
                &DurationText(group.start_up_ms),
                &RateText(group.bitrate_kbps),
                &DurationText(group.buffer_ms),
                &DurationText(group.rtt_us.map(|us| us / 1000.0)),
                &RateText(group.delivery_bytes_per_s.map(|bytes| bytes / 125.0)),
                &ShareText(group.retransmitted),
            ],
        )?;
    }
    write_table_end(out, groups.is_empty())
}

const TCP_COLUMNS: [&str; 3] = ["round trip", "delivery rate", "retransmitted"];

fn write_sessions(out: &mut String, sessions: &[SessionView]) -> fmt::Result {
    out.write_str(
        "<h2>Latest sessions</h2>\n<div class=\"wide\"><table>\n<tr><th>session<th>title",
    )?;
    out.write_str("<th>title class<th>network<th>prefix<th>pathway<th>state")?;
    write_column_headings(
        out,
        &[
            "watched", "stalls", "stalled", "start-up", "bitrate", "buffer",
        ],
    )?;
    write_column_headings(out, &TCP_COLUMNS)?;
    out.write_str("<th>last error</tr>\n")?;
    for view in sessions {
        write_session(out, view)?;
    }
    write_table_end(out, sessions.is_empty())
}

fn write_session(out: &mut String, view: &SessionView) -> fmt::Result {
    out.write_str("<tr>")?;
    let title = view.title.as_deref().unwrap_or("–");
    let pathway = view.pathway.as_deref().unwrap_or("–");
    let names = [&*view.title_class, &view.network_name, &view.network];
    for text in [&[&*view.session, title][..], &names, &[pathway]].concat() {
        write!(out, "<td class=\"key\">{}", EscapedText(text))?;
    }
    let class = match view.state {
        "rebuffering" | "failed" => "bad",
        "playing" => "good",
        _ => "",
    };
    write!(out, "<td class=\"{class}\">{}", view.state)?;
    let tcp = view.tcp.as_ref();
    let of_tcp = |read: fn(&TcpView) -> Option<f64>| tcp.and_then(read);
    write_number_cells(
        out,
        &[
            &DurationText(Some(view.age_ms as f64)),
            &view.stalls,
            &DurationText(Some(view.stalled_ms as f64)),
            &DurationText(view.start_up_ms),
            &RateText(view.bitrate_kbps),
            &DurationText(view.buffer_ms),
            &DurationText(of_tcp(|tcp| tcp.rtt_us.map(|us| f64::from(us) / 1000.0))),
            &RateText(of_tcp(|tcp| {
                tcp.delivery_bytes_per_s.map(|rate| rate as f64 / 125.0)
            })),
            &ShareText(of_tcp(|tcp| tcp.retransmitted)),
        ],
    )?;
    let error = view.last_error.as_deref().unwrap_or("–");
    writeln!(out, "<td class=\"key\">{}</tr>", EscapedText(error))
}

fn write_column_headings(out: &mut String, names: &[&str]) -> fmt::Result {
    names
        .iter()
        .try_for_each(|name| write!(out, "<th class=\"n\">{name}"))
}

fn write_number_cells(out: &mut String, values: &[&dyn fmt::Display]) -> fmt::Result {
    values
        .iter()
        .try_for_each(|value| write!(out, "<td class=\"n\">{value}"))
}

fn write_table_end(out: &mut String, is_empty: bool) -> fmt::Result {
    if is_empty {
        out.write_str("<tr><td class=\"none\">no session</tr>\n")?;
    }
    out.write_str("</table></div>\n")
}

/// A text from a client, escaped for the content and the attributes of an HTML element.
struct EscapedText<'a>(&'a str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            c => f.write_char(c),
        })
    }
}

/// A duration in milliseconds, printed in a suitable unit.
struct DurationText(Option<f64>);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("–"),
            Some(0.0) => f.write_str("0 s"),
            Some(ms) if ms < 10.0 => write!(f, "{ms:.1} ms"),
            Some(ms) if ms < 1000.0 => write!(f, "{ms:.0} ms"),
            Some(ms) if ms < 120_000.0 => write!(f, "{:.1} s", ms / 1000.0),
            Some(ms) => write!(f, "{:.0} min", ms / 60_000.0),
        }
    }
}

/// A bitrate in kbit/s, printed in a suitable unit.
struct RateText(Option<f64>);

impl fmt::Display for RateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("–"),
            Some(kbps) if kbps < 1000.0 => write!(f, "{kbps:.0} kbit/s"),
            Some(kbps) if kbps < 1e6 => write!(f, "{:.1} Mbit/s", kbps / 1000.0),
            Some(kbps) => write!(f, "{:.1} Gbit/s", kbps / 1e6),
        }
    }
}

/// A share from 0 to 1, printed as a percentage.
struct ShareText(Option<f64>);

impl fmt::Display for ShareText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("–"),
            Some(share) => write!(f, "{:.1} %", share * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_leave_its_element() {
        let hostile = "<script>alert(1)</script>\"' onload=&x";
        let escaped = EscapedText(hostile).to_string();
        assert_eq!(
            escaped,
            "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39; onload=&amp;x"
        );
    }

    #[test]
    fn numbers_have_a_unit_that_suits_them() {
        let durations =
            [4.25, 321.0, 12_345.0, 600_000.0].map(|ms| DurationText(Some(ms)).to_string());
        assert_eq!(durations, ["4.2 ms", "321 ms", "12.3 s", "10 min"]);
        let rates = [128.0, 3000.0, 2e6].map(|kbps| RateText(Some(kbps)).to_string());
        assert_eq!(rates, ["128 kbit/s", "3.0 Mbit/s", "2.0 Gbit/s"]);
        assert_eq!(ShareText(Some(0.0123)).to_string(), "1.2 %");
        assert_eq!(RateText(None).to_string(), "–");
        assert_eq!(DurationText(Some(0.0)).to_string(), "0 s");
    }
}
