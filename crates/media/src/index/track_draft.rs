//! A track while its samples are being collected.

use super::edit_list::{EditWindow, resolve_edit_list};
use super::{IndexNote, LeftOutTrack, Sample, SampleTableBuilder, Track, TrackRole};
use crate::bmff::Mp4Box;
use crate::bmff::elst::EditListEntry;
use crate::bmff::tkhd::Tkhd;
use crate::codec::Codec;
use crate::error::{Error, ErrorKind, Result, format_fourcc};
use crate::protection::source_protection::{select_pssh_of_key, unsupported_encryption_error};
use crate::protection::{ProtectedEntry, SencTable, SourceProtection, StoredSubsamples};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of samples in a track, and in all tracks of a file.
pub(super) const SAMPLES_MAX: u64 = 50_000_000;
/// Maximum decode time in ticks, so that sums of times never overflow.
const DECODE_TIME_MAX: u64 = 1 << 60;
/// Maximum duration of a sample in ticks. Larger values are negative durations that broken muxers
/// wrote.
pub(super) const DURATION_MAX: u32 = i32::MAX as u32;

/// A sample entry of the file and its parsed codec.
#[derive(Debug)]
pub(super) struct DraftSampleEntry {
    pub bytes: Vec<u8>,
    pub codec: Result<Codec>,
    /// Protection that the entry declares, if the samples are encrypted.
    pub protection: Option<ProtectedEntry>,
    /// Whether the media is in a file other than the indexed file.
    pub is_external: bool,
}

/// A packageable track while its samples are being collected.
#[derive(Debug)]
pub(super) struct TrackDraft {
    pub id: u32,
    pub is_video: bool,
    pub file_len: u64,
    pub language: String,
    pub name: Option<String>,
    pub roles: Vec<TrackRole>,
    pub edits: Vec<EditListEntry>,
    pub samples: SampleTableBuilder,
    /// Auxiliary information of the samples (`senc`), if the samples are encrypted.
    auxiliary: SencTable,
    /// Subsamples that an index MP4 contains.
    subsamples: Option<StoredSubsamples>,
    /// `pssh` boxes of the film.
    pub pssh_boxes: Vec<Vec<u8>>,
    timescale: u32,
    tkhd: Tkhd,
    entries: Vec<DraftSampleEntry>,
    /// Highest file offset at which a chunk ends.
    chunks_end: u64,
    /// Index of the sample entry that the samples use.
    used_entry: Option<usize>,
    /// Decode time of the first sample, in ticks of the track.
    first_dts: u64,
    /// Ticks that are added to every `tfdt`, because earlier jumps were ignored.
    tfdt_correction: i128,
    gaps: TimingAnomaly,
    overlaps: TimingAnomaly,
    jumps: TimingAnomaly,
    /// Error for the first missing sample, and number of missing samples, if the file ends before
    /// the last sample.
    pub missing_end: Option<(Error, u32)>,
    pub has_short_stts: bool,
}

