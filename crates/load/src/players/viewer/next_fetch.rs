//! Chooses a viewer's next request.

use super::super::cmcd::{CmcdObjectType, CmcdReport};
use super::super::player_interface::{
    DocumentFormat, FetchProgress, FetchPurpose, MediaFetch, Micros,
};
use super::track_buffer::{PendingFetch, TrackRole, micros};
use super::{StartLevel, Viewer};
use media::manifest::read::RenditionKind;
use media::manifest::read::{ResourceRange, SegmentList, SegmentListSource};
use std::sync::Arc;

/// Time after which a track checks again whether it must wait for another track, as in hls.js.
const SYNC_INTERVAL_US: Micros = 100_000;

/// The next step of a track.
enum TrackDecision {
    Fetch(Box<MediaFetch>),
    /// Fetch nothing before this time.
    Later(Micros),
    /// Fetch nothing until an event changes the state.
    Nothing,
    /// The track has nothing more to fetch.
    Over,
    /// Decide again, because this decision has changed the state of the track.
    Again,
}

impl Viewer {
    /// Returns the next request, if one is due.
    pub(super) fn next_fetch(&mut self, now: Micros) -> Option<MediaFetch> {
        if self.stream.is_none() {
            if !self.manifest.can_start_fetch(now) {
                return None;
            }
            let id = self.new_fetch_id();
            self.manifest.start_fetch(id, None);
            let resource = self.plan.manifest.clone();
            let cmcd = self.build_cmcd_report(CmcdObjectType::Manifest, 0, None, None);
            let (purpose, format) = (FetchPurpose::Manifest, DocumentFormat::Manifest);
            return Some(MediaFetch {
                id,
                purpose,
                resource,
                format,
                cmcd,
            });
        }
        for n in 0..self.tracks.len() {
            while self.ended.is_none()
                && self.tracks[n].slot.can_start_fetch(now)
                && !self.tracks[n].done
            {
                match self.decide_next_step(now, n) {
                    TrackDecision::Fetch(fetch) => return Some(*fetch),
                    TrackDecision::Later(at) => {
                        self.tracks[n].slot.not_before = Some(at);
                        break;
                    }
                    TrackDecision::Nothing => {
                        // A time in the past would wake the viewer again and again.
                        self.tracks[n].slot.not_before = None;
                        break;
                    }
                    TrackDecision::Over => self.tracks[n].done = true,
                    TrackDecision::Again => {}
                }
            }
        }
        // If all segments are buffered, playback starts even if the buffer contains less media than
        // the settings require.
        if self.is_fully_fetched() {
            self.start_playing();
        }
        None
    }

    fn new_fetch_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    fn decide_next_step(&mut self, now: Micros, n: usize) -> TrackDecision {
        let Some((level, source)) = self.tracks[n].next else {
            return self.choose_level(now, n);
        };
        let Some(segments) = self.known_segments(n, source) else {
            return self.fetch_segment_lists(now, n, level, source);
        };
        let segment = self.tracks[n].next_segment(&segments);
        if segment >= segments.len() {
            return TrackDecision::Over;
        }
        if n == 0 && !self.clock.has_started() {
            self.clock.start_at(
                micros(segments.start_time(segment))
                    .min(micros(segments.start_time(0)))
                    .max(0),
            );
        }
        let duration_us = micros(segments.duration(segment));
        let end_us = micros(segments.start_time(segment)).saturating_add(duration_us);
        if segments.is_gap(segment) || duration_us <= 0 {
            let past_us = end_us.max(self.tracks[n].end_us.saturating_add(1));
            self.tracks[n].skip_missing_segment(past_us);
            return TrackDecision::Again;
        }
        let mut pending = PendingFetch {
            purpose: FetchPurpose::Init,
            at: now,
            level,
            source,
            segment,
            init: segments.init_index(segment).unwrap_or(0),
            duration_us,
            progress: FetchProgress::default(),
            sampled: (0, now),
        };
        let known = self.tracks[n]
            .inits
            .contains(&(source as u16, pending.init));
        if let (Some(init), false) = (segments.init_index(segment), known) {
            return self.request_segment_or_init(
                n,
                pending,
                segments.init_resource(init),
                CmcdObjectType::Init,
                None,
            );
        }
        let (purpose, object) = self.segment_kind(n);
        pending.purpose = purpose;
        if n == 0 {
            self.chosen += 1;
            self.plan_abandon_check(now, &pending);
        }
        let next = if self.settings.cmcd.is_some() {
            segments.segment_resource(segment + 1)
        } else {
            Ok(None)
        };
        self.request_segment_or_init(
            n,
            pending,
            segments.segment_resource(segment),
            object,
            next.ok().flatten(),
        )
    }

