//! What a viewer tells the server of itself.

use super::super::cmcd::{Facts, Object, State, Style, relative};
use super::Viewer;
use super::track::Asked;
use media::manifest::read::Part;
use std::hash::{DefaultHasher, Hash, Hasher};

impl Viewer {
    pub(super) fn facts(
        &self,
        style: Style,
        object: Object,
        n: usize,
        asked: Option<&Asked>,
        next: Option<(&Part, Part)>,
    ) -> Facts {
        let is_media = matches!(object, Object::Video | Object::Muxed | Object::Audio);
        let asked = asked.filter(|_| is_media);
        let ahead = self
            .tracks
            .get(n)
            .map(|track| track.end_us.saturating_sub(self.clock.position()));
        let buffer_ms = ahead.map(|us| u32::try_from(us / 1000).unwrap_or(0));
        let throughput = self
            .estimator
            .estimate()
            .map(|estimate| kbps(estimate.throughput_bps));
        let state = self.state();
        let (next, next_range) = match next {
            Some((part, next)) => following(part, &next),
            None => (None, None),
        };
        Facts {
            style,
            object,
            bitrate_kbps: asked.and_then(|asked| self.bitrate_kbps(n, asked)),
            top_kbps: asked.and_then(|_| self.top_kbps(n)),
            duration_ms: asked.map(|asked| (asked.duration_us / 1000) as u32),
            buffer_ms: buffer_ms.filter(|_| is_media),
            throughput_kbps: throughput.filter(|kbps| *kbps > 0),
            startup: state != State::Playing,
            starved: self.starved,
            next,
            next_range,
            is_hls: self
                .stream
                .as_ref()
                .map_or(self.looks_like_hls(), |stream| stream.is_hls),
            session: self.plan.session,
            content: hash(self.plan.manifest.url.as_str()),
            state,
            sequence: self.sequence,
            start_delay_ms: self
                .journal
                .start_delay_ms
                .and_then(|ms| u32::try_from(ms).ok()),
        }
    }

    fn state(&self) -> State {
        if !self.clock.has_started() {
            State::Starting
        } else if self.clock.is_seeking() {
            State::Seeking
        } else if self.clock.is_stalled() {
            State::Rebuffering
        } else {
            State::Playing
        }
    }

    fn looks_like_hls(&self) -> bool {
        self.plan.manifest.url.path().ends_with(".m3u8")
    }

    fn bitrate_kbps(&self, n: usize, asked: &Asked) -> Option<u32> {
        let bps = match n {
            0 => self.bitrates.get(asked.level).copied()?,
            _ => self.stream.as_ref()?.audios.get(asked.source)?.bps,
        };
        (bps >= 1000.0).then(|| kbps(bps))
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
        (bps >= 1000.0).then(|| kbps(bps))
    }
}

fn kbps(bps: f64) -> u32 {
    (bps / 1000.0).round() as u32
}

/// The next object relative to this one, and its bytes.
fn following(part: &Part, next: &Part) -> (Option<String>, Option<(u64, u64)>) {
    let range = next
        .range
        .as_ref()
        .map(|range| (range.start, range.end.saturating_sub(1)));
    match relative(&part.url, &next.url) {
        Some(path) => (Some(path), range),
        // The same file: version 1 then says the range alone.
        None => (None, range.filter(|_| part.url == next.url)),
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
