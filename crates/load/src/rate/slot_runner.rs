//! The task of a slot sends one request at a time. An HTTP/1.1 slot has its own connections. HTTP/2
//! slots share connections.

use super::rate_thread::RateThread;
use super::request_slot::RequestSlot;
use super::request_target::PreparedTarget;
use super::scheduled_request::{ExchangeOutcome, ScheduledRequest};
use crate::client::{
    ATTEMPTS_MAX, BodyDigest, ClientConnection, ClientRequest, ConnectionFreshness, ExpectedBody,
    FailureKind, MemorySink, RequestFailure, http1_exchange, http2_exchange, range_value,
    redirect_target,
};
use std::future::poll_fn;
use std::io::Write as _;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Time between the deadline of a redirected request, at which the client ends the request, and the
/// time at which the supervisor would end it. The client's timer must fire first.
const REDIRECT_GRACE: Duration = Duration::from_secs(1);

/// The task that sends the requests of one slot.
pub(super) struct SlotRunner {
    pub(super) thread: Rc<RateThread>,
    pub(super) slot: Rc<RequestSlot>,
    pub(super) id: usize,
    /// The idle HTTP/1.1 connection for each origin.
    links: Vec<Option<ClientConnection>>,
    /// The encoded request, if the request is for a random range.
    buffer: Vec<u8>,
    /// The HTTP/2 connection of the request in flight.
    shared_in_use: Option<http2_exchange::Http2Connection>,
}

impl SlotRunner {
    pub(super) fn new(thread: Rc<RateThread>, slot: Rc<RequestSlot>, id: usize) -> SlotRunner {
        let mut links = Vec::new();
        links.resize_with(thread.targets.origins.len(), || None);
        SlotRunner {
            thread,
            slot,
            id,
            links,
            buffer: Vec::new(),
            shared_in_use: None,
        }
    }

    /// Opens a connection before the first request. Ignores errors, because the first request
    /// connects again.
    pub(super) async fn connect_ahead(&mut self) {
        let origin = self.id % self.links.len();
        if self.thread.is_http2() {
            let _ = self.thread.shared_connection(self.id, origin).await;
        } else if let Ok(link) = self.thread.open_connection(origin).await {
            self.links[origin] = Some(link);
        }
    }

    /// Sends requests until the run ends.
    pub(super) async fn send_until_run_ends(mut self) {
        let thread = self.thread.clone();
        let slot = self.slot.clone();
        while let Some(scheduled) = poll_fn(|cx| {
            thread.poll_next_request(self.id, &slot.next_request, || slot.store_waker(cx))
        })
        .await
        {
            self.send_request(&scheduled).await;
        }
    }

    async fn send_request(&mut self, scheduled: &ScheduledRequest) {
        let thread = self.thread.clone();
        let due = thread.run_start() + Duration::from_nanos(scheduled.due_ns);
        let started = match thread.is_closed_loop() {
            true => due,
            false => Instant::now(),
        };
        if !scheduled.late && !thread.is_closed_loop() {
            thread.with_stats(|stats| stats.record_lag(started.saturating_duration_since(due)));
        }
        let prepared = &thread.targets.all[thread.targets.choose_target(scheduled.n)];
        let slot = self.slot.clone();
        slot.deadline.set(Some(started + thread.timeout));
        thread.count_request_start();
        let mut done = ExchangeOutcome {
            status: 0,
            bytes: 0,
            sent: None,
            first: None,
            end: started,
        };
        let mut sink = MemorySink::default();
        let result = {
            let mut work = pin!(self.send_and_receive(scheduled, prepared, &mut sink, &mut done));
            poll_fn(|cx| {
                if slot.is_expired.get() {
                    return Poll::Ready(None);
                }
                slot.store_waker(cx);
                work.as_mut().poll(cx).map(Some)
            })
            .await
        };
        thread.count_request_end();
        slot.deadline.set(None);
        slot.is_expired.set(false);
        if result.is_none()
            && let Some(shared) = self.shared_in_use.take()
        {
            // A request that timed out may be the only sign of a dead connection.
            thread
                .remove_failed_connection(self.id, prepared.origin, &shared)
                .await;
        }
        let result = match result {
            Some(result) => result,
            None if thread.is_over() => {
                thread.with_stats(|stats| stats.report.abandoned += 1);
                return;
            }
            None if done.first.is_some() => Err(FailureKind::BodyTimeout.into()),
            None => Err(FailureKind::Timeout.into()),
        };
        if result.is_err() {
            done.end = Instant::now();
            done.add_incomplete_response(&sink);
        }
        let failure = result.as_ref().err();
        thread.with_stats(|stats| stats.count_request(scheduled, prepared, &done, failure));
        if failure.is_some_and(|failure| done.sent.is_none() && failure.fault != FailureKind::Url) {
            // Without this pause, a closed loop would spin while the host is unreachable.
            thread.pause_after_failure().await;
        }
    }

