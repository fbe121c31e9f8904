//! Video tracks of a few still pictures, which phones and editing programs write in addition to the
//! film.
//!
//! A player that switched to such a track would show a frozen picture, so the track is not served
//! as a rendition.

use super::served_tracks::ServedTrack;
use crate::index::LeftOutTrack;

/// A video track is a rendition if it has at least this many pictures per second of the film's
/// duration.
const PICTURES_PER_SECOND_MIN: u128 = 5;
/// A slow video track is left out if its picture count times this factor is less than the picture
/// count of another video track. A slow track has fewer than `PICTURES_PER_SECOND_MIN` pictures per
/// second.
const PICTURE_RATIO_MAX: u128 = 8;

/// Moves the video tracks of stills to `left_out`, if the title also has moving video.
pub(super) fn leave_out_stills(
    chosen: &mut Vec<ServedTrack<'_>>,
    left_out: &mut Vec<(usize, LeftOutTrack)>,
) {
    let videos = || chosen.iter().filter(|track| track.is_video());
    let most_pictures = videos().map(picture_count).max().unwrap_or(0);
    let film_ns = videos().map(track_duration_ns).max().unwrap_or(0);
    chosen.retain(|track| {
        let pictures = picture_count(track);
        let is_slow = pictures * 1_000_000_000 < PICTURES_PER_SECOND_MIN * film_ns;
        let is_still = track.is_video() && is_slow && pictures * PICTURE_RATIO_MAX < most_pictures;
        if is_still {
            left_out.push((track.file_index, describe_stills(track, film_ns)));
        }
        !is_still
    });
}

fn picture_count(served: &ServedTrack) -> u128 {
    let count = served.track.samples.len() - served.first_sample;
    u128::from(count)
}

fn track_duration_ns(served: &ServedTrack) -> u128 {
    let nanos = served.track.duration().as_nanos();
    u128::try_from(nanos).unwrap_or(0)
}

fn describe_stills(served: &ServedTrack, film_ns: u128) -> LeftOutTrack {
    let pictures = picture_count(served);
    let name = format!(
        "track {} (video, {})",
        served.track.id, served.track.codec.codec_string
    );
    let seconds = film_ns as f64 / 1e9;
    let unit = if pictures == 1 { "picture" } else { "pictures" };
    let reason = format!(
        "it has {pictures} {unit} in {seconds:.1} s, so players cannot switch between it and the \
         film's video"
    );
    LeftOutTrack::new(name, reason)
}
