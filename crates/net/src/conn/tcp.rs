//! TCP's own view of a connection, and the options that choose how it sends.
//!
//! The one file of this crate with `unsafe`: `getsockopt` and `setsockopt` for options that no
//! safe wrapper knows, and `vmsplice`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};
use serde::Serialize;

/// How a response is to be sent. What is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transport {
    /// `TCP_CONGESTION`: the algorithm's name.
    pub congestion: Option<String>,
    /// `SO_MAX_PACING_RATE`, bytes a second; the kernel paces by itself, no `fq` is needed.
    pub pace_bytes_per_s: Option<u64>,
    /// `TCP_NOTSENT_LOWAT`, bytes: how much may wait unsent in the socket.
    pub notsent_lowat_bytes: Option<u32>,
    /// Packets that a connection may have under way at first. Only the route can give them
    /// (`ip route … initcwnd N`), so that this is checked, on a connection's first request, and
    /// not set.
    pub initial_window_packets: Option<u32>,
}

/// Puts references to the pages of these bytes into a pipe, as many as it has room for. What arrives
/// in the end is what the pages hold when they leave: see [`super::Mapped::memory`].
pub(super) fn refer(pipe: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    // At a pipe's end for writing the kernel reads from the slice, which is valid for reads, and
    // writes nothing to it; pages that it holds on to stay its own until they have left.
    unsafe {
        vmsplice(
            pipe,
            &[IoSliceRaw::from_slice(bytes)],
            SpliceFlags::NONBLOCK,
        )
    }
}

impl Transport {
    /// Nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Transport::default()
    }
}

/// An option that was refused, and why (an algorithm that is not there, or not allowed).
#[derive(Debug)]
pub struct Refused {
    /// `congestion`, `pace`, `notsent-lowat` or `initial-window`.
    pub option: &'static str,
    /// What the kernel said, or what it does instead.
    pub why: String,
}

/// Sets what is asked for, and reads it back. Returns how it was before (of what was touched),
/// and what was refused.
pub(super) fn apply(fd: BorrowedFd<'_>, wanted: &Transport) -> (Transport, Vec<Refused>) {
    let (mut before, mut refused) = (Transport::default(), Vec::new());
    let mut note = |option, result: io::Result<()>| {
        if let Err(error) = result {
            let why = error.to_string();
            refused.push(Refused { option, why });
        }
    };
    if let Some(name) = &wanted.congestion {
        before.congestion = congestion(fd).ok();
        let set = rustix::net::sockopt::set_tcp_congestion(fd, name).map_err(io::Error::from);
        let set = set.and_then(|()| same(name, &congestion(fd)?));
        note("congestion", set);
    }
    if let Some(rate) = wanted.pace_bytes_per_s {
        before.pace_bytes_per_s = pace(fd).ok();
        let set = set_pace(fd, rate).and_then(|()| same(&rate, &pace(fd)?));
        note("pace", set);
    }
    if let Some(bytes) = wanted.notsent_lowat_bytes {
        let socket = socket2::SockRef::from(&fd);
        before.notsent_lowat_bytes = socket.tcp_notsent_lowat().ok();
        let set = socket.set_tcp_notsent_lowat(bytes);
        let set = set.and_then(|()| same(&bytes, &socket.tcp_notsent_lowat()?));
        note("notsent-lowat", set);
    }
    if let Some(packets) = wanted.initial_window_packets {
        note("initial-window", window(fd, packets));
    }
    (before, refused)
}

