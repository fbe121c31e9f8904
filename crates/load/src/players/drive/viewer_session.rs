//! Runs one player over the network.

use super::super::player_interface::{
    DocumentFormat, FetchProgress, FetchPurpose, FetchResult, Micros, ParsedDocument, Player,
    PlayerAction,
};
use super::super::qoe::{LevelQualityFactors, PlaybackJournal};
use super::super::range_consumer::RangeConsumer;
use super::super::sequence_worker::SequenceWorker;
use super::super::viewer::{PlayerSnapshot, SessionEnd, Viewer, ViewerPlan};
use super::super::{abr::FixedLevel, population::AbrSetting};
use super::in_flight_fetch::{InFlightFetch, start_fetch};
use super::population_stats::PlayerRecord;
use super::{PlayerKind, player_thread::PlayerThread};
use crate::client::{HttpClient, RequestOutcome};
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

/// The player in a place.
enum AnyPlayer {
    Viewer(Box<Viewer>),
    Sequence(Box<SequenceWorker>),
    Consumer(Box<RangeConsumer>),
}

impl AnyPlayer {
    fn as_player(&mut self) -> &mut dyn Player {
        match self {
            AnyPlayer::Viewer(viewer) => &mut **viewer,
            AnyPlayer::Sequence(sequence) => &mut **sequence,
            AnyPlayer::Consumer(consumer) => &mut **consumer,
        }
    }

    fn end_session(&mut self, now: Micros, end: SessionEnd) {
        match self {
            AnyPlayer::Viewer(viewer) => viewer.end_session(now, end),
            AnyPlayer::Sequence(sequence) => sequence.end_session(end),
            AnyPlayer::Consumer(consumer) => consumer.end_session(now, end),
        }
    }

    fn end_reason(&self) -> Option<SessionEnd> {
        match self {
            AnyPlayer::Viewer(viewer) => viewer.end_reason(),
            AnyPlayer::Sequence(sequence) => sequence.end_reason(),
            AnyPlayer::Consumer(consumer) => consumer.end_reason(),
        }
    }

    fn snapshot(&self, at: Micros) -> PlayerSnapshot {
        match self {
            AnyPlayer::Viewer(viewer) => viewer.snapshot(),
            AnyPlayer::Sequence(_) => PlayerSnapshot {
                at,
                buffer: 0,
                playing: false,
                stalled: false,
                bps: 0.0,
            },
            AnyPlayer::Consumer(consumer) => {
                let (playing, buffer) = consumer.playback_status();
                PlayerSnapshot {
                    at,
                    buffer,
                    playing,
                    stalled: false,
                    bps: 0.0,
                }
            }
        }
    }

    fn summary(&self) -> super::super::qoe::SessionSummary {
        // Sequence workers and range consumers do not know the picture quality, so these values are
        // fixed.
        let unseen = |_| LevelQualityFactors {
            resolution: (0, 0),
            frame_rate: 25.0,
            screen_lines: 1080,
            audio_kbps: None,
            handheld: false,
        };
        match self {
            AnyPlayer::Viewer(viewer) => viewer.summary(),
            AnyPlayer::Sequence(_) => PlaybackJournal::default().summary(&[], unseen),
            AnyPlayer::Consumer(consumer) => consumer.journal().summary(&[], unseen),
        }
    }
}

/// The session of one player.
pub(super) struct ViewerSession {
    pub(super) thread: Rc<PlayerThread>,
    pub(super) place: u64,
    pub(super) nth: u64,
    pub(super) snapshot: Rc<Cell<Option<PlayerSnapshot>>>,
}

impl ViewerSession {
    /// Plays the session and returns the reason for its end.
    pub(super) async fn play_session(&self) -> SessionEnd {
        let thread = &self.thread;
        let start = thread.now();
        let (plan, chance) = thread.viewer_run_plan().population.plan_viewer(
            self.place,
            self.nth,
            start,
            thread.run_end(),
        );
        let identity = (plan.session, plan.manifest.url.clone(), plan.device.name);
        let mut seated = self.create_player(plan, chance, start);
        let client = Rc::new(HttpClient::new(&thread.viewer_run_plan().dialer));
        let mut counts = SessionTraffic {
            session: super::super::cmcd::format_uuid(identity.0),
            ..SessionTraffic::default()
        };
        let end = self.run_player(&mut seated, &client, &mut counts).await;
        self.snapshot.set(None);
        if let AnyPlayer::Viewer(viewer) = &seated {
            thread.with_stats(|stats| stats.record_viewer_memory(viewer));
        }
        let record = PlayerRecord {
            record: "player".into(),
            start_ms: start as f64 / 1e3,
            end_ms: thread.now() as f64 / 1e3,
            place: self.place,
            nth: self.nth,
            session: counts.session,
            manifest: PlayerRecord::bounded_text(identity.1.as_str()),
            device: identity.2.into(),
            end,
            bytes: counts.bytes,
            requests: counts.requests,
            failed: counts.failed,
            summary: seated.summary(),
        };
        thread.with_stats(|stats| stats.record_session(record));
        end
    }

    fn create_player(&self, plan: ViewerPlan, chance: u64, start: Micros) -> AnyPlayer {
        let run = self.thread.viewer_run_plan();
        match run.mode {
            PlayerKind::Viewer => {
                let rule = run.population.rule.create_rule(chance);
                AnyPlayer::Viewer(Box::new(Viewer::new(
                    run.settings.clone(),
                    plan,
                    rule,
                    start,
                )))
            }
            PlayerKind::Sequence => {
                let level = match run.population.rule {
                    AbrSetting::Fixed(level) => level,
                    _ => FixedLevel::Highest,
                };
                AnyPlayer::Sequence(Box::new(SequenceWorker::new(
                    plan.manifest,
                    level,
                    plan.leave_at,
                )))
            }
            PlayerKind::Consumer(settings) => AnyPlayer::Consumer(Box::new(RangeConsumer::new(
                plan.manifest.url,
                settings,
                plan.leave_at,
                start,
            ))),
        }
    }

