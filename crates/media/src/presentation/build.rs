//! Building a presentation: choose tracks, shift them, cut them and measure them.

use super::segment_grid::{self, KeyFrameTimes};
use super::served_tracks::{self, ServedTrack};
use super::timeline_shift::TimelineShift;
use super::{Bandwidth, PackagingRules, Presentation, Rendition, rendition_names};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::time::Time;
use std::sync::Arc;

/// Maximum number of samples in a segment. It bounds the generated head to about 256 MiB. Only a
/// film that lasts days and has a single key frame comes close.
pub const SEGMENT_SAMPLES_MAX: u32 = 1 << 24;

/// Increased whenever the bytes of segments change for the same index and rules, so that no cache
/// mixes old and new ones.
const PACKAGING_VERSION: u64 = 3;

/// Bitrate of the first listed variant, in bits per second: most connections carry it, and it looks
/// acceptable.
const START_BITRATE: u64 = 2_000_000;

/// A track on the served timeline.
struct ShiftedTrack<'a> {
    served: ServedTrack<'a>,
    start_ticks: i64,
}

pub(super) fn build_presentation(
    files: Vec<Arc<Index>>,
    rules: &PackagingRules,
) -> Result<Presentation> {
    served_tracks::check_lengths(&files)?;
    let mut served = served_tracks::choose_tracks(&files)?;
    sort_for_manifests(&mut served);
    let shift = TimelineShift::for_tracks(&served);
    let mut shifted = Vec::with_capacity(served.len());
    for track in &served {
        let start = shift.track_start(track)?;
        shifted.push(ShiftedTrack {
            served: *track,
            start_ticks: start,
        });
    }
    let target_ns = i64::from(rules.segment_duration_ms.max(1)) * 1_000_000;
    let cuts = cut_tracks(&shifted, target_ns);
    check_sizes(&shifted, &cuts)?;
    let names = rendition_names::name_renditions(&served);
    let renditions: Vec<Rendition> = shifted
        .iter()
        .zip(names)
        .zip(cuts)
        .map(|((shifted, name), cuts)| build_rendition(shifted, name, cuts))
        .collect();
    let zero = shift.film_zero();
    let duration = total_duration(&shifted, zero);
    let version = hash_version(&files, rules);
    drop(shifted);
    let mut presentation = Presentation {
        files,
        renditions,
        presentation_time_offset: zero,
        duration,
        target_duration_s: 0,
        segment_duration_ms: rules.segment_duration_ms,
        version_hash: version,
    };
    presentation.measure_renditions();
    Ok(presentation)
}

/// Sorts video before audio. The start variant comes first, then the others by falling bitrate.
/// Audio keeps the order of the files.
fn sort_for_manifests(served: &mut [ServedTrack]) {
    served.sort_by_cached_key(|track| {
        let bitrate = if track.is_video() { track.bitrate } else { 0 };
        (!track.is_video(), std::cmp::Reverse(bitrate))
    });
    let videos = served.partition_point(ServedTrack::is_video);
    let start = (0..videos).min_by_key(|n| {
        let track = &served[*n];
        let widely_played = track.track.codec.codec_string.starts_with("avc1");
        (!widely_played, track.bitrate.abs_diff(START_BITRATE))
    });
    if let Some(start) = start {
        served[..=start].rotate_right(1);
    }
}

