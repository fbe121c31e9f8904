//! What came: into the buffers, to the rule, or to be asked for again.

use super::super::abr::{Sample, View};
use super::super::player::{Answer, Document, Micros, What};
use super::track::Asked;
use super::{End, Viewer};
use media::manifest::read::Kind;
use std::sync::Arc;

impl Viewer {
    /// A track's answer has come.
    pub(super) fn answered(&mut self, now: Micros, n: usize, answer: Answer) {
        if !answer.ok {
            return self.failed(now, Some(n));
        }
        let Some(asked) = self.tracks[n].asking.finish() else {
            return;
        };
        match (asked.what, &answer.document) {
            (What::Playlist | What::Index, Some(Document::Segments(segments))) => {
                if self.tracks[n]
                    .learn(asked.source, Arc::clone(segments))
                    .is_err()
                {
                    self.end(now, End::Failed);
                }
            }
            (What::Playlist | What::Index, _) => self.end(now, End::Failed),
            (What::Init, _) => self.tracks[n].inits.push((asked.source as u16, asked.init)),
            (_, _) => self.held(now, n, &asked, &answer),
        }
    }

    /// A segment has come.
    fn held(&mut self, now: Micros, n: usize, asked: &Asked, answer: &Answer) {
        let took_s = now.saturating_sub(asked.at) as f64 / 1e6;
        let segment_s = asked.duration_us as f64 / 1e6;
        self.tracks[n].hold(asked, answer.bytes);
        if n != 0 {
            return;
        }
        let first_byte = answer.first_byte.unwrap_or(now);
        let latency_s = first_byte.saturating_sub(answer.sent.unwrap_or(asked.at)) as f64 / 1e6;
        if let Some(mut abr) = self.abr.take() {
            abr.downloaded(&self.view(segment_s), asked.level, took_s);
            self.abr = Some(abr);
        }
        self.estimator.push(&Sample {
            bits: answer.bytes as f64 * 8.0,
            transfer_s: now.saturating_sub(first_byte).max(1) as f64 / 1e6,
            latency_s,
            segment_s,
        });
    }

    /// What the rule may see.
    pub(super) fn view(&self, segment_s: f64) -> View<'_> {
        let main = &self.tracks[0];
        View {
            bitrates: &self.bitrates,
            buffer_s: main.end_us.saturating_sub(self.clock.position()).max(0) as f64 / 1e6,
            buffer_max_s: self.setup.buffer_max_s,
            segment_s,
            chosen: self.chosen,
            left: main.left(),
            last: main.level,
            estimate: self.estimator.estimate(),
        }
    }

    /// A request failed: again a little later, or it is over.
    pub(super) fn failed(&mut self, now: Micros, track: Option<usize>) {
        let asking = match track {
            Some(n) => &mut self.tracks[n].asking,
            None => &mut self.manifest,
        };
        asking.failures += 1;
        if asking.failures > self.setup.retries {
            return self.end(now, End::Failed);
        }
        asking.again(now + (250_000 << asking.failures.min(6)));
    }

    /// What the first track carries, once that is known.
    pub(super) fn main_kind(&self) -> Kind {
        let level = self
            .stream
            .as_ref()
            .and_then(|stream| stream.levels.first());
        level.map_or(Kind::Muxed, |level| level.kind)
    }
}
