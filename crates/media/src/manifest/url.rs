//! Every URL that manifests print. The origin's routes are the other half of this agreement.
//!
//! All are relative: a title can be moved, or mounted under any prefix, with its manifests.

use super::Format;
use crate::presentation::{Presentation, Rendition};
use std::fmt::{Display, Formatter, Result};

/// Prints by a function: URLs are written into manifests without being built first.
struct Url<F: Fn(&mut Formatter<'_>) -> Result>(F);

impl<F: Fn(&mut Formatter<'_>) -> Result> Display for Url<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0(f)
    }
}

/// An HLS media playlist, from the multivariant one. It lies in the folder of its segments, so that
/// each of them is but a name: of a long film that is most of the text.
pub fn playlist(format: Format, title: &Presentation, rendition: &Rendition) -> impl Display {
    let name = match format {
        Format::Cmaf => "hls",
        Format::Ts => "ts",
    };
    in_folder(title, rendition, name)
}

/// An HLS I-frame playlist, from the multivariant one.
pub fn iframes(title: &Presentation, rendition: &Rendition) -> impl Display {
    in_folder(title, rendition, "keyframes")
}

fn in_folder(title: &Presentation, rendition: &Rendition, name: &'static str) -> impl Display {
    let set = title.set_name();
    Url(move |f| write!(f, "{set}/{}/{name}.m3u8", rendition.name))
}

/// An init segment in the folder of a rendition.
pub const INIT: &str = "init.mp4";

/// A media segment by its time, in such a folder.
pub fn segment(time: u64, extension: &str) -> impl Display {
    Url(move |f| write!(f, "{time}.{extension}"))
}

/// The fragment of one key frame, in such a folder.
pub fn key(time: u64) -> impl Display {
    Url(move |f| write!(f, "key/{time}.m4s"))
}

/// `SegmentTemplate@initialization`, from an MPD's BaseURL.
pub const INIT_TEMPLATE: &str = "$RepresentationID$/init.mp4";

/// `SegmentTemplate@media` with `$Time$`, from an MPD's BaseURL.
pub const TIME_TEMPLATE: &str = "$RepresentationID$/$Time$.m4s";

/// `SegmentTemplate@media` with `$Number$`, from an MPD's BaseURL.
pub const NUMBER_TEMPLATE: &str = "$RepresentationID$/n/$Number$.m4s";
