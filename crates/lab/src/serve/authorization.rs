//! Authorization of requests.

use super::settings::WorkflowManagerSettings;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{StatusCode, Uri};
use net::config::UsageError;
use net::{Error, FatalError, access_token};
use std::net::{IpAddr, SocketAddr};

/// Requires a token if the manager listens on an address that is not a loopback address.
pub(super) fn require_token_unless_loopback(
    settings: &WorkflowManagerSettings,
    at: &[SocketAddr],
) -> Result<(), FatalError> {
    match at.iter().find(|address| !address.ip().is_loopback()) {
        Some(address) if settings.token.is_none() => Err(FatalError::Usage(UsageError(format!(
            "--listen {address}: every client that reaches this address could run commands; listen \
             on 127.0.0.1, or require a token with --token-file"
        )))),
        _ => Ok(()),
    }
}

/// Authorizes a request. The request must address this server by a known name, which prevents DNS
/// rebinding. It must not come from another site. If a token is configured, the request must
/// contain the token.
///
/// # Errors
/// Returns status 400 if the host is missing, 401 if the token is missing or wrong, 403 if the
/// request comes from another site, and 421 if the host name is unknown.
pub(super) fn authorize_request(
    head: &Parts,
    settings: &WorkflowManagerSettings,
) -> Result<(), Error> {
    let host = requested_host(head)?;
    if !is_own_host_name(&host, &settings.hosts) {
        let what = format!("unknown host name {host}; allow it with --host, or use an IP address");
        return Err(Error::new_client_error(
            StatusCode::MISDIRECTED_REQUEST,
            what,
        ));
    }
    let same = |origin: &HeaderValue| {
        let origin = origin
            .to_str()
            .ok()
            .and_then(|text| text.parse::<Uri>().ok());
        origin.is_some_and(|origin| origin.authority().is_some_and(|a| a.as_str() == host))
    };
    let foreign = head
        .headers
        .get(header::ORIGIN)
        .is_some_and(|origin| !same(origin));
    if foreign || is_cross_site(&head.headers) {
        let what = "requests from another site are not allowed";
        return Err(Error::new_client_error(StatusCode::FORBIDDEN, what));
    }
    match &settings.token {
        Some(wanted) if !access_token::has_valid_token(&head.headers, wanted) => {
            let what =
                "token required; send Authorization: Bearer TOKEN, or the token as the password";
            Err(Error::new_client_error(StatusCode::UNAUTHORIZED, what))
        }
        _ => Ok(()),
    }
}

/// Returns the requested host and port.
fn requested_host(head: &Parts) -> Result<String, Error> {
    if let Some(authority) = head.uri.authority() {
        return Ok(authority.as_str().to_owned());
    }
    let named = head
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let wrong = || Error::new_client_error(StatusCode::BAD_REQUEST, "missing Host header");
    named.map(str::to_owned).ok_or_else(wrong)
}

/// Returns whether `host` is an IP address, `localhost`, or one of `names`. IP addresses are always
/// accepted, because DNS rebinding needs a name.
fn is_own_host_name(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns whether Fetch Metadata (`Sec-Fetch-Site`) reports that the request comes from another
/// origin.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_known() {
        let names = ["lab.example".to_owned()];
        for good in [
            "127.0.0.1:80",
            "[::1]:80",
            "[::1]",
            "10.0.0.7",
            "LOCALHOST:1",
            "Lab.example:9",
        ] {
            assert!(is_own_host_name(good, &names), "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example:80",
            "",
            ":80",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is_own_host_name(bad, &names), "{bad}");
        }
    }
}
