//! DASH `AudioChannelConfiguration`: the scheme and value that describe a channel layout.

/// Scheme whose values are `ChannelConfiguration` code points (ISO/IEC 23091-3).
const CICP: &str = "urn:mpeg:mpegB:cicp:ChannelConfiguration";
/// Scheme whose values are channel counts, for layouts without a code point (ISO/IEC 23009-1,
/// 5.8.5.4).
const COUNT: &str = "urn:mpeg:dash:23003:3:audio_channel_configuration:2011";
/// Dolby's scheme, whose values are four hexadecimal digits (ETSI TS 102 366, I.1.2.1).
const DOLBY: &str = "tag:dolby.com,2014:dash:audio_channel_configuration:2011";

/// Returns the scheme and value of the code point `layout`. Without a code point, returns the
/// scheme and value of the channel count.
pub fn cicp_channel_configuration(layout: Option<u8>, count: u32) -> (&'static str, String) {
    match layout {
        Some(layout) => (CICP, layout.to_string()),
        None => (COUNT, count.to_string()),
    }
}

/// Returns the code point of the layout that Vorbis, Opus and FLAC use for `count` channels (RFC
/// 7845, 5.1.1.2; RFC 9639, 9.1.3). For example, 4 channels are quadraphonic, 7 channels are 6.1,
/// and 8 channels are 7.1.
pub fn cicp_layout_of_count(count: u32) -> Option<u8> {
    match count {
        1..=3 | 5 | 6 => Some(count as u8),
        4 => Some(10),
        7 => Some(11),
        8 => Some(12),
        _ => None,
    }
}

/// Returns Dolby's scheme and the value for a channel map. The map has one bit for each loudspeaker
/// or pair of loudspeakers. The highest bit is the left loudspeaker.
pub fn dolby_channel_configuration(map: u16) -> (&'static str, String) {
    (DOLBY, format!("{map:04X}"))
}

/// Counts the loudspeakers of a Dolby channel map. Bits 5, 6, 9, 10, 11 and 13, counted from the
/// highest bit, are pairs of loudspeakers (ETSI TS 102 366, Table E.1.4).
pub fn count_dolby_channels(map: u16) -> u32 {
    const PAIRS: u16 = 1 << 10 | 1 << 9 | 1 << 6 | 1 << 5 | 1 << 4 | 1 << 2;
    map.count_ones() + (map & PAIRS).count_ones()
}
