//! What scripted servers read.

use std::io::Read;
use std::net::TcpStream;

/// Reads one request's head; None at the connection's end.
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
