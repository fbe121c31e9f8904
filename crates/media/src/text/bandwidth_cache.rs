//! Measured bandwidths of text.

use crate::presentation::DashText;
use std::sync::OnceLock;

/// Bits per second of the text renditions of a presentation. There is one list per form of text, in
/// the order of the renditions.
///
/// The values are cached, because measuring takes longer than writing the manifest and players
/// request several manifests of a title. HLS playlists contain no bandwidth of text, so the values
/// are only measured for the first MPD.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextBandwidths {
    wvtt: OnceLock<Box<[u64]>>,
    imsc: OnceLock<Box<[u64]>>,
    file: OnceLock<Box<[u64]>>,
}

impl TextBandwidths {
    pub(super) fn of_form(&self, form: DashText) -> &OnceLock<Box<[u64]>> {
        match form {
            DashText::Wvtt => &self.wvtt,
            DashText::Imsc => &self.imsc,
            DashText::File => &self.file,
        }
    }
}
