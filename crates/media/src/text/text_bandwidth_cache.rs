//! Measured bandwidths of text.

use crate::presentation::DashTextForm;
use std::sync::OnceLock;

/// Bits per second of the text renditions of a presentation. There is one list per form of text, in
/// the order of the renditions.
///
/// The values are cached, because measuring takes longer than writing the manifest and players
/// request several manifests of a title. HLS playlists contain no bandwidth of text, so the values
/// are not measured until the first MPD is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextBandwidths {
    wvtt: OnceLock<Box<[u64]>>,
    imsc: OnceLock<Box<[u64]>>,
    file: OnceLock<Box<[u64]>>,
}

impl TextBandwidths {
    pub(super) fn bandwidths_of_form(&self, form: DashTextForm) -> &OnceLock<Box<[u64]>> {
        match form {
            DashTextForm::Wvtt => &self.wvtt,
            DashTextForm::Imsc => &self.imsc,
            DashTextForm::File => &self.file,
        }
    }
}
