//! The socket options that control how a connection sends, and other system calls.
//!
//! This is the only file of this crate with `unsafe` code. The code calls `getsockopt` and
//! `setsockopt` for options without a safe wrapper, calls `vmsplice`, and takes descriptors that a
//! service manager has passed.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

pub(crate) use self::statistics::tcp_info;
pub use self::statistics::{BbrInfo, TcpInfo};

mod statistics;

/// Socket options for sending a response. `None` leaves an option unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransportOptions {
    /// Name of the congestion control algorithm (`TCP_CONGESTION`).
    pub congestion: Option<String>,
    /// Maximum pacing rate in bytes per second (`SO_MAX_PACING_RATE`). TCP itself paces, so the
    /// queueing discipline `fq` is not needed.
    pub pace_bytes_per_s: Option<u64>,
    /// Limit on the unsent bytes that wait in the socket (`TCP_NOTSENT_LOWAT`).
    pub notsent_lowat_bytes: Option<u32>,
    /// Minimum initial congestion window of the connection, in packets. Only the route can set the
    /// window (`ip route … initcwnd N`). Therefore, the server never sets this option. It only
    /// compares the window with this minimum at the first request of a connection.
    pub initial_window_packets: Option<u32>,
}

/// Puts references to the pages of `bytes` into a pipe, and stops when the pipe is full. Returns
/// the number of bytes that were put into the pipe. The client receives the content that the pages
/// have when they are sent (see [`crate::BodyPart::Arena`]).
pub(super) fn splice_memory_into_pipe(pipe: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    // SAFETY: for the write end of a pipe, the kernel only reads from the slice. The slice is valid
    // for reads. The kernel holds references to the pages until they have been sent.
    unsafe {
        vmsplice(
            pipe,
            &[IoSliceRaw::from_slice(bytes)],
            SpliceFlags::NONBLOCK,
        )
    }
}

impl TransportOptions {
    /// Returns whether no option is set.
    pub fn is_empty(&self) -> bool {
        *self == TransportOptions::default()
    }
}

/// An option that was refused, and the reason, such as an unavailable algorithm.
#[derive(Debug)]
pub struct RefusedOption {
    /// `congestion`, `pace`, `notsent-lowat` or `initial-window`.
    pub option: &'static str,
    /// The kernel's error, or the value that the kernel uses instead.
    pub why: String,
}

/// Sets the options and reads them back. Returns the former values of the changed options, and the
/// refused options.
pub(super) fn apply_options(
    fd: BorrowedFd<'_>,
    wanted: &TransportOptions,
) -> (TransportOptions, Vec<RefusedOption>) {
    let (mut before, mut refused) = (TransportOptions::default(), Vec::new());
    let mut note = |option, result: io::Result<()>| {
        if let Err(error) = result {
            let why = error.to_string();
            refused.push(RefusedOption { option, why });
        }
    };
    if let Some(name) = &wanted.congestion {
        before.congestion = congestion_algorithm(fd).ok();
        let set = rustix::net::sockopt::set_tcp_congestion(fd, name).map_err(io::Error::from);
        let set = set.and_then(|()| check_applied(name, &congestion_algorithm(fd)?));
        note("congestion", set);
    }
    if let Some(rate) = wanted.pace_bytes_per_s {
        before.pace_bytes_per_s = pacing_rate(fd).ok();
        let set = set_pace(fd, rate).and_then(|()| check_applied(&rate, &pacing_rate(fd)?));
        note("pace", set);
    }
    if let Some(bytes) = wanted.notsent_lowat_bytes {
        let socket = socket2::SockRef::from(&fd);
        before.notsent_lowat_bytes = socket.tcp_notsent_lowat().ok();
        let set = socket.set_tcp_notsent_lowat(bytes);
        let set = set.and_then(|()| check_applied(&bytes, &socket.tcp_notsent_lowat()?));
        note("notsent-lowat", set);
    }
    if let Some(packets) = wanted.initial_window_packets {
        note("initial-window", check_initial_window(fd, packets));
    }
    (before, refused)
}

fn check_initial_window(fd: BorrowedFd<'_>, wanted: u32) -> io::Result<()> {
    match tcp_info(fd)?.cwnd_packets {
        Some(given) if given < wanted => Err(io::Error::other(format!(
            "the route gives {given} packets; `ip route change ROUTE initcwnd {wanted}` would \
             give {wanted}"
        ))),
        _ => Ok(()),
    }
}

fn check_applied<T: PartialEq + std::fmt::Debug>(wanted: &T, found: &T) -> io::Result<()> {
    if wanted == found {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the kernel uses {found:?} instead"
    )))
}

/// Returns the current congestion control algorithm.
pub(crate) fn congestion_algorithm(fd: BorrowedFd<'_>) -> io::Result<String> {
    Ok(rustix::net::sockopt::tcp_congestion(fd)?)
}

fn pacing_rate(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes = [0; 8];
    // Kernels before Linux 4.20 return the rate as a 32-bit number.
    match get_option(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut bytes)? {
        4 => {
            let [a, b, c, d, ..] = bytes;
            let narrow = u32::from_ne_bytes([a, b, c, d]);
            Ok(if narrow == u32::MAX {
                u64::MAX
            } else {
                narrow.into()
            })
        }
        _ => Ok(u64::from_ne_bytes(bytes)),
    }
}

