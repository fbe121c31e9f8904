//! Selection of the tracks that are served.

use super::sample_times;
use super::still_tracks::leave_out_stills;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Index, LeftOutTrack, Track};
use crate::time::Time;
use std::sync::Arc;

/// Maximum number of served tracks of a title. The time to align tracks, and the number of variants
/// in an HLS playlist, grow with the square of this number.
const TITLE_TRACKS_MAX: usize = 256;
/// Maximum number of samples in all tracks of a title.
const TITLE_SAMPLES_MAX: u64 = 100_000_000;

/// A track that is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServedTrack<'a> {
    pub(super) file_index: usize,
    pub(super) track_index: usize,
    pub(super) track: &'a Track,
    /// First served sample.
    pub(super) first_sample: u32,
    /// Earliest presentation time of the served samples, in ticks of the media.
    pub(super) earliest: i64,
    /// End of the sample that is presented last, in ticks of the media.
    pub(super) end: i64,
    /// Mean bitrate of the served samples, in bits per second.
    pub(super) bitrate: u64,
}

impl ServedTrack<'_> {
    /// Returns the earliest presentation time of the served samples, in ticks on the film's own
    /// timeline.
    pub(super) fn earliest_presentation(&self) -> i64 {
        self.earliest.saturating_add(self.track.presentation_offset)
    }

    /// Returns the ticks from the source's decode time of the first served sample to the earliest
    /// presentation time. The result is at most the composition offset of the first served sample,
    /// and at least the smallest composition offset of the track.
    pub(super) fn presentation_lag(&self) -> i32 {
        let lag = self.earliest - self.track.samples.dts(self.first_sample) as i64;
        lag.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }

    /// Returns the served decode time of the first served sample, in ticks on the film's own
    /// timeline. This time is early enough that no sample is presented before it is decoded.
    pub(super) fn first_decode_time(&self) -> i64 {
        let samples = &self.track.samples;
        (samples.dts(self.first_sample) as i64)
            .saturating_add(samples.composition_offset_min().into())
            .saturating_add(self.track.presentation_offset)
    }

    /// Returns the ticks from `first_decode_time` to the earliest presentation time.
    pub(super) fn decode_delay(&self) -> u32 {
        self.presentation_lag()
            .abs_diff(self.track.samples.composition_offset_min())
    }

    pub(super) fn is_video(&self) -> bool {
        self.track.codec.video().is_some()
    }
}

fn measure_bitrate(track: &Track, first: u32) -> u64 {
    let samples = &track.samples;
    let bits = u128::from(samples.byte_count(first..samples.len())) * 8;
    let ticks = samples
        .total_duration()
        .saturating_sub(samples.dts(first))
        .max(1);
    u64::try_from(bits * u128::from(track.timescale) / u128::from(ticks)).unwrap_or(u64::MAX)
}

/// Chooses the tracks to serve, in file order. Appends the other tracks to `left_out`, each with
/// the index of its file. Copies of a served track are not appended.
pub(super) fn choose_tracks<'a>(
    files: &'a [Arc<Index>],
    left_out: &mut Vec<(usize, LeftOutTrack)>,
) -> Result<Vec<ServedTrack<'a>>> {
    let mut chosen: Vec<ServedTrack> = Vec::new();
    for (file_index, index) in files.iter().enumerate() {
        left_out.extend(
            index
                .left_out
                .iter()
                .map(|track| (file_index, track.clone())),
        );
        for (track_index, track) in index.tracks.iter().enumerate() {
            let first_sample = match find_first_served_sample(track)? {
                ServedOrLeftOut::Sample(first_sample) => first_sample,
                ServedOrLeftOut::LeftOut(reason) => {
                    let name = format!("track {} ({})", track.id, track.codec.codec_string);
                    left_out.push((file_index, LeftOutTrack::new(name, reason)));
                    continue;
                }
            };
            let new = ServedTrack {
                file_index,
                track_index,
                track,
                first_sample,
                earliest: sample_times::earliest_presentation_after(&track.samples, first_sample),
                end: sample_times::last_sample_end(track, first_sample),
                bitrate: measure_bitrate(track, first_sample),
            };
            let is_copy =
                |old: &ServedTrack| old.file_index != file_index && is_duplicate_audio(old, &new);
            if chosen.iter().any(is_copy) {
                continue;
            }
            if chosen.len() == TITLE_TRACKS_MAX {
                let message = format!("the title has more than {TITLE_TRACKS_MAX} tracks");
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            chosen.push(new);
        }
    }
    if chosen.is_empty() && files.iter().all(|index| index.tracks.is_empty()) {
        let message = "no track can be packaged: the film has text, but neither audio nor video";
        return Err(Error::unsupported(message));
    }
    if chosen.is_empty() {
        return Err(nothing_served_error(left_out));
    }
    leave_out_stills(&mut chosen, left_out);
    Ok(chosen)
}

