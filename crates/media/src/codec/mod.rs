//! Codecs of tracks: the served sample entry, the RFC 6381 string, and the facts for manifests.

mod aac;
mod ac3;
mod audio_sample_entry;
mod audio_specific_config;
mod av1;
mod av1_sequence;
pub(crate) mod avc;
pub(crate) mod bit_reader;
mod channel_configuration;
mod color_and_aspect;
mod dolby_vision;
mod eac3;
mod esds;
mod flac;
mod hevc;
pub(crate) mod hevc_sps;
mod opus;
mod parse;
pub(crate) mod sample_entry;
#[cfg(test)]
pub(crate) mod sample_entry_vectors;
mod stereo_video;
#[cfg(test)]
pub(crate) mod tests;
mod visual_sample_entry;
mod vp9;
mod vvc;

pub use audio_specific_config::AudioSpecificConfig;

use color_and_aspect::SequenceParameters;
use visual_sample_entry::VisualSampleEntry;

/// The codec of a track. [`Codec::parse`] builds it from a sample entry of the `stsd` box.
#[derive(Debug, Clone)]
pub struct Codec {
    /// Four-letter code of the served sample entry.
    pub fourcc: [u8; 4],
    /// The whole sample entry box of init segments: verbatim from the source, or converted to ISO
    /// form if the source is QuickTime.
    pub sample_entry: Vec<u8>,
    /// RFC 6381 `codecs` value, such as `avc1.64001F`.
    pub codec_string: String,
    /// HLS `SUPPLEMENTAL-CODECS` value, such as `dvh1.08.07/db4h`, if the source has one (RFC
    /// 8216bis, 4.4.6.2).
    pub supplemental_codecs: Option<String>,
    /// Format of the video or audio.
    pub format: MediaFormat,
}

/// Format by kind of media.
#[derive(Debug, Clone)]
pub enum MediaFormat {
    /// A video track.
    Video(VideoFormat),
    /// An audio track.
    Audio(AudioFormat),
    /// A text track.
    Text(TextFormat),
}

/// Format of a text track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// WebVTT (ISO/IEC 14496-30, 7).
    Wvtt,
    /// TTML (ISO/IEC 14496-30, 6).
    Stpp,
    /// 3GPP timed text (3GPP TS 26.245), also called `mov_text`.
    Tx3g,
}

/// Format of a video track.
#[derive(Debug, Clone)]
pub struct VideoFormat {
    /// Width in pixels, decoded and cropped.
    pub width: u32,
    /// Height in pixels, decoded and cropped.
    pub height: u32,
    /// Sample (pixel) aspect ratio; (1, 1) if unspecified.
    pub sar: (u32, u32),
    /// Colour, if the sample entry or the decoder configuration specifies it.
    pub color: Option<CicpColor>,
    /// Whether there is a view for each eye.
    pub is_stereo: bool,
    /// Storage format of NAL units (AVC and HEVC only), for transport streams.
    pub nal: Option<NalFormat>,
}

/// Colour according to ISO/IEC 23091-2 (coding-independent code points).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CicpColor {
    /// `ColourPrimaries`: 1 is BT.709, 9 is BT.2020.
    pub primaries: u8,
    /// `TransferCharacteristics`: 1 is BT.709, 16 is PQ, 18 is HLG.
    pub transfer: u8,
    /// `MatrixCoefficients`.
    pub matrix: u8,
    /// `VideoFullRangeFlag`.
    pub full_range: bool,
}

/// Parameters that convert length-prefixed NAL units to a byte stream (Annex B).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NalFormat {
    /// Whether the units are HEVC; otherwise AVC.
    pub is_hevc: bool,
    /// Bytes of each length field: 1, 2 or 4.
    pub length_field_bytes: u8,
    /// Parameter sets without start codes, in decoder order (VPS, SPS, PPS).
    pub parameter_sets: Vec<Vec<u8>>,
}

/// Format of an audio track.
#[derive(Debug, Clone)]
pub struct AudioFormat {
    /// The audio coding.
    pub coding: AudioCoding,
    /// Samples per second at the output of a decoder (for HE-AAC: after SBR).
    pub sample_rate: u32,
    /// Loudspeaker channels, LFE included.
    pub channel_count: u32,
    /// HLS `CHANNELS`: `2`, `6`, or `16/JOC` for Atmos in E-AC-3.
    pub hls_channels: String,
    /// DASH `AudioChannelConfiguration`: scheme and value.
    pub dash_channel_configuration: (&'static str, String),
    /// `AudioSpecificConfig` (ISO/IEC 14496-3) for AAC; empty otherwise.
    pub audio_specific_config: Vec<u8>,
}

/// Audio codings, distinguished by their framing. The coding decides the audio group of a
/// rendition, and whether it can be sent in a transport stream or as packed audio.
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
    /// Returns the video format; `None` for other kinds.
    pub fn video(&self) -> Option<&VideoFormat> {
        match &self.format {
            MediaFormat::Video(video) => Some(video),
            MediaFormat::Audio(_) | MediaFormat::Text(_) => None,
        }
    }

    /// Returns the audio format; `None` for other kinds.
    pub fn audio(&self) -> Option<&AudioFormat> {
        match &self.format {
            MediaFormat::Audio(audio) => Some(audio),
            MediaFormat::Video(_) | MediaFormat::Text(_) => None,
        }
    }

    /// Returns the text format; `None` for other kinds.
    pub fn text(&self) -> Option<TextFormat> {
        match &self.format {
            MediaFormat::Text(text) => Some(*text),
            MediaFormat::Video(_) | MediaFormat::Audio(_) => None,
        }
    }

    /// Appends the sample entry with `data_reference_index` 1 (ISO/IEC 14496-12, 8.5.2.2), because
    /// the `dref` of a served track has one entry.
    pub(crate) fn write_sample_entry(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&self.sample_entry);
        if let Some(index) = out.get_mut(at + 14..at + 16) {
            index.copy_from_slice(&[0, 1]);
        }
    }

    /// Approximate heap memory, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.sample_entry.len() * 2 + self.codec_string.len()
    }
}

/// Builds the codec of a video entry.
///
/// `sps` comes from the decoder configuration. The entry's own boxes override it, except for the
/// size, which is exact only in the parameter sets.
fn build_video_codec(
    entry: &VisualSampleEntry<'_>,
    string: String,
    sps: Option<SequenceParameters>,
    nal: Option<NalFormat>,
) -> Codec {
    let dolby = dolby_vision::read_codec_strings(entry);
    Codec {
        fourcc: entry.code,
        sample_entry: entry.write(),
        codec_string: dolby.main_codec_string.unwrap_or(string),
        supplemental_codecs: dolby.supplemental_codecs,
        format: MediaFormat::Video(VideoFormat {
            width: sps.map_or(entry.width, |sps| sps.width),
            height: sps.map_or(entry.height, |sps| sps.height),
            sar: color_and_aspect::resolve_sar(&entry.children, sps.and_then(|sps| sps.sar)),
            color: color_and_aspect::resolve_color(&entry.children, sps.and_then(|sps| sps.color)),
            is_stereo: stereo_video::is_stereo(&entry.children),
            nal,
        }),
    }
}
