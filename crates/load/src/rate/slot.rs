//! A slot: one request at a time, on a connection of its own (HTTP/2: a share of one).

use super::target::Prepared;
use super::thread::Thread;
use crate::client::{
    Check, Client, Digest, Failure, Fault, Keep, Link, Request, Url, h1, h2, redirect,
};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::Write as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A request that is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// Its number in the run.
    pub(super) n: u64,
    /// When, in nanoseconds of the run.
    pub(super) due_ns: u64,
    /// In which step.
    pub(super) step: u32,
    /// No connection was free when it was due.
    pub(super) late: bool,
}

/// How a request went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) sent: Option<Instant>,
    pub(super) first: Option<Instant>,
    pub(super) end: Instant,
}

/// What others see of a slot.
#[derive(Default)]
pub(super) struct Slot {
    /// What it shall do next.
    job: Cell<Option<Job>>,
    waker: RefCell<Option<Waker>>,
    /// When its request has taken too long.
    deadline: Cell<Option<Instant>>,
    /// Its request shall end now.
    expired: Cell<bool>,
}

impl Slot {
    /// Hands an idle slot its next request.
    pub(super) fn give(&self, job: Job) {
        self.job.set(Some(job));
        self.wake();
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Ends a request that has taken too long, or any.
    pub(super) fn expire(&self, now: Option<Instant>) {
        let over = |limit: Instant| now.is_none_or(|now| now > limit);
        if self.deadline.get().is_some_and(over) {
            self.expired.set(true);
            self.wake();
        }
    }

    fn remember(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match waker.as_mut() {
            Some(known) => known.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
    }
}

/// A slot's own things.
pub(super) struct Running {
    pub(super) thread: Rc<Thread>,
    pub(super) slot: Rc<Slot>,
    pub(super) id: usize,
    /// Connections by origin; HTTP/1.1.
    links: Vec<Option<Link>>,
    /// Where requests for random ranges are written.
    buffer: Vec<u8>,
}

impl Running {
    pub(super) fn new(thread: Rc<Thread>, slot: Rc<Slot>, id: usize) -> Running {
        let mut links = Vec::new();
        links.resize_with(thread.targets.origins.len(), || None);
        Running {
            thread,
            slot,
            id,
            links,
            buffer: Vec::new(),
        }
    }

    /// Connects before there is anything to ask.
    pub(super) async fn connect_ahead(&mut self) {
        let origin = self.id % self.links.len();
        if self.thread.is_http2() {
            let _ = self.thread.shared(self.id, origin).await;
        } else if let Ok(link) = self.thread.dial(origin).await {
            self.links[origin] = Some(link);
        }
    }

    /// Takes requests until there are no more.
    pub(super) async fn run(mut self) {
        let thread = self.thread.clone();
        let slot = self.slot.clone();
        while let Some(job) =
            poll_fn(|cx| thread.next_job(self.id, &slot.job, || slot.remember(cx))).await
        {
            self.serve(&job).await;
        }
    }

    async fn serve(&mut self, job: &Job) {
        let thread = self.thread.clone();
        let due = thread.start() + Duration::from_nanos(job.due_ns);
        let started = match thread.is_closed_loop() {
            true => due,
            false => Instant::now(),
        };
        if !job.late && !thread.is_closed_loop() {
            thread.tally(|tally| tally.started(started.saturating_duration_since(due)));
        }
        let prepared = &thread.targets.all[thread.targets.choose(job.n)];
        let slot = self.slot.clone();
        slot.deadline.set(Some(started + thread.timeout));
        thread.under_way.begin();
        let mut done = Done {
            status: 0,
            bytes: 0,
            sent: None,
            first: None,
            end: started,
        };
        let result = {
            let mut work = pin!(self.ask(job, prepared, &mut done));
            poll_fn(|cx| {
                if slot.expired.get() {
                    return Poll::Ready(None);
                }
                slot.remember(cx);
                work.as_mut().poll(cx).map(Some)
            })
            .await
        };
        thread.under_way.end();
        slot.deadline.set(None);
        slot.expired.set(false);
        let result = match result {
            Some(result) => result,
            None if thread.is_over() => {
                thread.tally(|tally| tally.tick.abandoned += 1);
                return;
            }
            None if done.first.is_some() => Err(Fault::BodyTimeout.into()),
            None => Err(Fault::Timeout.into()),
        };
        if result.is_err() {
            done.end = Instant::now();
        }
        let failure = result.as_ref().err();
        thread.tally(|tally| tally.ended(job, prepared.target.kind, &done, failure));
        if failure.is_some_and(|failure| done.sent.is_none() && failure.fault != Fault::Url) {
            // A host that is not there: a closed loop would spin.
            thread.pause_after_failure().await;
        }
    }

    /// The request, its redirects, and the check of its body.
    async fn ask(
        &mut self,
        job: &Job,
        prepared: &Prepared,
        done: &mut Done,
    ) -> Result<(), Failure> {
        let check = self.encode(job, prepared);
        let mut keep = Keep::default();
        if check.is_some_and(|check| check.sha256.is_some()) {
            keep.digest = Some(Digest::default());
        }
        let answer = match self.thread.is_http2() {
            true => self.ask_http2(job, prepared, &mut keep, done).await?,
            false => self.ask_http1(prepared, &mut keep, done).await?,
        };
        done.status = answer.status;
        done.bytes = answer.body_bytes;
        done.end = answer.last_byte;
        if (300..400).contains(&answer.status)
            && let Some(next) = redirect(answer.status, &prepared.target.url, &keep.headers)
            && self.thread.redirects_max > 0
        {
            return follow(self.thread.client(), prepared, answer.status, next, done).await;
        }
        if let Some(check) = check.filter(|_| (200..300).contains(&answer.status)) {
            check.judge(answer.body_bytes, keep.digest)?;
        }
        Ok(())
    }

    /// Writes the request of a random range; says what the body should be.
    fn encode(&mut self, job: &Job, prepared: &Prepared) -> Option<Check> {
        self.buffer.clear();
        let Some(ranges) = prepared.target.ranges else {
            return prepared.target.check;
        };
        let (first, last) = self.thread.targets.piece(job.n, ranges);
        self.buffer.extend_from_slice(&prepared.bytes);
        // A vector takes everything.
        let _ = write!(self.buffer, "Range: bytes={first}-{last}\r\n\r\n");
        self.buffer.extend_from_slice(&prepared.target.body);
        Some(Check {
            length: Some(last - first + 1),
            sha256: None,
        })
    }

    async fn ask_http1(
        &mut self,
        prepared: &Prepared,
        keep: &mut Keep,
        done: &mut Done,
    ) -> Result<h1::Answer, Failure> {
        let thread = self.thread.clone();
        let bytes = match self.buffer.is_empty() {
            true => &prepared.bytes,
            false => &self.buffer,
        };
        let asked = h1::Asked {
            bytes,
            head_only: prepared.target.method == http::Method::HEAD,
            body_max: thread.body_max,
        };
        let mut kept = self.links[prepared.origin].take();
        // On a kept connection it leaves now.
        done.sent = kept.is_some().then_some(done.end);
        loop {
            let fresh = kept.is_none();
            let link = match kept.take() {
                Some(link) => link,
                None => thread.dial(prepared.origin).await?,
            };
            let Link::Http1(mut stream, counted) = link else {
                return Err(Fault::Http2.into());
            };
            let (sent, first) = (&mut done.sent, &mut done.first);
            match h1::exchange(&mut stream, &asked, keep, sent, first).await {
                Ok(answer) => {
                    if answer.keep_alive && thread.keep_alive {
                        self.links[prepared.origin] = Some(Link::Http1(stream, counted));
                    }
                    return Ok(answer);
                }
                // The server let go of a kept connection: that is no answer to this request.
                Err(failure) if failure.unanswered && !fresh => {
                    (done.sent, done.first) = (None, None)
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn ask_http2(
        &mut self,
        job: &Job,
        prepared: &Prepared,
        keep: &mut Keep,
        done: &mut Done,
    ) -> Result<h1::Answer, Failure> {
        let thread = self.thread.clone();
        let mut head = prepared.head.clone();
        if let Some(ranges) = prepared.target.ranges {
            let (first, last) = thread.targets.piece(job.n, ranges);
            if let Ok(value) = format!("bytes={first}-{last}").parse() {
                head.headers_mut().insert(http::header::RANGE, value);
            }
        }
        let body = prepared.target.body.clone();
        let shared = thread.shared(self.id, prepared.origin).await?;
        let (sent, first) = (&mut done.sent, &mut done.first);
        let answer = h2::exchange(&shared, head, body, thread.body_max, keep, sent, first).await;
        if answer.is_err() {
            thread.forget_shared(self.id, prepared.origin).await;
        }
        answer
    }
}

/// The slow way: redirects are rare, and go through a client.
async fn follow(
    client: &Client,
    prepared: &Prepared,
    status: u16,
    next: Url,
    done: &mut Done,
) -> Result<(), Failure> {
    let target = &prepared.target;
    let mut request = Request {
        headers: target.headers.clone(),
        check: target.check,
        ..Request::new(next)
    };
    if matches!(status, 307 | 308) || target.method == http::Method::HEAD {
        request.method = target.method.clone();
        request.body = target.body.clone();
    }
    let outcome = client.get(&request).await;
    done.status = outcome.status;
    done.bytes += outcome.body_bytes;
    done.end = outcome.last_byte;
    match outcome.fault {
        Some(fault) => Err(Failure {
            fault,
            detail: outcome.detail,
            unanswered: false,
        }),
        None => Ok(()),
    }
}
