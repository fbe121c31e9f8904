//! Adds the CMCD reports of emulated players to the URL or the header fields of requests. The codec
//! is in `net`.

use url::Url;

pub use net::cmcd::{CmcdFormat, CmcdObjectType, CmcdPlayerState, CmcdReport, format_uuid};

/// Adds a report to a request. Changes the URL or returns header fields, depending on the format of
/// the report.
pub fn attach_cmcd_report(report: &CmcdReport, url: &mut Url) -> Vec<(&'static str, String)> {
    if report.format.in_headers {
        return report.to_headers();
    }
    url.query_pairs_mut()
        .append_pair("CMCD", &report.to_query());
    Vec::new()
}

/// Returns a URL without the report in its query.
pub fn without_cmcd_report(url: &Url) -> Url {
    let mut url = url.clone();
    let is_report = |pair: &&str| pair.starts_with("CMCD=");
    let pairs = || url.query().unwrap_or_default().split('&');
    if pairs().any(|pair| is_report(&pair)) {
        let rest: Vec<&str> = pairs().filter(|pair| !is_report(pair)).collect();
        let rest = rest.join("&");
        url.set_query(Some(rest.as_str()).filter(|query| !query.is_empty()));
    }
    url
}

/// Returns the path of `to` relative to `from`. Returns `None` if the origins differ, if the path
/// is empty, or if the path contains bytes that a quoted string must not contain.
pub fn relative_url(from: &Url, to: &Url) -> Option<String> {
    let path = from.make_relative(to)?;
    let clean = path
        .bytes()
        .all(|byte| (0x21..0x7f).contains(&byte) && byte != b'"' && byte != b'\\');
    (clean && !path.is_empty() && from.origin() == to.origin()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_removed_from_the_url() {
        for text in [
            "http://o.test/m.mpd",
            "http://o.test/m.mpd?a=b%26&c",
            "http://o.test/?",
        ] {
            let plain = Url::parse(text).unwrap();
            let mut url = plain.clone();
            // The report is appended in the same way as by `attach_cmcd_report`.
            url.query_pairs_mut()
                .append_pair("CMCD", "br=1,sid=\"a&b\"");
            assert_ne!(url, plain);
            let found = without_cmcd_report(&url);
            assert_eq!(
                found.as_str().trim_end_matches('?'),
                text.trim_end_matches('?')
            );
            assert_eq!(without_cmcd_report(&plain), plain);
        }
    }

    #[test]
    fn only_quotable_paths_are_relative() {
        let from = Url::parse("http://o.test/v/1.m4s?x=y").unwrap();
        let to = |text: &str| relative_url(&from, &Url::parse(text).unwrap());
        assert_eq!(to("http://o.test/v/2.m4s").as_deref(), Some("2.m4s"));
        assert_eq!(to("http://o.test/a/2.m4s").as_deref(), Some("../a/2.m4s"));
        assert_eq!(to("http://p.test/v/2.m4s"), None);
        assert_eq!(to("http://o.test/v/%22.m4s").as_deref(), Some("%22.m4s"));
    }
}
