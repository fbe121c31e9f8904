//! DASH `AudioChannelConfiguration`: scheme and value of a channel layout.

/// Scheme of `ChannelConfiguration` code points (ISO/IEC 23091-3).
const CICP: &str = "urn:mpeg:mpegB:cicp:ChannelConfiguration";
/// Scheme of a plain count, where no code point fits (ISO/IEC 23009-1, 5.8.5.4).
const COUNT: &str = "urn:mpeg:dash:23003:3:audio_channel_configuration:2011";
/// Scheme of Dolby's four hexadecimal digits (ETSI TS 102 366, I.1.2.1).
const DOLBY: &str = "tag:dolby.com,2014:dash:audio_channel_configuration:2011";

/// Returns the CICP scheme with this code point, or the plain count if there is none.
pub fn cicp_configuration(layout: Option<u8>, count: u32) -> (&'static str, String) {
    match layout {
        Some(layout) => (CICP, layout.to_string()),
        None => (COUNT, count.to_string()),
    }
}

/// Returns the code point of the customary layout of `count` channels, as in Vorbis, Opus and FLAC
/// (RFC 7845, 5.1.1.2; RFC 9639, 9.1.3): quadraphonic for 4, 6.1 for 7, 7.1 for 8.
pub fn cicp_layout_of_count(count: u32) -> Option<u8> {
    match count {
        1..=3 | 5 | 6 => Some(count as u8),
        4 => Some(10),
        7 => Some(11),
        8 => Some(12),
        _ => None,
    }
}

/// Returns Dolby's scheme and its value: one bit for each loudspeaker or pair of loudspeakers. The
/// highest bit is the left loudspeaker.
pub fn dolby_configuration(map: u16) -> (&'static str, String) {
    (DOLBY, format!("{map:04X}"))
}

/// Counts the loudspeakers of a Dolby channel map. Bits 5, 6, 9, 10, 11 and 13, from the highest,
/// are pairs (ETSI TS 102 366, Table E.1.4).
pub fn count_dolby_channels(map: u16) -> u32 {
    const PAIRS: u16 = 1 << 10 | 1 << 9 | 1 << 6 | 1 << 5 | 1 << 4 | 1 << 2;
    map.count_ones() + (map & PAIRS).count_ones()
}
