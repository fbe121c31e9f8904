//! A client: its connections, and the way of one request.

use super::h1::{self, Answer, Asked, Defaults};
use super::{Dialer, Digest, Failure, Fault, Keep, Link, Outcome, Request, Reuse, h2};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Semaphore;
use url::{Origin, Url};

/// One viewer's client. It keeps its connections, at most as many as
/// [`Settings::connections_max`](super::Settings::connections_max); more requests at a time wait.
pub struct Client {
    dialer: Dialer,
    idle: Mutex<VecDeque<(Origin, Link)>>,
    free: Semaphore,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// A client without connections yet.
    pub fn new(dialer: &Dialer) -> Client {
        let most = dialer
            .settings()
            .connections_max
            .clamp(1, Semaphore::MAX_PERMITS);
        Client {
            dialer: dialer.clone(),
            idle: Mutex::default(),
            free: Semaphore::new(most),
        }
    }

    /// Asks, and says how it went. It ends after [`Settings::timeout`](super::Settings::timeout)
    /// at the latest; dropping the future gives the request and its connection up.
    pub async fn get(&self, request: &Request) -> Outcome {
        let mut outcome = Outcome::begin(request);
        let limit = self.dialer.settings().timeout;
        let failed = match tokio::time::timeout(limit, self.follow(request, &mut outcome)).await {
            Ok(result) => result.err(),
            Err(_) if outcome.first_byte.is_some() => Some(Fault::BodyTimeout.into()),
            Err(_) => Some(Fault::Timeout.into()),
        };
        if let Some(failure) = failed {
            outcome.fail(failure);
        }
        outcome
    }

    /// Closes the connections that are idle.
    pub fn close_idle(&self) {
        self.idle().clear();
    }

    /// The request and its redirects.
    async fn follow(&self, request: &Request, outcome: &mut Outcome) -> Result<(), Failure> {
        let Ok(_free) = self.free.acquire().await else {
            unreachable!("the semaphore is never closed");
        };
        let mut method = request.method.clone();
        loop {
            let mut keep = Keep {
                max: request.keep_max,
                digest: request
                    .check
                    .filter(|c| c.sha256.is_some())
                    .map(|_| Digest::default()),
                ..Keep::default()
            };
            let answer = self.ask(&method, request, outcome, &mut keep).await;
            let digest = keep.digest.take();
            let next = answer
                .as_ref()
                .ok()
                .and_then(|answer| redirect(answer.status, &outcome.url, &keep.headers));
            outcome.took(keep);
            let answer = answer?;
            outcome.status = answer.status;
            outcome.body_bytes = answer.body_bytes;
            outcome.first_byte = Some(answer.first_byte);
            outcome.last_byte = answer.last_byte;
            let Some(next) = next else {
                let check = request
                    .check
                    .filter(|_| (200..300).contains(&answer.status));
                return Ok(check.map_or(Ok(()), |check| check.judge(answer.body_bytes, digest))?);
            };
            outcome.redirects += 1;
            if outcome.redirects > self.dialer.settings().redirects_max {
                return Err(Failure::new(Fault::Redirects, next));
            }
            if matches!(answer.status, 301..=303) && method != http::Method::HEAD {
                method = http::Method::GET;
            }
            outcome.url = next;
        }
    }

    /// One exchange; once more on a new connection where a kept one turns out to be closed.
    async fn ask(
        &self,
        method: &http::Method,
        request: &Request,
        outcome: &mut Outcome,
        keep: &mut Keep,
    ) -> Result<Answer, Failure> {
        let url = outcome.url.clone();
        if let Some(link) = self.take(&url.origin()) {
            outcome.connection = Some(Reuse::Kept);
            match self.exchange(link, method, request, outcome, keep).await {
                Err(failure) if failure.unanswered => outcome.first_byte = None,
                done => return done,
            }
        }
        outcome.connection = None;
        let link = self.dialer.connect(&url).await?;
        outcome.connection = Some(Reuse::New);
        self.exchange(link, method, request, outcome, keep).await
    }

    async fn exchange(
        &self,
        link: Link,
        method: &http::Method,
        request: &Request,
        outcome: &mut Outcome,
        keep: &mut Keep,
    ) -> Result<Answer, Failure> {
        let settings = self.dialer.settings();
        let defaults = Defaults {
            user_agent: &settings.user_agent,
            keep_alive: settings.keep_alive,
        };
        let url = outcome.url.clone();
        outcome.sent = None;
        let moments = (&mut outcome.sent, &mut outcome.first_byte);
        // A GET after a redirect of a POST carries no body.
        let body = match *method == request.method {
            true => request.body.clone(),
            false => bytes::Bytes::new(),
        };
        match link {
            Link::Http1(mut stream, counted) => {
                let asked = Asked {
                    bytes: &h1::encode(method, &url, &request.headers, &body, &defaults),
                    head_only: *method == http::Method::HEAD,
                    body_max: settings.body_max,
                };
                let done = h1::exchange(&mut stream, &asked, keep, moments.0, moments.1).await?;
                if done.keep_alive && settings.keep_alive {
                    self.give_back(url.origin(), Link::Http1(stream, counted));
                }
                Ok(done)
            }
            Link::Http2(shared) => {
                if settings.keep_alive {
                    self.give_back(url.origin(), Link::Http2(shared.clone()));
                }
                let head = h2::encode(method, &url, &request.headers, &defaults)?;
                let most = settings.body_max;
                let done =
                    h2::exchange(&shared, head, body, most, keep, moments.0, moments.1).await;
                if matches!(&done, Err(failure) if failure.fault != Fault::TooLong) {
                    self.idle().retain(|(to, _)| *to != url.origin());
                }
                done
            }
        }
    }

    /// The connection to this origin that was used last.
    fn take(&self, origin: &Origin) -> Option<Link> {
        let mut idle = self.idle();
        let at = idle.iter().rposition(|(to, _)| to == origin)?;
        idle.remove(at).map(|(_, link)| link)
    }

    fn give_back(&self, origin: Origin, link: Link) {
        let mut idle = self.idle();
        idle.push_back((origin, link));
        while idle.len() > self.dialer.settings().connections_max.max(1) {
            idle.pop_front();
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, VecDeque<(Origin, Link)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where an answer sends us, if it does (RFC 9110, 15.4).
pub(crate) fn redirect(status: u16, from: &Url, headers: &http::HeaderMap) -> Option<Url> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(http::header::LOCATION)?.to_str().ok()?;
    from.join(location).ok()
}