    /// Sends the request, follows redirects and checks the body.
    async fn send_and_receive(
        &mut self,
        scheduled: &ScheduledRequest,
        prepared: &PreparedTarget,
        sink: &mut MemorySink,
        done: &mut ExchangeOutcome,
    ) -> Result<(), RequestFailure> {
        let range = prepared.target.ranges.map(|ranges| {
            let (first, last) = self.thread.targets.random_range(scheduled.n, ranges);
            first..last + 1
        });
        self.encode_range_request(prepared, range.as_ref());
        let check = match &range {
            Some(range) => Some(ExpectedBody::check_length(range)),
            None => prepared.target.check,
        };
        if check.is_some_and(|check| check.sha256.is_some()) {
            sink.digest = Some(BodyDigest::default());
        }
        let response = match self.thread.is_http2() {
            true => {
                self.exchange_http2(prepared, range.as_ref(), sink, done)
                    .await?
            }
            false => self.exchange_http1(prepared, sink, done).await?,
        };
        done.status = response.status;
        done.bytes = response.body_bytes;
        done.end = response.last_byte;
        if (300..400).contains(&response.status)
            && let Some(next) =
                redirect_target(response.status, &prepared.target.url, &sink.headers)
            && self.thread.redirects_max > 0
        {
            let mut request = prepared.target.to_client_request(range);
            request.check = check;
            request.follow_redirect(response.status, next);
            // The sink contains the redirect. The outcome must describe the last response.
            *sink = MemorySink::default();
            return self.send_redirected(&request, done).await;
        }
        if let Some(check) = check.filter(|_| (200..300).contains(&response.status)) {
            check.check_body(response.body_bytes, sink.digest.take())?;
        }
        Ok(())
    }

    /// Encodes the request if it is for a random range.
    fn encode_range_request(&mut self, prepared: &PreparedTarget, range: Option<&Range<u64>>) {
        self.buffer.clear();
        let Some(range) = range else {
            return;
        };
        self.buffer.extend_from_slice(&prepared.bytes);
        let (first, last) = (range.start, range.end - 1);
        // Writing to a vector does not fail.
        let _ = write!(self.buffer, "Range: bytes={first}-{last}\r\n\r\n");
        self.buffer.extend_from_slice(&prepared.target.body);
    }

