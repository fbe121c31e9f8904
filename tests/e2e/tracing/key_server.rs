//! A key server that responds to each request with the same CPIX document.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};

const DOCUMENT: &str = "<CPIX version=\"2.3\" xmlns=\"urn:dashif:org:cpix\"><ContentKeyList>\
    <ContentKey kid=\"00000000-0000-0000-0000-0000000000a1\"><Data><Secret>\
    <PlainValue>AAECAwQFBgcICQoLDA0ODw==</PlainValue></Secret></Data></ContentKey></ContentKeyList>\
    <ContentKeyUsageRuleList><ContentKeyUsageRule kid=\"00000000-0000-0000-0000-0000000000a1\">\
    <VideoFilter/></ContentKeyUsageRule></ContentKeyUsageRuleList></CPIX>";

/// Starts a key server with a content key for video.
pub fn start_key_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let lines = BufReader::new(client.try_clone().unwrap()).lines();
            // The request's head ends with an empty line.
            let _head: Vec<_> = lines
                .map_while(|line| line.ok().filter(|l| !l.is_empty()))
                .collect();
            let len = DOCUMENT.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n");
            let _ = client.write_all(format!("{head}{DOCUMENT}").as_bytes());
        }
    });
    address
}
