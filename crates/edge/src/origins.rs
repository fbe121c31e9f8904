//! The servers behind: pools of them, who is asked first, who next, and what failures mean.

mod budget;
mod choice;
mod counts;
mod health;
mod pools;
mod states;

pub use choice::Balance;
pub use counts::Counts;
pub use health::Care;
pub use pools::{Pool, Pools, read};

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use net::upstream::{Answer, Authorities, Failed, Patience, Upstream};
use net::{Body, Error};

use self::budget::Budget;
use self::health::{Change, Health};

/// Origins asked for one request, at most.
const TRIES_MAX: usize = 3;
/// How origins are treated.
#[derive(Debug, Clone, PartialEq)]
pub struct Treatment {
    pub patience: Patience,
    pub care: Care,
    /// Of requests, that may be sent to a second origin.
    pub retry_share: f64,
}

/// Who answers what is not kept.
#[derive(Debug)]
pub struct Origins {
    pools: BTreeMap<Arc<str>, Members>,
    treatment: Treatment,
    counts: Counts,
}

/// A pool at work.
#[derive(Debug)]
struct Members {
    members: Vec<Arc<Member>>,
    balance: Balance,
    authorities: Authorities,
    /// The path that probes ask for, if there are probes.
    probe: Option<String>,
    budget: Mutex<Budget>,
}

#[derive(Debug)]
struct Member {
    url: String,
    seed: u64,
    host: HeaderValue,
    upstream: Upstream,
    health: Mutex<Health>,
}

/// Something to ask of a pool.
#[derive(Debug)]
pub struct Question<'a> {
    pub worker: usize,
    /// The pool's name; empty: the one of all who name none.
    pub pool: &'a str,
    pub method: &'a Method,
    pub target: &'a str,
    pub headers: HeaderMap,
    /// In place of the origin's own.
    pub host: Option<&'a HeaderValue>,
}

/// A head that has come, and when it was asked for.
pub struct Reply {
    pub answer: Answer,
    /// From asking to the head.
    pub delay: Duration,
    /// The wall clock when the head came.
    pub at: SystemTime,
}

impl Origins {
    /// Pools by name, each worker with connections of its own.
    ///
    /// # Errors
    /// When a URL names no server.
    pub fn new(pools: &Pools, treatment: &Treatment, counts: Counts) -> io::Result<Origins> {
        Origins::build(pools, treatment, counts, None)
    }

    /// The same by other settings. Origins that are still there keep their connections and what is
    /// known of their health.
    ///
    /// # Errors
    /// When a URL names no server.
    pub fn by(&self, pools: &Pools, treatment: &Treatment) -> io::Result<Origins> {
        Origins::build(pools, treatment, self.counts.clone(), Some(self))
    }

    fn build(
        pools: &Pools,
        treatment: &Treatment,
        counts: Counts,
        old: Option<&Origins>,
    ) -> io::Result<Origins> {
        let old = old.filter(|old| old.treatment.patience == treatment.patience);
        let member = |pool: &Arc<str>, of: &Pool, url: &Uri| {
            let text = url.to_string();
            let known = old.and_then(|old| old.pools.get(pool));
            let known = known.filter(|known| known.authorities == of.authorities);
            let known = known.and_then(|pool| pool.members.iter().find(|m| m.url == text));
            if let Some(known) = known {
                return Ok(Arc::clone(known));
            }
            let upstream = Upstream::new(
                url,
                counts.workers,
                treatment.patience.clone(),
                &of.authorities,
            )?;
            let upstream = upstream.counting(counts.opened.clone());
            let host = HeaderValue::from_str(upstream.authority());
            Ok(Arc::new(Member {
                seed: choice::hash(text.as_bytes()),
                url: text,
                // An authority that parsed is visible ASCII.
                host: host.unwrap_or(HeaderValue::from_static("")),
                upstream,
                health: Mutex::default(),
            }))
        };
        let pools = pools.iter().map(|(name, pool)| {
            let members = pool.origins.iter().map(|url| member(name, pool, url));
            let pool = Members {
                members: members.collect::<io::Result<_>>()?,
                balance: pool.balance,
                authorities: pool.authorities.clone(),
                probe: pool.health.clone(),
                budget: Mutex::new(Budget::new(Instant::now())),
            };
            Ok((Arc::clone(name), pool))
        });
        Ok(Origins {
            pools: pools.collect::<io::Result<_>>()?,
            treatment: treatment.clone(),
            counts,
        })
    }

    /// Asks for something that may be asked for again: if an origin fails, the next one.
    ///
    /// # Errors
    /// 502 or 504 when no head came.
    pub async fn ask(&self, mut question: Question<'_>) -> Result<Reply, Error> {
        let pool = self.pool(question.pool)?;
        let mut request = question.request(())?;
        let began = Instant::now();
        let mut last = Err(nobody());
        for (nth, member) in self.tries(pool, question.target, began).enumerate() {
            if nth > 0 && !self.may_retry(pool) {
                break;
            }
            let host = question.host.unwrap_or(&member.host).clone();
            request.headers_mut().insert(header::HOST, host);
            let sent = member.upstream.send(question.worker, &request).await;
            let failed = self.note(pool, member, &sent);
            last = sent;
            if !failed {
                break;
            }
        }
        reply(last, began)
    }