fn window(fd: BorrowedFd<'_>, wanted: u32) -> io::Result<()> {
    match info(fd)?.cwnd_packets {
        Some(given) if given < wanted => Err(io::Error::other(format!(
            "the route gives {given} packets; `ip route change ROUTE initcwnd {wanted}` would \
             give {wanted}"
        ))),
        _ => Ok(()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(wanted: &T, found: &T) -> io::Result<()> {
    if wanted == found {
        return Ok(());
    }
    Err(io::Error::other(format!("it is {found:?} instead")))
}

/// The algorithm in force.
pub(crate) fn congestion(fd: BorrowedFd<'_>) -> io::Result<String> {
    Ok(rustix::net::sockopt::tcp_congestion(fd)?)
}

fn pace(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes = [0; 8];
    // Kernels before 4.20 give four bytes.
    match get(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut bytes)? {
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
    // SAFETY: the descriptor is open while it is borrowed; the kernel reads `len` bytes from the
    // pointer, which is how many there are.
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

/// Fills `into` from its start; returns how many bytes the kernel gave.
fn get(fd: BorrowedFd<'_>, level: i32, name: i32, into: &mut [u8]) -> io::Result<usize> {
    let mut len = into.len() as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed; the kernel writes at most `len` bytes
    // to the pointer, which is how many there are, and any bytes are valid `u8`s.
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

/// More than any kernel gives so far (280 bytes on 6.18).
const INFO_BYTES_MAX: usize = 512;
/// `TCP_CC_INFO`: what the algorithm says of itself.
const TCP_CC_INFO: i32 = 26;

/// What TCP knows of a connection (`struct tcp_info`), in the units of the names. A field that
/// this kernel does not have is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)] // The names are the kernel's, with units.
pub struct TcpInfo {
    pub algorithm: String,
    /// 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: Option<u8>,
    pub rtt_us: Option<u32>,
    pub rttvar_us: Option<u32>,
    pub min_rtt_us: Option<u32>,
    pub cwnd_packets: Option<u32>,
    pub ssthresh_packets: Option<u32>,
    pub mss_bytes: Option<u32>,
    pub unacked_packets: Option<u32>,
    pub lost_packets: Option<u32>,
    pub total_retrans_packets: Option<u32>,
    pub reordering_packets: Option<u32>,
    pub bytes_sent: Option<u64>,
    pub bytes_acked: Option<u64>,
    pub bytes_retrans: Option<u64>,
    pub notsent_bytes: Option<u32>,
    pub delivery_rate_bytes_per_s: Option<u64>,
    /// The delivery rate was limited by what we gave it, not by the network.
    pub app_limited: Option<bool>,
    pub pacing_rate_bytes_per_s: Option<u64>,
    pub max_pacing_rate_bytes_per_s: Option<u64>,
    pub busy_us: Option<u64>,
    pub rwnd_limited_us: Option<u64>,
    pub sndbuf_limited_us: Option<u64>,
    pub dsack_dups: Option<u32>,
    pub snd_wnd_bytes: Option<u32>,
    pub total_rto: Option<u16>,
    /// BBR's own state, where that is the algorithm.
    pub bbr: Option<Bbr>,
}

/// `struct tcp_bbr_info`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bbr {
    /// Bottleneck bandwidth as BBR has it.
    pub bw_bytes_per_s: u64,
    /// Its own minimal round-trip time.
    pub min_rtt_us: u32,
    /// Of the bandwidth; 1 is just that.
    pub pacing_gain: f32,
    /// Of the bandwidth-delay product.
    pub cwnd_gain: f32,
}

/// Asks the kernel.
pub(crate) fn info(fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0; INFO_BYTES_MAX];
    let len = get(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let algorithm = congestion(fd)?;
    let bbr = if algorithm == "bbr" {
        let mut own = [0; 20];
        let len = get(fd, libc::IPPROTO_TCP, TCP_CC_INFO, &mut own)?;
        bbr(own.get(..len).unwrap_or(&[]))
    } else {
        None
    };
    Ok(TcpInfo {
        bbr,
        ..parse(algorithm, bytes.get(..len).unwrap_or(&[]))
    })
}

/// The offsets are those of `include/uapi/linux/tcp.h`, which only ever grows at its end.
fn parse(algorithm: String, bytes: &[u8]) -> TcpInfo {
    let at = |offset: usize, len: usize| bytes.get(offset..offset + len);
    let wide = |offset| Some(u64::from_ne_bytes(at(offset, 8)?.try_into().ok()?));
    let word = |offset| Some(u32::from_ne_bytes(at(offset, 4)?.try_into().ok()?));
    let half = |offset| Some(u16::from_ne_bytes(at(offset, 2)?.try_into().ok()?));
    TcpInfo {
        algorithm,
        ca_state: bytes.get(1).copied(),
        app_limited: bytes.get(7).map(|bits| bits & 1 == 1),
        mss_bytes: word(16),
        unacked_packets: word(24),
        lost_packets: word(32),
        rtt_us: word(68),
        rttvar_us: word(72),
        ssthresh_packets: word(76),
        cwnd_packets: word(80),
        reordering_packets: word(88),
        total_retrans_packets: word(100),
        pacing_rate_bytes_per_s: wide(104),
        max_pacing_rate_bytes_per_s: wide(112),
        bytes_acked: wide(120),
        notsent_bytes: word(144),
        min_rtt_us: word(148),
        delivery_rate_bytes_per_s: wide(160),
        busy_us: wide(168),
        rwnd_limited_us: wide(176),
        sndbuf_limited_us: wide(184),
        bytes_sent: wide(200),
        bytes_retrans: wide(208),
        dsack_dups: word(216),
        snd_wnd_bytes: word(228),
        total_rto: half(240),
        bbr: None,
    }
}

fn bbr(bytes: &[u8]) -> Option<Bbr> {
    let word = |n: usize| {
        Some(u32::from_ne_bytes(
            bytes.get(n * 4..n * 4 + 4)?.try_into().ok()?,
        ))
    };
    // Gains are in units of 1/256.
    let gain = |n| Some(word(n)? as f32 / 256.0);
    Some(Bbr {
        bw_bytes_per_s: u64::from(word(1)?) << 32 | u64::from(word(0)?),
        min_rtt_us: word(2)?,
        pacing_gain: gain(3)?,
        cwnd_gain: gain(4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn pair() -> (std::net::TcpStream, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    #[test]
    fn a_struct_of_any_length_is_read_as_far_as_it_goes() {
        let mut bytes = [0; 280];
        bytes[7] = 1;
        bytes[68..72].copy_from_slice(&25_000u32.to_ne_bytes());
        bytes[160..168].copy_from_slice(&1_250_000u64.to_ne_bytes());
        bytes[240..242].copy_from_slice(&3u16.to_ne_bytes());
        for len in 0..=280 {
            let info = parse("reno".into(), &bytes[..len]);
            assert_eq!(info.rtt_us, (len >= 72).then_some(25_000), "{len}");
            let rate = info.delivery_rate_bytes_per_s;
            assert_eq!(rate, (len >= 168).then_some(1_250_000), "{len}");
            assert_eq!(info.total_rto, (len >= 242).then_some(3), "{len}");
            assert_eq!(info.app_limited, (len >= 8).then_some(true), "{len}");
        }
        assert_eq!(bbr(&[0; 19]), None);
    }

    #[test]
    fn a_live_socket_says_what_it_is_and_what_it_did() {
        use std::io::{Read, Write};
        let (mut one, mut other) = pair();
        one.write_all(&[7; 5000]).unwrap();
        other.read_exact(&mut [0; 5000]).unwrap();
        let info = info(one.as_fd()).unwrap();
        assert_eq!(info.bytes_sent, Some(5000));
        assert!(
            info.rtt_us.unwrap() > 0 && info.cwnd_packets.unwrap() > 0,
            "{info:?}"
        );
        assert_eq!(info.algorithm, congestion(one.as_fd()).unwrap());
        assert_eq!(info.bbr.is_some(), info.algorithm == "bbr");
    }

    #[test]
    fn options_are_set_read_back_and_put_back() {
        let (one, _other) = pair();
        let fd = one.as_fd();
        let first = congestion(fd).unwrap();
        let wanted = Transport {
            congestion: Some("reno".into()),
            pace_bytes_per_s: Some(1_000_000),
            notsent_lowat_bytes: Some(65_536),
            initial_window_packets: Some(1),
        };
        let (before, refused) = apply(fd, &wanted);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(before.congestion.as_deref(), Some(first.as_str()));
        assert_eq!(before.pace_bytes_per_s, Some(u64::MAX));
        let found = info(fd).unwrap();
        assert_eq!(found.algorithm, "reno");
        assert_eq!(found.max_pacing_rate_bytes_per_s, Some(1_000_000));
        let (_, refused) = apply(fd, &before);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(congestion(fd).unwrap(), first);
        assert_eq!(pace(fd).unwrap(), u64::MAX);
    }

    #[test]
    fn a_window_that_the_route_does_not_give_is_refused_with_the_remedy() {
        let (one, _other) = pair();
        let wanted = Transport {
            initial_window_packets: Some(100_000),
            ..Transport::default()
        };
        let (before, refused) = apply(one.as_fd(), &wanted);
        assert!(before.is_empty());
        assert!(refused[0].why.contains("initcwnd 100000"), "{refused:?}");
    }

    #[test]
    fn an_algorithm_that_is_not_there_is_refused_and_nothing_changes() {
        let (one, _other) = pair();
        let first = congestion(one.as_fd()).unwrap();
        let wanted = Transport {
            congestion: Some("no-such".into()),
            ..Transport::default()
        };
        let (_, refused) = apply(one.as_fd(), &wanted);
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].option, "congestion");
        assert_eq!(congestion(one.as_fd()).unwrap(), first);
    }
}
