//! Building a presentation: choose tracks, shift them, cut them and measure them.

use super::frame_rate::max_frame_rate;
use super::presentation_times::earliest_presentation_times;
use super::segment_grid::{self, KeyFrameTimes};
use super::served_tracks::{self, ServedTrack};
use super::timeline_shift::TimelineShift;
use super::{Bandwidth, ManifestRules, PackagingRules, Presentation, Rendition, rendition_names};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::protection::{TitleProtection, TrackSignaling};
use crate::text::TextBandwidths;
use crate::time::Time;
use std::sync::Arc;

/// Maximum number of samples in a segment. The limit bounds the generated head to about 256 MiB.
/// Only a film that lasts days and has a single key frame comes close to the limit.
pub const SEGMENT_SAMPLES_MAX: u32 = 1 << 24;

/// Version of the packaging code. It is increased whenever the code starts to produce different
/// segments from the same index and rules, so that no cache mixes old and new segments.
const PACKAGING_VERSION: u64 = 4;

/// Preferred bitrate of the first listed variant, in bits per second. Most connections can carry
/// this bitrate, and the picture quality is acceptable.
const START_BITRATE: u64 = 2_000_000;

/// A track on the served timeline.
struct ShiftedTrack<'a> {
    served: ServedTrack<'a>,
    start_ticks: i64,
}

impl Presentation {
    /// Builds the presentation of a title from the indexes of its files.
    ///
    /// The AVC rendition nearest to 2 Mbit/s is listed first, because players start with the first
    /// listed rendition. Without AVC, the nearest rendition of any codec is listed first. The other
    /// video renditions follow by falling bitrate. Audio renditions keep the order of the files,
    /// and copies of one audio track are listed once.
    ///
    /// # Errors
    /// `Malformed` if a video track has no sync sample, or if the lengths of the files differ by
    /// more than 2 s and by more than 5 %, because such files are not renditions of one title;
    /// `Unsupported` if the files contain only text; `Empty` if no track has a duration; `TooLarge`
    /// if `TRACK_HOURS_MAX` or `SEGMENT_SAMPLES_MAX` is exceeded.
    pub fn new(files: Vec<Arc<Index>>, rules: &PackagingRules) -> Result<Presentation> {
        build_presentation(files, rules)
    }
}

fn build_presentation(files: Vec<Arc<Index>>, rules: &PackagingRules) -> Result<Presentation> {
    served_tracks::check_lengths(&files)?;
    let mut left_out = Vec::new();
    let mut served = served_tracks::choose_tracks(&files, &mut left_out)?;
    sort_for_manifests(&mut served);
    let shift = TimelineShift::find_smallest_shift(&served);
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
    check_segment_sample_counts(&shifted, &cuts)?;
    let names = rendition_names::name_renditions(&served);
    let renditions: Vec<Rendition> = shifted
        .iter()
        .zip(names)
        .zip(cuts)
        .map(|((shifted, name), cuts)| build_rendition(shifted, name, cuts))
        .collect();
    let zero = shift.film_zero();
    let duration = total_duration(&shifted, zero);
    let version = hash_version(&files, rules) ^ shift.added_shift();
    drop(shifted);
    let mut presentation = Presentation {
        files,
        renditions,
        presentation_time_offset: zero,
        duration,
        target_duration_s: 0,
        segment_duration_ms: rules.segment_duration_ms,
        version_hash: version,
        left_out,
        manifest_rules: ManifestRules::default(),
        text: Arc::default(),
        text_bandwidths: TextBandwidths::default(),
        protection: None,
    };
    presentation.measure_renditions();
    Ok(presentation)
}

