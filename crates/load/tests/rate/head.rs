//! Reads request heads for scripted servers.

use std::io::Read;
use std::net::TcpStream;

/// Reads one request head; none at the end of the connection.
pub fn head(socket: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        if socket.read(&mut byte).ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
    }
    String::from_utf8(text).ok()
}
