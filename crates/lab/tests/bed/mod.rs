//! Two network namespaces with a link between them. One process can use both namespaces, because a
//! socket stays in the namespace in which it was created.
#![allow(clippy::unwrap_used, dead_code)] // Each test uses only a part of this module.

use lab::link::{
    DirectionShape, LinkRate, LinkShape, LossModel, NetworkNamespace, QueueSize, TunLink,
    check_links_available,
};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Two network namespaces with a link between them.
pub struct TestLink {
    pub client: NetworkNamespace,
    pub server: NetworkNamespace,
    pub link: TunLink,
}

impl TestLink {
    /// Creates the namespaces and the link. If this machine cannot emulate links, prints a notice
    /// and returns `None`.
    pub fn new(test: &str, way: DirectionShape, seed: u64) -> Option<TestLink> {
        if let Err(why) = check_links_available() {
            println!("SKIPPED {test}: {why}");
            return None;
        }
        let (client, server) = (
            NetworkNamespace::new().unwrap(),
            NetworkNamespace::new().unwrap(),
        );
        let (down, up) = (way.clone(), way);
        let link = TunLink::start(&client, &server, 3, LinkShape { down, up, seed }).unwrap();
        Some(TestLink {
            client,
            server,
            link,
        })
    }

    /// Returns two connected UDP sockets, one at each end.
    pub fn connect_udp(&self) -> (UdpSocket, UdpSocket) {
        let [at_client, at_server] = self.link.addresses();
        let here = self
            .client
            .run_in_namespace(|| UdpSocket::bind((at_client, 4000)));
        let there = self
            .server
            .run_in_namespace(|| UdpSocket::bind((at_server, 4000)));
        let (here, there) = (here.unwrap(), there.unwrap());
        here.connect((at_server, 4000)).unwrap();
        there.connect((at_client, 4000)).unwrap();
        for socket in [&here, &there] {
            let patience = Some(Duration::from_secs(20));
            socket.set_read_timeout(patience).unwrap();
        }
        (here, there)
    }

    /// Returns the time in which the server sends this many bytes to the client, including the
    /// connection setup. The connection starts with the first congestion control, and the server
    /// then sets the other congestion controls in order. If `congestion` is empty, the default
    /// congestion control is used.
    pub fn time_download(&self, bytes: usize, congestion: &[&str]) -> Duration {
        let [_, at_server] = self.link.addresses();
        let listener = self
            .server
            .run_in_namespace(|| TcpListener::bind((at_server, 0)));
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
            .run_in_namespace(|| TcpStream::connect((at_server, port)))
            .unwrap();
        let read = std::io::copy(&mut &stream, &mut std::io::sink()).unwrap();
        sender.join().unwrap();
        assert_eq!(read, bytes as u64);
        began.elapsed()
    }
}

/// Returns the settings of one direction, with a rate, a delay, and a queue of 1 MiB.
pub fn direction_shape(rate_bits_per_s: Option<u64>, delay_ms: u64) -> DirectionShape {
    DirectionShape {
        rate: rate_bits_per_s.map_or(LinkRate::Unlimited, LinkRate::Constant),
        delay: Duration::from_millis(delay_ms),
        jitter: Duration::ZERO,
        queue: QueueSize::Bytes(1 << 20),
        loss: LossModel::None,
    }
}
