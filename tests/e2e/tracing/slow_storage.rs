//! A proxy in front of a storage, which delays and records the requests.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Delay of each storage request. Packaging, and work that no span covers, take much less time.
pub const STORAGE_DELAY: Duration = Duration::from_millis(300);

/// A running proxy.
pub struct SlowStorage {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<u8>>>,
}

impl SlowStorage {
    /// Starts a proxy for the storage on this port.
    pub fn start(storage: u16) -> SlowStorage {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = SlowStorage {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
        };
        let requests = proxy.requests.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", storage)) {
                    forward_connection(client, server, requests.clone());
                }
            }
        });
        proxy
    }

    /// Returns the values of all `traceparent` headers that the storage received.
    pub fn traceparents(&self) -> Vec<String> {
        let requests = String::from_utf8_lossy(&self.requests.lock().unwrap()).to_lowercase();
        let lines = requests.lines();
        let values = lines.filter_map(|line| line.strip_prefix("traceparent:"));
        values.map(|value| value.trim().to_owned()).collect()
    }
}

fn forward_connection(client: TcpStream, server: TcpStream, requests: Arc<Mutex<Vec<u8>>>) {
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        forward(from, to, |bytes| {
            requests.lock().unwrap().extend_from_slice(bytes);
            std::thread::sleep(STORAGE_DELAY);
        });
    });
    std::thread::spawn(move || forward(server, client, |_| ()));
}

fn forward(mut from: TcpStream, mut to: TcpStream, before: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut buffer)
        && count > 0
    {
        before(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
