//! One player over the network.

use super::super::consumer::Consumer;
use super::super::player::{Answer, Document, Fetch, Micros, Player, Reading, Step, What};
use super::super::qoe::{Journal, Judged};
use super::super::sequence::Sequence;
use super::super::viewer::{End, Glance, Plan, Viewer};
use super::super::{abr::Fixed, population::Rule};
use super::viewing::PlayerRecord;
use super::{Mode, thread::Thread};
use crate::client::{Client, Outcome, Request};
use media::manifest::read::MANIFEST_BYTES_MAX;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

/// Whatever sits in the place.
enum Seated {
    Viewer(Box<Viewer>),
    Sequence(Box<Sequence>),
    Consumer(Box<Consumer>),
}

impl Seated {
    fn player(&mut self) -> &mut dyn Player {
        match self {
            Seated::Viewer(viewer) => &mut **viewer,
            Seated::Sequence(sequence) => &mut **sequence,
            Seated::Consumer(consumer) => &mut **consumer,
        }
    }

    fn end(&mut self, now: Micros, end: End) {
        match self {
            Seated::Viewer(viewer) => viewer.end(now, end),
            Seated::Sequence(sequence) => sequence.end(end),
            Seated::Consumer(consumer) => consumer.end(now, end),
        }
    }

    fn ended(&self) -> Option<End> {
        match self {
            Seated::Viewer(viewer) => viewer.ended(),
            Seated::Sequence(sequence) => sequence.ended(),
            Seated::Consumer(consumer) => consumer.ended(),
        }
    }

    fn glance(&self, at: Micros) -> Glance {
        match self {
            Seated::Viewer(viewer) => viewer.glance(),
            Seated::Sequence(_) => Glance {
                at,
                buffer: 0,
                playing: false,
                stalled: false,
                bps: 0.0,
            },
            Seated::Consumer(consumer) => {
                let (playing, buffer) = consumer.holds();
                Glance {
                    at,
                    buffer,
                    playing,
                    stalled: false,
                    bps: 0.0,
                }
            }
        }
    }

    fn summary(&self) -> super::super::qoe::Summary {
        // Only viewers know what it looked like.
        let unseen = |_| Judged {
            resolution: (0, 0),
            frame_rate: 25.0,
            screen_lines: 1080,
            audio_kbps: None,
            handheld: false,
        };
        match self {
            Seated::Viewer(viewer) => viewer.summary(),
            Seated::Sequence(_) => Journal::default().summary(&[], unseen),
            Seated::Consumer(consumer) => consumer.journal().summary(&[], unseen),
        }
    }
}

/// A fetch under way.
struct Running {
    id: u32,
    what: What,
    reading: Reading,
    answer: Pin<Box<dyn Future<Output = Outcome>>>,
}

/// One session: from coming to going.
pub(super) struct Session {
    pub(super) thread: Rc<Thread>,
    pub(super) place: u64,
    pub(super) nth: u64,
    pub(super) glance: Rc<Cell<Option<Glance>>>,
}

impl Session {
    /// Plays to the end; gives how that was.
    pub(super) async fn play(&self) -> End {
        let thread = &self.thread;
        let start = thread.now();
        let (plan, chance) =
            thread
                .plan()
                .population
                .plan(self.place, self.nth, start, thread.end());
        let told = (plan.session, plan.manifest.url.clone(), plan.device.name);
        let mut seated = self.seat(plan, chance, start);
        let client = Rc::new(Client::new(&thread.plan().dialer));
        let mut counts = Counts::default();
        let end = self.run(&mut seated, &client, &mut counts).await;
        self.glance.set(None);
        if let Seated::Viewer(viewer) = &seated {
            thread.tally(|tally| tally.viewer(viewer));
        }
        let record = PlayerRecord {
            record: "player".into(),
            start_ms: start as f64 / 1e3,
            end_ms: thread.now() as f64 / 1e3,
            place: self.place,
            nth: self.nth,
            session: super::super::cmcd::uuid(told.0),
            manifest: PlayerRecord::text(told.1.as_str()),
            device: told.2.into(),
            end,
            bytes: counts.bytes,
            requests: counts.requests,
            failed: counts.failed,
            summary: seated.summary(),
        };
        thread.tally(|tally| tally.gone(record));
        end
    }