    /// Hands a request over that must not be done twice: the next origin is asked only if nothing
    /// of it can have reached the one before.
    ///
    /// # Errors
    /// 502 or 504 when no head came.
    pub async fn hand_over(&self, mut question: Question<'_>, body: Body) -> Result<Reply, Error> {
        let pool = self.pool(question.pool)?;
        let mut unsent = Some(Box::new(question.request(body)?));
        let began = Instant::now();
        let mut last = Err(nobody());
        for (nth, member) in self.tries(pool, question.target, began).enumerate() {
            let Some(mut request) = unsent.take() else {
                break;
            };
            if nth > 0 && !self.may_retry(pool) {
                break;
            }
            let host = question.host.unwrap_or(&member.host).clone();
            request.headers_mut().insert(header::HOST, host);
            let sent = member.upstream.send_once(question.worker, *request).await;
            last = sent.map_err(|(failed, back)| {
                unsent = back;
                failed
            });
            self.note(pool, member, &last);
        }
        reply(last, began)
    }

    fn pool(&self, name: &str) -> Result<&Members, Error> {
        let missing = || Error::internal(format_args!("there is no pool {name:?} any more"));
        self.pools.get(name).ok_or_else(missing)
    }

    /// Who is asked, one after the other.
    fn tries<'a>(
        &self,
        pool: &'a Members,
        target: &str,
        now: Instant,
    ) -> impl Iterator<Item = &'a Arc<Member>> + use<'a> {
        pool.budget().earn(self.treatment.retry_share, now);
        let order = if pool.members.len() == 1 {
            vec![0]
        } else {
            let share = |member: &Arc<Member>| (member.seed, self.share(pool, member, now));
            let shares: Vec<_> = pool.members.iter().map(share).collect();
            choice::order(pool.balance, &shares, target)
        };
        let members = order.into_iter().filter_map(|n| pool.members.get(n));
        members.take(TRIES_MAX)
    }

    fn share(&self, pool: &Members, member: &Member, now: Instant) -> f64 {
        let probed = pool.probe.is_some();
        member.health().share(&self.treatment.care, probed, now)
    }

    fn may_retry(&self, pool: &Members) -> bool {
        let may = pool.budget().spend();
        let result = if may { "sent" } else { "spent" };
        self.counts.retries.of(&[result]).inc();
        may
    }

    /// Writes down how a request went. Returns whether the origin failed it.
    fn note(&self, pool: &Members, member: &Member, sent: &Result<Answer, Failed>) -> bool {
        let result = match sent {
            Ok(answer) if answer.status.is_server_error() => "error",
            Ok(_) => "answer",
            Err(failed) if failed.late => "late",
            Err(_) => "failed",
        };
        self.counts.requests.of(&[&member.url, result]).inc();
        let failed = match sent {
            // The origin's own word that it is not fit to answer.
            Ok(answer) => matches!(answer.status.as_u16(), 502..=504),
            Err(_) => true,
        };
        let (now, probed) = (Instant::now(), pool.probe.is_some());
        let change = if failed {
            member.health().failed(&self.treatment.care, now)
        } else {
            member.health().answered(probed, now)
        };
        self.say(member, change);
        failed
    }

    fn say(&self, member: &Member, change: Change) {
        let origin = &member.url;
        match change {
            Change::Nothing => return,
            Change::Out => {
                self.counts.out.of(&[origin]).inc();
                tracing::warn!(
                    origin,
                    "it failed several times and is not asked for a while"
                );
            }
            Change::Back => tracing::info!(origin, "it answers again"),
        }
        let all = self.pools.values().flat_map(|pool| &pool.members);
        let out = all.filter(|member| member.health().is_out()).count();
        let out = i64::try_from(out).unwrap_or(i64::MAX);
        self.counts.out_now.set(out);
    }
}

impl Members {
    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question<'_> {
    /// Without a Host yet. Takes the headers.
    fn request<B>(&mut self, body: B) -> Result<Request<B>, Error> {
        let uri: Uri = self.target.parse().map_err(Error::internal)?;
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = std::mem::take(&mut self.headers);
        Ok(request)
    }
}

fn nobody() -> Failed {
    Failed {
        late: false,
        sent: false,
        why: "the pool is empty".into(),
    }
}

fn reply(last: Result<Answer, Failed>, began: Instant) -> Result<Reply, Error> {
    Ok(Reply {
        answer: last.map_err(|failed| error(&failed))?,
        delay: began.elapsed(),
        at: SystemTime::now(),
    })
}

/// The one table of what an origin's failures mean for a client.
fn error(failed: &Failed) -> Error {
    let status = if failed.late {
        StatusCode::GATEWAY_TIMEOUT
    } else {
        StatusCode::BAD_GATEWAY
    };
    Error::upstream(status, failed)
}
