//! Health checks of servers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns whether a server in the calling thread's namespace accepts connections. If a path is
/// given, the server must also respond to a request for this path with status 2xx or 3xx.
pub(crate) fn is_healthy(at: SocketAddr, path: Option<&str>) -> bool {
    let Ok(stream) = TcpStream::connect_timeout(&at, RESPONSE_TIMEOUT) else {
        return false;
    };
    path.is_none_or(|path| request_succeeds(stream, at, path).unwrap_or(false))
}

fn request_succeeds(mut stream: TcpStream, at: SocketAddr, path: &str) -> io::Result<bool> {
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok(head.starts_with(b"HTTP/1.") && matches!(head.get(9), Some(b'2' | b'3')))
}
