//! A competing flow, which is a bulk TCP download over a link. It ends when its handle is dropped.

use super::NetworkNamespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
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
        let sender = accept_within(&listener, RESPONSE_TIMEOUT)?;
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

/// Accepts a connection. The time is limited, because the link may lose the last packet of the
/// handshake.
fn accept_within(listener: &TcpListener, limit: Duration) -> io::Result<TcpStream> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    match rustix::io::retry_on_intr(|| poll(&mut fds, Some(&limit)))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(listener.accept()?.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_connection_ends() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let error = accept_within(&listener, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(accept_within(&listener, RESPONSE_TIMEOUT).is_ok());
    }
}
