//! The table of URL groups, as text and as rows for the HTML page.

use super::number_format::format_bytes;
use super::percentiles::KeyQuantiles;
use crate::result::RunResult;
use serde::Serialize;
use std::fmt::{self, Write};

/// The quantiles of the text table.
const COLUMNS: [&str; 4] = ["p50", "p90", "p99", "max"];

/// A row of the table.
#[derive(Serialize)]
pub(super) struct UrlGroupRow<'a> {
    url: &'a str,
    requests: u64,
    errors: u64,
    /// Bytes of response bodies as text, with a unit.
    bytes: String,
    /// Quantiles of the latency from the due time. In a closed loop, quantiles of the latency from
    /// sending.
    figures: KeyQuantiles,
}

/// Returns the rows, in descending order of the number of requests. Returns no rows if there is
/// only one group.
pub(super) fn url_group_rows(run: &RunResult) -> Vec<UrlGroupRow<'_>> {
    if run.url_groups.len() < 2 {
        return Vec::new();
    }
    let rows = run.url_groups.iter().map(|(url, group)| UrlGroupRow {
        url,
        requests: group.requests,
        errors: group.errors,
        bytes: format_bytes(group.bytes),
        figures: KeyQuantiles::from_histogram(&group.latency),
    });
    let mut rows: Vec<UrlGroupRow<'_>> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.requests));
    rows
}

/// Writes the table as text. URLs are in the last column, so that long URLs do not move the other
/// columns.
pub(super) fn write_url_groups(out: &mut String, run: &RunResult) -> fmt::Result {
    let rows = url_group_rows(run);
    if rows.is_empty() {
        return Ok(());
    }
    write!(out, "\n{:>9}{:>8}{:>12}", "requests", "failed", "bodies")?;
    COLUMNS
        .iter()
        .try_for_each(|name| write!(out, "{name:>10}"))?;
    writeln!(out, "  URL")?;
    for row in rows {
        write!(out, "{:>9}{:>8}{:>12}", row.requests, row.errors, row.bytes)?;
        for name in COLUMNS {
            write!(out, "{:>10}", row.figures.format_quantile(name))?;
        }
        writeln!(out, "  {}", row.url)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::UrlGroupStats;
    use std::time::Duration;

    #[test]
    fn groups_are_listed_by_their_number_of_requests() {
        let mut run = RunResult::default();
        for (url, requests) in [("http://h/a.mpd", 1), ("http://h/v/*.m4s", 30)] {
            let mut group = UrlGroupStats {
                requests,
                errors: 1,
                bytes: 2000,
                ..UrlGroupStats::default()
            };
            (0..requests).for_each(|_| group.latency.record(Duration::from_millis(4)));
            run.url_groups.insert(url.into(), group);
        }
        let mut text = String::new();
        write_url_groups(&mut text, &run).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].ends_with("max  URL"), "{text}");
        assert!(lines[1].ends_with("  http://h/v/*.m4s"), "{text}");
        assert!(lines[2].ends_with("  http://h/a.mpd"), "{text}");
        // The second row has one sample, which is too few for p50, p90 and p99.
        assert_eq!(lines[2].matches('–').count(), 3, "{text}");
        run.url_groups.pop_first();
        assert!(url_group_rows(&run).is_empty());
    }
}
