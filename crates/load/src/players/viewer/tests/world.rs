//! A title, a server and a link, in virtual time.

use super::super::super::cmcd::Facts;
use super::super::super::player::Reading;
use super::super::super::stream::Wish;
use super::*;
use media::manifest::read::mpd;
use std::collections::BTreeMap;

pub(super) const MANIFEST: &str = "http://o.test/m.mpd";

pub(super) fn title(seconds: u32) -> String {
    let video: String = [500, 1000, 2000, 4000]
        .iter()
        .map(|kbps| {
            format!("<Representation id='v{kbps}' bandwidth='{kbps}000' width='640' height='360'/>")
        })
        .collect();
    let template = "<SegmentTemplate timescale='1' duration='2' initialization='$RepresentationID$/i' media='$RepresentationID$/$Number$'/>";
    format!(
        "<MPD mediaPresentationDuration='PT{seconds}S'><Period><AdaptationSet contentType='video'>{template}{video}</AdaptationSet>\
         <AdaptationSet contentType='audio'>{template}<Representation id='a' bandwidth='128000'/></AdaptationSet></Period></MPD>"
    )
}

/// A server and a link: latency, then bits at the rate of the moment, one answer after another.
pub(super) struct World {
    manifest: String,
    /// From when on, how many bits a second; zero: nothing moves.
    rates: Vec<(Micros, f64)>,
    pub(super) latency: Micros,
    busy_until: Micros,
    waiting: BTreeMap<(Micros, u32), Answer>,
    pub(super) asked: Vec<(Micros, What, String)>,
    /// What the server was told of the player, where it was.
    pub(super) told: Vec<Facts>,
    /// Requests that contain this fail so many times.
    pub(super) failing: Option<(&'static str, u32)>,
    cancelled: usize,
}

impl World {
    pub(super) fn new(manifest: String, rates: &[(Micros, f64)]) -> World {
        World {
            manifest,
            rates: rates.to_vec(),
            latency: 20_000,
            busy_until: 0,
            waiting: BTreeMap::new(),
            asked: Vec::new(),
            told: Vec::new(),
            failing: None,
            cancelled: 0,
        }
    }

    fn bytes(&self, fetch: &Fetch) -> u64 {
        let path = fetch.part.url.path();
        match fetch.what {
            What::Manifest => self.manifest.len() as u64,
            What::Audio => 128_000 * 2 / 8,
            What::Video => {
                let digits = path.trim_start_matches("/v").split('/').next().unwrap();
                digits.parse::<u64>().unwrap() * 1000 * 2 / 8
            }
            _ => 800,
        }
    }

    fn done_at(&self, mut at: Micros, bytes: u64) -> Micros {
        let mut bits = bytes as f64 * 8.0;
        loop {
            let n = self
                .rates
                .iter()
                .rposition(|(from, _)| *from <= at)
                .unwrap();
            let until = self.rates.get(n + 1).map_or(Micros::MAX, |(from, _)| *from);
            let room = (until - at) as f64 * self.rates[n].1 / 1e6;
            if room >= bits {
                return at + (bits / self.rates[n].1 * 1e6) as Micros;
            }
            (at, bits) = (until, bits - room);
        }
    }

    fn ask(&mut self, now: Micros, fetch: &Fetch) {
        self.asked
            .push((now, fetch.what, fetch.part.url.path().to_string()));
        self.told.extend(fetch.cmcd.as_deref().cloned());
        let fails = self
            .failing
            .as_mut()
            .filter(|(text, left)| *left > 0 && fetch.part.url.path().contains(text));
        let fails = fails.map(|(_, left)| *left -= 1).is_some();
        let bytes = self.bytes(fetch);
        let first_byte = now.max(self.busy_until) + self.latency;
        let done = self.done_at(first_byte, bytes);
        self.busy_until = done;
        let document = matches!(fetch.reading, Reading::Manifest).then(|| {
            let url = fetch.part.url.clone();
            let title = mpd::read(&url, self.manifest.as_bytes()).unwrap();
            Document::Stream(Arc::new(
                Stream::new(title, false, &Wish::default()).unwrap(),
            ))
        });
        let answer = Answer {
            ok: !fails,
            bytes,
            sent: Some(now),
            first_byte: Some(first_byte),
            document,
        };
        self.waiting.insert((done, fetch.id), answer);
    }

    /// Plays until the end; gives when that was.
    pub(super) fn play(&mut self, viewer: &mut Viewer) -> Micros {
        let mut now = 0;
        for _ in 0..1_000_000 {
            match viewer.poll(now) {
                Step::Ask(fetch) => self.ask(now, &fetch),
                Step::Cancel(id) => {
                    self.cancelled += 1;
                    self.waiting.retain(|(_, waiting), _| *waiting != id);
                }
                Step::Done => return now,
                Step::Wait(at) => {
                    let next = self
                        .waiting
                        .keys()
                        .next()
                        .copied()
                        .filter(|(done, _)| *done <= at);
                    assert!(at > now || next.is_some());
                    now = next.map_or(at, |(done, _)| done);
                    if let Some(key) = next
                        && let Some(answer) = self.waiting.remove(&key)
                    {
                        viewer.handle(now, key.1, answer);
                    }
                    assert!(now < 100_000_000_000, "it hangs: {viewer:?}");
                }
            }
        }
        panic!("it never waits: {viewer:?}");
    }

    pub(super) fn count(&self, what: What) -> usize {
        self.asked
            .iter()
            .filter(|(_, asked, _)| *asked == what)
            .count()
    }
}