fn set_pace(fd: BorrowedFd<'_>, rate: u64) -> io::Result<()> {
    let bytes = rate.to_ne_bytes();
    // SAFETY: the descriptor is open while it is borrowed. The kernel reads exactly `bytes.len()`
    // bytes from the pointer, and all of these bytes are valid.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            bytes.as_ptr().cast(),
            bytes.len() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Takes `count` descriptors, starting at `first`, that a service manager has passed. A second call
/// returns no descriptors.
///
/// # Errors
/// An error for each descriptor that is not open.
pub(crate) fn take_activation_descriptors(first: RawFd, count: i32) -> Vec<io::Result<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Relaxed) {
        return Vec::new();
    }
    let take = |number| {
        // SAFETY: for a descriptor that is not open, `fcntl_getfd` returns an error, and
        // `from_raw_fd` is not called. The process owns the open descriptors, because the service
        // manager passed them to this process alone, before the process executed any code. The
        // descriptors are taken only once, and nothing else closes them.
        let socket = unsafe {
            rustix::io::fcntl_getfd(BorrowedFd::borrow_raw(number))?;
            OwnedFd::from_raw_fd(number)
        };
        // Child processes must not inherit the socket, so that they do not hold the port.
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        Ok(socket)
    };
    (first..first.saturating_add(count)).map(take).collect()
}

/// Reads a socket option into the start of `into`. Returns the number of bytes that the kernel
/// wrote.
fn get_option(fd: BorrowedFd<'_>, level: i32, name: i32, into: &mut [u8]) -> io::Result<usize> {
    let mut len = into.len() as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed. The kernel writes at most `len` bytes to
    // the pointer. The buffer has `len` bytes, and any byte is a valid `u8`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            into.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result == 0 {
        Ok((len as usize).min(into.len()))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Maps the first `len` bytes of a file for the rest of the process.
#[cfg(test)]
pub(super) fn map_test_file(file: &std::fs::File, len: usize) -> bytes::Bytes {
    let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: the kernel chooses the address, so the new mapping replaces no other memory. The
    // mapping is never removed. Only the kernel reads the bytes, so a truncated file does no harm.
    unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            len,
            protection,
            flags,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(start, libc::MAP_FAILED);
        bytes::Bytes::from_static(std::slice::from_raw_parts(start.cast(), len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn connected_pair() -> (std::net::TcpStream, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    #[test]
    fn a_live_socket_reports_its_algorithm_and_counters() {
        use std::io::{Read, Write};
        let (mut one, mut other) = connected_pair();
        one.write_all(&[7; 5000]).unwrap();
        other.read_exact(&mut [0; 5000]).unwrap();
        let info = tcp_info(one.as_fd()).unwrap();
        assert_eq!(info.bytes_sent, Some(5000));
        assert!(
            info.rtt_us.unwrap() > 0 && info.cwnd_packets.unwrap() > 0,
            "{info:?}"
        );
        assert_eq!(info.algorithm, congestion_algorithm(one.as_fd()).unwrap());
        assert_eq!(info.bbr.is_some(), info.algorithm == "bbr");
    }

    #[test]
    fn options_are_set_read_back_and_put_back() {
        let (one, _other) = connected_pair();
        let fd = one.as_fd();
        let first = congestion_algorithm(fd).unwrap();
        let wanted = TransportOptions {
            congestion: Some("reno".into()),
            pace_bytes_per_s: Some(1_000_000),
            notsent_lowat_bytes: Some(65_536),
            initial_window_packets: Some(1),
        };
        let (before, refused) = apply_options(fd, &wanted);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(before.congestion.as_deref(), Some(first.as_str()));
        assert_eq!(before.pace_bytes_per_s, Some(u64::MAX));
        let found = tcp_info(fd).unwrap();
        assert_eq!(found.algorithm, "reno");
        assert_eq!(found.max_pacing_rate_bytes_per_s, Some(1_000_000));
        let (_, refused) = apply_options(fd, &before);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(congestion_algorithm(fd).unwrap(), first);
        assert_eq!(pacing_rate(fd).unwrap(), u64::MAX);
    }

    #[test]
    fn a_window_that_the_route_does_not_give_is_refused_with_the_remedy() {
        let (one, _other) = connected_pair();
        let wanted = TransportOptions {
            initial_window_packets: Some(100_000),
            ..TransportOptions::default()
        };
        let (before, refused) = apply_options(one.as_fd(), &wanted);
        assert!(before.is_empty());
        assert!(refused[0].why.contains("initcwnd 100000"), "{refused:?}");
    }

    #[test]
    fn an_algorithm_that_is_not_there_is_refused_and_nothing_changes() {
        let (one, _other) = connected_pair();
        let first = congestion_algorithm(one.as_fd()).unwrap();
        let wanted = TransportOptions {
            congestion: Some("no-such".into()),
            ..TransportOptions::default()
        };
        let (_, refused) = apply_options(one.as_fd(), &wanted);
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].option, "congestion");
        assert_eq!(congestion_algorithm(one.as_fd()).unwrap(), first);
    }
}