    /// Returns the purpose of a track's segments, and their CMCD object type.
    fn segment_kind(&self, n: usize) -> (FetchPurpose, CmcdObjectType) {
        match (self.tracks[n].role, self.main_kind()) {
            (TrackRole::Text, _) => (FetchPurpose::Text, CmcdObjectType::Other),
            (TrackRole::Audio, _) | (TrackRole::Main, RenditionKind::Audio) => {
                (FetchPurpose::Audio, CmcdObjectType::Audio)
            }
            (TrackRole::Main, RenditionKind::Muxed) => (FetchPurpose::Video, CmcdObjectType::Muxed),
            (TrackRole::Main, _) => (FetchPurpose::Video, CmcdObjectType::Video),
        }
    }

    /// Chooses the level and the source of the next segment once the buffer has room for the
    /// segment.
    fn choose_level(&mut self, now: Micros, n: usize) -> TrackDecision {
        let track = &self.tracks[n];
        let next_us = track.known_segments().map_or(0, |segments| {
            micros(segments.duration(track.next_segment(segments)))
        });
        let ahead = track.end_us.saturating_sub(self.clock.position());
        let over = ahead.saturating_add(next_us) - (self.settings.buffer_max_s * 1e6) as i64;
        // A segment that is longer than the buffer limit never fits. Such a segment is requested
        // once the buffer is empty.
        if over > 0 && ahead > 0 {
            self.tracks[n].full_since.get_or_insert(now);
            return if self.clock.is_playing() {
                TrackDecision::Later(now + over as Micros)
            } else {
                TrackDecision::Nothing
            };
        }
        if let Some(since) = self.tracks[n].full_since.take()
            && n == 0
        {
            let idled_s = now.saturating_sub(since) as f64 / 1e6;
            self.abr.iter_mut().for_each(|abr| abr.record_idle(idled_s));
        }
        if self.waits_for_other_track(n, next_us) {
            return TrackDecision::Later(now + SYNC_INTERVAL_US);
        }
        let Some(stream) = self.stream.clone() else {
            return TrackDecision::Nothing;
        };
        if self.tracks[n].role == TrackRole::Text {
            self.tracks[n].next = Some((0, 0));
            return TrackDecision::Again;
        }
        if self.tracks[n].role == TrackRole::Audio {
            let level = self.tracks[0]
                .level
                .or(self.tracks[0].next.map(|(level, _)| level))
                .unwrap_or(0);
            let audio = self
                .levels
                .get(level)
                .and_then(|n| stream.levels[usize::from(*n)].audio);
            let Some(audio) = audio else {
                return TrackDecision::Over;
            };
            self.tracks[n].next = Some((level, audio));
            return TrackDecision::Again;
        }
        let segment_s = if next_us > 0 {
            next_us as f64 / 1e6
        } else {
            4.0
        };
        // The rule reads the state of the viewer, so the rule is moved out of the viewer for the
        // call.
        let Some(mut abr) = self.abr.take() else {
            return TrackDecision::Nothing;
        };
        let choice = abr.choose_level(&self.player_view(segment_s));
        let start_level = self.start_level().filter(|_| abr.is_adaptive());
        self.abr = Some(abr);
        let level = start_level.unwrap_or(choice.level);
        let level = level.min(self.level_limit_after_abandonment(now).unwrap_or(level));
        let level = level.min(self.levels.len().saturating_sub(1));
        self.tracks[n].next = Some((level, usize::from(self.levels[level])));
        if choice.wait_s > 0.001 {
            TrackDecision::Later(now + (choice.wait_s.min(60.0) * 1e6) as Micros)
        } else {
            TrackDecision::Again
        }
    }

    /// Returns the level for the first segment if the settings assume a throughput. Returns none
    /// for later segments.
    fn start_level(&self) -> Option<usize> {
        if self.tracks.first()?.level.is_some() {
            return None;
        }
        let assumed = match self.settings.start_level {
            StartLevel::RuleChoice => return None,
            StartLevel::Throughput(bps) => bps,
            StartLevel::FirstListed { bps_min, bps_max } => self
                .stream
                .as_ref()?
                .first_listed_bps
                .min(bps_max)
                .max(bps_min),
        };
        let above = self.bitrates.iter().skip(1);
        Some(above.take_while(|bps| **bps <= assumed).count())
    }

