//! Building a presentation: choose tracks, shift them, cut them, measure them.

use super::grid::{self, Keys};
use super::shift::Shift;
use super::tracks::{self, Chosen};
use super::{Bandwidth, Presentation, Rendition, Rules, names};
use crate::error::{Error, Kind, Result};
use crate::index::Index;
use crate::time::Time;
use std::sync::Arc;

/// Most samples of one segment: bounds the head that we make of it to some 256 MiB. Only a film
/// of days with a single key frame comes near.
pub const SEGMENT_SAMPLES_MAX: u32 = 1 << 24;

/// Raised whenever the bytes of segments change for the same index and rules, so that no cache
/// mixes old and new ones.
const PACKAGING: u64 = 3;

/// The bitrate that players should begin with: most lines carry it, and it looks decent.
const START_BITRATE: u64 = 2_000_000;

/// A track on the served timeline.
struct Shifted<'a> {
    track: Chosen<'a>,
    start: i64,
}

pub(super) fn presentation(files: Vec<Arc<Index>>, rules: &Rules) -> Result<Presentation> {
    tracks::check_lengths(&files)?;
    let mut chosen = tracks::choose(&files)?;
    sort(&mut chosen);
    let shift = Shift::common(&chosen);
    let mut shifted = Vec::with_capacity(chosen.len());
    for track in &chosen {
        let start = shift.start(track)?;
        shifted.push(Shifted {
            track: *track,
            start,
        });
    }
    let wish = i64::from(rules.segment_ms.max(1)) * 1_000_000;
    let cuts = cut(&shifted, wish);
    check_sizes(&shifted, &cuts)?;
    let names = names::names(&chosen);
    let renditions: Vec<Rendition> = shifted
        .iter()
        .zip(names)
        .zip(cuts)
        .map(|((shifted, name), cuts)| rendition(shifted, name, cuts))
        .collect();
    let zero = shift.zero();
    let duration = duration(&shifted, zero);
    let version = version(&files, rules);
    drop(shifted);
    let mut presentation = Presentation {
        files,
        renditions,
        zero,
        duration,
        target_duration: 0,
        segment_ms: rules.segment_ms,
        version,
    };
    presentation.measure();
    Ok(presentation)
}

/// Video before audio; the start variant first, then from the highest bitrate down. Audio stays
/// in the order of the files.
fn sort(chosen: &mut [Chosen]) {
    chosen.sort_by_cached_key(|track| {
        let bitrate = if track.is_video() { track.bitrate } else { 0 };
        (!track.is_video(), std::cmp::Reverse(bitrate))
    });
    let videos = chosen.partition_point(Chosen::is_video);
    let start = (0..videos).min_by_key(|n| {
        let track = &chosen[*n];
        let widely_played = track.of.codec.string.starts_with("avc1");
        (!widely_played, track.bitrate.abs_diff(START_BITRATE))
    });
    if let Some(start) = start {
        chosen[..=start].rotate_right(1);
    }
}

/// Per track: its cuts, and its group.
fn cut(tracks: &[Shifted], wish: i64) -> Vec<(Vec<u32>, usize)> {
    let videos = tracks.partition_point(|shifted| shifted.track.is_video());
    let (keys, samples): (Vec<Keys>, Vec<Vec<u32>>) =
        tracks[..videos].iter().map(Shifted::keys).unzip();
    let groups = grid::groups(&keys, wish);
    let mut cuts = vec![(Vec::new(), 0); tracks.len()];
    for (group, grid) in groups.iter().enumerate() {
        for (member, positions) in grid.members.iter().zip(&grid.cuts) {
            let starts = positions.iter().map(|position| samples[*member][*position]);
            cuts[*member] = (starts.chain([tracks[*member].len()]).collect(), group);
        }
    }
    let first = tracks.iter().map(Shifted::begin).min().unwrap_or(0);
    let lead = groups.first().map(|grid| {
        let end = grid.members.iter().map(|n| keys[*n].end).max();
        (&grid.times[..], end.unwrap_or(first))
    });
    let (times, beyond) = lead.unwrap_or((&[], first.saturating_add(wish)));
    for n in videos..tracks.len() {
        let own = tracks[n].follow(times, beyond, wish);
        let alike = (videos..n).find(|m| tracks[*m].alike(&tracks[n]) && cuts[*m].0 == own);
        let next = cuts[..n].iter().map(|cut| cut.1 + 1).max().unwrap_or(0);
        let group = alike.map_or(next, |m| cuts[m].1);
        cuts[n] = (own, group);
    }
    cuts
}

