//! A competing flow, which is a bulk TCP download over a link. It ends when its handle is dropped.

use super::NetworkNamespace;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for establishing the TCP connection.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A download from a link's second namespace to the link's first namespace. Dropping the value ends
/// the download.
pub struct CompetingFlow {
    ends: [TcpStream; 2],
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl CompetingFlow {
    /// Starts a download whose sender uses the given congestion control algorithm.
    ///
    /// # Errors
    /// The kernel lacks the algorithm, or the connection fails.
    pub fn start(
        at_second: Ipv4Addr,
        first: &NetworkNamespace,
        second: &NetworkNamespace,
        congestion: &str,
    ) -> io::Result<CompetingFlow> {
        let listener = second.run_in_namespace(|| TcpListener::bind((at_second, 0)))?;
        let port = listener.local_addr()?.port();
        let to = SocketAddr::from((at_second, port));
        // Limits the time, because connecting over a link that loses all packets would take
        // minutes.
        let mut receiver =
            first.run_in_namespace(|| TcpStream::connect_timeout(&to, RESPONSE_TIMEOUT))?;
        let (sender, _) = listener.accept()?;
        rustix::net::sockopt::set_tcp_congestion(&sender, congestion)?;
        let (received, mut sending) = (Arc::new(AtomicU64::new(0)), sender.try_clone()?);
        let counted = Arc::clone(&received);
        let ends = [sender, receiver.try_clone()?];
        let threads = vec![
            std::thread::spawn(move || while sending.write_all(&[0; 65536]).is_ok() {}),
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65536];
                while let Ok(len @ 1..) = receiver.read(&mut buffer) {
                    counted.fetch_add(len as u64, Ordering::Relaxed);
                }
            }),
        ];
        Ok(CompetingFlow {
            ends,
            received,
            threads,
        })
    }

    /// Returns the bytes received so far.
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for CompetingFlow {
    fn drop(&mut self) {
        // Shuts down both sockets, so that the receiving thread does not wait for unsent data over
        // a slow link.
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
