//! Rules about groups of pictures (GOPs). The rules check where segments and films start within a
//! GOP.

use super::{Finding, FindingLevel, video_renditions};
use media::presentation::{Presentation, Rendition};
use media::time::Time;

/// Reports leading pictures. These pictures are presented before the key frame that starts their
/// segment. In an open GOP, leading pictures refer to pictures of the previous segment.
pub(super) fn report_open_gops(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in video_renditions(title).filter(|r| r.has_leading_pictures) {
        let count = count_segments_with_open_gop(title, rendition);
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

fn count_segments_with_open_gop(title: &Presentation, rendition: &Rendition) -> usize {
    let timescale = title.track(rendition).timescale;
    let starts = rendition.segment_cuts.iter().zip(&rendition.segment_starts);
    starts
        .take(rendition.segment_count())
        .filter(|(cut, start)| {
            let start = Time::new(**start as i64, timescale);
            served_presentation_time(title, rendition, **cut) > start
        })
        .count()
}

/// Returns the presentation time of a sample on the served timeline.
fn served_presentation_time(title: &Presentation, rendition: &Rendition, sample: u32) -> Time {
    let track = title.track(rendition);
    let ticks = track.samples.dts(sample) as i64
        + i64::from(track.samples.composition_offset(sample))
        + rendition.start_ticks
        + i64::from(rendition.composition_shift);
    Time::new(ticks, track.timescale)
}

/// Remedy for a film that was trimmed inside a GOP.
const TRIM_FIX: &str =
    "trim the film at a key frame, or encode it when trimming (ffmpeg: without -c copy)";

/// Returns the remedy for a note that the indexer made about a file.
pub(super) fn choose_index_note_remedy(message: &str) -> &'static str {
    if message.contains("inside a GOP") {
        return TRIM_FIX;
    }
    "export the file again if this is not intended; Headwater serves the file as it is"
}

/// Reports films whose edit list starts between two key frames. The first visible picture then
/// refers to hidden pictures, so the hidden pictures since the previous key frame are served, too.
pub(super) fn report_trims_inside_gops(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in video_renditions(title) {
        let hidden = title.hidden_lead(rendition).as_seconds_f64();
        // If the first key frame is visible, the edit list hides only leading pictures, and does
        // not start inside a GOP.
        let is_inside = rendition.segment_cuts.first().is_some_and(|key| {
            let zero = title.presentation_time_offset;
            served_presentation_time(title, rendition, *key) < zero
        });
        if hidden > 0.0 && is_inside {
            found.push(Finding::new(
                FindingLevel::Warning,
                &rendition.name,
                format!(
                    "the edit list starts {hidden:.3} s after a key frame, inside a GOP; HLS \
                     players that ignore EXT-X-START show these {hidden:.3} s, which the edit list \
                     hides"
                ),
                TRIM_FIX,
            ));
        }
    }
}
