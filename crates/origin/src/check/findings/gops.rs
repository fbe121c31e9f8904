//! Rules about groups of pictures: where segments and films start within them.

use super::{Finding, FindingLevel, video_renditions};
use media::presentation::{Presentation, Rendition};

/// Reports leading pictures: pictures that are presented before the key frame that starts their
/// segment. In open GOPs, they refer to the previous segment.
pub(super) fn gops_are_closed(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in video_renditions(title).filter(|r| r.has_leading_pictures) {
        let count = count_open_segments(title, rendition);
        let total = rendition.segment_count();
        found.push(Finding::new(
            FindingLevel::Warning,
            &rendition.name,
            format!(
                "{count} of {total} segments have pictures before their first key frame, as open \
                 GOPs do; after a seek or a switch, players cannot decode these pictures"
            ),
            "encode with closed GOPs (libx264: -flags +cgop, libx265: -x265-params open-gop=0)",
        ));
    }
}

fn count_open_segments(title: &Presentation, rendition: &Rendition) -> usize {
    let samples = &title.track(rendition).samples;
    let shown = |n: u32| {
        let ticks = samples.dts(n) as i64 + i64::from(samples.composition_offset(n));
        ticks + rendition.start_ticks + i64::from(rendition.composition_shift)
    };
    let starts = rendition.segment_cuts.iter().zip(&rendition.segment_starts);
    starts
        .take(rendition.segment_count())
        .filter(|(cut, start)| shown(**cut) > **start as i64)
        .count()
}

/// Reports films whose edit list starts between two key frames. Segments cannot hide the pictures
/// before it, because the first visible picture refers to them.
pub(super) fn trims_start_at_key_frames(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in video_renditions(title) {
        let hidden = title.hidden_lead(rendition).as_seconds_f64();
        if hidden > 0.0 {
            found.push(Finding::new(
                FindingLevel::Warning,
                &rendition.name,
                format!(
                    "the edit list starts {hidden:.3} s after a key frame, inside a GOP; HLS \
                     players that ignore EXT-X-START show these {hidden:.3} s, which the edit list \
                     hides"
                ),
                "trim the film at a key frame, or encode it when trimming (ffmpeg: without -c copy)",
            ));
        }
    }
}