/// Returns the segment cuts and the switching group of each track.
fn cut_tracks(tracks: &[ShiftedTrack], target_ns: i64) -> Vec<(Vec<u32>, usize)> {
    let videos = tracks.partition_point(|shifted| shifted.served.is_video());
    let (keys, samples): (Vec<KeyFrameTimes>, Vec<Vec<u32>>) = tracks[..videos]
        .iter()
        .map(ShiftedTrack::find_key_frames)
        .unzip();
    let groups = segment_grid::build_grids(&keys, target_ns);
    let mut cuts = vec![(Vec::new(), 0); tracks.len()];
    for (group, grid) in groups.iter().enumerate() {
        for (member, positions) in grid.members.iter().zip(&grid.cuts) {
            let starts = positions.iter().map(|position| samples[*member][*position]);
            cuts[*member] = (starts.chain([tracks[*member].len()]).collect(), group);
        }
    }
    let first = tracks
        .iter()
        .map(ShiftedTrack::start_nanos)
        .min()
        .unwrap_or(0);
    let lead = groups.first().map(|grid| {
        let end = grid.members.iter().map(|n| keys[*n].end).max();
        (&grid.times[..], end.unwrap_or(first))
    });
    let (times, resume_ns) = lead.unwrap_or((&[], first.saturating_add(target_ns)));
    for n in videos..tracks.len() {
        let own_cuts = tracks[n].cut_along(times, resume_ns, target_ns);
        let same_cuts =
            (videos..n).find(|m| tracks[*m].has_same_timing(&tracks[n]) && cuts[*m].0 == own_cuts);
        let next = cuts[..n].iter().map(|cut| cut.1 + 1).max().unwrap_or(0);
        let group = same_cuts.map_or(next, |m| cuts[m].1);
        cuts[n] = (own_cuts, group);
    }
    cuts
}

impl ShiftedTrack<'_> {
    fn len(&self) -> u32 {
        self.served.track.samples.len()
    }

    /// Converts a media time in ticks to the served time in nanoseconds.
    fn served_nanos(&self, ticks: i64) -> i64 {
        Time::new(
            self.start_ticks.saturating_add(ticks),
            self.served.track.timescale,
        )
        .as_nanos()
    }

    fn start_nanos(&self) -> i64 {
        self.served_nanos(self.served.track.samples.dts(self.served.first_sample) as i64)
    }

    fn end_nanos(&self) -> i64 {
        self.served_nanos(self.served.track.samples.total_duration() as i64)
    }

    /// Returns the key frames that can start a segment, as times and as sample numbers. Their
    /// decode and presentation times must rise, and a later sample must exist.
    fn find_key_frames(&self) -> (KeyFrameTimes, Vec<u32>) {
        let samples = &self.served.track.samples;
        let shift = i64::from(samples.composition_offset(self.served.first_sample));
        let (mut times, mut numbers) = (Vec::new(), Vec::new());
        let (mut last_time, mut last_dts) = (i64::MIN, None);
        for n in samples
            .sync_samples()
            .skip_while(|n| *n < self.served.first_sample)
        {
            let dts = samples.dts(n);
            let time =
                self.served_nanos(dts as i64 + i64::from(samples.composition_offset(n)) - shift);
            if time > last_time
                && last_dts.is_none_or(|last| dts > last)
                && dts < samples.total_duration()
            {
                times.push(time);
                numbers.push(n);
                (last_time, last_dts) = (time, Some(dts));
            }
        }
        let end = self.end_nanos();
        let frames = i64::from((self.len() - self.served.first_sample).max(1));
        let frame = (end - self.start_nanos()) / frames;
        (
            KeyFrameTimes {
                times,
                end,
                frame_duration: frame,
            },
            numbers,
        )
    }

    /// Cuts at the frames nearest to `times`, and every `target_ns` from the time `resume_ns` on.
    fn cut_along(&self, times: &[i64], resume_ns: i64, target_ns: i64) -> Vec<u32> {
        let mut cuts = vec![self.served.first_sample];
        times
            .iter()
            .for_each(|time| self.cut_near(*time, &mut cuts));
        let end = self.end_nanos() - target_ns / segment_grid::TAIL_DIVISOR;
        let mut time = resume_ns;
        while time < end {
            self.cut_near(time, &mut cuts);
            let next = self
                .served
                .track
                .samples
                .dts(cuts[cuts.len() - 1].saturating_add(1));
            // Continues near the next frame if frames are longer than the target.
            let steps = (self.served_nanos(next as i64) - time) / target_ns;
            time = time.saturating_add(steps.max(1).saturating_mul(target_ns));
        }
        cuts.push(self.len());
        cuts
    }

    fn cut_near(&self, time: i64, cuts: &mut Vec<u32>) {
        let samples = &self.served.track.samples;
        let n = self.nearest_sample(time);
        let dts = samples.dts(n);
        if dts > samples.dts(cuts[cuts.len() - 1]) && dts < samples.total_duration() {
            cuts.push(n);
        }
    }

    /// Returns the sample nearest to a served time; the earlier one of two equally near.
    fn nearest_sample(&self, nanos: i64) -> u32 {
        let samples = &self.served.track.samples;
        let ticks = Time::new(nanos, 1_000_000_000).round_to(self.served.track.timescale);
        let dts = ticks.saturating_sub(self.start_ticks).max(0) as u64;
        let n = samples.sample_at_dts(dts);
        let later = n.saturating_add(1);
        let to_later = samples.dts(later).abs_diff(dts);
        if later < samples.len() && to_later < samples.dts(n).abs_diff(dts) {
            later
        } else {
            n
        }
    }

    /// Returns whether samples of the same number have the same times in both tracks.
    fn has_same_timing(&self, other: &ShiftedTrack) -> bool {
        let (a, b) = (self.served.track, other.served.track);
        (self.start_ticks, a.timescale) == (other.start_ticks, b.timescale)
            && a.samples.shared_duration(0..u32::MAX) == b.samples.shared_duration(0..u32::MAX)
    }
}

