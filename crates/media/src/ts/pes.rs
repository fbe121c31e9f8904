//! PES packet headers (ISO/IEC 13818-1, 2.4.3.6) and the clock references in adaptation fields
//! (2.4.3.4).

/// Timestamps are modulo 2^33.
const TIMESTAMP_WRAP: u64 = 1 << 33;

/// Time from the arrival of a frame at the decoder to its decoding: 0.5 s, in 90 kHz ticks.
const CLOCK_LEAD_90KHZ: u64 = 45_000;

/// Writes a PES header for video. It has 14 bytes, or 19 bytes if the decode time is before the
/// presentation time. The length field is 0, which means that the PES packet extends to the start
/// of the next PES packet.
pub fn write_pes_header(out: &mut Vec<u8>, pts: u64, dts: u64) {
    // 0x84 contains the marker '10' and data_alignment_indicator, because a frame starts here.
    out.extend_from_slice(&[0, 0, 1, 0xe0, 0, 0, 0x84]);
    if dts >= pts {
        out.extend_from_slice(&[0x80, 5]);
        out.extend_from_slice(&encode_timestamp(2, pts));
    } else {
        out.extend_from_slice(&[0xc0, 10]);
        out.extend_from_slice(&encode_timestamp(3, pts));
        out.extend_from_slice(&encode_timestamp(1, dts));
    }
}

/// Encodes a timestamp with its four-bit prefix and marker bits.
fn encode_timestamp(prefix: u8, time: u64) -> [u8; 5] {
    let time = time % TIMESTAMP_WRAP;
    [
        prefix << 4 | (time >> 29) as u8 & 0x0e | 1,
        (time >> 22) as u8,
        (time >> 14) as u8 | 1,
        (time >> 7) as u8,
        (time << 1) as u8 | 1,
    ]
}

/// Returns the programme clock reference at the arrival of the frame that is decoded at `dts`. The
/// extension of the reference is 0.
pub fn clock_reference(dts: u64) -> [u8; 6] {
    let base = dts.wrapping_sub(CLOCK_LEAD_90KHZ) % TIMESTAMP_WRAP;
    let [.., a, b, c, d] = ((base >> 1) as u32).to_be_bytes();
    [a, b, c, d, (base as u8) << 7 | 0x7e, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_timestamp(bytes: &[u8]) -> u64 {
        let [a, b, c, d, e] = bytes.try_into().map(|b: [u8; 5]| b.map(u64::from)).unwrap();
        assert_eq!((a & 1, c & 1, e & 1), (1, 1, 1), "marker bits");
        (a >> 1 & 7) << 30 | b << 22 | c >> 1 << 15 | d << 7 | e >> 1
    }

    proptest! {
        #[test]
        fn timestamps_are_read_back_modulo_2_33(pts in 0u64..1 << 34, delay in 0u64..200_000) {
            let dts = pts.saturating_sub(delay);
            let mut out = Vec::new();
            write_pes_header(&mut out, pts, dts);
            prop_assert_eq!(out.len(), if dts == pts { 14 } else { 19 });
            prop_assert_eq!(usize::from(out[8]), out.len() - 9);
            prop_assert_eq!(read_timestamp(&out[9..14]), pts % TIMESTAMP_WRAP);
            if dts != pts {
                prop_assert_eq!((out[9] >> 4, out[14] >> 4), (3, 1));
                prop_assert_eq!(read_timestamp(&out[14..19]), dts % TIMESTAMP_WRAP);
            }
        }

        #[test]
        fn the_clock_runs_half_a_second_ahead(dts in 0u64..1 << 34) {
            let [a, b, c, d, e, _] = clock_reference(dts).map(u64::from);
            let base = a << 25 | b << 17 | c << 9 | d << 1 | e >> 7;
            prop_assert_eq!((base + CLOCK_LEAD_90KHZ) % TIMESTAMP_WRAP, dts % TIMESTAMP_WRAP);
        }
    }
}
