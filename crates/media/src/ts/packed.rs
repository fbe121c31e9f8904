//! Packed audio segments (RFC 8216, 3.4): a timestamp in an ID3 tag, then bare frames.

use super::adts::{Adts, HEADER};
use super::id3::{TAG, write_timestamp};
use crate::codec::{Audio, AudioCoding, Codec};
use crate::error::{Error, Result, fourcc};

/// File name extension of packed audio of this codec; none where it has no packed form: video,
/// Opus, FLAC, and AAC that ADTS headers cannot tell of (program config elements, xHE-AAC).
pub fn packed_extension(codec: &Codec) -> Option<&'static str> {
    let audio = codec.audio()?;
    match audio.coding {
        AudioCoding::Aac => Adts::new(&audio.aac_config).map(|_| "aac"),
        AudioCoding::Mp3 => Some("mp3"),
        AudioCoding::Ac3 => Some("ac3"),
        AudioCoding::Eac3 => Some("ec3"),
        AudioCoding::Opus | AudioCoding::Flac => None,
    }
}

/// Packs samples, in order, into a segment. `first_pts` is when the first is heard, in 90 kHz,
/// with [`super::TS_OFFSET_90K`] added.
///
/// # Errors
/// `Unsupported` where [`packed_extension`] gives none; `Malformed` if an AAC frame is longer
/// than 8184 bytes.
pub fn packed_audio(codec: &Codec, first_pts: u64, frames: &[&[u8]]) -> Result<Vec<u8>> {
    let no_form = || {
        let code = fourcc(codec.fourcc);
        Error::unsupported(format!("{code} has no packed audio form; ask for CMAF"))
    };
    packed_extension(codec).ok_or_else(no_form)?;
    let audio = codec.audio().ok_or_else(no_form)?;
    let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
    let len = packed_audio_len(codec, frames.len() as u64, bytes);
    let mut out = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
    write_timestamp(&mut out, first_pts);
    let adts = adts(audio);
    for frame in frames {
        if let Some(adts) = &adts {
            adts.write(&mut out, frame.len())?;
        }
        out.extend_from_slice(frame);
    }
    Ok(out)
}

/// Exact length of a packed segment of so many `frames` with so many `bytes` together.
pub fn packed_audio_len(codec: &Codec, frames: u64, bytes: u64) -> u64 {
    let framed = codec
        .audio()
        .is_some_and(|audio| audio.coding == AudioCoding::Aac);
    let header = if framed { HEADER as u64 } else { 0 };
    TAG as u64 + bytes + frames * header
}

fn adts(audio: &Audio) -> Option<Adts> {
    match audio.coding {
        AudioCoding::Aac => Adts::new(&audio.aac_config),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::bytes;
    use crate::codec::vectors::{AAC, AC3, AVC, EAC3, FLAC, MP3, OPUS};

    fn codec(hex: &str) -> Codec {
        Codec::parse(&bytes(hex)).unwrap()
    }

    #[test]
    fn only_some_codecs_have_a_packed_form() {
        let forms = [AAC, AC3, EAC3, MP3, OPUS, FLAC, AVC].map(|hex| packed_extension(&codec(hex)));
        let some = [Some("aac"), Some("ac3"), Some("ec3"), Some("mp3")];
        assert_eq!((&forms[..4], &forms[4..]), (&some[..], &[None; 3][..]));
        let error = packed_audio(&codec(OPUS), 0, &[]).unwrap_err();
        assert!(error.what.contains("Opus"), "{error}");
    }

    #[test]
    fn lengths_are_exact_and_frames_come_after_their_headers() {
        let frames: [&[u8]; 3] = [b"one", b"", b"three"];
        for (hex, header) in [(AAC, 7), (MP3, 0), (AC3, 0)] {
            let codec = codec(hex);
            let out = packed_audio(&codec, 900_000, &frames).unwrap();
            assert_eq!(out.len() as u64, packed_audio_len(&codec, 3, 8));
            let mut rest = &out[TAG..];
            for frame in frames {
                let (head, after) = rest.split_at(header);
                assert!(header == 0 || head[..2] == [0xff, 0xf1]);
                rest = after.strip_prefix(frame).unwrap();
            }
            assert!(rest.is_empty());
        }
    }
}
