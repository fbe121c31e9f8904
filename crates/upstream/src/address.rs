//! Addresses of servers.

use http::Uri;

/// A server: host, port, and whether it uses TLS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// Whether the scheme is `https`.
    pub is_tls: bool,
    /// The host name, or an IP address without brackets.
    pub host: String,
    /// The port. If the URL has no port, this is the default port of the scheme.
    pub port: u16,
}

impl ServerAddress {
    /// Returns the server of an `http` or `https` URL; `None` if the URL has another scheme or no
    /// host.
    pub fn from_uri(uri: &Uri) -> Option<ServerAddress> {
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return None,
        };
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        Some(ServerAddress {
            is_tls,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers() {
        for (url, is_tls, host, port) in [
            ("http://a/x", false, "a", 80),
            ("https://a.b:9000/x?y", true, "a.b", 9000),
            ("https://[::1]:1/", true, "::1", 1),
        ] {
            let address = ServerAddress::from_uri(&url.parse().unwrap()).unwrap();
            let found = (address.is_tls, address.host.as_str(), address.port);
            assert_eq!(found, (is_tls, host, port));
        }
        for url in ["ftp://a/", "/path"] {
            assert_eq!(ServerAddress::from_uri(&url.parse().unwrap()), None);
        }
    }
}