    async fn run_player(
        &self,
        seated: &mut AnyPlayer,
        client: &Rc<HttpClient>,
        counts: &mut SessionTraffic,
    ) -> SessionEnd {
        let mut running: Vec<InFlightFetch> = Vec::new();
        loop {
            let now = self.thread.now();
            if self.thread.is_over() {
                seated.end_session(now, SessionEnd::Stopped);
            }
            for fetch in running.iter().filter(|fetch| fetch.progress.bytes() > 0) {
                let progress = self.read_progress(fetch);
                seated.as_player().record_progress(fetch.id, progress);
            }
            let step = seated.as_player().poll(now);
            self.snapshot.set(Some(seated.snapshot(now)));
            match step {
                PlayerAction::Fetch(fetch) => running.push(start_fetch(client, *fetch)),
                PlayerAction::Cancel(id) => {
                    let found = running.iter().position(|running| running.id == id);
                    if let Some(fetch) = found.map(|n| running.swap_remove(n)) {
                        self.record_abandoned(counts, &fetch);
                    }
                }
                PlayerAction::Done => {
                    self.thread
                        .with_stats(|stats| stats.count_abandoned(running.len() as u64));
                    return seated.end_reason().unwrap_or(SessionEnd::Stopped);
                }
                PlayerAction::Wait(at) => {
                    if let Some((id, purpose, format, outcome)) =
                        self.wait_for_result(&mut running, at).await
                    {
                        self.handle_outcome(seated, counts, (id, purpose), &format, &outcome);
                    }
                }
            }
        }
    }

    fn read_progress(&self, fetch: &InFlightFetch) -> FetchProgress {
        let first_byte = fetch.progress.first_byte();
        FetchProgress {
            bytes: fetch.progress.bytes(),
            first_byte: first_byte.map(|moment| self.thread.to_micros(moment)),
        }
    }

    /// Counts and records a fetch that the player cancelled.
    fn record_abandoned(&self, counts: &mut SessionTraffic, fetch: &InFlightFetch) {
        counts.bytes += fetch.progress.bytes();
        counts.requests += 1;
        let (step, session) = (self.thread.current_step(), counts.session.as_str());
        self.thread
            .with_stats(|stats| stats.record_abandoned(step, fetch, session));
    }

    /// Waits for the next response, or until the time `at`. Records how late the thread reacted.
    async fn wait_for_result(
        &self,
        running: &mut Vec<InFlightFetch>,
        at: Micros,
    ) -> Option<(u32, FetchPurpose, DocumentFormat, RequestOutcome)> {
        let due = self.thread.instant_at(at);
        let mut timer = std::pin::pin!(tokio::time::sleep_until(due.into()));
        let over = self.thread.wait_for_stop();
        let mut over = std::pin::pin!(over);
        let found = poll_fn(|context| {
            for n in 0..running.len() {
                if let Poll::Ready(outcome) = running[n].result.as_mut().poll(context) {
                    let done = running.swap_remove(n);
                    return Poll::Ready(Some((done.id, done.purpose, done.format, outcome)));
                }
            }
            if over.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            timer.as_mut().poll(context).map(|()| None)
        })
        .await;
        let since = found
            .as_ref()
            .map_or(due, |(.., outcome)| outcome.last_byte);
        let late = Instant::now().saturating_duration_since(since);
        if found.is_some() || !self.thread.is_over() {
            self.thread.with_stats(|stats| stats.record_lateness(late));
        }
        found
    }

    fn handle_outcome(
        &self,
        seated: &mut AnyPlayer,
        counts: &mut SessionTraffic,
        (id, purpose): (u32, FetchPurpose),
        format: &DocumentFormat,
        outcome: &RequestOutcome,
    ) {
        let thread = &self.thread;
        let (step, session) = (thread.current_step(), counts.session.as_str());
        thread.with_stats(|stats| stats.count_request(step, purpose, outcome, session));
        let read = match outcome.is_success() {
            true => thread.documents().get_or_parse(format, outcome),
            false => Ok(None),
        };
        if let Err(error) = &read {
            let text = PlayerRecord::bounded_text(&format!("{}: {error}", purpose.name()));
            thread.with_stats(|stats| stats.count_unreadable(&text));
        }
        if let Ok(Some(ParsedDocument::TitleLadder(stream))) = &read {
            thread.with_stats(|stats| stats.add_manifest_notes(&stream.notes));
        }
        let ok = outcome.is_success() && read.is_ok();
        counts.bytes += outcome.body_bytes;
        counts.requests += 1;
        counts.failed += u64::from(!ok);
        let result = FetchResult {
            ok,
            bytes: outcome.body_bytes,
            sent: outcome.sent.map(|moment| thread.to_micros(moment)),
            first_byte: outcome.first_byte.map(|moment| thread.to_micros(moment)),
            document: read.ok().flatten(),
        };
        // Use the arrival time of the last byte, not the time at which the thread noticed the
        // response.
        let came = thread.to_micros(outcome.last_byte);
        seated.as_player().handle_result(came, id, result);
    }
}

#[derive(Default)]
struct SessionTraffic {
    /// Identifier of the session in records.
    session: String,
    bytes: u64,
    requests: u64,
    failed: u64,
}
