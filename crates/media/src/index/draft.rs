//! A track while its samples are being collected.

use super::edit::{Window, resolve};
use super::{Note, Sample, SamplesBuilder, Track};
use crate::bmff::elst::Edit;
use crate::bmff::tkhd::Tkhd;
use crate::codec::Codec;
use crate::error::{Error, Kind, Result, fourcc};
use std::ops::Range;

/// How many samples a track may have.
pub(super) const SAMPLES_MAX: u64 = 50_000_000;
/// Latest decode time that is taken, in ticks, so that sums of times never overflow.
const TIME_MAX: u64 = 1 << 60;
/// Longest sample, in ticks; larger ones are negative durations of broken writers.
pub(super) const DURATION_MAX: u32 = i32::MAX as u32;

/// A sample entry as it lies in the file, and what it means.
#[derive(Debug)]
pub(super) struct Entry {
    pub bytes: Vec<u8>,
    pub codec: Result<Codec>,
    /// Whether its media lies in another file than the one that is being indexed.
    pub elsewhere: bool,
}

/// A track that can be packaged, while its samples are being collected.
#[derive(Debug)]
pub(super) struct Draft {
    pub id: u32,
    pub is_video: bool,
    pub file_len: u64,
    pub language: String,
    pub name: Option<String>,
    pub edits: Vec<Edit>,
    pub samples: SamplesBuilder,
    timescale: u32,
    tkhd: Tkhd,
    entries: Vec<Entry>,
    /// Where in the file the last of its chunks ends.
    reach: u64,
    /// Which entry the samples use.
    used: Option<usize>,
    /// Decode time of the first sample, in the media's own ticks.
    base: u64,
    /// Added to every tfdt, after one that could not be followed.
    skew: i128,
    gaps: Tally,
    overlaps: Tally,
    jumps: Tally,
    pub has_short_stts: bool,
}

/// How often something happened, where first, and how large it was at most.
#[derive(Debug, Default)]
struct Tally {
    count: u32,
    first: u64,
    largest: u64,
}

impl Tally {
    fn add(&mut self, at: u64, size: u64) {
        if self.count == 0 {
            self.first = at;
        }
        self.count = self.count.saturating_add(1);
        self.largest = self.largest.max(size);
    }
}

impl Draft {
    /// A track without samples yet.
    pub fn new(tkhd: Tkhd, timescale: u32, entries: Vec<Entry>) -> Draft {
        Draft {
            id: tkhd.id,
            is_video: false,
            file_len: 0,
            language: "und".to_owned(),
            name: None,
            edits: Vec::new(),
            samples: SamplesBuilder::default(),
            timescale,
            tkhd,
            entries,
            reach: 0,
            used: None,
            base: 0,
            skew: 0,
            gaps: Tally::default(),
            overlaps: Tally::default(),
            jumps: Tally::default(),
            has_short_stts: false,
        }
    }

    /// Says that samples use the sample entry numbered `description`, from 1.
    pub fn use_entry(&mut self, description: u32) -> Result<()> {
        let wanted = (description as usize).saturating_sub(1);
        let entry = self.entries.get(wanted).ok_or_else(|| {
            let there = self.entries.len();
            Error::malformed(format!("samples use sample entry {description} of {there}"))
        })?;
        if let Err(error) = &entry.codec {
            return Err(error.clone());
        }
        match self.used {
            Some(used) if used == wanted => Ok(()),
            Some(used)
                if self
                    .entries
                    .get(used)
                    .is_some_and(|known| known.bytes == entry.bytes) =>
            {
                Ok(())
            }
            Some(_) => Err(Error::unsupported(
                "its samples use several sample entries: encode the track with one configuration",
            )),
            None => {
                self.used = Some(wanted);
                Ok(())
            }
        }
    }

