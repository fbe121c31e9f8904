//! Live statistics of the viewers during a run.

use super::drive::PopulationProgress;

/// Formats the statistics of one second as two lines. The first line is about the viewers, the
/// second line is about their requests.
pub fn format_progress(progress: &PopulationProgress<'_>) -> [String; 2] {
    let (second, sample) = (progress.second, progress.sample);
    let viewers = format!(
        "{} viewers · {} playing · {} stalled · buffer p10 {:.1} p50 {:.1} s · {:.0} kb/s chosen",
        sample.viewers,
        sample.playing,
        sample.stalled,
        sample.buffer_p10_s,
        sample.buffer_p50_s,
        sample.bitrate_kbps,
    );
    let requests = format!(
        "{}/s · {:.1} Mb/s · {} open · {} errors · p50 {:.1} p99 {:.1} ms",
        second.ended,
        second.bytes as f64 * 8.0 / 1e6,
        second.open,
        second.errors,
        second.sent_p50_ms,
        second.sent_p99_ms,
    );
    [viewers, requests]
}
