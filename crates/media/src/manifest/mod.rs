//! HLS playlists and DASH MPDs: writing them for presentations, and parsing those of any origin.

pub mod dash;
pub mod hls;
pub mod read;
pub mod url;

mod audio_groups;
mod audio_purpose;
pub(crate) mod language_tag;
mod languages;
#[cfg(test)]
mod tests;
mod text;
mod track_facts;

/// Container format of HLS segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SegmentFormat {
    /// CMAF: fragmented MP4.
    #[default]
    Cmaf,
    /// Transport streams for video, and packed audio.
    Ts,
}
