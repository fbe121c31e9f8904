//! Collects the CMCD that a viewer sends.

use super::super::cmcd::{CmcdFormat, CmcdObjectType, CmcdPlayerState, CmcdReport, relative_url};
use super::Viewer;
use super::track_buffer::PendingFetch;
use media::manifest::read::ResourceRange;
use std::hash::{DefaultHasher, Hash, Hasher};

impl Viewer {
    pub(super) fn cmcd_facts(
        &self,
        format: CmcdFormat,
        object: CmcdObjectType,
        n: usize,
        pending: Option<&PendingFetch>,
        next: Option<(&ResourceRange, ResourceRange)>,
    ) -> CmcdReport {
        let is_media = matches!(
            object,
            CmcdObjectType::Video | CmcdObjectType::Muxed | CmcdObjectType::Audio
        );
        let pending = pending.filter(|_| is_media);
        let ahead = self
            .tracks
            .get(n)
            .map(|track| track.end_us.saturating_sub(self.clock.position()));
        let buffer_ms = ahead.map(|us| u32::try_from(us / 1000).unwrap_or(0));
        let throughput = self
            .estimator
            .estimate()
            .map(|estimate| to_kbps(estimate.throughput_bps));
        let state = self.player_state();
        let (next, next_range) = match next {
            Some((resource, next)) => cmcd_next_object(resource, &next),
            None => (None, None),
        };
        CmcdReport {
            format,
            object,
            bitrate_kbps: pending.and_then(|pending| self.bitrate_kbps(n, pending)),
            top_kbps: pending.and_then(|_| self.top_kbps(n)),
            duration_ms: pending.map(|pending| (pending.duration_us / 1000) as u32),
            buffer_ms: buffer_ms.filter(|_| is_media),
            throughput_kbps: throughput.filter(|kbps| *kbps > 0),
            startup: state != CmcdPlayerState::Playing,
            starved: self.starved,
            next,
            next_range,
            is_hls: self
                .stream
                .as_ref()
                .map_or(self.looks_like_hls(), |stream| stream.is_hls),
            session: self.plan.session,
            content: hash_text(self.plan.manifest.url.as_str()),
            state,
            sequence: self.sequence,
            start_delay_ms: self
                .journal
                .start_delay_ms
                .and_then(|ms| u32::try_from(ms).ok()),
        }
    }

    fn player_state(&self) -> CmcdPlayerState {
        if !self.clock.has_started() {
            CmcdPlayerState::Starting
        } else if self.clock.is_seeking() {
            CmcdPlayerState::Seeking
        } else if self.clock.is_stalled() {
            CmcdPlayerState::Rebuffering
        } else {
            CmcdPlayerState::Playing
        }
    }

    fn looks_like_hls(&self) -> bool {
        self.plan.manifest.url.path().ends_with(".m3u8")
    }

    fn bitrate_kbps(&self, n: usize, pending: &PendingFetch) -> Option<u32> {
        let bps = match n {
            0 => self.bitrates.get(pending.level).copied()?,
            _ => self.stream.as_ref()?.audios.get(pending.source)?.bps,
        };
        (bps >= 1000.0).then(|| to_kbps(bps))
    }

    fn top_kbps(&self, n: usize) -> Option<u32> {
        let bps = match n {
            0 => self.bitrates.last().copied()?,
            _ => self
                .stream
                .as_ref()?
                .audios
                .iter()
                .map(|audio| audio.bps)
                .fold(0.0, f64::max),
        };
        (bps >= 1000.0).then(|| to_kbps(bps))
    }
}

fn to_kbps(bps: f64) -> u32 {
    (bps / 1000.0).round() as u32
}

/// Returns the relative path of the next object, and its byte range.
fn cmcd_next_object(
    resource: &ResourceRange,
    next: &ResourceRange,
) -> (Option<String>, Option<(u64, u64)>) {
    let range = next
        .range
        .as_ref()
        .map(|range| (range.start, range.end.saturating_sub(1)));
    match relative_url(&resource.url, &next.url) {
        Some(path) => (Some(path), range),
        // If the next object is in the same file, CMCD version 1 sends only the byte range (`nrr`).
        None => (None, range.filter(|_| resource.url == next.url)),
    }
}

fn hash_text(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
