//! An origin that holds its responses until the test releases them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nfilm";

/// A running origin.
pub struct HeldOrigin {
    pub address: SocketAddr,
    gate: Arc<(Mutex<bool>, Condvar)>,
    received: Arc<AtomicUsize>,
}

impl HeldOrigin {
    pub fn start() -> HeldOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = HeldOrigin {
            address: listener.local_addr().unwrap(),
            gate: Arc::default(),
            received: Arc::default(),
        };
        let (gate, received) = (origin.gate.clone(), origin.received.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (gate, received) = (gate.clone(), received.clone());
                std::thread::spawn(move || respond_when_released(client, &gate, &received));
            }
        });
        origin
    }

    /// Returns the number of requests that have arrived.
    pub fn received(&self) -> usize {
        self.received.load(Relaxed)
    }

    /// Releases all responses.
    pub fn release(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }
}

fn respond_when_released(
    mut client: TcpStream,
    gate: &(Mutex<bool>, Condvar),
    received: &AtomicUsize,
) -> Option<()> {
    let mut input = BufReader::new(client.try_clone().ok()?).lines();
    // Each request ends with an empty line, because the requests have no body.
    while input.next()?.is_ok() {
        while !input.next()?.ok()?.is_empty() {}
        received.fetch_add(1, Relaxed);
        let held = gate.0.lock().unwrap();
        drop(gate.1.wait_while(held, |is_released| !*is_released).ok()?);
        client.write_all(RESPONSE).ok()?;
    }
    None
}
