//! Two namespaces with a link between them, in this process: sockets keep their namespace.
#![allow(clippy::unwrap_used, dead_code)] // Each that includes it uses a part.

use lab::link::{Link, Loss, Namespace, Queue, Rate, Shape, Way, available};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Two namespaces with a link between them.
pub struct Bed {
    pub client: Namespace,
    pub server: Namespace,
    pub link: Link,
}

impl Bed {
    /// None, said aloud, where this machine makes no links.
    pub fn new(test: &str, way: Way, seed: u64) -> Option<Bed> {
        if let Err(why) = available() {
            println!("SKIPPED {test}: {why}");
            return None;
        }
        let (client, server) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let (down, up) = (way.clone(), way);
        let link = Link::start(&client, &server, 3, Shape { down, up, seed }).unwrap();
        Some(Bed {
            client,
            server,
            link,
        })
    }

    /// A socket at either end, that speak to each other.
    pub fn udp(&self) -> (UdpSocket, UdpSocket) {
        let [at_client, at_server] = self.link.addresses();
        let here = self.client.within(|| UdpSocket::bind((at_client, 4000)));
        let there = self.server.within(|| UdpSocket::bind((at_server, 4000)));
        let (here, there) = (here.unwrap(), there.unwrap());
        here.connect((at_server, 4000)).unwrap();
        there.connect((at_client, 4000)).unwrap();
        for socket in [&here, &there] {
            let patience = Some(Duration::from_secs(20));
            socket.set_read_timeout(patience).unwrap();
        }
        (here, there)
    }

    /// How long the server needs to send this many bytes to the client, connecting included, with
    /// these congestion controls, each set after the other, or the kernel's own.
    pub fn download(&self, bytes: usize, congestion: &[&str]) -> Duration {
        let [_, at_server] = self.link.addresses();
        let listener = self.server.within(|| TcpListener::bind((at_server, 0)));
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        let congestion: Vec<String> = congestion.iter().map(|&name| name.to_owned()).collect();
        if let Some(first) = congestion.first() {
            set_tcp_congestion(&listener, first).unwrap();
        }
        let sender = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for name in congestion.iter().skip(1) {
                set_tcp_congestion(&stream, name).unwrap();
            }
            stream.write_all(&vec![7; bytes]).unwrap();
        });
        let began = Instant::now();
        let stream = self
            .client
            .within(|| TcpStream::connect((at_server, port)))
            .unwrap();
        let read = std::io::copy(&mut &stream, &mut std::io::sink()).unwrap();
        sender.join().unwrap();
        assert_eq!(read, bytes as u64);
        began.elapsed()
    }
}

/// Both directions alike: a rate, a delay, a queue of 1 MiB.
pub fn way(rate_bits_per_s: Option<u64>, delay_ms: u64) -> Way {
    Way {
        rate: rate_bits_per_s.map_or(Rate::Unlimited, Rate::Constant),
        delay: Duration::from_millis(delay_ms),
        jitter: Duration::ZERO,
        queue: Queue::Bytes(1 << 20),
        loss: Loss::None,
    }
}
