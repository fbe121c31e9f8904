//! The state of a track: its segment lists, its buffer, and its fetch in flight.

use super::super::player_interface::{FetchProgress, FetchPurpose, Micros};
use super::super::qoe::{PlaybackJournal, PlayedStretch};
use media::manifest::read::SegmentList;
use media::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// Tolerance for the start times of segments, because manifests round these times.
const NEAR_US: i64 = 20_000;

/// The role of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrackRole {
    /// Video with or without audio, or audio if there is no video.
    Main,
    /// Separate audio of a title with video.
    Audio,
    /// Subtitles. Playback never waits for subtitles, and continues if subtitles are unavailable.
    Text,
}

/// A fetch in flight, with the data that is needed to handle the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingFetch {
    pub(super) purpose: FetchPurpose,
    pub(super) at: Micros,
    pub(super) level: usize,
    pub(super) source: usize,
    pub(super) segment: usize,
    pub(super) init: u16,
    pub(super) duration_us: i64,
    /// The part of the response that has been received so far.
    pub(super) progress: FetchProgress,
    /// Number of bytes received when the throughput was last sampled, and the time of this sample.
    pub(super) sampled: (u64, Micros),
}

/// A slot for one fetch at a time. Stores the number of failures, and the earliest time of the next
/// fetch.
#[derive(Debug, Default)]
pub(super) struct FetchSlot {
    pending: Option<(u32, Option<PendingFetch>)>,
    pub(super) failures: u32,
    pub(super) not_before: Option<Micros>,
}

impl FetchSlot {
    pub(super) fn can_start_fetch(&self, now: Micros) -> bool {
        self.pending.is_none() && self.not_before.is_none_or(|at| now >= at)
    }

    pub(super) fn is_pending(&self, id: u32) -> bool {
        self.pending.is_some_and(|(pending, _)| pending == id)
    }

    pub(super) fn start_fetch(&mut self, id: u32, fetch: Option<PendingFetch>) {
        self.pending = Some((id, fetch));
        self.not_before = None;
    }

    /// Returns the fetch in flight.
    pub(super) fn pending_fetch(&self) -> Option<&PendingFetch> {
        self.pending.as_ref()?.1.as_ref()
    }

    pub(super) fn record_progress(&mut self, id: u32, progress: FetchProgress) {
        if let Some((_, Some(fetch))) = self.pending.as_mut().filter(|(pending, _)| *pending == id)
        {
            fetch.progress = progress;
        }
    }

    /// Records that the throughput of the fetch in flight was sampled at `now`.
    pub(super) fn mark_sampled(&mut self, now: Micros) {
        if let Some((_, Some(fetch))) = &mut self.pending {
            fetch.sampled = (fetch.progress.bytes, now);
        }
    }

    pub(super) fn finish_fetch(&mut self) -> Option<PendingFetch> {
        self.failures = 0;
        self.pending.take().and_then(|(_, fetch)| fetch)
    }

    pub(super) fn retry_at(&mut self, at: Micros) {
        self.pending = None;
        self.not_before = Some(at);
    }

    pub(super) fn cancel_fetch(&mut self) -> Option<u32> {
        self.not_before = None;
        self.failures = 0;
        self.pending.take().map(|(id, _)| id)
    }
}

/// A buffered segment.
#[derive(Debug, Clone, Copy)]
struct BufferedSegment {
    end_us: i64,
    duration_us: i64,
    level: u16,
    kbps: u32,
}

#[derive(Debug)]
pub(super) struct TrackState {
    pub(super) role: TrackRole,
    /// For each source, the segments that are known so far.
    sources: Vec<Option<Arc<SegmentList>>>,
    /// For each source, the number of parsed documents that list its segments.
    pub(super) documents_parsed: Vec<u16>,
    /// The level of the segment that was received last.
    pub(super) level: Option<usize>,
    /// The source of the segment that was received last.
    source: usize,
    /// The level and the source that were chosen for the next segment.
    pub(super) next: Option<(usize, usize)>,
    /// Time since which the buffer has been full.
    pub(super) full_since: Option<Micros>,
    /// Fetched init segments, each as (source, index).
    pub(super) inits: Vec<(u16, u16)>,
    pub(super) slot: FetchSlot,
    segments_buffered: VecDeque<BufferedSegment>,
    /// Media time up to which the track has been played or skipped, in microseconds.
    played_us: i64,
    /// Media time at which the buffer initially started, in microseconds. Playback does not change
    /// this value. A seek that empties the buffer sets a new value.
    start_us: i64,
    /// Media time at which the buffer ends, in microseconds.
    pub(super) end_us: i64,
    /// The track has nothing more to fetch, unless the viewer seeks.
    pub(super) done: bool,
}

