//! Sends to low-RTT clients without pacing.
//!
//! BBR paces with a timer for every burst. If the round trip takes milliseconds, pacing is useful
//! because it keeps network queues short. If the round trip takes microseconds (this machine, or a
//! cache in the same rack), the timers cost more than all other work of a server. On such a short
//! path, there is no queue to protect (decision 18).
//!
//! Pacing cannot be disabled on a connection that started with pacing. All connections therefore
//! start without pacing. High-RTT connections switch to the system's default algorithm before the
//! server sends the first byte.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::conn::tcp;

/// A congestion-control algorithm without pacing, which every kernel provides and permits.
const UNPACED: &str = "reno";

/// Prefix of the names of pacing algorithms.
const PACED: &str = "bbr";

/// Distinguishes low-RTT clients from high-RTT clients.
#[derive(Debug)]
pub(super) struct LowRttDetector {
    /// Upper limit on the first round trip of a low-RTT client.
    rtt: Duration,
    /// The system's default congestion-control algorithm.
    system_algorithm: String,
    /// Whether a failed change of the algorithm has been logged.
    has_warned: AtomicBool,
}

impl LowRttDetector {
    /// Lets all connections of these listeners start without pacing.
    ///
    /// Returns `None` and changes nothing if `rtt` is zero, if the system does not pace, or if the
    /// system refuses to change the algorithm.
    pub(super) fn with_unpaced_listeners(
        listeners: &[Vec<TcpListener>],
        rtt: Duration,
    ) -> Option<LowRttDetector> {
        let all = || listeners.iter().flatten().map(AsFd::as_fd);
        let system_algorithm = tcp::congestion_algorithm(all().next()?).ok()?;
        if rtt.is_zero() || !system_algorithm.starts_with(PACED) {
            return None;
        }
        let begun = probe_algorithms(&system_algorithm)
            .and_then(|()| all().try_for_each(|one| set_algorithm(one, UNPACED)));
        if let Err(error) = begun {
            tracing::debug!(%error, "cannot disable pacing for low-RTT clients; all use {system_algorithm}");
            // Restores the system's default algorithm. Ignores an error, because `probe_algorithms`
            // has already checked that this algorithm can be set.
            let _ = all().try_for_each(|one| set_algorithm(one, &system_algorithm));
            return None;
        }
        Some(LowRttDetector {
            rtt,
            system_algorithm,
            has_warned: AtomicBool::new(false),
        })
    }

    /// Switches a high-RTT connection to the system's default algorithm.
    pub(super) fn pace_if_remote(&self, socket: BorrowedFd<'_>, peer: IpAddr) {
        if peer.is_loopback() {
            return;
        }
        // If `tcp_info` fails, the socket cannot send either, so the error is ignored. If a route
        // has set another algorithm (`ip route … congctl`), this algorithm stays.
        if let Ok(seen) = tcp::tcp_info(socket)
            && !self.is_low_rtt(seen.rtt_us)
            && seen.algorithm == UNPACED
            && let Err(error) = set_algorithm(socket, &self.system_algorithm)
            && !self.has_warned.swap(true, Relaxed)
        {
            tracing::warn!(%error, %peer, "cannot pace with {}; the connection stays with {UNPACED}", self.system_algorithm);
        }
    }

    /// Returns whether the round trip is shorter than the limit. A round trip of zero means that
    /// the kernel has not measured the round trip, because the SYN-ACK was retransmitted or a SYN
    /// cookie was used.
    fn is_low_rtt(&self, rtt_us: Option<u32>) -> bool {
        rtt_us.is_some_and(|us| us > 0 && Duration::from_micros(us.into()) < self.rtt)
    }
}

fn set_algorithm(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_congestion(socket, name)?)
}

/// Checks on an unused socket that both algorithms can be set.
fn probe_algorithms(system_algorithm: &str) -> io::Result<()> {
    let (domain, kind) = (socket2::Domain::IPV4, socket2::Type::STREAM);
    let socket = socket2::Socket::new(domain, kind, None)?;
    set_algorithm(socket.as_fd(), UNPACED)?;
    set_algorithm(socket.as_fd(), system_algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn test_listeners() -> Vec<Vec<TcpListener>> {
        vec![vec![TcpListener::bind("127.0.0.1:0").unwrap()]]
    }

    fn connect_to(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn algorithm_of(socket: &impl AsFd) -> String {
        tcp::congestion_algorithm(socket.as_fd()).unwrap()
    }

    #[test]
    fn low_rtt_clients_are_not_paced_and_others_are() {
        let listeners = test_listeners();
        let listener = &listeners[0][0];
        let system_algorithm = algorithm_of(listener);
        // Emulates a system that paces by default. If the kernel has no BBR, the test is skipped.
        if set_algorithm(listener.as_fd(), PACED).is_err() {
            return eprintln!("SKIPPED no {PACED} here");
        }
        let detector =
            LowRttDetector::with_unpaced_listeners(&listeners, Duration::from_millis(1)).unwrap();
        let (_client, socket) = connect_to(listener);
        assert_eq!(algorithm_of(&socket), UNPACED);
        detector.pace_if_remote(socket.as_fd(), "127.0.0.1".parse().unwrap());
        assert_eq!(algorithm_of(&socket), UNPACED);
        // With a limit of one nanosecond, every client is a high-RTT client.
        let rtt = Duration::from_nanos(1);
        let far = LowRttDetector { rtt, ..detector };
        far.pace_if_remote(socket.as_fd(), "192.0.2.1".parse().unwrap());
        assert_eq!(algorithm_of(&socket), PACED);
        // An algorithm that was set in another way, such as by a route, stays.
        let (_client, socket) = connect_to(listener);
        if set_algorithm(socket.as_fd(), "cubic").is_ok() {
            far.pace_if_remote(socket.as_fd(), "192.0.2.1".parse().unwrap());
            assert_eq!(algorithm_of(&socket), "cubic");
        }
        set_algorithm(listener.as_fd(), &system_algorithm).unwrap();
    }

    #[test]
    fn a_round_trip_that_was_not_measured_is_not_short() {
        let (rtt, system_algorithm) = (Duration::from_millis(1), PACED.to_owned());
        let has_warned = AtomicBool::new(false);
        let detector = LowRttDetector {
            rtt,
            system_algorithm,
            has_warned,
        };
        assert!(detector.is_low_rtt(Some(30)));
        assert!(!detector.is_low_rtt(Some(1000)));
        assert!(!detector.is_low_rtt(Some(0)));
        assert!(!detector.is_low_rtt(None));
    }

    #[test]
    fn nothing_changes_without_pacing_or_with_a_zero_rtt() {
        let listeners = test_listeners();
        let socket = listeners[0][0].as_fd();
        assert!(LowRttDetector::with_unpaced_listeners(&listeners, Duration::ZERO).is_none());
        set_algorithm(socket, UNPACED).unwrap();
        assert!(
            LowRttDetector::with_unpaced_listeners(&listeners, Duration::from_millis(1)).is_none()
        );
        assert_eq!(tcp::congestion_algorithm(socket).unwrap(), UNPACED);
    }
}
