//! TCP statistics of a connection, from the kernel.

use std::io;
use std::os::fd::BorrowedFd;

use serde::Serialize;

use super::{congestion_algorithm, get_option};

/// Buffer size in bytes for `struct tcp_info`. No kernel returns so many bytes yet (Linux 6.18
/// returns 280).
const INFO_BYTES_MAX: usize = 512;
/// The socket option `TCP_CC_INFO`, which returns statistics of the congestion control algorithm.
const TCP_CC_INFO: i32 = 26;

/// TCP statistics of a connection (`struct tcp_info`). The names of the fields contain the units. A
/// field is `None` if the running kernel does not return it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)] // The names are the kernel's, with units.
pub struct TcpInfo {
    pub algorithm: String,
    /// Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
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
    /// Whether the delivery rate was limited by the application, not by the network.
    pub app_limited: Option<bool>,
    pub pacing_rate_bytes_per_s: Option<u64>,
    pub max_pacing_rate_bytes_per_s: Option<u64>,
    pub busy_us: Option<u64>,
    pub rwnd_limited_us: Option<u64>,
    pub sndbuf_limited_us: Option<u64>,
    pub dsack_dups: Option<u32>,
    pub snd_wnd_bytes: Option<u32>,
    pub total_rto: Option<u16>,
    /// Statistics of BBR, if BBR is the algorithm.
    pub bbr: Option<BbrInfo>,
}

/// `struct tcp_bbr_info`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BbrInfo {
    /// BBR's estimate of the bottleneck bandwidth.
    pub bw_bytes_per_s: u64,
    /// BBR's estimate of the minimum round-trip time.
    pub min_rtt_us: u32,
    /// Pacing rate as a multiple of the bandwidth.
    pub pacing_gain: f32,
    /// Congestion window as a multiple of the bandwidth-delay product.
    pub cwnd_gain: f32,
}

/// Reads the statistics from the kernel.
pub(crate) fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0; INFO_BYTES_MAX];
    let len = get_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let algorithm = congestion_algorithm(fd)?;
    let bbr = if algorithm == "bbr" {
        let mut own = [0; 20];
        let len = get_option(fd, libc::IPPROTO_TCP, TCP_CC_INFO, &mut own)?;
        parse_bbr_info(own.get(..len).unwrap_or(&[]))
    } else {
        None
    };
    Ok(TcpInfo {
        bbr,
        ..parse_tcp_info(algorithm, bytes.get(..len).unwrap_or(&[]))
    })
}

/// Parses `struct tcp_info`. The offsets follow `include/uapi/linux/tcp.h`. New kernels add fields
/// only at the end of the struct.
fn parse_tcp_info(algorithm: String, bytes: &[u8]) -> TcpInfo {
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

fn parse_bbr_info(bytes: &[u8]) -> Option<BbrInfo> {
    let word = |n: usize| {
        Some(u32::from_ne_bytes(
            bytes.get(n * 4..n * 4 + 4)?.try_into().ok()?,
        ))
    };
    // The kernel returns gains in units of 1/256.
    let gain = |n| Some(word(n)? as f32 / 256.0);
    Some(BbrInfo {
        bw_bytes_per_s: u64::from(word(1)?) << 32 | u64::from(word(0)?),
        min_rtt_us: word(2)?,
        pacing_gain: gain(3)?,
        cwnd_gain: gain(4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_of_any_length_is_read_as_far_as_it_goes() {
        let mut bytes = [0; 280];
        bytes[7] = 1;
        bytes[68..72].copy_from_slice(&25_000u32.to_ne_bytes());
        bytes[160..168].copy_from_slice(&1_250_000u64.to_ne_bytes());
        bytes[240..242].copy_from_slice(&3u16.to_ne_bytes());
        for len in 0..=280 {
            let info = parse_tcp_info("reno".into(), &bytes[..len]);
            assert_eq!(info.rtt_us, (len >= 72).then_some(25_000), "{len}");
            let rate = info.delivery_rate_bytes_per_s;
            assert_eq!(rate, (len >= 168).then_some(1_250_000), "{len}");
            assert_eq!(info.total_rto, (len >= 242).then_some(3), "{len}");
            assert_eq!(info.app_limited, (len >= 8).then_some(true), "{len}");
        }
        assert_eq!(parse_bbr_info(&[0; 19]), None);
    }
}
