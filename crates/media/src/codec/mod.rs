//! What a track is coded with: the sample entry we serve, its RFC 6381 string, and the facts
//! that manifests state.

use crate::error::Result;

/// A track's coding. Made from a sample entry of the stsd box by [`Codec::parse`].
#[derive(Debug, Clone)]
pub struct Codec {
    /// Four-letter code of the sample entry that we write.
    pub fourcc: [u8; 4],
    /// The whole sample entry box that our init segments carry: verbatim from the source, or
    /// brought into ISO form where the source is QuickTime.
    pub sample_entry: Vec<u8>,
    /// RFC 6381 `codecs` value, such as `avc1.64001F`.
    pub string: String,
    /// HLS `SUPPLEMENTAL-CODECS` value, such as `dvh1.08.07/db4h`, where the source says so.
    pub supplemental: Option<String>,
    /// What kind of media, and its facts.
    pub media: Media,
}

/// Facts by kind of media.
#[derive(Debug, Clone)]
pub enum Media {
    /// Pictures.
    Video(Video),
    /// Sound.
    Audio(Audio),
}

/// Facts of a video track.
#[derive(Debug, Clone)]
pub struct Video {
    /// Pixels, as decoded and cropped.
    pub width: u32,
    /// Pixels, as decoded and cropped.
    pub height: u32,
    /// Sample (pixel) aspect ratio; (1, 1) when not said.
    pub sar: (u32, u32),
    /// Colour, where the sample entry or the decoder configuration says.
    pub color: Option<Cicp>,
    /// How pictures are stored, where TS needs it (AVC and HEVC only).
    pub nal: Option<Nal>,
}

/// Colour after ISO/IEC 23091-2 (coding-independent code points).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cicp {
    /// `ColourPrimaries`: 1 is BT.709, 9 is BT.2020.
    pub primaries: u8,
    /// `TransferCharacteristics`: 1 is BT.709, 16 is PQ, 18 is HLG.
    pub transfer: u8,
    /// `MatrixCoefficients`.
    pub matrix: u8,
    /// `VideoFullRangeFlag`.
    pub full_range: bool,
}

/// What turns length-prefixed NAL units into a byte stream (Annex B).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nal {
    /// Whether units are HEVC's; else AVC's.
    pub hevc: bool,
    /// Bytes of each length field: 1, 2 or 4.
    pub length_bytes: u8,
    /// Parameter sets in the order a decoder wants them (VPS, SPS, PPS), without start codes.
    pub parameter_sets: Vec<Vec<u8>>,
}

/// Facts of an audio track.
#[derive(Debug, Clone)]
pub struct Audio {
    /// Which coding.
    pub coding: AudioCoding,
    /// Samples a second, as a decoder puts out (for HE-AAC: after SBR).
    pub sample_rate: u32,
    /// Loudspeaker channels, LFE included.
    pub channels: u32,
    /// HLS `CHANNELS`: `2`, `6`, or `16/JOC` for Atmos in E-AC-3.
    pub hls_channels: String,
    /// DASH `AudioChannelConfiguration`: scheme and value.
    pub dash_channels: (&'static str, String),
    /// `AudioSpecificConfig` (ISO/IEC 14496-3) for AAC; empty otherwise.
    pub aac_config: Vec<u8>,
}

/// Audio codings by how they are framed, which is what groups, TS and packed audio depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AudioCoding {
    /// AAC of any profile.
    Aac,
    /// MPEG-1 or -2 layer III.
    Mp3,
    /// Dolby Digital.
    Ac3,
    /// Dolby Digital Plus.
    Eac3,
    /// Opus.
    Opus,
    /// FLAC.
    Flac,
}

impl Codec {
    /// Reads one sample entry: the whole box with its header, as it lies in stsd.
    ///
    /// # Errors
    /// `Unsupported`, naming the four-letter code, for what we do not package (encrypted
    /// entries included); `Malformed` or `Truncated` where the entry or its configuration is broken.
    pub fn parse(entry: &[u8]) -> Result<Codec> {
        let _ = entry;
        Err(crate::Error::unsupported("codecs are not read yet"))
    }

    /// Pictures, if it is video.
    pub fn video(&self) -> Option<&Video> {
        match &self.media {
            Media::Video(video) => Some(video),
            Media::Audio(_) => None,
        }
    }

    /// Sound, if it is audio.
    pub fn audio(&self) -> Option<&Audio> {
        match &self.media {
            Media::Audio(audio) => Some(audio),
            Media::Video(_) => None,
        }
    }

    /// Bytes of heap, roughly.
    pub fn heap_bytes(&self) -> usize {
        self.sample_entry.len() * 2 + self.string.len()
    }
}
