//! Writes HLS playlists and DASH MPDs for presentations, and parses the manifests of any origin.

pub mod dash;
pub mod hls;
pub mod read;
pub mod url;

use crate::presentation::{CmafHlsTextForm, ManifestOptions};

mod audio_groups;
mod audio_purpose;
pub(crate) mod escaping;
mod language_table;
pub(crate) mod language_tag;
#[cfg(test)]
mod tests;
mod track_facts;

/// Format of the text segments of HLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HlsTextForm {
    /// WebVTT. Its `X-TIMESTAMP-MAP` contains a time on the clock of this media container.
    WebVtt(SegmentFormat),
    /// IMSC in CMAF.
    Imsc,
}

impl HlsTextForm {
    /// Returns the text format that a presentation's rules select for media in this container. Text
    /// with transport streams is never IMSC, because IMSC segments are CMAF.
    pub(crate) fn choose_text_form(format: SegmentFormat, rules: &ManifestOptions) -> HlsTextForm {
        match (format, rules.hls_text) {
            (SegmentFormat::Cmaf, CmafHlsTextForm::Imsc) => HlsTextForm::Imsc,
            _ => HlsTextForm::WebVtt(format),
        }
    }
}

/// Container format of HLS segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SegmentFormat {
    /// CMAF: fragmented MP4.
    #[default]
    Cmaf,
    /// Transport streams for video, and packed audio for audio.
    Ts,
}
