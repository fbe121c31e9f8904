//! Which tracks of a title's files are served.

use crate::error::{Error, Kind, Result};
use crate::index::{Index, Track};
use crate::time::Time;
use std::sync::Arc;

/// A track that is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) file: usize,
    pub(super) track: usize,
    pub(super) of: &'a Track,
    /// The first sample that is served.
    pub(super) first: u32,
    /// Mean bits a second of its samples alone.
    pub(super) bitrate: u64,
}

/// How many samples from the first are looked at for one that is shown earlier: pictures that
/// lead a key frame follow it closely.
const LEADING: u32 = 64;

impl Chosen<'_> {
    /// When the earliest of its samples is shown, in ticks of the film's own timeline.
    pub(super) fn earliest(&self) -> i64 {
        let range = self.first..self.first.saturating_add(LEADING);
        let shown = |s: crate::index::Sample| (s.dts as i64).saturating_add(s.cts.into());
        let earliest = self.of.samples.range(range).map(shown).min();
        earliest.unwrap_or(0).saturating_add(self.of.origin)
    }

    /// When its first sample is decoded, in ticks of the film's own timeline: early enough for
    /// every sample to be decoded no later than it is shown.
    pub(super) fn decoded(&self) -> i64 {
        let samples = &self.of.samples;
        (samples.dts(self.first) as i64)
            .saturating_add(samples.cts_min().into())
            .saturating_add(self.of.origin)
    }

    /// Ticks from the first sample's decoding to its being shown.
    pub(super) fn delay(&self) -> u32 {
        let samples = &self.of.samples;
        samples.cts(self.first).abs_diff(samples.cts_min())
    }

    pub(super) fn is_video(&self) -> bool {
        self.of.codec.video().is_some()
    }
}

fn bitrate(track: &Track, first: u32) -> u64 {
    let samples = &track.samples;
    let bits = u128::from(samples.bytes(first..samples.len())) * 8;
    let ticks = samples.end().saturating_sub(samples.dts(first)).max(1);
    u64::try_from(bits * u128::from(track.timescale) / u128::from(ticks)).unwrap_or(u64::MAX)
}

/// The tracks to serve, in file order.
pub(super) fn choose(files: &[Arc<Index>]) -> Result<Vec<Chosen<'_>>> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for (file, index) in files.iter().enumerate() {
        for (track, of) in index.tracks.iter().enumerate() {
            let Some(first) = first_served(of)? else {
                continue;
            };
            let new = Chosen {
                file,
                track,
                of,
                first,
                bitrate: bitrate(of, first),
            };
            if !chosen
                .iter()
                .any(|old| old.file != file && is_copy(old, &new))
            {
                chosen.push(new);
            }
        }
    }
    if chosen.is_empty() {
        return Err(Error::new(Kind::Empty, "no track lasts any time"));
    }
    Ok(chosen)
}

/// The first sample that can be decoded, if anything from it on lasts any time.
fn first_served(track: &Track) -> Result<Option<u32>> {
    let samples = &track.samples;
    let first = if track.codec.video().is_some() {
        samples.sync_from(0).ok_or_else(|| {
            Error::malformed(format!(
                "video track {} has no sync samples (key frames), so it cannot be cut; encode it with a regular key frame interval",
                track.id
            ))
        })?
    } else {
        0
    };
    Ok((samples.dts(first) < samples.end()).then_some(first))
}

/// Whether `new` is the sound of `old` again, as each file of a ladder often carries it.
fn is_copy(old: &Chosen, new: &Chosen) -> bool {
    let (Some(a), Some(b)) = (old.of.codec.audio(), new.of.codec.audio()) else {
        return false;
    };
    let same = old.of.codec.string == new.of.codec.string
        && old.of.language == new.of.language
        && old.of.name == new.of.name
        && (a.channels, a.sample_rate) == (b.channels, b.sample_rate);
    same && near(old.bitrate, new.bitrate) && same_length(old.of, new.of)
}

/// Within 1 %.
fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= a.max(b) / 100
}

/// Within 100 ms: encoders of the renditions may pad the last frames differently.
fn same_length(a: &Track, b: &Track) -> bool {
    a.duration().nanos().abs_diff(b.duration().nanos()) <= 100_000_000
}

/// Refuses files whose lengths differ by more than 2 s and more than 5 %.
pub(super) fn check_lengths(files: &[Arc<Index>]) -> Result<()> {
    let length = |index: &Arc<Index>| index.tracks.iter().map(Track::duration).max();
    let lengths: Vec<f64> = files
        .iter()
        .map(|index| length(index).unwrap_or(Time::ZERO).seconds())
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