impl Shifted<'_> {
    fn len(&self) -> u32 {
        self.track.of.samples.len()
    }

    /// Served time in nanoseconds of so many ticks after the time of sample 0.
    fn nanos(&self, ticks: i64) -> i64 {
        Time::new(self.start.saturating_add(ticks), self.track.of.timescale).nanos()
    }

    fn begin(&self) -> i64 {
        self.nanos(self.track.of.samples.dts(self.track.first) as i64)
    }

    fn end(&self) -> i64 {
        self.nanos(self.track.of.samples.end() as i64)
    }

    /// The key frames that can begin a segment, as times and as sample numbers: both their
    /// decode times and the times they are shown must rise, and something must come after.
    fn keys(&self) -> (Keys, Vec<u32>) {
        let samples = &self.track.of.samples;
        let shift = i64::from(samples.cts(self.track.first));
        let (mut times, mut numbers) = (Vec::new(), Vec::new());
        let (mut last_time, mut last_dts) = (i64::MIN, None);
        for n in samples.sync_samples().skip_while(|n| *n < self.track.first) {
            let dts = samples.dts(n);
            let time = self.nanos(dts as i64 + i64::from(samples.cts(n)) - shift);
            if time > last_time && last_dts.is_none_or(|last| dts > last) && dts < samples.end() {
                times.push(time);
                numbers.push(n);
                (last_time, last_dts) = (time, Some(dts));
            }
        }
        let end = self.end();
        let frames = i64::from((self.len() - self.track.first).max(1));
        let frame = (end - self.begin()) / frames;
        (Keys { times, end, frame }, numbers)
    }

    /// Cuts at the frames nearest to `times`, then from the time `beyond` on every `wish`.
    fn follow(&self, times: &[i64], beyond: i64, wish: i64) -> Vec<u32> {
        let mut cuts = vec![self.track.first];
        times
            .iter()
            .for_each(|time| self.cut_near(*time, &mut cuts));
        let end = self.end() - wish / grid::TAIL;
        let mut time = beyond;
        while time < end {
            self.cut_near(time, &mut cuts);
            let next = self
                .track
                .of
                .samples
                .dts(cuts[cuts.len() - 1].saturating_add(1));
            // Where frames are longer than the wish, go on near the next one.
            let steps = (self.nanos(next as i64) - time) / wish;
            time = time.saturating_add(steps.max(1).saturating_mul(wish));
        }
        cuts.push(self.len());
        cuts
    }

    fn cut_near(&self, time: i64, cuts: &mut Vec<u32>) {
        let samples = &self.track.of.samples;
        let n = self.nearest(time);
        let dts = samples.dts(n);
        if dts > samples.dts(cuts[cuts.len() - 1]) && dts < samples.end() {
            cuts.push(n);
        }
    }

    /// The sample whose time is nearest to a served one; of two as near, the earlier.
    fn nearest(&self, nanos: i64) -> u32 {
        let samples = &self.track.of.samples;
        let ticks = Time::new(nanos, 1_000_000_000).round_to(self.track.of.timescale);
        let dts = ticks.saturating_sub(self.start).max(0) as u64;
        let n = samples.at_dts(dts);
        let later = n.saturating_add(1);
        let to_later = samples.dts(later).abs_diff(dts);
        if later < samples.len() && to_later < samples.dts(n).abs_diff(dts) {
            later
        } else {
            n
        }
    }

    /// Whether equal cuts mean equal times.
    fn alike(&self, other: &Shifted) -> bool {
        let (a, b) = (self.track.of, other.track.of);
        (self.start, a.timescale) == (other.start, b.timescale)
            && a.samples.shared_duration(0..u32::MAX) == b.samples.shared_duration(0..u32::MAX)
    }
}

fn rendition(shifted: &Shifted, name: String, (cuts, group): (Vec<u32>, usize)) -> Rendition {
    let samples = &shifted.track.of.samples;
    let cts_shift = samples.cts(shifted.track.first).saturating_neg();
    Rendition {
        name,
        file: shifted.track.file,
        track: shifted.track.track,
        start: shifted.start,
        cts_shift,
        delay: shifted.track.delay(),
        cuts,
        group,
        bandwidth: Bandwidth::default(),
    }
}

fn check_sizes(tracks: &[Shifted], cuts: &[(Vec<u32>, usize)]) -> Result<()> {
    for (shifted, (cuts, _)) in tracks.iter().zip(cuts) {
        let largest = cuts
            .windows(2)
            .map(|cut| cut[1] - cut[0])
            .max()
            .unwrap_or(0);
        if largest > SEGMENT_SAMPLES_MAX {
            return Err(Error::new(
                Kind::TooLarge,
                format!(
                    "track {} has {largest} samples between two key frames that can begin a segment; at most {SEGMENT_SAMPLES_MAX} are packaged",
                    shifted.track.of.id
                ),
            ));
        }
    }
    Ok(())
}

/// From `zero` to the end of the longest track. Exact: zero is a whole number of ticks in every
/// timescale.
fn duration(tracks: &[Shifted], zero: Time) -> Time {
    let lengths = tracks.iter().map(|shifted| {
        let timescale = shifted.track.of.timescale;
        let end = shifted.start + shifted.track.of.samples.end() as i64;
        Time::new(end - zero.round_to(timescale), timescale)
    });
    lengths.max().unwrap_or(Time::ZERO)
}

/// FNV-1a over everything that decides the bytes of segments.
fn version(files: &[Arc<Index>], rules: &Rules) -> u64 {
    let facts = files
        .iter()
        .flat_map(|index| [index.fingerprint, index.file_len]);
    let words = [PACKAGING, rules.segment_ms.into()]
        .into_iter()
        .chain(facts);
    let bytes = words.flat_map(u64::to_be_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Presentation {
    /// Fills in the target duration and the bandwidths.
    fn measure(&mut self) {
        let longest = self
            .renditions
            .iter()
            .flat_map(|r| (0..r.segments()).map(|n| self.segment_time(r, n)).max());
        // As playlists print it, with decimals that may be one unit too long.
        let printed = longest.max().unwrap_or(Time::ZERO).ceil_to(1_000_000) + 1;
        let target = Time::new(printed, 1_000_000).round_to(1).max(1);
        self.target_duration = u32::try_from(target).unwrap_or(u32::MAX);
        let measured: Vec<Bandwidth> = self.renditions.iter().map(|r| self.measured(r)).collect();
        for (rendition, bandwidth) in self.renditions.iter_mut().zip(measured) {
            rendition.bandwidth = bandwidth;
        }
    }

    fn measured(&self, rendition: &Rendition) -> Bandwidth {
        self.bandwidth_of(rendition, |n| self.segment_len(rendition, n))
    }
}
