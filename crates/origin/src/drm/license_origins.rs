//! Origins of license servers, for the content security policy of the player page.

use super::rules::DrmRules;
use std::collections::BTreeSet;

/// Returns the origins (`https://license.example:8443`) of the license URLs in the settings. Paths
/// on this server, URLs of apps (`skd:`) and hosts with a placeholder are left out. License URLs in
/// key documents are missing, because they are not known at start.
pub(crate) fn list_license_origins(drm: Option<&DrmRules>) -> BTreeSet<String> {
    let rules = drm.iter().flat_map(|drm| &drm.rules);
    let of_rules = rules.filter_map(|(_, settings)| settings.as_ref());
    let default = drm.iter().filter_map(|drm| drm.default_settings.as_ref());
    let settings = of_rules.chain(default);
    let urls = settings.flat_map(|settings| &settings.license_urls);
    urls.filter_map(|(_, url)| web_origin_of_url(url)).collect()
}

/// Returns scheme, host and port of an HTTP or HTTPS URL.
fn web_origin_of_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    // Other characters are refused, because they could end the directive of the policy, or the
    // header.
    let is_allowed =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let is_http = matches!(scheme.as_str(), "http" | "https");
    let is_valid = is_http && !host.is_empty() && host.chars().all(is_allowed);
    is_valid.then(|| format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::web_origin_of_url;

    #[test]
    fn an_origin_is_the_scheme_the_host_and_the_port() {
        let origins = [
            ("https://a.example/x?y", Some("https://a.example")),
            ("HTTPS://a.example:8443", Some("https://a.example:8443")),
            ("http://[::1]:80/{title}", Some("http://[::1]:80")),
            ("https://user:word@a.example/", Some("https://a.example")),
            ("https://{title}.example/", None),
            ("https://a.example; script-src *", None),
            ("/local/path", None),
            ("skd://key", None),
            ("https://", None),
        ];
        for (url, origin) in origins {
            assert_eq!(web_origin_of_url(url).as_deref(), origin, "{url}");
        }
    }
}
