//! Tables and formatted numbers.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A table of texts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportTable {
    /// Column names.
    pub head: Vec<String>,
    /// Rows. Each row has one cell per column.
    pub rows: Vec<Vec<String>>,
}

impl ReportTable {
    pub(super) fn new<const N: usize>(head: [&str; N]) -> ReportTable {
        ReportTable {
            head: head.map(str::to_owned).into(),
            rows: Vec::new(),
        }
    }

    /// Returns the table as Markdown between empty lines.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| escape_cell(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let under = "---|".repeat(self.head.len());
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("\n{}|{under}\n{rows}\n", line(&self.head))
    }

    /// Returns the table as HTML.
    pub fn html(&self) -> String {
        let mut out = String::from("<div class=\"wide\"><table><thead><tr>");
        // Writing to a string cannot fail.
        for cell in &self.head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape_html(cell));
        }
        out += "</tr></thead><tbody>";
        for row in &self.rows {
            out += "<tr>";
            for cell in row {
                let plain = cell.starts_with(|c: char| c.is_ascii_digit() || "-–∞".contains(c));
                let class = if plain { "" } else { " class=\"text\"" };
                let _ = write!(out, "<td{class}>{}</td>", escape_html(cell));
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>"
    }
}

/// Escapes the text of a cell, so that the text cannot start a column, a line or an HTML element.
fn escape_cell(text: &str) -> String {
    let html = escape_html(text).replace(['\n', '\r'], " ");
    let mut out = String::new();
    let mut rest = html.as_str();
    while let Some((before, after)) = rest.split_once('|') {
        // Backslashes before the bar would escape the backslash that is added.
        let plain = before.trim_end_matches('\\');
        out += plain;
        out += &"&#92;".repeat(before.len() - plain.len());
        out += "\\|";
        rest = after;
    }
    out + rest
}

/// Escapes text for HTML elements and attributes.
pub(super) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Formats a number with four significant digits. Numbers of 1000 or more are formatted as
/// integers.
pub(super) fn format_number(value: f64) -> String {
    let digits = match value.abs() {
        f64::INFINITY => return if value < 0.0 { "-∞" } else { "∞" }.into(),
        0.0 => 0,
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 0.1 => 3,
        size if size >= 1e-6 => (3.0 - size.log10().floor()) as usize,
        _ => return format!("{value:.3e}"),
    };
    format!("{value:.digits$}")
}

/// Formats an interval.
pub(super) fn format_interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or("–".into(), |[low, high]| {
        format!("{} – {}", format_number(low), format_number(high))
    })
}

/// Formats the confidence interval of `n` rounds, or the range of the rounds if there are too few
/// rounds for an interval.
pub(super) fn format_interval_or_range(
    interval: Option<[f64; 2]>,
    n: usize,
    range: [f64; 2],
) -> String {
    match interval {
        None if n > 1 => format!("range of {n}: {}", format_interval(Some(range))),
        interval => format_interval(interval),
    }
}

/// Formats a share as a percentage.
pub(super) fn format_percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a Unix time as date, hour and minute in UTC.
pub(super) fn format_time(unix_s: f64) -> String {
    if !(0.0..1e11).contains(&unix_s) || unix_s == 0.0 {
        return "–".into();
    }
    let minutes = (unix_s / 60.0) as i64;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    // Converts days since 1970 to a date by the algorithm `civil_from_days` of Howard Hinnant. This
    // version does not support dates before 1970.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        minute / 60,
        minute % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_formatted() {
        for (value, text) in [
            (0.0, "0"),
            (1234.5, "1234"),
            (-123.45, "-123.5"),
            (12.345, "12.35"),
            (1.23456, "1.235"),
            (0.5, "0.500"),
            (0.012346, "0.01235"),
            (1e-9, "1.000e-9"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(format_number(value), text, "{value}");
        }
        for (unix_s, text) in [
            (0.0, "–"),
            (951_782_400.0, "2000-02-29 00:00 UTC"),
            (1_700_000_000.0, "2023-11-14 22:13 UTC"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(format_time(unix_s), text);
        }
    }

    #[test]
    fn cells_are_escaped() {
        let mut table = ReportTable::new(["a|b"]);
        table.rows.push(vec!["<i>x</i>|\ny".into()]);
        assert_eq!(
            table.markdown(),
            "\n| a\\|b |\n|---|\n| &lt;i&gt;x&lt;/i&gt;\\| y |\n\n"
        );
        assert!(
            table
                .html()
                .contains("<td class=\"text\">&lt;i&gt;x&lt;/i&gt;|\ny</td>")
        );
    }

    #[test]
    fn backslashes_before_a_bar_stay_in_their_cell() {
        for (cell, escaped) in [
            (r"a\|b", r"a&#92;\|b"),
            (r"a\\|b", r"a&#92;&#92;\|b"),
            (r"\|\\\||", r"&#92;\|&#92;&#92;&#92;\|\|"),
            (r"x \ y\", r"x \ y\"),
        ] {
            assert_eq!(escape_cell(cell), escaped, "{cell}");
        }
    }
}
