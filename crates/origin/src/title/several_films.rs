//! Decides whether a folder contains several renditions of one film or several films.

use media::presentation::{Presentation, Rendition};

/// Returns whether files of about the same duration are several films instead of renditions of one
/// film. Two videos with the same resolution, the same codec and similar bitrates are considered to
/// be episodes of a series.
pub(crate) fn are_several_films(p: &Presentation) -> bool {
    let alike = |a: &Rendition, b: &Rendition| {
        let (x, y) = (&p.track(a).codec, &p.track(b).codec);
        let size = |codec: &media::codec::Codec| codec.video().map(|v| (v.width, v.height));
        let (low, high) = (
            a.bandwidth.average.min(b.bandwidth.average),
            a.bandwidth.average.max(b.bandwidth.average),
        );
        let near = high - low <= high / 4;
        a.file_index != b.file_index && x.fourcc == y.fourcc && size(x) == size(y) && near
    };
    let videos: Vec<_> = p.video_renditions().collect();
    let pairs = videos.iter().enumerate();
    pairs
        .into_iter()
        .any(|(n, a)| videos.iter().skip(n + 1).any(|b| alike(a, b)))
}
