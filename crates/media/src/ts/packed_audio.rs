//! Packed audio segments (RFC 8216, 3.4): a timestamp in an ID3 tag, followed by audio frames.

use super::adts::{ADTS_HEADER_BYTES, AdtsHeader};
use super::packed_audio_timestamp::{ID3_TAG_BYTES, write_id3_timestamp};
use crate::codec::{AudioCoding, AudioFormat, Codec};
use crate::error::{Error, Result, format_fourcc};

/// Returns the file name extension of packed audio in this codec.
///
/// `None` for video, Opus, FLAC, and AAC that ADTS headers cannot express (program config elements,
/// xHE-AAC).
pub fn packed_audio_extension(codec: &Codec) -> Option<&'static str> {
    let audio = codec.audio()?;
    match audio.coding {
        AudioCoding::Aac => AdtsHeader::new(&audio.audio_specific_config).map(|_| "aac"),
        AudioCoding::Mp3 => Some("mp3"),
        AudioCoding::Ac3 => Some("ac3"),
        AudioCoding::Eac3 => Some("ec3"),
        AudioCoding::Opus | AudioCoding::Flac => None,
    }
}

/// Packs samples, in order, into a segment.
///
/// `first_pts` is the presentation time of the first sample, in 90 kHz ticks, with
/// [`super::TIMESTAMP_OFFSET_90KHZ`] added.
///
/// # Errors
/// `Unsupported` if [`packed_audio_extension`] returns `None`. `Malformed` if an AAC frame is
/// longer than 8184 bytes.
pub fn pack_audio_segment(codec: &Codec, first_pts: u64, frames: &[&[u8]]) -> Result<Vec<u8>> {
    let no_form = || {
        let code = format_fourcc(codec.fourcc);
        Error::unsupported(format!("{code} has no packed audio form; request CMAF"))
    };
    packed_audio_extension(codec).ok_or_else(no_form)?;
    let audio = codec.audio().ok_or_else(no_form)?;
    let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
    let len = packed_audio_segment_len(codec, frames.len() as u64, bytes);
    let mut out = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
    write_id3_timestamp(&mut out, first_pts);
    let adts = adts_header(audio);
    for frame in frames {
        if let Some(adts) = &adts {
            adts.write_frame_header(&mut out, frame.len())?;
        }
        out.extend_from_slice(frame);
    }
    Ok(out)
}

/// Returns the exact length of a packed segment in bytes. It contains `frames` frames, which have
/// `bytes` bytes in total.
pub fn packed_audio_segment_len(codec: &Codec, frames: u64, bytes: u64) -> u64 {
    let framed = codec
        .audio()
        .is_some_and(|audio| audio.coding == AudioCoding::Aac);
    let header = if framed { ADTS_HEADER_BYTES as u64 } else { 0 };
    ID3_TAG_BYTES as u64 + bytes + frames * header
}

fn adts_header(audio: &AudioFormat) -> Option<AdtsHeader> {
    match audio.coding {
        AudioCoding::Aac => AdtsHeader::new(&audio.audio_specific_config),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::sample_entry_vectors::{AAC, AC3, AVC, EAC3, FLAC, MP3, OPUS};
    use crate::codec::tests::decode_hex;

    fn parse_codec(hex: &str) -> Codec {
        Codec::from_sample_entry(&decode_hex(hex)).unwrap()
    }

    #[test]
    fn only_some_codecs_have_a_packed_form() {
        let forms = [AAC, AC3, EAC3, MP3, OPUS, FLAC, AVC]
            .map(|hex| packed_audio_extension(&parse_codec(hex)));
        let some = [Some("aac"), Some("ac3"), Some("ec3"), Some("mp3")];
        assert_eq!((&forms[..4], &forms[4..]), (&some[..], &[None; 3][..]));
        let error = pack_audio_segment(&parse_codec(OPUS), 0, &[]).unwrap_err();
        assert!(error.message.contains("Opus"), "{error}");
    }

    #[test]
    fn lengths_are_exact_and_headers_precede_frames() {
        let frames: [&[u8]; 3] = [b"one", b"", b"three"];
        for (hex, header) in [(AAC, 7), (MP3, 0), (AC3, 0)] {
            let codec = parse_codec(hex);
            let out = pack_audio_segment(&codec, 900_000, &frames).unwrap();
            assert_eq!(out.len() as u64, packed_audio_segment_len(&codec, 3, 8));
            let mut rest = &out[ID3_TAG_BYTES..];
            for frame in frames {
                let (head, after) = rest.split_at(header);
                assert!(header == 0 || head[..2] == [0xff, 0xf1]);
                rest = after.strip_prefix(frame).unwrap();
            }
            assert!(rest.is_empty());
        }
    }
}
