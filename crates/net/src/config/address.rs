//! Addresses to listen on.

/// The host of an address that consists of a port only. This is the loopback address, so that a
/// server is not exposed to other machines by accident.
const HOST: &str = "127.0.0.1";

/// Checks an address to listen on. An address that is only a port gets the host 127.0.0.1.
///
/// # Errors
/// A message with the expected format.
pub fn parse_listen_address(text: &str) -> Result<String, String> {
    const FORMS: &str = "such as 127.0.0.1:8080, [::1]:8080, :8080 for all addresses, or 8080";
    let port = |port: &str| match port.parse::<u16>() {
        Ok(_) if !port.starts_with('+') => Ok(()),
        _ => Err(format!("{port:?} is not a port; expected 0 to 65535")),
    };
    let Some((host, number)) = text.rsplit_once(':') else {
        return match text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
            true => port(text).map(|()| format!("{HOST}:{text}")),
            false => Err(format!("no port; expected HOST:PORT, {FORMS}")),
        };
    };
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(':') && !bracketed {
        return Err(format!(
            "IPv6 addresses need brackets; expected HOST:PORT, {FORMS}"
        ));
    }
    if host.contains(['/', ' ']) {
        return Err(format!("expected HOST:PORT, {FORMS}"));
    }
    port(number).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_an_address_of_this_machine() {
        assert_eq!(
            parse_listen_address("8080").as_deref(),
            Ok("127.0.0.1:8080")
        );
        for address in ["127.0.0.1:0", "[::1]:80", ":8080", "localhost:65535"] {
            assert_eq!(parse_listen_address(address).as_deref(), Ok(address));
        }
    }

    #[test]
    fn an_address_that_cannot_be_one_is_an_error() {
        for wrong in [
            "",
            "nowhere",
            ":",
            ":99999",
            "127.0.0.1:x",
            "::1:80",
            "80:",
            "http://a:80",
            "65536",
            "a:+1",
        ] {
            assert!(parse_listen_address(wrong).is_err(), "{wrong}");
        }
    }
}
