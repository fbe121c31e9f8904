//! Reads request heads for scripted servers.

use std::io::Read;
use std::net::TcpStream;

/// Reads one request head. Returns `None` if the connection ends before the head does.
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
