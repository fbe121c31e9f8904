//! All URLs that manifests contain. The origin's routes must match these URLs.
//!
//! All URLs are relative, so a title and its manifests can be moved together or mounted under any
//! prefix.

use super::{HlsTextForm, SegmentFormat};
use crate::presentation::{Presentation, Rendition};
use std::fmt::{Display, Formatter, Result};

/// Implements `Display` with a function, so that URLs are written without an intermediate string.
struct DisplayFn<F: Fn(&mut Formatter<'_>) -> Result>(F);

impl<F: Fn(&mut Formatter<'_>) -> Result> Display for DisplayFn<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0(f)
    }
}

/// Returns the URL of an HLS media playlist, relative to the multivariant playlist.
///
/// The playlist is in the same folder as its segments, so each segment URL is only a file name.
/// Short URLs matter because segment URLs are most of the playlist of a long film.
pub fn playlist_url(
    format: SegmentFormat,
    title: &Presentation,
    rendition: &Rendition,
) -> impl Display {
    let name = match format {
        SegmentFormat::Cmaf => "hls",
        SegmentFormat::Ts => "ts",
    };
    rendition_playlist_url(title, rendition, name)
}

/// Returns the URL of an HLS I-frame playlist, relative to the multivariant playlist.
pub fn iframe_playlist_url(title: &Presentation, rendition: &Rendition) -> impl Display {
    rendition_playlist_url(title, rendition, "keyframes")
}

fn rendition_playlist_url(
    title: &Presentation,
    rendition: &Rendition,
    name: &'static str,
) -> impl Display {
    let set = title.segment_folder_name();
    DisplayFn(move |f| write!(f, "{set}/{}/{name}.m3u8", rendition.name))
}

/// Returns the URL of the media playlist of a text rendition, relative to the multivariant
/// playlist.
pub fn text_playlist_url(form: HlsTextForm, title: &Presentation, name: &str) -> impl Display {
    let playlist = match form {
        HlsTextForm::WebVtt(SegmentFormat::Cmaf) => "hls",
        HlsTextForm::WebVtt(SegmentFormat::Ts) => "ts",
        HlsTextForm::Imsc => "imsc",
    };
    let version = title.text_version();
    DisplayFn(move |f| write!(f, "t-{version:016x}/{name}/{playlist}.m3u8"))
}

/// Returns the `BaseURL` of text renditions, relative to the `BaseURL` of the MPD.
pub fn text_base_url(title: &Presentation) -> impl Display {
    let version = title.text_version();
    DisplayFn(move |f| write!(f, "../t-{version:016x}/"))
}

/// URL of an init segment, relative to the folder of its rendition.
pub const INIT_SEGMENT: &str = "init.mp4";

/// Part of the file name of an IMSC segment, before the extension.
pub const IMSC_INFIX: &str = "imsc.";
/// URL of an init segment of IMSC text, relative to the folder of its rendition.
pub const IMSC_INIT_SEGMENT: &str = "init.imsc.mp4";
/// Name of the file with all cues of a text rendition.
pub const WHOLE_TEXT: &str = "all.vtt";

/// Returns the URL of the media segment with the start time `time`, relative to the folder of its
/// rendition.
pub fn segment_url(time: u64, extension: &str) -> impl Display {
    DisplayFn(move |f| write!(f, "{time}.{extension}"))
}

/// Returns the URL of a key frame's fragment, relative to the folder of its rendition.
pub fn key_frame_url(time: u64) -> impl Display {
    DisplayFn(move |f| write!(f, "key/{time}.m4s"))
}

/// `SegmentTemplate@initialization`, relative to the BaseURL of an MPD.
pub const INIT_TEMPLATE: &str = "$RepresentationID$/init.mp4";

/// `SegmentTemplate@media` with `$Time$`, relative to the BaseURL of an MPD.
pub const TIME_TEMPLATE: &str = "$RepresentationID$/$Time$.m4s";

/// `SegmentTemplate@media` with `$Number$`, relative to the BaseURL of an MPD.
pub const NUMBER_TEMPLATE: &str = "$RepresentationID$/n/$Number$.m4s";