/// Creates the error for a title without any track that can be served.
fn nothing_served_error(left_out: &[(usize, LeftOutTrack)]) -> Error {
    let no_sync = left_out
        .iter()
        .find(|(_, track)| track.reason == NO_SYNC_SAMPLES);
    match no_sync {
        Some((_, track)) => Error::malformed(format!("{}: {}", track.name, track.reason)),
        None => Error::new(ErrorKind::Empty, "no track has a duration"),
    }
}

const NO_SYNC_SAMPLES: &str = "it has no sync samples, so it cannot be cut";

/// The first served sample of a track, or the reason why the track is left out.
enum ServedOrLeftOut {
    Sample(u32),
    LeftOut(&'static str),
}

/// Returns the first sample that can be decoded, or the reason why the track is left out.
fn find_first_served_sample(track: &Track) -> Result<ServedOrLeftOut> {
    let samples = &track.samples;
    let Some(first) = samples.first_sync_from(0) else {
        if track.codec.video().is_some() {
            return Err(Error::malformed(format!(
                "video track {} has no sync samples (key frames), so it cannot be cut; encode it with a regular key frame interval",
                track.id
            )));
        }
        return Ok(ServedOrLeftOut::LeftOut(NO_SYNC_SAMPLES));
    };
    match samples.dts(first) < samples.total_duration() {
        true => Ok(ServedOrLeftOut::Sample(first)),
        false => Ok(ServedOrLeftOut::LeftOut("it has no duration")),
    }
}

/// Returns whether `new` is the same audio as `old`. The files of a bitrate ladder often contain
/// copies of the same audio.
fn is_duplicate_audio(old: &ServedTrack, new: &ServedTrack) -> bool {
    let (Some(a), Some(b)) = (old.track.codec.audio(), new.track.codec.audio()) else {
        return false;
    };
    let same = old.track.codec.codec_string == new.track.codec.codec_string
        && old.track.language == new.track.language
        && old.track.name == new.track.name
        && old.track.roles == new.track.roles
        && (a.channel_count, a.sample_rate) == (b.channel_count, b.sample_rate);
    same && is_similar_bitrate(old.bitrate, new.bitrate) && has_similar_length(old.track, new.track)
}

/// Returns whether two bitrates differ by at most 1 %.
fn is_similar_bitrate(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= a.max(b) / 100
}

/// Returns whether the lengths of two tracks differ by at most 100 ms. The lengths of copies may
/// differ, because encoders pad the last frames differently.
fn has_similar_length(a: &Track, b: &Track) -> bool {
    a.duration().as_nanos().abs_diff(b.duration().as_nanos()) <= 100_000_000
}

/// Refuses files with more than [`TITLE_SAMPLES_MAX`] samples in total. Several tracks may
/// reference the same bytes, so the lengths of the files do not limit this number.
pub(super) fn check_sample_count(files: &[Arc<Index>]) -> Result<()> {
    let tracks = files.iter().flat_map(|index| &index.tracks);
    let total: u64 = tracks.map(|track| u64::from(track.samples.len())).sum();
    if total <= TITLE_SAMPLES_MAX {
        return Ok(());
    }
    let message =
        format!("the title has {total} samples; at most {TITLE_SAMPLES_MAX} are packaged");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// Refuses files whose lengths differ by more than 2 s and more than 5 %.
pub(super) fn check_file_durations(files: &[Arc<Index>]) -> Result<()> {
    let length = |index: &Arc<Index>| index.tracks.iter().map(Track::duration).max();
    let lengths: Vec<f64> = files
        .iter()
        // Files that contain only text are skipped, because text may end long before the film.
        .filter(|index| !index.tracks.is_empty())
        .map(|index| length(index).unwrap_or(Time::ZERO).as_seconds_f64())
        .collect();
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    let shortest = lengths.iter().copied().fold(longest, f64::min);
    if longest - shortest <= f64::max(2.0, longest * 0.05) {
        return Ok(());
    }
    let each: Vec<String> = lengths
        .iter()
        .enumerate()
        .map(|(n, seconds)| format!("file {}: {seconds:.3} s", n + 1))
        .collect();
    Err(Error::malformed(format!(
        "the files are not renditions of one title, their lengths differ too much ({}); put each title into a folder of its own",
        each.join(", ")
    )))
}
