//! Captions inside video (CEA-608 and CEA-708). The channels are found in SEI messages, so that
//! manifests can announce them. Players extract the captions.

use crate::codec::{Codec, NalFormat};

/// A caption channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaptionChannel {
    /// CEA-608 channel, 1 to 4.
    Cea608(u8),
    /// CEA-708 service, 1 to 6.
    Cea708(u8),
}

/// Highest CEA-708 service that is announced.
const SERVICE_MAX: u8 = 6;
/// Bit that is set in the mask of every searched file. A mask of 0 therefore means that the file
/// was not searched.
const WAS_SEARCHED: u16 = 1 << 15;

/// Maximum number of bytes that are searched in a NAL unit. SEI messages are far shorter.
const SEI_BYTES_MAX: usize = 64 << 10;
/// Start of an SEI payload with captions: `itu_t_t35_country_code`, provider code,
/// `user_identifier` and `user_data_type_code` (ATSC A/53 part 4, 6.2.3).
const CAPTION_DATA: &[u8] = b"\xb5\0\x31GA94\x03";

/// Returns the caption channels of a video sample, sorted. The list is empty for codecs other than
/// AVC and HEVC.
pub fn find_caption_channels(codec: &Codec, sample: &[u8]) -> Vec<CaptionChannel> {
    let Some(nal) = codec.video().and_then(|video| video.nal.as_ref()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for unit in split_units(nal, sample) {
        if let Some(messages) = sei_unit_body(nal, unit) {
            read_sei_messages(&remove_emulation_prevention(messages), &mut found);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Iterates over length-prefixed NAL units.
fn split_units<'a>(nal: &NalFormat, sample: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let length_bytes = usize::from(nal.length_field_bytes).max(1);
    let mut rest = sample;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_at_checked(length_bytes)?;
        let length = length
            .iter()
            .fold(0usize, |sum, byte| (sum << 8) | usize::from(*byte));
        let (unit, after) = after.split_at_checked(length)?;
        rest = after;
        Some(unit)
    })
}

/// Returns the bytes after the header of an SEI NAL unit. `None` for other NAL units.
fn sei_unit_body<'a>(nal: &NalFormat, unit: &'a [u8]) -> Option<&'a [u8]> {
    let (header_bytes, is_sei) = match nal.is_hevc {
        true => (2, matches!(unit.first()? >> 1 & 0x3f, 39 | 40)),
        false => (1, unit.first()? & 0x1f == 6),
    };
    let messages = unit.get(header_bytes..).filter(|_| is_sei)?;
    Some(messages.get(..SEI_BYTES_MAX).unwrap_or(messages))
}

/// Removes the byte 3 of each sequence `00 00 03` (ISO/IEC 14496-10, 7.4.1).
fn remove_emulation_prevention(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut zeros) = (Vec::with_capacity(bytes.len()), 0);
    for byte in bytes {
        if zeros >= 2 && *byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        out.push(*byte);
    }
    out
}

/// Reads SEI messages (ISO/IEC 14496-10, 7.3.2.3).
fn read_sei_messages(mut rest: &[u8], found: &mut Vec<CaptionChannel>) {
    // The last byte contains only the trailing bits.
    while rest.len() > 2 {
        let Some((kind, after)) = read_sei_number(rest) else {
            return;
        };
        let Some((length, after)) = read_sei_number(after) else {
            return;
        };
        let Some((payload, after)) = after.split_at_checked(length) else {
            return;
        };
        if let Some(data) = payload.strip_prefix(CAPTION_DATA).filter(|_| kind == 4) {
            read_caption_data(data, found);
        }
        rest = after;
    }
}

/// Reads a number that is coded as a sum of bytes. All bytes except the last are 255.
fn read_sei_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let full = bytes.iter().take_while(|byte| **byte == 255).count();
    let last = bytes.get(full)?;
    Some((full * 255 + usize::from(*last), bytes.get(full + 1..)?))
}

