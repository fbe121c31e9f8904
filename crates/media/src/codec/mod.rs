//! Codecs of tracks: the served sample entry, the RFC 6381 string, and the properties for
//! manifests.

mod aac;
mod ac3;
mod audio_sample_entry;
mod audio_specific_config;
mod av1;
mod av1_sequence;
pub(crate) mod avc;
pub(crate) mod bit_reader;
mod channel_configuration;
pub(crate) mod child_boxes;
mod color_and_aspect;
mod dolby_vision;
mod eac3;
mod esds;
mod flac;
mod hevc;
pub(crate) mod hevc_sps;
mod opus;
mod parse;
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

/// The codec of a track. [`Codec::from_sample_entry`] builds it from a sample entry of the `stsd` box.
#[derive(Debug, Clone)]
pub struct Codec {
    /// Four-letter code of the served sample entry.
    pub fourcc: [u8; 4],
    /// The whole sample entry box for init segments. The box is copied from the source, or
    /// converted to ISO form if the source is a QuickTime entry.
    pub sample_entry: Vec<u8>,
    /// RFC 6381 `codecs` value, such as `avc1.64001F`.
    pub codec_string: String,
    /// HLS `SUPPLEMENTAL-CODECS` value (RFC 8216bis, 4.4.6.2), such as `dvh1.08.07/db4h`. `None` if
    /// the track has no supplemental codec.
    pub supplemental_codecs: Option<String>,
    /// Format of the video, audio or text.
    pub format: TrackFormat,
}

/// Format of a track, by kind of media.
#[derive(Debug, Clone)]
pub enum TrackFormat {
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
    /// Width of the decoded and cropped picture, in pixels.
    pub width: u32,
    /// Height of the decoded and cropped picture, in pixels.
    pub height: u32,
    /// Sample (pixel) aspect ratio; (1, 1) if unspecified.
    pub sar: (u32, u32),
    /// Colour, if the sample entry or the decoder configuration specifies it.
    pub color: Option<CicpColor>,
    /// Whether the track contains a view for each eye.
    pub is_stereo: bool,
    /// Storage format of NAL units in AVC and HEVC tracks. The conversion to transport
    /// streams needs this format.
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

/// Parameters for the conversion of length-prefixed NAL units to a byte stream (Annex B).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NalFormat {
    /// Whether the NAL units are HEVC; if not, they are AVC.
    pub is_hevc: bool,
    /// Size of each length field, which is 1, 2 or 4 bytes.
    pub length_field_bytes: u8,
    /// Parameter sets without start codes, in decoder order (VPS, SPS, PPS).
    pub parameter_sets: Vec<Vec<u8>>,
}

/// Format of an audio track.
#[derive(Debug, Clone)]
pub struct AudioFormat {
    /// The audio coding.
    pub coding: AudioCoding,
    /// Sampling rate of the decoder's output, in Hz. For HE-AAC, this is the rate after SBR.
    pub sample_rate: u32,
    /// Number of loudspeaker channels, including LFE.
    pub channel_count: u32,
    /// Value of HLS `CHANNELS`, such as `2`, `6`, or `16/JOC` for Atmos in E-AC-3.
    pub hls_channels: String,
    /// Scheme and value of DASH `AudioChannelConfiguration`.
    pub dash_channel_configuration: (&'static str, String),
    /// `AudioSpecificConfig` (ISO/IEC 14496-3) for AAC; empty for other codings.
    pub audio_specific_config: Vec<u8>,
}

/// Audio codings. The coding determines the form in which a rendition is sent as packed audio. Opus
/// and FLAC have no such form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AudioCoding {
    /// AAC of any profile.
    Aac,
    /// Layer III of MPEG-1 or MPEG-2.
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
    /// Returns the video format; `None` if this is not a video track.
    pub fn video(&self) -> Option<&VideoFormat> {
        match &self.format {
            TrackFormat::Video(video) => Some(video),
            TrackFormat::Audio(_) | TrackFormat::Text(_) => None,
        }
    }

    /// Returns the audio format; `None` if this is not an audio track.
    pub fn audio(&self) -> Option<&AudioFormat> {
        match &self.format {
            TrackFormat::Audio(audio) => Some(audio),
            TrackFormat::Video(_) | TrackFormat::Text(_) => None,
        }
    }

    /// Returns the text format; `None` if this is not a text track.
    pub fn text(&self) -> Option<TextFormat> {
        match &self.format {
            TrackFormat::Text(text) => Some(*text),
            TrackFormat::Video(_) | TrackFormat::Audio(_) => None,
        }
    }

    /// Appends the sample entry with `data_reference_index` 1 (ISO/IEC 14496-12, 8.5.2.2). The
    /// index is 1 because the `dref` box of a served track has only one entry.
    pub(crate) fn write_sample_entry(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&self.sample_entry);
        if let Some(index) = out.get_mut(at + 14..at + 16) {
            index.copy_from_slice(&[0, 1]);
        }
    }

    /// Returns the approximate heap memory, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.sample_entry.len() * 2 + self.codec_string.len()
    }
}

/// Builds the codec of a video entry.
///
/// `sps` contains the parameters from the decoder configuration. Boxes in the entry override the
/// colour and the pixel aspect ratio in `sps`. The picture size comes from `sps`, because only the
/// parameter sets contain the exact size.
fn build_video_codec(
    entry: &VisualSampleEntry<'_>,
    string: String,
    sps: Option<SequenceParameters>,
    nal: Option<NalFormat>,
) -> Codec {
    let dolby = dolby_vision::read_dolby_vision_strings(entry);
    Codec {
        fourcc: entry.code,
        sample_entry: entry.write_iso_entry(),
        codec_string: dolby.main_codec_string.unwrap_or(string),
        supplemental_codecs: dolby.supplemental_codecs,
        format: TrackFormat::Video(VideoFormat {
            width: sps.map_or(entry.width, |sps| sps.width),
            height: sps.map_or(entry.height, |sps| sps.height),
            sar: color_and_aspect::resolve_sar(&entry.children, sps.and_then(|sps| sps.sar)),
            color: color_and_aspect::resolve_cicp_color(
                &entry.children,
                sps.and_then(|sps| sps.color),
            ),
            is_stereo: stereo_video::is_stereoscopic(&entry.children),
            nal,
        }),
    }
}