/// Sorts video before audio. The video track with which players start comes first, and the other
/// video tracks follow by falling bitrate. Audio keeps the order of the files.
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
        let longest = grid.members.iter().max_by_key(|n| cuts[**n].0.len());
        let times = longest.map(|n| tracks[*n].boundary_nanos(&cuts[*n].0));
        (times.unwrap_or_default(), end.unwrap_or(first))
    });
    let (times, resume_ns) = lead.unwrap_or_else(|| (Vec::new(), first.saturating_add(target_ns)));
    for n in videos..tracks.len() {
        let own_cuts = tracks[n].cut_along(&times, resume_ns, target_ns);
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

    /// Converts a presentation time of the media to the served timeline, in ticks.
    fn served_ticks(&self, media_ticks: i64) -> i64 {
        (self.start_ticks - i64::from(self.served.presentation_lag())).saturating_add(media_ticks)
    }

    /// Converts a presentation time of the media to the served timeline, in nanoseconds.
    fn served_nanos(&self, media_ticks: i64) -> i64 {
        Time::new(self.served_ticks(media_ticks), self.served.track.timescale).as_nanos()
    }

    fn start_nanos(&self) -> i64 {
        self.served_nanos(self.served.earliest)
    }

    fn end_nanos(&self) -> i64 {
        self.served_nanos(self.served.end)
    }

    /// Returns the start times of all segments except the first, in nanoseconds.
    fn boundary_nanos(&self, cuts: &[u32]) -> Vec<i64> {
        let starts = self.segment_starts(cuts).into_iter();
        let inner = starts.skip(1).take(cuts.len().saturating_sub(2));
        let timescale = self.served.track.timescale;
        inner
            .map(|ticks| Time::new(ticks as i64, timescale).as_nanos())
            .collect()
    }

    /// Returns the earliest presentation time of each segment on the served timeline, followed by
    /// the end of the last presented sample.
    fn segment_starts(&self, cuts: &[u32]) -> Vec<u64> {
        let firsts = &cuts[..cuts.len().saturating_sub(1)];
        let times = earliest_presentation_times(&self.served.track.samples, firsts);
        times
            .into_iter()
            .chain([self.served.end])
            .map(|time| self.served_ticks(time).max(0) as u64)
            .collect()
    }

    /// Returns the key frames that can start a segment, as presentation times and as sample
    /// numbers.
    ///
    /// The decode times of these key frames rise. All samples from a key frame on are presented
    /// after the previous key frame, so that segments do not overlap. At least one of these samples
    /// is presented before the end of the track.
    fn find_key_frames(&self) -> (KeyFrameTimes, Vec<u32>) {
        let samples = &self.served.track.samples;
        let keys: Vec<u32> = samples
            .sync_samples()
            .skip_while(|n| *n < self.served.first_sample)
            .collect();
        let (mut times, mut numbers) = (Vec::new(), Vec::new());
        let (mut last_time, mut last_dts) = (i64::MIN, None);
        for (n, earliest) in keys.iter().zip(earliest_presentation_times(samples, &keys)) {
            let dts = samples.dts(*n);
            if earliest > last_time
                && earliest < self.served.end
                && last_dts.is_none_or(|last| dts > last)
                && dts < samples.total_duration()
            {
                let time = dts as i64 + i64::from(samples.composition_offset(*n));
                times.push(self.served_nanos(time));
                numbers.push(*n);
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

    /// Cuts at the sync samples nearest to `times`. From the time `resume_ns` on, cuts about every
    /// `target_ns`.
    fn cut_along(&self, times: &[i64], resume_ns: i64, target_ns: i64) -> Vec<u32> {
        let mut cuts = vec![self.served.first_sample];
        times
            .iter()
            .for_each(|time| self.cut_near(*time, &mut cuts));
        let lag = i64::from(self.served.presentation_lag());
        // A broken composition offset may present a sample years after the last sample is decoded.
        // The decode time limits the number of cuts in this case.
        let decoded = self.served.track.samples.total_duration() as i64;
        let end = self.end_nanos().min(self.served_nanos(decoded + lag));
        let end = end - target_ns / segment_grid::TAIL_DIVISOR;
        let mut time = resume_ns;
        while time < end {
            self.cut_near(time, &mut cuts);
            let next = self
                .served
                .track
                .samples
                .dts(cuts[cuts.len() - 1].saturating_add(1));
            // If a frame is longer than the target, `time` advances by several target durations at
            // once, up to the next frame.
            let steps = (self.served_nanos(next as i64 + lag) - time) / target_ns;
            time = time.saturating_add(steps.max(1).saturating_mul(target_ns));
        }
        let mut cuts = self.drop_overlapping_cuts(cuts);
        cuts.push(self.len());
        cuts
    }

    /// Drops a cut if samples after this cut are presented before the previous cut, or if the cut
    /// is not before the track's end.
    fn drop_overlapping_cuts(&self, cuts: Vec<u32>) -> Vec<u32> {
        let times = earliest_presentation_times(&self.served.track.samples, &cuts);
        let mut last = i64::MIN;
        let rises = cuts.into_iter().zip(times).filter(|(_, time)| {
            let is_later = *time > last && *time < self.served.end;
            last = if is_later { *time } else { last };
            is_later
        });
        rises.map(|(cut, _)| cut).collect()
    }

    fn cut_near(&self, time: i64, cuts: &mut Vec<u32>) {
        let samples = &self.served.track.samples;
        let n = self.nearest_segment_start(time);
        let dts = samples.dts(n);
        if dts > samples.dts(cuts[cuts.len() - 1]) && dts < samples.total_duration() {
            cuts.push(n);
        }
    }

    /// Returns the sync sample nearest to a served time. If two sync samples are equally near,
    /// returns the earlier one. Without sync samples, returns the nearest sample.
    fn nearest_segment_start(&self, nanos: i64) -> u32 {
        let samples = &self.served.track.samples;
        let nearest = self.nearest_sample(nanos);
        if samples.is_sync(nearest) {
            return nearest;
        }
        let distance = |n: &u32| {
            let dts = i64::try_from(samples.dts(*n)).unwrap_or(i64::MAX);
            self.served_nanos(dts).abs_diff(nanos)
        };
        let earlier = samples.last_sync_until(nearest);
        let later = samples.first_sync_from(nearest);
        let nearest_sync = earlier.into_iter().chain(later).min_by_key(distance);
        nearest_sync.unwrap_or(nearest)
    }

    /// Returns the sample nearest to a served time. If two samples are equally near, returns the
    /// earlier one.
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

    /// Returns whether both tracks have the same start time, timescale and constant sample
    /// duration. If the durations vary in both tracks, the durations are not compared.
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
    let track = shifted.served.track;
    let segment_starts = shifted.segment_starts(&cuts);
    let is_video = shifted.served.is_video();
    let has_leading_pictures = is_video
        && cuts.iter().zip(&segment_starts).any(|(cut, start)| {
            let shown =
                track.samples.dts(*cut) as i64 + i64::from(track.samples.composition_offset(*cut));
            *cut < track.samples.len() && shifted.served_ticks(shown) > *start as i64
        });
    Rendition {
        name,
        file_index: shifted.served.file_index,
        track_index: shifted.served.track_index,
        start_ticks: shifted.start_ticks,
        composition_shift: shifted.served.presentation_lag().saturating_neg(),
        decode_delay: shifted.served.decode_delay(),
        segment_cuts: cuts,
        segment_starts,
        has_leading_pictures,
        frame_rate: if is_video {
            max_frame_rate(track)
        } else {
            (0, 1)
        },
        switching_group: group,
        bandwidth: Bandwidth::default(),
    }
}

fn check_segment_sample_counts(tracks: &[ShiftedTrack], cuts: &[(Vec<u32>, usize)]) -> Result<()> {
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

/// Returns the time from `zero` to the end of the longest track. The result is exact, because
/// `zero` is a whole number of ticks in every timescale.
fn total_duration(tracks: &[ShiftedTrack], zero: Time) -> Time {
    let lengths = tracks.iter().map(|shifted| {
        let timescale = shifted.served.track.timescale;
        let end = shifted.served_ticks(shifted.served.end);
        Time::new(end - zero.round_to(timescale), timescale)
    });
    lengths.max().unwrap_or(Time::ZERO)
}

/// Computes an FNV-1a hash of the packaging version, the rules and the fingerprints of the files.
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
    /// Adds Common Encryption, and measures the renditions again, because encryption makes segments
    /// longer.
    pub fn protect(&mut self, protection: TitleProtection) {
        self.protection = Some(Arc::new(protection));
        self.measure_renditions();
    }

    /// Returns whether the samples of at least one rendition are encrypted, by this server or in
    /// the source.
    pub fn is_protected(&self) -> bool {
        self.protection.is_some()
    }

    /// Returns the signaling of tracks that are encrypted in the source; `None` if there are no
    /// such tracks. The DRM systems are taken from the film's `pssh` boxes.
    pub fn source_protection(&self) -> Option<TitleProtection> {
        let tracks = self.renditions.iter().map(|rendition| {
            let source = self.track(rendition).protection.as_ref()?;
            Some(TrackSignaling::from_source(source, &source.systems()))
        });
        let tracks: Vec<_> = tracks.collect();
        let is_any = tracks.iter().any(Option::is_some);
        is_any.then_some(TitleProtection { tracks })
    }

    /// Sets the target duration and the bandwidths.
    fn measure_renditions(&mut self) {
        let longest = self.renditions.iter().flat_map(|r| {
            let segments = (0..r.segment_count()).map(|n| self.listed_duration(r, n));
            segments.chain(self.longest_key_frame_interval(r)).max()
        });
        // A duration printed in a playlist may be one microsecond longer than the exact duration.
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
