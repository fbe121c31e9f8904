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
    /// Returns `None` and changes nothing if `rtt` is zero, if the system does not pace, if the
    /// service manager has set another algorithm, or if the system refuses to change the algorithm.
    pub(super) fn disable_pacing_on_listeners(
        listeners: &[Vec<TcpListener>],
        rtt: Duration,
    ) -> Option<LowRttDetector> {
        LowRttDetector::with_system_algorithm(listeners, rtt, system_algorithm().ok()?)
    }

    fn with_system_algorithm(
        listeners: &[Vec<TcpListener>],
        rtt: Duration,
        system_algorithm: String,
    ) -> Option<LowRttDetector> {
        let all = || listeners.iter().flatten().map(AsFd::as_fd);
        // A predecessor that has passed its listeners has already disabled pacing on them.
        let found = tcp::congestion_algorithm(all().next()?).ok()?;
        let is_expected = found == system_algorithm || found == UNPACED;
        if rtt.is_zero() || !system_algorithm.starts_with(PACED) || !is_expected {
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

fn open_unused_socket() -> io::Result<socket2::Socket> {
    socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
}

/// Returns the system's default algorithm, which new sockets use.
fn system_algorithm() -> io::Result<String> {
    tcp::congestion_algorithm(open_unused_socket()?.as_fd())
}

/// Checks on an unused socket that both algorithms can be set.
fn probe_algorithms(system_algorithm: &str) -> io::Result<()> {
    let socket = open_unused_socket()?;
    set_algorithm(socket.as_fd(), UNPACED)?;
    set_algorithm(socket.as_fd(), system_algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    const LIMIT: Duration = Duration::from_millis(1);

    fn detect_on_paced_system(listeners: &[Vec<TcpListener>]) -> Option<LowRttDetector> {
        LowRttDetector::with_system_algorithm(listeners, LIMIT, PACED.to_owned())
    }

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
        // Emulates a system that paces by default. If the kernel has no BBR, the test is skipped.
        if set_algorithm(listener.as_fd(), PACED).is_err() {
            return eprintln!("SKIPPED no {PACED} here");
        }
        let detector = detect_on_paced_system(&listeners).unwrap();
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
    }

    /// Regression: a successor read the system's algorithm from the listeners of its predecessor,
    /// which had disabled pacing on them. No client was then paced.
    #[test]
    fn high_rtt_clients_are_paced_after_a_hand_over() {
        let listeners = test_listeners();
        let listener = &listeners[0][0];
        if set_algorithm(listener.as_fd(), PACED).is_err() {
            return eprintln!("SKIPPED no {PACED} here");
        }
        detect_on_paced_system(&listeners).unwrap();
        let successor = detect_on_paced_system(&listeners).unwrap();
        let (_client, socket) = connect_to(listener);
        assert_eq!(algorithm_of(&socket), UNPACED);
        let rtt = Duration::from_nanos(1);
        let far = LowRttDetector { rtt, ..successor };
        far.pace_if_remote(socket.as_fd(), "192.0.2.1".parse().unwrap());
        assert_eq!(algorithm_of(&socket), PACED);
    }

    #[test]
    fn the_default_is_not_read_from_a_changed_listener() {
        let listeners = test_listeners();
        set_algorithm(listeners[0][0].as_fd(), UNPACED).unwrap();
        let detector = LowRttDetector::disable_pacing_on_listeners(&listeners, LIMIT);
        let is_paced = system_algorithm().unwrap().starts_with(PACED);
        assert_eq!(detector.is_some(), is_paced);
    }

    #[test]
    fn a_round_trip_that_was_not_measured_is_not_short() {
        let (rtt, system_algorithm) = (LIMIT, PACED.to_owned());
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
        let detect = |rtt, system: &str| {
            LowRttDetector::with_system_algorithm(&listeners, rtt, system.to_owned())
        };
        set_algorithm(socket, UNPACED).unwrap();
        assert!(detect(Duration::ZERO, PACED).is_none());
        assert!(detect(LIMIT, UNPACED).is_none());
        assert_eq!(tcp::congestion_algorithm(socket).unwrap(), UNPACED);
        // The service manager may have set another algorithm (`TCPCongestion=`).
        if set_algorithm(socket, "cubic").is_ok() {
            assert!(detect(LIMIT, PACED).is_none());
            assert_eq!(tcp::congestion_algorithm(socket).unwrap(), "cubic");
        }
    }
}