    async fn exchange_http1(
        &mut self,
        prepared: &PreparedTarget,
        sink: &mut MemorySink,
        done: &mut ExchangeOutcome,
    ) -> Result<http1_exchange::ExchangeResponse, RequestFailure> {
        let thread = self.thread.clone();
        let bytes = match self.buffer.is_empty() {
            true => &prepared.bytes,
            false => &self.buffer,
        };
        let encoded = http1_exchange::EncodedRequest {
            bytes,
            head_only: prepared.target.method == http::Method::HEAD,
            body_max: thread.body_max,
        };
        let mut idle = self.links[prepared.origin]
            .take()
            .and_then(ClientConnection::if_still_idle);
        // On an open connection, the request is sent at once. Therefore, the time of sending is the
        // time at which the slot started the request. Until the request ends, `done.end` contains
        // this start time.
        done.sent = idle.is_some().then_some(done.end);
        loop {
            let (link, freshness) = match idle.take() {
                Some(link) => (link, ConnectionFreshness::Reused),
                None => {
                    let link = thread.open_connection(prepared.origin).await?;
                    (link, ConnectionFreshness::New)
                }
            };
            let ClientConnection::Http1(mut stream, counted) = link else {
                return Err(FailureKind::Http2.into());
            };
            let (sent, first) = (&mut done.sent, &mut done.first);
            match http1_exchange::send_and_receive(&mut stream, &encoded, sink, sent, first).await {
                Ok(response) => {
                    if response.keep_alive && thread.keep_alive {
                        self.links[prepared.origin] =
                            Some(ClientConnection::Http1(stream, counted));
                    }
                    return Ok(response);
                }
                // The server has closed the idle connection. The loop sends the request again on a
                // new connection, and records the times of the new attempt.
                Err(failure) => {
                    let method = &prepared.target.method;
                    if !failure.can_be_repeated(method, done.sent, freshness) {
                        return Err(failure);
                    }
                    (done.sent, done.first) = (None, None);
                }
            }
        }
    }

    async fn exchange_http2(
        &mut self,
        prepared: &PreparedTarget,
        range: Option<&Range<u64>>,
        sink: &mut MemorySink,
        done: &mut ExchangeOutcome,
    ) -> Result<http1_exchange::ExchangeResponse, RequestFailure> {
        let thread = self.thread.clone();
        let mut head = prepared.head.clone();
        if let Some(value) = range.and_then(range_value) {
            head.headers_mut().insert(http::header::RANGE, value);
        }
        let body = prepared.target.body.clone();
        for attempt in 1.. {
            let connection = thread.shared_connection(self.id, prepared.origin);
            let (shared, freshness) = connection.await?;
            self.shared_in_use = Some(shared.clone());
            let (sent, first) = (&mut done.sent, &mut done.first);
            let (head, body) = (head.clone(), body.clone());
            let body_max = thread.body_max;
            let result =
                http2_exchange::send_and_receive(&shared, head, body, body_max, sink, sent, first);
            let result = result.await;
            self.shared_in_use = None;
            match result {
                Ok(response) => return Ok(response),
                Err(failure) => {
                    thread
                        .remove_failed_connection(self.id, prepared.origin, &shared)
                        .await;
                    let method = &prepared.target.method;
                    if attempt == ATTEMPTS_MAX
                        || !failure.can_be_repeated(method, done.sent, freshness)
                    {
                        return Err(failure);
                    }
                    // The loop sends the request again on another connection, and records the times
                    // of the new attempt.
                    (done.sent, done.first) = (None, None);
                }
            }
        }
        Err(FailureKind::Http2.into())
    }

    /// Sends a redirected request with the general HTTP client, because redirects are rare and need
    /// not be fast. Status and times of `done` are then those of the last request.
    async fn send_redirected(
        &self,
        request: &ClientRequest,
        done: &mut ExchangeOutcome,
    ) -> Result<(), RequestFailure> {
        (done.status, done.sent, done.first) = (0, None, None);
        let now = Instant::now();
        let deadline = self.slot.deadline.get().unwrap_or(now);
        // The client enforces the time limit itself. Only the client can then remove a dead HTTP/2
        // connection from its pool, and knows the received part of the response.
        self.slot.deadline.set(Some(deadline + REDIRECT_GRACE));
        let limit = deadline.saturating_duration_since(now);
        let client = self.thread.redirect_client();
        let outcome = client.execute_request_within(limit, request).await;
        done.status = outcome.status;
        done.bytes += outcome.body_bytes;
        (done.sent, done.first) = (outcome.sent, outcome.first_byte);
        done.end = outcome.last_byte;
        match outcome.fault {
            Some(fault) => Err(RequestFailure {
                fault,
                detail: outcome.detail,
                unanswered: false,
            }),
            None => Ok(()),
        }
    }
}
