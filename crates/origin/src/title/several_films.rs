//! Whether a folder contains one film in several renditions, or several films.

use media::presentation::{Presentation, Rendition};

/// Returns whether files of equal length are several films instead of renditions of one. Two videos
/// of the same size and codec with similar bitrates are taken for episodes of a series.
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