fn build_rendition(
    shifted: &ShiftedTrack,
    name: String,
    (cuts, group): (Vec<u32>, usize),
) -> Rendition {
    let samples = &shifted.served.track.samples;
    let composition_shift = samples
        .composition_offset(shifted.served.first_sample)
        .saturating_neg();
    Rendition {
        name,
        file_index: shifted.served.file_index,
        track_index: shifted.served.track_index,
        start_ticks: shifted.start_ticks,
        composition_shift,
        decode_delay: shifted.served.decode_delay(),
        segment_cuts: cuts,
        switching_group: group,
        bandwidth: Bandwidth::default(),
    }
}

fn check_sizes(tracks: &[ShiftedTrack], cuts: &[(Vec<u32>, usize)]) -> Result<()> {
    for (shifted, (cuts, _)) in tracks.iter().zip(cuts) {
        let largest = cuts
            .windows(2)
            .map(|cut| cut[1] - cut[0])
            .max()
            .unwrap_or(0);
        if largest > SEGMENT_SAMPLES_MAX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "track {} has {largest} samples between two key frames that can start a segment; at most {SEGMENT_SAMPLES_MAX} are packaged",
                    shifted.served.track.id
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the time from `zero` to the end of the longest track. It is exact: zero is a whole
/// number of ticks in every timescale.
fn total_duration(tracks: &[ShiftedTrack], zero: Time) -> Time {
    let lengths = tracks.iter().map(|shifted| {
        let timescale = shifted.served.track.timescale;
        let end = shifted.start_ticks + shifted.served.track.samples.total_duration() as i64;
        Time::new(end - zero.round_to(timescale), timescale)
    });
    lengths.max().unwrap_or(Time::ZERO)
}

/// Hashes everything that decides the bytes of segments, with FNV-1a.
fn hash_version(files: &[Arc<Index>], rules: &PackagingRules) -> u64 {
    let facts = files
        .iter()
        .flat_map(|index| [index.fingerprint, index.file_len]);
    let words = [PACKAGING_VERSION, rules.segment_duration_ms.into()]
        .into_iter()
        .chain(facts);
    let bytes = words.flat_map(u64::to_be_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Presentation {
    /// Sets the target duration and the bandwidths.
    fn measure_renditions(&mut self) {
        let longest = self.renditions.iter().flat_map(|r| {
            (0..r.segment_count())
                .map(|n| self.listed_duration(r, n))
                .max()
        });
        // Playlists print decimals that may be one unit too long.
        let printed = longest.max().unwrap_or(Time::ZERO).ceil_to(1_000_000) + 1;
        let target = Time::new(printed, 1_000_000).round_to(1).max(1);
        self.target_duration_s = u32::try_from(target).unwrap_or(u32::MAX);
        let measured: Vec<Bandwidth> = self
            .renditions
            .iter()
            .map(|r| self.measure_cmaf_bandwidth(r))
            .collect();
        for (rendition, bandwidth) in self.renditions.iter_mut().zip(measured) {
            rendition.bandwidth = bandwidth;
        }
    }

    fn measure_cmaf_bandwidth(&self, rendition: &Rendition) -> Bandwidth {
        self.measure_bandwidth(rendition, |n| self.segment_len(rendition, n))
    }
}
