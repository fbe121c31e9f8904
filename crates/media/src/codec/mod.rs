//! What a track is coded with: the sample entry we serve, its RFC 6381 string, and the facts
//! that manifests state.

mod aac;
mod ac3;
mod asc;
mod audio_entry;
mod av1;
mod av1_sequence;
mod avc;
mod bits;
mod channels;
mod color;
mod dovi;
mod eac3;
mod entry;
mod esds;
mod flac;
mod hevc;
mod hevc_sps;
mod opus;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
pub(crate) mod vectors;
mod visual_entry;
mod vp9;
mod vvc;

pub use asc::AudioSpecificConfig;

use crate::error::{Error, Result, fourcc};
use audio_entry::AudioEntry;
use color::Sps;
use visual_entry::VisualEntry;

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
        let (code, body) = entry::open(entry)?;
        let visual = || VisualEntry::read(code, body);
        let audio = || AudioEntry::read(code, body);
        let codec = match &code {
            b"avc1" | b"avc3" | b"dva1" | b"dvav" => visual().and_then(|entry| avc::parse(&entry)),
            b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => visual().and_then(|entry| hevc::parse(&entry)),
            b"av01" | b"dav1" => visual().and_then(|entry| av1::parse(&entry)),
            b"vp09" => visual().and_then(|entry| vp9::parse(&entry)),
            b"vvc1" | b"vvi1" => visual().and_then(|entry| vvc::parse(&entry)),
            b"ac-3" => audio().and_then(|entry| ac3::parse(&entry)),
            b"ec-3" => audio().and_then(|entry| eac3::parse(&entry)),
            b"Opus" => audio().and_then(|entry| opus::parse(&entry)),
            b"fLaC" => audio().and_then(|entry| flac::parse(&entry)),
            b"mp4a" => audio().and_then(|entry| aac::parse(&entry)),
            b".mp3" | b"mp3 " | b"ms\0\x55" => audio().and_then(|entry| aac::parse_mp3(&entry)),
            _ => return Err(refuse(code)),
        };
        codec.map_err(|error| error.inside(code))
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

    /// Appends the sample entry, for a track whose dref has one entry, whatever the source's had
    /// (`data_reference_index`, ISO/IEC 14496-12, 8.5.2.2).
    pub(crate) fn write_entry(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&self.sample_entry);
        if let Some(index) = out.get_mut(at + 14..at + 16) {
            index.copy_from_slice(&[0, 1]);
        }
    }

    /// Bytes of heap, roughly.
    pub fn heap_bytes(&self) -> usize {
        self.sample_entry.len() * 2 + self.string.len()
    }
}

/// Puts together what every video entry has in common. `sps` and `color` come from the decoder
/// configuration; the entry's own boxes go before them, but for the size, which the pictures know.
fn visual(entry: &VisualEntry<'_>, string: String, sps: Option<Sps>, nal: Option<Nal>) -> Codec {
    let dolby = dovi::strings(entry);
    Codec {
        fourcc: entry.code,
        sample_entry: entry.write(),
        string: dolby.main.unwrap_or(string),
        supplemental: dolby.supplemental,
        media: Media::Video(Video {
            width: sps.map_or(entry.width, |sps| sps.width),
            height: sps.map_or(entry.height, |sps| sps.height),
            sar: color::sar(&entry.children, sps.and_then(|sps| sps.sar)),
            color: color::color(&entry.children, sps.and_then(|sps| sps.color)),
            nal,
        }),
    }
}

/// Why the entry `code` is not packaged, and what its owner can do.
fn refuse(code: [u8; 4]) -> Error {
    let hint = match &code {
        b"encv" | b"enca" => "is already encrypted; give the clear file",
        b"mp4v" | b"s263" | b"ap4h" | b"apch" | b"apcn" | b"apcs" | b"apco" | b"jpeg" | b"mjpa" => {
            "cannot be played by browsers; encode the video as AVC, HEVC or AV1"
        }
        b"alac" | b"twos" | b"sowt" | b"lpcm" | b"ipcm" | b"fpcm" | b"in24" | b"fl32" | b"samr"
        | b"dtsc" | b"dtse" | b"dtsh" | b"dtsl" | b"mlpa" => {
            "cannot be played by browsers; encode the audio as AAC, or as FLAC without loss"
        }
        _ => "is not among the codecs that are packaged",
    };
    Error::unsupported(format!("codec {} {hint}", fourcc(code)))
}