/// Reads `cc_data` (ANSI/CTA-708-E, 4.4).
fn read_caption_data(data: &[u8], found: &mut Vec<CaptionChannel>) {
    let count = data.first().map_or(0, |flags| usize::from(flags & 0x1f));
    let triplets = data
        .get(2..)
        .unwrap_or_default()
        .chunks_exact(3)
        .take(count);
    for triplet in triplets {
        let (kind, first, second) = (triplet[0] & 3, triplet[1] & 0x7f, triplet[2] & 0x7f);
        let is_valid = triplet[0] & 4 != 0;
        match kind {
            _ if !is_valid => {}
            // A channel of the first field is announced even if the sample contains only padding.
            0 => found.push(CaptionChannel::Cea608(1 + channel_index_in_field(first))),
            1 if (first, second) != (0, 0) => {
                found.push(CaptionChannel::Cea608(3 + channel_index_in_field(first)));
            }
            // The first byte is the header of a CEA-708 packet, and the second byte is the header
            // of its first service block.
            3 => {
                let service = triplet[2] >> 5;
                found.extend(
                    (1..=SERVICE_MAX)
                        .contains(&service)
                        .then_some(CaptionChannel::Cea708(service)),
                );
            }
            _ => {}
        }
    }
}

/// Returns 1 if the byte starts a control code of the field's second channel, otherwise 0
/// (ANSI/CTA-608-E, 8.4).
fn channel_index_in_field(first: u8) -> u8 {
    u8::from((0x10..0x20).contains(&first) && first & 8 != 0)
}

/// Packs the channels of a file into a mask for index MP4s. Bits 0 to 3 are CC1 to CC4, and bits 4
/// to 9 are SERVICE1 to SERVICE6. `None` means that the file was not searched, and gives the mask
/// 0.
pub(crate) fn pack_caption_channels(channels: Option<&[CaptionChannel]>) -> u16 {
    let bits = channels.map(|channels| channels.iter().map(|channel| 1u16 << channel.mask_bit()));
    bits.map_or(0, |bits| bits.fold(WAS_SEARCHED, |mask, bit| mask | bit))
}

/// Reads a mask of [`pack_caption_channels`].
pub(crate) fn unpack_caption_channels(mask: u16) -> Option<Vec<CaptionChannel>> {
    let cea608 = (1..=4).map(CaptionChannel::Cea608);
    let all = cea608.chain((1..=SERVICE_MAX).map(CaptionChannel::Cea708));
    let found = all.filter(|channel| mask >> channel.mask_bit() & 1 != 0);
    (mask & WAS_SEARCHED != 0).then(|| found.collect())
}

impl CaptionChannel {
    /// Returns the number of the channel's bit in a mask.
    fn mask_bit(self) -> u8 {
        match self {
            CaptionChannel::Cea608(channel) => channel.saturating_sub(1),
            CaptionChannel::Cea708(service) => 3 + service,
        }
    }

    /// Returns the value of `INSTREAM-ID` in HLS (RFC 8216, 4.3.4.1).
    pub(crate) fn instream_id(self) -> String {
        match self {
            CaptionChannel::Cea608(channel) => format!("CC{channel}"),
            CaptionChannel::Cea708(service) => format!("SERVICE{service}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of an HEVC NAL unit has two bytes. Captions are in prefix (39) or suffix (40) SEI
    /// messages.
    #[test]
    fn captions_inside_of_hevc_are_found() {
        let codec = crate::fixtures::build_hevc_pq_test_codec();
        let find = |unit_type: u8| {
            let mut unit = vec![unit_type << 1, 1, 4, 14];
            unit.extend(b"\xb5\0\x31GA94\x03\x41\xff\xfc\x94\x20\xff\x80");
            let length = u32::try_from(unit.len()).unwrap_or(0);
            find_caption_channels(&codec, &[&length.to_be_bytes(), &unit[..]].concat())
        };
        assert_eq!(find(39), [CaptionChannel::Cea608(1)]);
        assert_eq!(find(40), [CaptionChannel::Cea608(1)]);
        assert_eq!(find(32), []);
    }

    #[test]
    fn masks_keep_channels_and_whether_a_file_was_searched() {
        let channels = [
            CaptionChannel::Cea608(1),
            CaptionChannel::Cea608(4),
            CaptionChannel::Cea708(1),
            CaptionChannel::Cea708(6),
        ];
        for found in [None, Some(&[][..]), Some(&channels[1..2]), Some(&channels)] {
            let mask = pack_caption_channels(found);
            assert_eq!(unpack_caption_channels(mask).as_deref(), found, "{mask:#x}");
        }
        assert_eq!(pack_caption_channels(None), 0);
    }
}