    /// Says that `count` samples more are coming, before they are looked at.
    pub fn expect(&mut self, count: u32) -> Result<()> {
        let total = u64::from(self.samples.len()) + u64::from(count);
        if total > SAMPLES_MAX {
            let what = format!(
                "track {} has {total} samples; at most {SAMPLES_MAX} are read",
                self.id
            );
            return Err(Error::new(Kind::TooLarge, what));
        }
        if total > self.file_len {
            let what = format!(
                "track {} claims {total} samples, more than the {} bytes of the file",
                self.id, self.file_len
            );
            return Err(Error::new(Kind::Truncated, what));
        }
        self.samples.reserve(count as usize);
        Ok(())
    }

    /// Adds a sample, which must lie within the file.
    pub fn push(&mut self, sample: Sample) -> Result<()> {
        let n = self.samples.len();
        let end = sample.offset.checked_add(u64::from(sample.size));
        if end.is_none_or(|end| end > self.file_len) {
            return Err(self.beyond(n, sample.size, sample.offset));
        }
        if sample.duration > DURATION_MAX {
            return Err(self.too_long(n, sample.duration));
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Says that the samples `first..first + count`, whose sizes are there already, lie one after
    /// the other from `offset` on, all of them within the file.
    #[inline]
    pub fn push_chunk(&mut self, first: u32, count: u32, offset: u64) -> Result<()> {
        let end = self.samples.push_chunk(first, count, offset);
        self.reach = self.reach.max(end);
        match end <= self.file_len {
            true => Ok(()),
            false => self.check_each(first..first + count, offset),
        }
    }

    /// Whether samples that lie one after the other from `at` on are within the file.
    #[cold]
    fn check_each(&mut self, samples: Range<u32>, mut at: u64) -> Result<()> {
        for n in samples {
            let size = self.samples.sizes().get(n);
            let end = at.saturating_add(u64::from(size));
            if end > self.file_len {
                return Err(self.beyond(n, size, at));
            }
            at = end;
        }
        Ok(())
    }

    /// Whether the samples so far, which came in chunks, lie within a file of `len` bytes; that is
    /// how long it is then.
    pub fn is_within(&mut self, len: u64) -> bool {
        self.file_len = len;
        self.reach <= len && u64::from(self.samples.len()) <= len
    }

    fn beyond(&self, n: u32, size: u32, offset: u64) -> Error {
        let what = format!(
            "track {}: sample {n} should be {size} bytes at byte {offset}, but the file ends at byte {}",
            self.id, self.file_len
        );
        Error::new(Kind::Truncated, what)
    }

    /// The error for a sample that lasts longer than any does.
    pub fn too_long(&self, n: u32, ticks: u32) -> Error {
        let id = self.id;
        let what =
            format!("track {id}: sample {n} lasts {ticks} ticks; at most {DURATION_MAX} can be");
        Error::malformed(what)
    }

    /// Brings the decode time of the next sample to `tfdt`: a gap lengthens the sample before,
    /// an overlap shortens it; a jump beyond both is ignored, and the samples follow on.
    pub fn begin_fragment(&mut self, tfdt: u64) -> Result<()> {
        if tfdt > TIME_MAX {
            let (id, at) = (self.id, tfdt);
            let what = format!(
                "track {id}: decode time {at} is beyond the {TIME_MAX} ticks that are read"
            );
            return Err(Error::new(Kind::TooLarge, what));
        }
        let Some(last) = self.samples.last_duration() else {
            self.base = tfdt;
            return Ok(());
        };
        let expected = self.base + self.samples.end();
        let apart = i128::from(tfdt) + self.skew - i128::from(expected);
        let wished = i128::from(last) + apart;
        let size = u64::try_from(apart.unsigned_abs()).unwrap_or(u64::MAX);
        if apart == 0 {
            return Ok(());
        }
        if wished <= 0 || wished > i128::from(DURATION_MAX) {
            self.jumps.add(expected, size);
            self.skew -= apart;
            return Ok(());
        }
        let tally = if apart > 0 {
            &mut self.gaps
        } else {
            &mut self.overlaps
        };
        tally.add(expected, size);
        self.samples
            .set_last_duration(u32::try_from(wished).unwrap_or(last));
        Ok(())
    }

    /// Resolves the edit list and packs the tables. `None`: no sample is left.
    pub fn finish(
        self,
        movie_timescale: u32,
        fragmented: bool,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Track>> {
        self.tell(notes);
        let Some(used) = self.used.filter(|_| !self.samples.is_empty()) else {
            notes.push(self.note(None, "the track is left out: it has no samples".to_owned()));
            return Ok(None);
        };
        let codec = self.entries.into_iter().nth(used).map(|entry| entry.codec);
        let codec = codec.unwrap_or_else(|| Err(Error::malformed("there is no sample entry")))?;
        let mut window = resolve(&self.edits, movie_timescale, self.timescale)?;
        if fragmented {
            // A writer of fragments seldom knows the length when it writes the edit list.
            window.end = None;
        }
        // By what it is coded with, whatever its handler says.
        let is_video = codec.video().is_some();
        // Every frame of these codings can be decoded on its own, whatever flags say.
        let every_sync = !is_video && codec.string != "mp4a.40.42";
        let mut samples = self.samples;
        if every_sync {
            samples.set_all_sync();
        }
        let media = Window::cut(
            samples.finish(),
            self.base,
            &window,
            is_video,
            self.timescale,
        );
        let Some((samples, origin)) = media else {
            let what = "the track is left out: its edit list shows none of its samples";
            notes.push(Note {
                track: self.id,
                at: None,
                what: what.to_owned(),
            });
            return Ok(None);
        };
        let last_shown = samples.last_shown().saturating_add(origin);
        if !samples.is_sync(0) {
            let what = "the first sample is not a key frame";
            notes.push(Note {
                track: self.id,
                at: Some(0),
                what: what.to_owned(),
            });
        }
        Ok(Some(Track {
            id: self.id,
            timescale: self.timescale,
            language: self.language,
            name: self.name,
            enabled: self.tkhd.enabled,
            codec,
            samples,
            origin,
            shown_until: window.shown_until().filter(|end| *end < last_shown),
            matrix: self.tkhd.matrix,
        }))
    }

    fn note(&self, at: Option<u64>, what: String) -> Note {
        Note {
            track: self.id,
            at,
            what,
        }
    }

    /// Notes what was met on the way.
    fn tell(&self, notes: &mut Vec<Note>) {
        let tallies = [
            (
                &self.gaps,
                "gaps between fragments",
                "the sample before is made longer",
            ),
            (
                &self.overlaps,
                "overlaps of fragments",
                "the sample before is made shorter",
            ),
            (
                &self.jumps,
                "jumps in decode time",
                "the samples follow on instead",
            ),
        ];
        for (tally, what, remedy) in tallies {
            if tally.count > 0 {
                let what = format!(
                    "{} {what}, at most {} ticks: {remedy}",
                    tally.count, tally.largest
                );
                notes.push(self.note(Some(tally.first), what));
            }
        }
        if self.has_short_stts {
            let what = "stts times fewer samples than there are: the last duration goes on";
            notes.push(self.note(None, what.to_owned()));
        }
        if self.is_video && !self.tkhd.is_upright() {
            let what = "the picture is turned or mirrored by the tkhd matrix: init segments say so, but transport streams cannot, and some players ignore it";
            notes.push(self.note(None, what.to_owned()));
        }
        let unused = self
            .entries
            .iter()
            .enumerate()
            .filter(|(n, _)| Some(*n) != self.used);
        for (_, entry) in unused {
            if let Err(error) = &entry.codec {
                let code = entry.bytes.get(4..8).and_then(|code| code.try_into().ok());
                let code = fourcc(code.unwrap_or_default());
                notes.push(self.note(
                    None,
                    format!("an unused sample entry, {code}: {}", error.what),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests;
