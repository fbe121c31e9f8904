//! Simulates a title, a server and a link in virtual time.

use super::super::super::cmcd::CmcdReport;
use super::super::super::player_interface::DocumentFormat;
use super::super::super::text_choice::TextPreference;
use super::super::super::title_ladder::AudioPreference;
use super::*;
use media::manifest::read::mpd;
use std::collections::BTreeMap;

pub(super) const MANIFEST: &str = "http://o.test/m.mpd";

pub(super) fn test_manifest(seconds: u32) -> String {
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

/// A simulated server and its link. A response starts after the latency, and is transferred at the
/// current bandwidth. Normally, responses are transferred one after another. If `parallel` is set,
/// each response is transferred as if it were the only response.
pub(super) struct SimulatedOrigin {
    manifest: String,
    /// Changes of the link's bandwidth. Each entry contains a time, and the bandwidth from this
    /// time on in bits per second. A bandwidth of 0 transfers nothing.
    rates: Vec<(Micros, f64)>,
    pub(super) latency: Micros,
    busy_until: Micros,
    waiting: BTreeMap<(Micros, u32), FetchResult>,
    pub(super) requests: Vec<(Micros, FetchPurpose, String)>,
    /// CMCD reports that the server has received.
    pub(super) reports: Vec<CmcdReport>,
    /// A text, and the number of remaining failures. Requests whose path contains the text fail
    /// until this number is 0.
    pub(super) failing: Option<(&'static str, u32)>,
    /// Subtitles that the viewer shows.
    pub(super) text: TextPreference,
    /// Each response has the whole bandwidth of the link.
    pub(super) parallel: bool,
    /// IDs of the cancelled fetches.
    pub(super) cancelled: Vec<u32>,
}

impl SimulatedOrigin {
    pub(super) fn new(manifest: String, rates: &[(Micros, f64)]) -> SimulatedOrigin {
        SimulatedOrigin {
            manifest,
            rates: rates.to_vec(),
            latency: 20_000,
            busy_until: 0,
            waiting: BTreeMap::new(),
            requests: Vec::new(),
            reports: Vec::new(),
            failing: None,
            text: TextPreference::Off,
            parallel: false,
            cancelled: Vec::new(),
        }
    }

    fn response_bytes(&self, fetch: &MediaFetch) -> u64 {
        let path = fetch.resource.url.path();
        match fetch.purpose {
            FetchPurpose::Manifest => self.manifest.len() as u64,
            FetchPurpose::Audio => 128_000 * 2 / 8,
            FetchPurpose::Video => {
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

    fn receive_request(&mut self, now: Micros, fetch: &MediaFetch) {
        self.requests
            .push((now, fetch.purpose, fetch.resource.url.path().to_string()));
        self.reports.extend(fetch.cmcd.as_deref().cloned());
        let fails = self
            .failing
            .as_mut()
            .filter(|(text, left)| *left > 0 && fetch.resource.url.path().contains(text));
        let fails = fails.map(|(_, left)| *left -= 1).is_some();
        let bytes = self.response_bytes(fetch);
        let start = if self.parallel {
            now
        } else {
            now.max(self.busy_until)
        };
        let first_byte = start + self.latency;
        let done = self.done_at(first_byte, bytes);
        self.busy_until = done;
        let document = matches!(fetch.format, DocumentFormat::Manifest).then(|| {
            let url = fetch.resource.url.clone();
            let title = mpd::parse_mpd(&url, self.manifest.as_bytes()).unwrap();
            let text = self.text.choose_text(&title).unwrap();
            let ladder = TitleLadder::new(title, false, &AudioPreference::default()).unwrap();
            ParsedDocument::TitleLadder(Arc::new(ladder.with_text(text)))
        });
        let result = FetchResult {
            ok: !fails,
            bytes,
            sent: Some(now),
            first_byte: Some(first_byte),
            document,
        };
        self.waiting.insert((done, fetch.id), result);
    }

    /// Plays until the session of the viewer has ended. Returns the time of the end.
    pub(super) fn play_viewer(&mut self, viewer: &mut Viewer) -> Micros {
        let mut now = 0;
        for _ in 0..1_000_000 {
            match viewer.poll(now) {
                PlayerAction::Fetch(fetch) => self.receive_request(now, &fetch),
                PlayerAction::Cancel(id) => {
                    self.cancelled.push(id);
                    self.waiting.retain(|(_, waiting), _| *waiting != id);
                    self.busy_until = now;
                }
                PlayerAction::Done => return now,
                PlayerAction::Wait(at) => {
                    let next = self
                        .waiting
                        .keys()
                        .next()
                        .copied()
                        .filter(|(done, _)| *done <= at);
                    assert!(at > now || next.is_some());
                    now = next.map_or(at, |(done, _)| done);
                    if let Some(key) = next
                        && let Some(result) = self.waiting.remove(&key)
                    {
                        viewer.handle_result(now, key.1, result);
                    }
                    self.report_progress(now, viewer);
                    assert!(now < 100_000_000_000, "it hangs: {viewer:?}");
                }
            }
        }
        panic!("it never waits: {viewer:?}");
    }

    /// Reports to the viewer how many bytes of each response have arrived.
    fn report_progress(&self, now: Micros, viewer: &mut Viewer) {
        for ((_, id), result) in &self.waiting {
            let Some(first_byte) = result.first_byte.filter(|first| *first < now) else {
                continue;
            };
            let arrived = |bytes: &u64| self.done_at(first_byte, *bytes) <= now;
            let steps = (1..=result.bytes / 1000).map(|step| step * 1000);
            let bytes = steps.take_while(arrived).last().unwrap_or(1);
            let progress = FetchProgress {
                bytes,
                first_byte: Some(first_byte),
            };
            viewer.record_progress(*id, progress);
        }
    }

    pub(super) fn count(&self, purpose: FetchPurpose) -> usize {
        self.requests
            .iter()
            .filter(|(_, requests, _)| *requests == purpose)
            .count()
    }
}