impl TrackState {
    pub(super) fn new(role: TrackRole, sources: usize) -> TrackState {
        TrackState {
            role,
            sources: vec![None; sources],
            documents_parsed: vec![0; sources],
            level: None,
            source: 0,
            next: None,
            full_since: None,
            inits: Vec::new(),
            slot: FetchSlot::default(),
            segments_buffered: VecDeque::new(),
            played_us: 0,
            start_us: 0,
            end_us: 0,
            done: false,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<TrackState>()
            + self.sources.capacity() * size_of::<Option<Arc<SegmentList>>>()
            + self.documents_parsed.capacity() * 2
            + self.inits.capacity() * 4
            + self.segments_buffered.capacity() * size_of::<BufferedSegment>()
    }

    /// Returns the segments of a source that are known so far.
    pub(super) fn source_segments(&self, source: usize) -> Option<&Arc<SegmentList>> {
        self.sources.get(source)?.as_ref()
    }

    /// Returns the known segments of the source that was used last.
    pub(super) fn known_segments(&self) -> Option<&Arc<SegmentList>> {
        self.source_segments(self.source)
    }

    /// Appends the segments of one parsed document to the segments of a source.
    pub(super) fn add_segments(
        &mut self,
        source: usize,
        segments: Arc<SegmentList>,
    ) -> media::Result<()> {
        let Some(slot) = self.sources.get_mut(source) else {
            return Ok(());
        };
        self.documents_parsed[source] += 1;
        *slot = Some(match slot.take() {
            None => segments,
            Some(known) => {
                let mut joined = (*known).clone();
                joined.append((*segments).clone())?;
                Arc::new(joined)
            }
        });
        Ok(())
    }

    /// Returns the index of the next segment to fetch. At the end of the title, this index is past
    /// the last segment.
    pub(super) fn next_segment(&self, segments: &SegmentList) -> usize {
        let from = self.end_us.saturating_add(NEAR_US);
        let at = segments.segment_at(Time::new(from, 1_000_000));
        let covers =
            micros(segments.start_time(at)).saturating_add(micros(segments.duration(at))) > from;
        // Segment `at` is the next segment if it covers `from`, or if it starts after the end of
        // the buffer. Otherwise, the buffer already contains segment `at`.
        if covers || (micros(segments.start_time(at)) > self.end_us) {
            at
        } else {
            at + 1
        }
    }

    /// Returns the number of segments that remain to be fetched from the source that was used last,
    /// or 1 if the segments are unknown.
    pub(super) fn segments_left(&self) -> usize {
        self.known_segments().map_or(1, |segments| {
            segments.len().saturating_sub(self.next_segment(segments))
        })
    }

    /// Buffers a received segment.
    pub(super) fn add_segment(&mut self, pending: &PendingFetch, bytes: u64) {
        let Some(segments) = self.source_segments(pending.source).cloned() else {
            return;
        };
        let end_us =
            micros(segments.start_time(pending.segment)).saturating_add(pending.duration_us);
        if self.segments_buffered.is_empty() && self.end_us == self.start_us {
            self.start_us = micros(segments.start_time(pending.segment)).min(self.start_us.max(0));
        }
        let ms = (pending.duration_us / 1000).max(1) as u64;
        self.segments_buffered.push_back(BufferedSegment {
            end_us,
            duration_us: pending.duration_us,
            level: pending.level as u16,
            kbps: u32::try_from(bytes.saturating_mul(8) / ms).unwrap_or(u32::MAX),
        });
        self.end_us = self.end_us.max(end_us);
        (self.level, self.source, self.next) = (Some(pending.level), pending.source, None);
    }

    /// Skips a segment that the manifest marks as missing.
    pub(super) fn skip_missing_segment(&mut self, end_us: i64) {
        self.end_us = self.end_us.max(end_us);
    }

    /// Removes the media before `position` from the buffer, and records this media as played.
    pub(super) fn play_until(&mut self, position: i64, journal: &mut PlaybackJournal) {
        while let Some(first) = self.segments_buffered.front().copied() {
            let from = self.played_us.max(first.end_us - first.duration_us);
            let until = position.min(first.end_us);
            if until - from >= 1000 {
                let ms = (until - from) / 1000;
                journal.add_played(PlayedStretch {
                    ms: ms as u32,
                    level: first.level,
                    kbps: first.kbps,
                });
                self.played_us = from + ms * 1000;
            }
            if first.end_us - position >= 1000 {
                break;
            }
            self.played_us = self.played_us.max(first.end_us);
            self.segments_buffered.pop_front();
        }
    }

    pub(super) fn is_buffered(&self, position: i64) -> bool {
        (self.start_us.max(self.played_us)..self.end_us).contains(&position)
    }

    /// Removes the media before `position` from the buffer. Does not record this media as played.
    pub(super) fn discard_media_before(&mut self, position: i64) {
        self.played_us = position;
        while self
            .segments_buffered
            .front()
            .is_some_and(|first| first.end_us <= position)
        {
            self.segments_buffered.pop_front();
        }
    }

    /// Empties the buffer and cancels the fetch in flight, because the viewer seeks to `position`.
    /// The next segment is the segment that contains `position`. Returns the ID of the cancelled
    /// fetch.
    pub(super) fn clear_buffer(&mut self, position: i64) -> Option<u32> {
        let start = self.known_segments().map_or(position, |segments| {
            micros(segments.start_time(segments.segment_at(Time::new(position, 1_000_000))))
        });
        self.segments_buffered.clear();
        (self.start_us, self.end_us, self.played_us) = (start, start, position);
        (self.done, self.next, self.full_since) = (false, None, None);
        self.slot.cancel_fetch()
    }
}

/// Converts a time to microseconds, rounded to an integer.
pub(super) fn micros(time: Time) -> i64 {
    time.round_to(1_000_000)
}