    fn seat(&self, plan: Plan, chance: u64, start: Micros) -> Seated {
        let run = self.thread.plan();
        match run.mode {
            Mode::Viewer => {
                let rule = run.population.rule.build(chance);
                Seated::Viewer(Box::new(Viewer::new(run.setup.clone(), plan, rule, start)))
            }
            Mode::Sequence => {
                let level = match run.population.rule {
                    Rule::Fixed(level) => level,
                    _ => Fixed::Highest,
                };
                Seated::Sequence(Box::new(Sequence::new(plan.manifest, level, plan.leave_at)))
            }
            Mode::Consumer(habit) => Seated::Consumer(Box::new(Consumer::new(
                plan.manifest.url,
                habit,
                plan.leave_at,
                start,
            ))),
        }
    }

    async fn run(&self, seated: &mut Seated, client: &Rc<Client>, counts: &mut Counts) -> End {
        let mut running: Vec<Running> = Vec::new();
        loop {
            let now = self.thread.now();
            if self.thread.is_over() {
                seated.end(now, End::Stopped);
            }
            let step = seated.player().poll(now);
            self.glance.set(Some(seated.glance(now)));
            match step {
                Step::Ask(fetch) => running.push(ask(client, *fetch)),
                Step::Cancel(id) => {
                    let before = running.len();
                    running.retain(|running| running.id != id);
                    let cut = (before - running.len()) as u64;
                    self.thread.tally(|tally| tally.abandoned(cut));
                }
                Step::Done => {
                    self.thread
                        .tally(|tally| tally.abandoned(running.len() as u64));
                    return seated.ended().unwrap_or(End::Stopped);
                }
                Step::Wait(at) => {
                    if let Some((id, what, reading, outcome)) = self.wait(&mut running, at).await {
                        self.answered(seated, counts, (id, what), &reading, &outcome);
                    }
                }
            }
        }
    }

    /// Until an answer comes, or until then; how late that was noticed is written down.
    async fn wait(
        &self,
        running: &mut Vec<Running>,
        at: Micros,
    ) -> Option<(u32, What, Reading, Outcome)> {
        let due = self.thread.moment(at);
        let mut timer = std::pin::pin!(tokio::time::sleep_until(due.into()));
        let over = self.thread.over();
        let mut over = std::pin::pin!(over);
        let found = poll_fn(|context| {
            for n in 0..running.len() {
                if let Poll::Ready(outcome) = running[n].answer.as_mut().poll(context) {
                    let done = running.swap_remove(n);
                    return Poll::Ready(Some((done.id, done.what, done.reading, outcome)));
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
            self.thread.tally(|tally| tally.late(late));
        }
        found
    }

    fn answered(
        &self,
        seated: &mut Seated,
        counts: &mut Counts,
        (id, what): (u32, What),
        reading: &Reading,
        outcome: &Outcome,
    ) {
        let thread = &self.thread;
        thread.tally(|tally| tally.ended(thread.step(), what, outcome));
        let read = match outcome.ok() {
            true => thread.catalog().read(reading, outcome),
            false => Ok(None),
        };
        if let Err(error) = &read {
            let text = PlayerRecord::text(&format!("{}: {error}", what.name()));
            thread.tally(|tally| tally.unreadable(text));
        }
        if let Ok(Some(Document::Stream(stream))) = &read {
            thread.tally(|tally| tally.notes(&stream.notes));
        }
        let ok = outcome.ok() && read.is_ok();
        counts.bytes += outcome.body_bytes;
        counts.requests += 1;
        counts.failed += u64::from(!ok);
        let answer = Answer {
            ok,
            bytes: outcome.body_bytes,
            sent: outcome.sent.map(|moment| thread.micros(moment)),
            first_byte: outcome.first_byte.map(|moment| thread.micros(moment)),
            document: read.ok().flatten(),
        };
        // When the last byte came, not when it was noticed.
        let came = thread.micros(outcome.last_byte);
        seated.player().handle(came, id, answer);
    }
}

#[derive(Default)]
struct Counts {
    bytes: u64,
    requests: u64,
    failed: u64,
}

fn ask(client: &Rc<Client>, fetch: Fetch) -> Running {
    let mut url = fetch.part.url;
    let fields = fetch
        .cmcd
        .map_or_else(Vec::new, |facts| facts.tell(&mut url));
    let mut request = Request::new(url);
    for (name, text) in fields {
        request.header(name, &text);
    }
    if let Some(range) = fetch.part.range {
        request = request.range(range);
    }
    if fetch.what.is_document() {
        request = request.keep(MANIFEST_BYTES_MAX);
    }
    let client = client.clone();
    let answer = Box::pin(async move { client.get(&request).await });
    Running {
        id: fetch.id,
        what: fetch.what,
        reading: fetch.reading,
        answer,
    }
}
