//! Which endpoint is asked, how often, and when a second request is sent beside the first.

use super::Core;
use super::call::{Answer, Ask, Trouble};
use super::endpoints::Endpoint;
use super::seen::Seen;
use crate::{Error, Key, Reason};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The first pause before a request is sent again to the endpoint that failed; then doubled.
const PAUSE: Duration = Duration::from_millis(30);
/// The soonest that a second request is sent beside the first.
const HEDGE_AFTER_MIN: Duration = Duration::from_millis(5);

/// The tries of one request.
pub(super) struct Tries<'a> {
    core: &'a Core,
    key: &'a Key,
    /// Why the next one is made.
    reason: Reason,
    /// How many more there may be.
    left: u32,
    failed: Vec<Arc<Endpoint>>,
    pause: Duration,
}

/// Where to try next.
pub(super) struct Try {
    pub(super) endpoint: Arc<Endpoint>,
    /// Another one, if there is: for a second request beside the first.
    pub(super) other: Arc<Endpoint>,
    pub(super) reason: Reason,
}

impl Tries<'_> {
    /// The best endpoint that did not fail yet; when all did, the best one after a pause.
    pub(super) async fn place(&mut self) -> Result<Try, Error> {
        let order = self.core.routes.order(self.key);
        if order.iter().all(|one| has(&self.failed, one)) {
            tokio::time::sleep(jittered(self.pause)).await;
            self.pause *= 2;
            self.failed.clear();
        }
        let mut new = order.iter().filter(|one| !has(&self.failed, one));
        let endpoint = new.next().ok_or(Error::NotFound)?.clone();
        let other = new.next().unwrap_or(&endpoint).clone();
        Ok(Try {
            other,
            endpoint,
            reason: self.reason,
        })
    }

    /// What to do about a failure: an error to tell, or nothing, to try again.
    pub(super) fn failed(&mut self, there: Try, trouble: Trouble) -> Result<(), Error> {
        if !trouble.again || self.left == 0 || !self.core.retries.spend() {
            return Err(trouble.error);
        }
        self.left -= 1;
        self.reason = Reason::Retry;
        self.failed.push(there.endpoint);
        Ok(())
    }
}

impl Core {
    /// Tries for a request that is made for the first time.
    pub(super) fn tries<'a>(&'a self, key: &'a Key, reason: Reason) -> Tries<'a> {
        self.retries.earn();
        Tries {
            core: self,
            key,
            reason,
            left: self.options.retries,
            failed: Vec::new(),
            pause: PAUSE,
        }
    }

    /// An answer to `ask`, from wherever it can be had. `reason`: of the first request.
    pub(super) async fn answer(
        self: &Arc<Core>,
        ask: &Ask,
        reason: Reason,
    ) -> Result<Answer, Error> {
        self.hedges.earn();
        let mut tries = self.tries(&ask.key, reason);
        loop {
            let there = tries.place().await?;
            match self.raced(ask, &there).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => tries.failed(there, trouble)?,
            }
        }
    }

    /// What an object is now.
    pub(super) async fn head(self: &Arc<Core>, key: &Key, reason: Reason) -> Result<Seen, Error> {
        let mut tries = self.tries(key, reason);
        loop {
            let there = tries.place().await?;
            match there.endpoint.head(self, key, there.reason).await {
                Ok(seen) => return Ok(seen),
                Err(trouble) => tries.failed(there, trouble)?,
            }
        }
    }

    /// One request; and if that is slower than most were lately, one more beside it. The first
    /// right answer counts, the other request is given up.
    async fn raced(self: &Arc<Core>, ask: &Ask, there: &Try) -> Result<Answer, Trouble> {
        let mut first = pin!(there.endpoint.get(self, ask, there.reason));
        let Some(slow) = self.slow() else {
            return first.await;
        };
        if let Ok(answer) = tokio::time::timeout(slow, &mut first).await {
            return answer;
        }
        if !self.hedges.spend() {
            return first.await;
        }
        let mut second = pin!(there.other.get(self, ask, Reason::Hedge));
        tokio::select! {
            answer = &mut first => match answer {
                Err(trouble) if trouble.again => second.await,
                answer => answer,
            },
            answer = &mut second => match answer {
                Err(_) => first.await,
                answer => answer,
            },
        }
    }

    fn slow(&self) -> Option<Duration> {
        if self.options.hedge_share <= 0.0 {
            return None;
        }
        let slow = self.latency.percentile(self.options.hedge_percentile)?;
        Some(slow.max(HEDGE_AFTER_MIN))
    }
}

fn has(all: &[Arc<Endpoint>], one: &Arc<Endpoint>) -> bool {
    all.iter().any(|other| Arc::ptr_eq(other, one))
}

/// Between half of a pause and all of it, so that many do not come back at once.
fn jittered(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    pause.mul_f64(0.5 + (random % 1024) as f64 / 2048.0)
}