    /// Returns the segments of a source if all of its segments are known.
    fn known_segments(&mut self, n: usize, source: usize) -> Option<Arc<SegmentList>> {
        let stream = self.stream.clone()?;
        let described = match self.tracks[n].role {
            TrackRole::Main => &stream.levels.get(source)?.source,
            TrackRole::Audio => stream.audios.get(source)?,
            TrackRole::Text => stream.text.as_ref()?,
        };
        if let (None, Some(known)) = (self.tracks[n].source_segments(source), &described.known) {
            self.tracks[n]
                .add_segments(source, Arc::clone(known))
                .ok()?;
        }
        let read = usize::from(self.tracks[n].documents_parsed[source]);
        let known = self.tracks[n].source_segments(source)?;
        (described.known.is_some() || read >= described.segment_sources.len())
            .then(|| Arc::clone(known))
    }

    /// Requests the next playlist or index that lists segments of a source.
    fn fetch_segment_lists(
        &mut self,
        now: Micros,
        n: usize,
        level: usize,
        source: usize,
    ) -> TrackDecision {
        let Some(stream) = self.stream.clone() else {
            return TrackDecision::Nothing;
        };
        let described = match self.tracks[n].role {
            TrackRole::Main => Some(&stream.levels[source].source),
            TrackRole::Audio => Some(&stream.audios[source]),
            TrackRole::Text => stream.text.as_ref(),
        };
        let Some(described) = described else {
            return TrackDecision::Over;
        };
        let read = usize::from(self.tracks[n].documents_parsed[source]);
        let (purpose, resource, format) = match described.segment_sources.get(read) {
            Some(SegmentListSource::Playlist(url)) => {
                let resource = ResourceRange {
                    url: url.clone(),
                    range: None,
                };
                (FetchPurpose::Playlist, resource, DocumentFormat::Manifest)
            }
            Some(SegmentListSource::Sidx(index)) => (
                FetchPurpose::Index,
                index.index_resource.clone(),
                DocumentFormat::Index(index.clone()),
            ),
            Some(SegmentListSource::Segments(segments)) => {
                let learnt = self.tracks[n].add_segments(source, Arc::new(segments.clone()));
                return if learnt.is_ok() {
                    TrackDecision::Again
                } else {
                    TrackDecision::Over
                };
            }
            None => return TrackDecision::Over,
        };
        let pending = PendingFetch {
            purpose,
            at: now,
            level,
            source,
            segment: 0,
            init: 0,
            duration_us: 0,
            progress: FetchProgress::default(),
            sampled: (0, now),
        };
        let id = self.new_fetch_id();
        self.tracks[n].slot.start_fetch(id, Some(pending));
        let object = if purpose == FetchPurpose::Playlist {
            CmcdObjectType::Manifest
        } else {
            CmcdObjectType::Other
        };
        let cmcd = self.build_cmcd_report(object, n, Some(&pending), None);
        TrackDecision::Fetch(Box::new(MediaFetch {
            id,
            purpose,
            resource,
            format,
            cmcd,
        }))
    }

    fn request_segment_or_init(
        &mut self,
        n: usize,
        pending: PendingFetch,
        resource: media::Result<Option<ResourceRange>>,
        object: CmcdObjectType,
        next: Option<ResourceRange>,
    ) -> TrackDecision {
        let Ok(Some(resource)) = resource else {
            // The URL cannot be built. A retry would fail for the same reason.
            self.fail_track(pending.at, n);
            return TrackDecision::Nothing;
        };
        let id = self.new_fetch_id();
        self.tracks[n].slot.start_fetch(id, Some(pending));
        let cmcd = self.build_cmcd_report(
            object,
            n,
            Some(&pending),
            next.map(|next| (&resource, next)),
        );
        TrackDecision::Fetch(Box::new(MediaFetch {
            id,
            purpose: pending.purpose,
            resource,
            format: DocumentFormat::Discard,
            cmcd,
        }))
    }

    fn build_cmcd_report(
        &mut self,
        object: CmcdObjectType,
        n: usize,
        pending: Option<&PendingFetch>,
        next: Option<(&ResourceRange, ResourceRange)>,
    ) -> Option<Box<CmcdReport>> {
        self.sequence = self.sequence.wrapping_add(1);
        let style = self.settings.cmcd?;
        let facts = self.cmcd_facts(style, object, n, pending, next);
        self.starved = false;
        Some(Box::new(facts))
    }
}
