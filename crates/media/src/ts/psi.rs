//! Programme tables (ISO/IEC 13818-1, 2.4.4): one PAT and one PMT packet, built at compile time.

use super::crc::crc32;
use super::packet_writer::{PACKET_BYTES, VIDEO_PID};

/// PID of the programme map table.
const PMT_PID: u16 = 0x1000;
/// Value of `program_number` and of `transport_stream_id`.
const PROGRAM_NUMBER: u8 = 1;
/// `stream_type` (Table 2-34).
const AVC_STREAM_TYPE: u8 = 0x1b;
const HEVC_STREAM_TYPE: u8 = 0x24;

/// The packet of the programme association table.
pub const PAT_PACKET: [u8; PACKET_BYTES] = build_table_packet(
    0,
    &[
        0x00,
        0xb0,
        13,
        0,
        PROGRAM_NUMBER,
        0xc1,
        0,
        0, // table_id to last_section_number
        0,
        PROGRAM_NUMBER,
        0xe0 | (PMT_PID >> 8) as u8,
        PMT_PID as u8,
    ],
);

const PMT_AVC: [u8; PACKET_BYTES] = build_pmt(AVC_STREAM_TYPE);
const PMT_HEVC: [u8; PACKET_BYTES] = build_pmt(HEVC_STREAM_TYPE);

/// Returns the packet of the programme map table.
pub fn pmt_packet(hevc: bool) -> &'static [u8; PACKET_BYTES] {
    if hevc { &PMT_HEVC } else { &PMT_AVC }
}

/// Builds a programme map table with the video stream, which also carries the clock references.
const fn build_pmt(stream_type: u8) -> [u8; PACKET_BYTES] {
    let (high, low) = (0xe0 | (VIDEO_PID >> 8) as u8, VIDEO_PID as u8);
    let section = [
        0x02,
        0xb0,
        18,
        0,
        PROGRAM_NUMBER,
        0xc1,
        0,
        0, // table_id to last_section_number
        high,
        low,
        0xf0,
        0, // PCR_PID, program_info_length
        stream_type,
        high,
        low,
        0xf0,
        0, // ES_info_length
    ];
    build_table_packet(PMT_PID, &section)
}

/// Builds a packet with one section. It contains pointer_field, `section`, CRC and stuffing. The
/// continuity counter of the packet is 0 in every segment.
const fn build_table_packet(pid: u16, section: &[u8]) -> [u8; PACKET_BYTES] {
    let mut packet = [0xff; PACKET_BYTES];
    let head = [0x47, 0x40 | (pid >> 8) as u8, pid as u8, 0x10, 0];
    let mut n = 0;
    while n < head.len() {
        packet[n] = head[n];
        n += 1;
    }
    let mut k = 0;
    while k < section.len() {
        packet[n + k] = section[k];
        k += 1;
    }
    let crc = crc32(section, section.len()).to_be_bytes();
    let mut c = 0;
    while c < 4 {
        packet[n + k + c] = crc[c];
        c += 1;
    }
    packet
}
