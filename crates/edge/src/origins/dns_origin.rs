//! URLs of origins whose servers are listed in DNS: `dns+http://origin:8080` for address records,
//! and `dns+srv+http://_http._tcp.origin` for SRV records.

use std::net::IpAddr;

use http::Uri;

/// An origin whose servers are listed in DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsOrigin {
    /// The DNS name that is resolved.
    pub name: String,
    pub records: DnsRecordKind,
    /// The URL of the requests to all members. The authority of this URL is sent as Host, and the
    /// host of this URL is the TLS server name.
    pub server: Uri,
}

/// Kind of the DNS records that list the servers of an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsRecordKind {
    /// A records, or AAAA records if there are no A records. All servers listen on this port.
    Addresses { port: u16 },
    /// SRV records, which also contain the ports (RFC 2782).
    Services,
}

/// The valid forms of the URL, for error messages.
const FORMS: &str = "use dns+http://NAME[:PORT], dns+https://NAME[:PORT], \
                     dns+srv+http://_SERVICE._PROTO.NAME or dns+srv+https://_SERVICE._PROTO.NAME";

impl DnsOrigin {
    /// Parses the URL of an origin. Returns `None` if the scheme does not start with `dns+`,
    /// because a URL without `dns+` names a single server.
    ///
    /// # Errors
    /// A message that describes the invalid part of the URL.
    pub fn from_uri(url: &Uri) -> Option<Result<DnsOrigin, String>> {
        let scheme = url.scheme_str()?.strip_prefix("dns+")?;
        let parsed = match scheme.strip_prefix("srv+") {
            Some(scheme) => parse_service_url(url, scheme),
            None => parse_name_url(url, scheme),
        };
        Some(parsed.map_err(|reason| format!("{url}: {reason}; {FORMS}")))
    }
}

fn parse_name_url(url: &Uri, scheme: &str) -> Result<DnsOrigin, String> {
    let name = checked_dns_name(url, scheme)?;
    let default_port = if scheme == "https" { 443 } else { 80 };
    Ok(DnsOrigin {
        name: name.to_owned(),
        records: DnsRecordKind::Addresses {
            port: url.port_u16().unwrap_or(default_port),
        },
        server: build_server_url(scheme, url.authority().map_or("", |at| at.as_str()))?,
    })
}

/// Parses a URL with the name of SRV records. The name without the labels of service and protocol
/// becomes the Host and the TLS server name. RFC 6125 section 6.2.1 calls this name the source
/// domain.
fn parse_service_url(url: &Uri, scheme: &str) -> Result<DnsOrigin, String> {
    let name = checked_dns_name(url, scheme)?;
    if url.port().is_some() {
        return Err("SRV records contain the port; remove it".into());
    }
    let mut labels = name.splitn(3, '.');
    let mut is_service = || labels.next().is_some_and(|label| label.starts_with('_'));
    let (service, protocol) = (is_service(), is_service());
    let domain = labels.next().filter(|domain| !domain.is_empty());
    let (true, true, Some(domain)) = (service, protocol, domain) else {
        return Err("the name of SRV records begins with service and protocol".into());
    };
    Ok(DnsOrigin {
        name: name.to_owned(),
        records: DnsRecordKind::Services,
        server: build_server_url(scheme, domain)?,
    })
}

/// Returns the host of a URL. Besides the scheme and the host, the URL may contain only a port.
fn checked_dns_name<'a>(url: &'a Uri, scheme: &str) -> Result<&'a str, String> {
    let host = url
        .host()
        .filter(|host| !host.is_empty())
        .ok_or("no name")?;
    let target = url.path_and_query().map(|target| target.as_str());
    match target {
        _ if !matches!(scheme, "http" | "https") => Err("unknown scheme".into()),
        _ if url.authority().is_some_and(|at| at.as_str().contains('@')) => {
            Err("a server URL has no user name".into())
        }
        None | Some("/" | "") => match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(_) => Err("an IP address needs no DNS; remove `dns+`".into()),
            Err(_) => Ok(host),
        },
        Some(_) => Err("a server has no path".into()),
    }
}

fn build_server_url(scheme: &str, authority: &str) -> Result<Uri, String> {
    let url = format!("{scheme}://{authority}").parse();
    url.map_err(|error| format!("invalid server: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Option<Result<DnsOrigin, String>> {
        DnsOrigin::from_uri(&url.parse().unwrap())
    }

    #[test]
    fn urls_name_records_and_the_server_that_members_stand_for() {
        let addresses = |port| DnsRecordKind::Addresses { port };
        for (url, name, records, server) in [
            (
                "dns+http://origin:8080",
                "origin",
                addresses(8080),
                "http://origin:8080/",
            ),
            ("dns+http://o.ns/", "o.ns", addresses(80), "http://o.ns/"),
            ("dns+https://o", "o", addresses(443), "https://o/"),
            (
                "dns+srv+http://_http._tcp.origin.ns",
                "_http._tcp.origin.ns",
                DnsRecordKind::Services,
                "http://origin.ns/",
            ),
            (
                "dns+srv+https://_web._tcp.o",
                "_web._tcp.o",
                DnsRecordKind::Services,
                "https://o/",
            ),
        ] {
            let found = parse(url).unwrap().unwrap();
            assert_eq!((found.name.as_str(), found.records), (name, records));
            assert_eq!(found.server.to_string(), server);
        }
        assert_eq!(parse("http://origin:8080"), None);
    }

    #[test]
    fn urls_that_cannot_be_resolved_are_refused_with_the_reason() {
        for (url, reason) in [
            ("dns+ftp://o", "unknown scheme"),
            ("dns+http://127.0.0.1:80", "needs no DNS"),
            ("dns+http://[::1]:80", "needs no DNS"),
            ("dns+http://o/films", "no path"),
            ("dns+http://me@o", "no user name"),
            ("dns+srv+http://origin", "service and protocol"),
            ("dns+srv+http://_http._tcp", "service and protocol"),
            ("dns+srv+http://_http._tcp.o:80", "remove it"),
        ] {
            let error = parse(url).unwrap().unwrap_err();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }
}