/// A track after all its samples were collected.
pub(super) enum TrackOutcome {
    /// The track can be packaged.
    Served(Box<Track>),
    /// The track is left out for this reason.
    LeftOut(&'static str),
}

/// Statistics of one kind of timing anomaly: the number of anomalies, the decode time of the first
/// anomaly, and the size of the largest anomaly. The time and the size are in ticks.
#[derive(Debug, Default)]
struct TimingAnomaly {
    count: u32,
    first: u64,
    largest: u64,
}

impl TimingAnomaly {
    fn record_occurrence(&mut self, at: u64, size: u64) {
        if self.count == 0 {
            self.first = at;
        }
        self.count = self.count.saturating_add(1);
        self.largest = self.largest.max(size);
    }
}

/// Describes pictures that are decoded and not shown. `hidden` contains the number of these
/// pictures, and the ticks from the key frame to the start of the edit.
fn describe_hidden_pictures(
    track_id: u32,
    timescale: u32,
    hidden: (usize, i64),
) -> Option<IndexNote> {
    let (count @ 1.., ticks @ 1..) = hidden else {
        return None;
    };
    let lead = Time::new(ticks, timescale).as_seconds_f64();
    Some(IndexNote {
        track_id,
        time_ticks: None,
        message: format!(
            "the edit list starts {lead:.3} s after a key frame, inside a GOP: players decode {count} hidden pictures at the start"
        ),
    })
}

/// Refuses a track whose key changes (ISO/IEC 23001-7, 6).
fn refuse_key_groups(holder: &Mp4Box<'_>) -> Result<()> {
    for child in holder.children() {
        let child = child?;
        let is_group = matches!(&child.name, b"sgpd" | b"sbgp");
        if is_group && child.body.get(4..8) == Some(b"seig") {
            return Err(unsupported_encryption_error(
                "with several keys or a clear lead (seig groups)",
            ));
        }
    }
    Ok(())
}

impl TrackDraft {
    /// Creates a track without samples.
    pub fn new(tkhd: Tkhd, timescale: u32, entries: Vec<DraftSampleEntry>) -> TrackDraft {
        TrackDraft {
            id: tkhd.track_id,
            is_video: false,
            file_len: 0,
            language: "und".to_owned(),
            name: None,
            roles: Vec::new(),
            edits: Vec::new(),
            samples: SampleTableBuilder::default(),
            auxiliary: SencTable::default(),
            subsamples: None,
            pssh_boxes: Vec::new(),
            timescale,
            tkhd,
            entries,
            chunks_end: 0,
            used_entry: None,
            first_dts: 0,
            tfdt_correction: 0,
            gaps: TimingAnomaly::default(),
            overlaps: TimingAnomaly::default(),
            jumps: TimingAnomaly::default(),
            missing_end: None,
            has_short_stts: false,
        }
    }

    /// Returns whether the track is text.
    pub fn is_text(&self) -> bool {
        let codecs = || {
            self.entries
                .iter()
                .filter_map(|entry| entry.codec.as_ref().ok())
        };
        codecs().next().is_some() && codecs().all(|codec| codec.text().is_some())
    }

