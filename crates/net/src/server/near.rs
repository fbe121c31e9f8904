//! Who is near is sent to without pacing.
//!
//! BBR hands a timer's interrupt every burst that it lets go. On a path of milliseconds that is what
//! it is chosen for; on one of microseconds (this machine, a cache or a proxy in the same rack) it
//! costs more than all else that a server does, and there is no queue to spare: decision 18.
//!
//! Pacing cannot be taken from a connection that began with it, so that all begin without, and who
//! turns out to be farther away gets the system's own algorithm before the first byte.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::conn::tcp;

/// Always there, and allowed to everybody.
const UNPACED: &str = "reno";

/// What the system's own algorithms that pace begin with.
const PACED: &str = "bbr";

/// Tells who is near from who is not.
#[derive(Debug)]
pub(super) struct Near {
    /// The longest first round trip of somebody near.
    rtt: Duration,
    /// The system's own algorithm.
    usual: String,
    /// That it is refused was said once.
    complained: AtomicBool,
}

impl Near {
    /// Lets all connections of these listeners begin without pacing. `None`, and nothing is changed:
    /// with `rtt` of zero, or where the system does not pace, or does not let us choose.
    pub(super) fn begin(listeners: &[Vec<TcpListener>], rtt: Duration) -> Option<Near> {
        let all = || listeners.iter().flatten().map(AsFd::as_fd);
        let usual = tcp::congestion(all().next()?).ok()?;
        if rtt.is_zero() || !usual.starts_with(PACED) {
            return None;
        }
        let begun = try_both(&usual).and_then(|()| all().try_for_each(|one| set(one, UNPACED)));
        if let Err(error) = begun {
            tracing::debug!(%error, "who is near is sent to with {usual}, like all");
            // What could be set can be set back: it was tried.
            let _ = all().try_for_each(|one| set(one, &usual));
            return None;
        }
        Some(Near {
            rtt,
            usual,
            complained: AtomicBool::new(false),
        })
    }

    /// Gives a connection that is not to somebody near the system's own algorithm.
    pub(super) fn look(&self, socket: BorrowedFd<'_>, peer: IpAddr) {
        if peer.is_loopback() {
            return;
        }
        // A socket that tells nothing of itself sends nothing either. A route may have said how to
        // send there (`ip route … congctl`), which stays.
        if let Ok(seen) = tcp::info(socket)
            && !self.is_short(seen.rtt_us)
            && seen.algorithm == UNPACED
            && let Err(error) = set(socket, &self.usual)
            && !self.complained.swap(true, Relaxed)
        {
            tracing::warn!(%error, %peer, "sends with {UNPACED} instead of {}", self.usual);
        }
    }

    /// Zero: none was measured, as the handshake was answered late, or with a cookie.
    fn is_short(&self, rtt_us: Option<u32>) -> bool {
        rtt_us.is_some_and(|us| us > 0 && Duration::from_micros(us.into()) < self.rtt)
    }
}

fn set(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_congestion(socket, name)?)
}

/// Whether both may be chosen, on a socket that nobody uses.
fn try_both(usual: &str) -> io::Result<()> {
    let (domain, kind) = (socket2::Domain::IPV4, socket2::Type::STREAM);
    let socket = socket2::Socket::new(domain, kind, None)?;
    set(socket.as_fd(), UNPACED)?;
    set(socket.as_fd(), usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn listener() -> Vec<Vec<TcpListener>> {
        vec![vec![TcpListener::bind("127.0.0.1:0").unwrap()]]
    }

    fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn algorithm(socket: &impl AsFd) -> String {
        tcp::congestion(socket.as_fd()).unwrap()
    }

    #[test]
    fn near_clients_are_not_paced_and_far_ones_are() {
        let listeners = listener();
        let listener = &listeners[0][0];
        let usual = algorithm(listener);
        // As on a system that paces: where there is no such algorithm, there is nothing to test.
        if set(listener.as_fd(), PACED).is_err() {
            return eprintln!("SKIPPED no {PACED} here");
        }
        let near = Near::begin(&listeners, Duration::from_millis(1)).unwrap();
        let (_client, socket) = connect(listener);
        assert_eq!(algorithm(&socket), UNPACED);
        near.look(socket.as_fd(), "127.0.0.1".parse().unwrap());
        assert_eq!(algorithm(&socket), UNPACED);
        // As far away as a nanosecond.
        let rtt = Duration::from_nanos(1);
        let far = Near { rtt, ..near };
        far.look(socket.as_fd(), "192.0.2.1".parse().unwrap());
        assert_eq!(algorithm(&socket), PACED);
        // A way of sending that somebody else chose stays.
        let (_client, socket) = connect(listener);
        if set(socket.as_fd(), "cubic").is_ok() {
            far.look(socket.as_fd(), "192.0.2.1".parse().unwrap());
            assert_eq!(algorithm(&socket), "cubic");
        }
        set(listener.as_fd(), &usual).unwrap();
    }

    #[test]
    fn a_round_trip_that_was_not_measured_is_not_short() {
        let (rtt, usual) = (Duration::from_millis(1), PACED.to_owned());
        let complained = AtomicBool::new(false);
        let near = Near {
            rtt,
            usual,
            complained,
        };
        assert!(near.is_short(Some(30)));
        assert!(!near.is_short(Some(1000)));
        assert!(!near.is_short(Some(0)));
        assert!(!near.is_short(None));
    }

    #[test]
    fn where_nothing_paces_or_nobody_wants_it_nothing_changes() {
        let listeners = listener();
        let socket = listeners[0][0].as_fd();
        assert!(Near::begin(&listeners, Duration::ZERO).is_none());
        set(socket, UNPACED).unwrap();
        assert!(Near::begin(&listeners, Duration::from_millis(1)).is_none());
        assert_eq!(tcp::congestion(socket).unwrap(), UNPACED);
    }
}
