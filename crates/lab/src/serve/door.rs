//! Who is let in.

use crate::config::serve::Settings;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{StatusCode, Uri};
use net::config::Wrong;
use net::{Error, Failed, token};
use std::net::{IpAddr, SocketAddr};

/// Whoever is reached from elsewhere asks for a token.
pub(super) fn loopback_or_token(settings: &Settings, at: &[SocketAddr]) -> Result<(), Failed> {
    match at.iter().find(|address| !address.ip().is_loopback()) {
        Some(address) if settings.token.is_none() => Err(Failed::Usage(Wrong(format!(
            "listen = \"{address}\" is reached from elsewhere, and whoever reaches it may run \
             commands: listen on 127.0.0.1, or ask for a token with --token-file"
        )))),
        _ => Ok(()),
    }
}

/// Whether a request may be answered: it names this server and no other (a page may have had its
/// name lead here), comes from no page of elsewhere, and has the token where there is one.
///
/// # Errors
/// 400, 401, 403 or 421.
pub(super) fn check(head: &Parts, settings: &Settings) -> Result<(), Error> {
    let host = host(head)?;
    if !known(&host, &settings.hosts) {
        let what =
            format!("this server is not called {host}; name it with --host, or use its address");
        return Err(Error::client(StatusCode::MISDIRECTED_REQUEST, what));
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
        let what = "a page from elsewhere may not do this";
        return Err(Error::client(StatusCode::FORBIDDEN, what));
    }
    match &settings.token {
        Some(wanted) if !token::allowed(&head.headers, wanted) => {
            let what = "this port needs its token: Authorization: Bearer TOKEN, or as a password";
            Err(Error::client(StatusCode::UNAUTHORIZED, what))
        }
        _ => Ok(()),
    }
}

/// The name and port that the client asked for.
fn host(head: &Parts) -> Result<String, Error> {
    if let Some(authority) = head.uri.authority() {
        return Ok(authority.as_str().to_owned());
    }
    let named = head
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let wrong = || Error::client(StatusCode::BAD_REQUEST, "Host is missing");
    named.map(str::to_owned).ok_or_else(wrong)
}

/// An address cannot be made to lead elsewhere, as a name can.
fn known(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Fetch Metadata.
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
            assert!(known(good, &names), "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example:80",
            "",
            ":80",
            "127.0.0.1.evil.example",
        ] {
            assert!(!known(bad, &names), "{bad}");
        }
    }
}