    /// Selects the sample entry with number `description`, counted from 1.
    ///
    /// # Errors
    /// `Malformed` if there is no such entry. `Unsupported` if the samples already use another
    /// entry with different content. The error of the entry's codec, if the codec is not supported.
    pub fn select_sample_entry(&mut self, description: u32) -> Result<()> {
        let wanted = (description as usize).saturating_sub(1);
        let entry = self.entries.get(wanted).ok_or_else(|| {
            let entry_count = self.entries.len();
            Error::malformed(format!(
                "samples use sample entry {description}; the number of entries is {entry_count}"
            ))
        })?;
        if let Err(error) = &entry.codec {
            return Err(error.clone());
        }
        match self.used_entry {
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
                "the samples use several sample entries: encode the track with one configuration",
            )),
            None => {
                self.used_entry = Some(wanted);
                Ok(())
            }
        }
    }

    /// Adds the auxiliary information of the samples from number `first` on. `holder` is the `traf`
    /// or `stbl` box that contains `senc`. Does nothing if the track is not encrypted.
    ///
    /// # Errors
    /// `Unsupported` if the form of encryption cannot be passed through; the message names the
    /// form. `Malformed` if `senc` is broken.
    pub fn add_sample_auxiliary(&mut self, holder: &Mp4Box<'_>, first: u32) -> Result<()> {
        let entry = self.used_entry.and_then(|used| self.entries.get(used));
        let Some(protection) = entry.and_then(|entry| entry.protection.as_ref()) else {
            return Ok(());
        };
        refuse_key_groups(holder)?;
        let senc = holder.find_child(b"senc")?.map(|senc| senc.body);
        let count = self.samples.len().saturating_sub(first);
        self.auxiliary
            .add_samples(senc, count, protection.iv_bytes)
            .map_err(|error| error.with_enclosing_box(*b"senc"))
    }

    /// Reads the subsamples that an index MP4 stores in `stbl`.
    ///
    /// # Errors
    /// `Malformed` if the subsamples of a sample are missing.
    pub fn read_stored_subsamples(&mut self, stbl: &Mp4Box<'_>) -> Result<()> {
        let found = StoredSubsamples::from_stbl(stbl, self.samples.len());
        self.subsamples = found.map_err(|error| error.with_enclosing_box(*b"uuid"))?;
        Ok(())
    }

    /// Checks that `count` more samples are allowed, and reserves memory for them.
    ///
    /// # Errors
    /// `TooLarge` if the track would have more than [`SAMPLES_MAX`] samples. `Truncated` if the
    /// file is too short for so many samples.
    pub fn reserve_samples(&mut self, count: u32) -> Result<()> {
        let total = u64::from(self.samples.len()) + u64::from(count);
        if total > SAMPLES_MAX {
            let message = format!(
                "track {} has {total} samples; at most {SAMPLES_MAX} are read",
                self.id
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        if total > self.file_len {
            let message = format!(
                "track {} declares {total} samples, more than the {} bytes of the file",
                self.id, self.file_len
            );
            return Err(Error::new(ErrorKind::Truncated, message));
        }
        self.samples.reserve(count as usize);
        Ok(())
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// `Truncated` if the sample is outside the file; `Malformed` if its duration exceeds
    /// [`DURATION_MAX`].
    pub fn push_sample(&mut self, sample: Sample) -> Result<()> {
        let n = self.samples.len();
        if self.is_beyond_file(sample.size, sample.offset) {
            return Err(self.sample_beyond_file_error(n, sample.size, sample.offset));
        }
        if sample.duration > DURATION_MAX {
            return Err(self.sample_duration_error(n, sample.duration));
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Places the samples `first..first + count` contiguously in the file, from `offset` on. The
    /// sizes of the samples must have been added before.
    ///
    /// # Errors
    /// `Truncated` if one of the samples is outside the file.
    #[inline]
    pub fn push_chunk(&mut self, first: u32, count: u32, offset: u64) -> Result<()> {
        let end = self.samples.push_chunk(first, count, offset);
        self.chunks_end = self.chunks_end.max(end);
        match end <= self.file_len {
            true => Ok(()),
            false => self.check_samples_within_file(first..first + count, offset),
        }
    }

    /// Checks that every sample of `samples` is within the file. The samples are contiguous, and
    /// the first sample starts at byte `at`.
    #[cold]
    fn check_samples_within_file(&mut self, samples: Range<u32>, mut at: u64) -> Result<()> {
        for n in samples {
            let size = self.samples.sizes_mut().get(n);
            let end = at.saturating_add(u64::from(size));
            if end > self.file_len {
                return Err(self.sample_beyond_file_error(n, size, at));
            }
            at = end;
        }
        Ok(())
    }

    /// Sets the length of the file. Returns whether all chunks that were added so far are within
    /// the file.
    pub fn set_file_len(&mut self, len: u64) -> bool {
        self.file_len = len;
        self.chunks_end <= len && u64::from(self.samples.len()) <= len
    }

    fn sample_beyond_file_error(&self, n: u32, size: u32, offset: u64) -> Error {
        let message = format!(
            "track {}: sample {n} should be {size} bytes at byte {offset}, but the file ends at byte {}",
            self.id, self.file_len
        );
        Error::new(ErrorKind::Truncated, message)
    }

    /// Creates the error for a sample that lasts longer than [`DURATION_MAX`].
    pub fn sample_duration_error(&self, n: u32, ticks: u32) -> Error {
        let id = self.id;
        let message = format!(
            "track {id}: sample {n} lasts {ticks} ticks; at most {DURATION_MAX} are allowed"
        );
        Error::malformed(message)
    }

    /// Starts a fragment whose first sample has the decode time `tfdt`.
    ///
    /// If there is a gap before `tfdt`, the previous sample is lengthened. If there is an overlap,
    /// the previous sample is shortened. A gap or overlap that is too large for such a change
    /// counts as a jump. A jump is ignored, and the next sample directly follows the previous
    /// sample.
    pub fn begin_fragment(&mut self, tfdt: u64) -> Result<()> {
        if tfdt > DECODE_TIME_MAX {
            let (id, at) = (self.id, tfdt);
            let message = format!(
                "track {id}: decode time {at} is beyond the maximum of {DECODE_TIME_MAX} ticks"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let Some(last) = self.samples.last_duration() else {
            self.first_dts = tfdt;
            return Ok(());
        };
        let expected = self.first_dts + self.samples.total_duration();
        let deviation = i128::from(tfdt) + self.tfdt_correction - i128::from(expected);
        let new_duration = i128::from(last) + deviation;
        let size = u64::try_from(deviation.unsigned_abs()).unwrap_or(u64::MAX);
        if deviation == 0 {
            return Ok(());
        }
        if new_duration <= 0 || new_duration > i128::from(DURATION_MAX) {
            self.jumps.record_occurrence(expected, size);
            self.tfdt_correction -= deviation;
            return Ok(());
        }
        let anomaly = if deviation > 0 {
            &mut self.gaps
        } else {
            &mut self.overlaps
        };
        anomaly.record_occurrence(expected, size);
        self.samples
            .set_last_duration(u32::try_from(new_duration).unwrap_or(last));
        Ok(())
    }

    /// Records that the next `count` samples are missing because the file ends too early. The first
    /// missing sample has `size` bytes at `offset`. The caller must add no later samples, because
    /// otherwise samples would be missing in the middle of the track.
    pub fn record_missing_samples(&mut self, count: u32, size: u32, offset: u64) {
        let next = self.samples.len();
        let error = self.sample_beyond_file_error(next, size, offset);
        let missing = self.missing_end.get_or_insert((error, 0));
        missing.1 = missing.1.saturating_add(count);
    }

    /// Returns whether `size` bytes at `offset` extend beyond the end of the file.
    pub fn is_beyond_file(&self, size: u32, offset: u64) -> bool {
        let end = offset.checked_add(u64::from(size));
        end.is_none_or(|end| end > self.file_len)
    }

    /// Describes the samples that are missing at the end of the file.
    pub fn describe_missing_end(&self) -> Option<LeftOutTrack> {
        let (_, count) = self.missing_end.as_ref()?;
        let samples = match count {
            1 => "sample".to_owned(),
            count => format!("{count} samples"),
        };
        let name = format!("the last {samples} of track {}", self.id);
        let reason = format!("the file ends at byte {}", self.file_len);
        Some(LeftOutTrack::new(name, reason))
    }

    /// Resolves the edit list and packs the tables.
    pub fn finish(
        self,
        movie_timescale: u32,
        fragmented: bool,
        notes: &mut Vec<IndexNote>,
    ) -> Result<TrackOutcome> {
        self.append_notes(notes);
        let Some(used) = self.used_entry.filter(|_| !self.samples.is_empty()) else {
            return Ok(TrackOutcome::LeftOut("it has no samples"));
        };
        let entry = self.entries.into_iter().nth(used);
        let entry = entry.ok_or_else(|| Error::malformed("there is no sample entry"))?;
        let codec = entry.codec?;
        let mut window = resolve_edit_list(&self.edits, movie_timescale, self.timescale)?;
        if fragmented {
            // Ignores the duration in the edit list. Writers of fragmented files rarely know the
            // duration when they write the edit list.
            window.media_end = None;
        }
        // The codec determines whether the track is video, because handler types are often wrong.
        let is_video = codec.video().is_some();
        // Every sample of audio and text can be decoded on its own, whatever the sync flags are.
        // The exception is xHE-AAC (`mp4a.40.42`).
        let every_sync = !is_video && codec.codec_string != "mp4a.40.42";
        let mut samples = self.samples;
        if every_sync {
            samples.set_all_sync();
        }
        let media = EditWindow::trim_samples(
            samples.finish(),
            self.first_dts,
            &window,
            is_video,
            self.timescale,
        );
        let Some(trimmed) = media else {
            let reason = "the edit list shows none of its samples";
            return Ok(TrackOutcome::LeftOut(reason));
        };
        notes.extend(describe_hidden_pictures(
            self.id,
            self.timescale,
            trimmed.hidden,
        ));
        let (samples, origin) = (trimmed.samples, trimmed.presentation_offset);
        let kept = trimmed.first..trimmed.first + samples.len();
        let protection = entry.protection.map(|entry| SourceProtection {
            pssh_boxes: select_pssh_of_key(&self.pssh_boxes, &entry.protection.key_id),
            auxiliary: self.auxiliary.trim(kept.clone()),
            entry,
        });
        let subsamples = self.subsamples.map(|own| own.trim(kept, &samples));
        let last_shown = samples.last_presentation_end().saturating_add(origin);
        if !samples.is_sync(0) {
            let message = "the first sample is not a key frame";
            notes.push(IndexNote {
                track_id: self.id,
                time_ticks: Some(0),
                message: message.to_owned(),
            });
        }
        Ok(TrackOutcome::Served(Box::new(Track {
            id: self.id,
            timescale: self.timescale,
            language: self.language,
            name: self.name,
            is_enabled: self.tkhd.is_enabled,
            roles: self.roles,
            codec,
            samples,
            presentation_offset: origin,
            presentation_end: window.presentation_end().filter(|end| *end < last_shown),
            protection: protection.map(Arc::new),
            subsamples: subsamples.transpose()?.map(Arc::new),
            matrix: self.tkhd.matrix,
        })))
    }

    fn build_note(&self, at: Option<u64>, message: String) -> IndexNote {
        IndexNote {
            track_id: self.id,
            time_ticks: at,
            message,
        }
    }

    /// Appends a note for each anomaly that was found.
    fn append_notes(&self, notes: &mut Vec<IndexNote>) {
        let anomalies = [
            (
                &self.gaps,
                "gaps between fragments",
                "the previous sample is lengthened",
            ),
            (
                &self.overlaps,
                "overlaps of fragments",
                "the previous sample is shortened",
            ),
            (
                &self.jumps,
                "jumps in decode time",
                "the samples continue without the jump",
            ),
        ];
        for (anomaly, message, remedy) in anomalies {
            if anomaly.count > 0 {
                let message = format!(
                    "{} {message}, at most {} ticks: {remedy}",
                    anomaly.count, anomaly.largest
                );
                notes.push(self.build_note(Some(anomaly.first), message));
            }
        }
        if self.has_short_stts {
            let message =
                "stts has fewer durations than there are samples: the last one is repeated";
            notes.push(self.build_note(None, message.to_owned()));
        }
        if self.is_video && !self.tkhd.is_upright() {
            let message = "the tkhd matrix rotates or mirrors the picture: init segments keep it, transport streams cannot, and some players ignore it";
            notes.push(self.build_note(None, message.to_owned()));
        }
        let unused = self
            .entries
            .iter()
            .enumerate()
            .filter(|(n, _)| Some(*n) != self.used_entry);
        for (_, entry) in unused {
            if let Err(error) = &entry.codec {
                let code = entry.bytes.get(4..8).and_then(|code| code.try_into().ok());
                let code = format_fourcc(code.unwrap_or_default());
                notes.push(self.build_note(
                    None,
                    format!("an unused sample entry, {code}: {}", error.message),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests;
