//! Rules that the operator sets for the content of manifests.

/// Facts that the media files do not contain, and choices between tracks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestOptions {
    /// Whether the video is known to contain no closed captions. HLS playlists then declare
    /// `CLOSED-CAPTIONS=NONE`, so players do not look for captions.
    pub has_no_captions: bool,
    /// Language of the audio that plays by default (ISO 639 or BCP 47). With `None`, the flags of
    /// the tracks decide.
    pub default_audio: Option<String>,
    /// Form of text in HLS with CMAF segments.
    pub hls_text: CmafHlsTextForm,
    /// Form of text in DASH.
    pub dash_text: DashTextForm,
}

/// Form of text in HLS with CMAF segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CmafHlsTextForm {
    /// WebVTT segments.
    #[default]
    WebVtt,
    /// IMSC in CMAF.
    Imsc,
}

/// Form of text in DASH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DashTextForm {
    /// WebVTT in CMAF.
    #[default]
    Wvtt,
    /// IMSC in CMAF.
    Imsc,
    /// One WebVTT file.
    File,
}
