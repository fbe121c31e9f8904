//! PROXY protocol, version 2 (HAProxy's `proxy-protocol.txt`, section 2.2). A proxy sends the
//! client's address before the client's own bytes. Version 1, which is a text format, is not
//! supported.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Limit on the bytes after the fixed part of a PROXY header. These bytes are addresses and
/// additional values (names, certificates). The format allows 65,535 bytes.
const REST_BYTES_MAX: usize = 4096;

/// Reads the header and no further bytes.
///
/// Returns the client's address. Returns `None` if the proxy connects for itself (as in a health
/// check), or if the address family is not TCP over IPv4 or IPv6.
///
/// # Errors
/// When the bytes are not a PROXY header, or the connection ends within the header.
pub(super) async fn read_proxy_header<T: AsyncRead + Unpin>(
    io: &mut T,
) -> io::Result<Option<SocketAddr>> {
    let mut head = [0; 16];
    io.read_exact(&mut head).await?;
    let len = proxy_header_rest_len(&head).map_err(io::Error::other)?;
    let mut rest = vec![0; len];
    io.read_exact(&mut rest).await?;
    parse_client_address(&head, &rest).map_err(io::Error::other)
}

/// Returns the number of header bytes after the fixed part.
fn proxy_header_rest_len(head: &[u8; 16]) -> Result<usize, &'static str> {
    let [.., high, low] = *head;
    let len = usize::from(u16::from_be_bytes([high, low]));
    if !head.starts_with(SIGNATURE) {
        Err("expected a PROXY header of version 2 from this network")
    } else if len > REST_BYTES_MAX {
        Err("the PROXY header has more than 4096 bytes")
    } else {
        Ok(len)
    }
}

fn parse_client_address(head: &[u8; 16], rest: &[u8]) -> Result<Option<SocketAddr>, &'static str> {
    let [.., command, family, _, _] = *head;
    match command {
        // With the command LOCAL, the addresses have no meaning.
        0x20 => return Ok(None),
        0x21 => {}
        _ => return Err("the PROXY header's version or command is unknown"),
    }
    let short = "the PROXY header is too short for its addresses";
    let port = |at: usize| -> Option<u16> {
        Some(u16::from_be_bytes(rest.get(at..at + 2)?.try_into().ok()?))
    };
    let v4 = || -> Option<SocketAddr> {
        let address: [u8; 4] = rest.get(..4)?.try_into().ok()?;
        Some((Ipv4Addr::from(address), port(8)?).into())
    };
    let v6 = || -> Option<SocketAddr> {
        let address: [u8; 16] = rest.get(..16)?.try_into().ok()?;
        let port = port(32)?;
        Some((Ipv6Addr::from(address).to_canonical(), port).into())
    };
    match family {
        0x11 if rest.len() >= 12 => v4().map(Some).ok_or(short),
        0x21 if rest.len() >= 36 => v6().map(Some).ok_or(short),
        0x11 | 0x21 => Err(short),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        bytes.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    fn read_and_count_rest(mut bytes: &[u8]) -> (Result<Option<String>, String>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let read = runtime.unwrap().block_on(read_proxy_header(&mut bytes));
        let read = read.map(|found| found.map(|address| address.to_string()));
        (read.map_err(|error| error.to_string()), bytes.len())
    }

    const V4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x34, 0, 80];

    #[test]
    fn addresses_are_read_and_no_byte_of_the_client_is() {
        let mut v6 = [0; 36];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        v6[15] = 9;
        v6[32..34].copy_from_slice(&443u16.to_be_bytes());
        let mut with_more = V4.to_vec();
        with_more.extend([3, 0, 4, 1, 2, 3, 4]);
        for (command, family, rest, expected) in [
            (0x21, 0x11, &V4[..], Some("192.0.2.7:4660")),
            (0x21, 0x11, &with_more, Some("192.0.2.7:4660")),
            (0x21, 0x21, &v6, Some("[2001:db8::9]:443")),
            (0x20, 0x00, &[], None),
            (0x20, 0x11, &V4, None),
            (0x21, 0x00, &[1, 2, 3], None),
            (0x21, 0x31, &[0; 216], None),
        ] {
            let mut bytes = build_header(command, family, rest);
            bytes.extend(b"GET /");
            let (read, left) = read_and_count_rest(&bytes);
            assert_eq!(read, Ok(expected.map(str::to_owned)), "{command} {family}");
            assert_eq!(left, 5, "{command} {family}");
        }
    }

    #[test]
    fn bytes_that_are_not_a_header_are_an_error_at_any_length() {
        let whole = build_header(0x21, 0x11, &V4);
        for len in 0..whole.len() {
            assert!(read_and_count_rest(&whole[..len]).0.is_err(), "{len}");
        }
        for wrong in [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n".to_vec(),
            build_header(0x11, 0x11, &V4),
            build_header(0x22, 0x11, &V4),
            build_header(0x21, 0x11, &V4[..11]),
            build_header(0x21, 0x21, &[0; 35]),
            build_header(0x21, 0x11, &[0; REST_BYTES_MAX + 1]),
        ] {
            assert!(read_and_count_rest(&wrong).0.is_err(), "{wrong:?}");
        }
    }
}
