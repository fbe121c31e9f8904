//! Rules of the configuration: which requests are sent how. The first that matches wins.
//!
//! Conditions are in the Common Expression Language. A rule is looked at twice: when a request
//! comes (`pass`, `deny`, `delay`, `ttl`, `pool`; nothing is known of the answer yet), and before the
//! first byte of its answer (the rest).

mod context;
mod file;
mod networks;

pub use context::Facts;
pub use file::{TABLES, read};

use std::sync::Arc;
use std::time::Duration;

use cel::{ExecutionError, Program, Value};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use net::Transport;

use self::networks::Networks;

/// All rules, and the networks that they may name.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    networks: Networks,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// As given, or its number.
    pub name: String,
    /// As written.
    pub source: String,
    when: Program,
    /// It asks about the connection.
    of_tcp: bool,
    early: Early,
    congestion: Option<String>,
    pace: Option<Pace>,
    notsent_lowat_bytes: Option<u32>,
    initial_window_packets: Option<u32>,
    set: Vec<(HeaderName, HeaderValue)>,
    remove: Vec<HeaderName>,
}

/// What is done when the request comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Early {
    /// Do not look into the cache, and keep nothing.
    pub pass: bool,
    /// Answer this instead.
    pub deny: Option<StatusCode>,
    /// Wait so long first.
    pub delay: Option<Duration>,
    /// Keep the answer for so long.
    pub ttl: Option<Duration>,
    /// Ask this pool's origins.
    pub pool: Option<Arc<str>>,
}

/// A bound on the rate, in kbit/s.
#[derive(Debug)]
enum Pace {
    Fixed(f64),
    Computed(Program),
}

/// What a rule chose for an answer.
#[derive(Debug)]
pub struct Choice<'a> {
    pub rule: &'a Rule,
    pub transport: Transport,
}

/// How a rule's condition came out, for people.
#[derive(Debug)]
pub struct Explained<'a> {
    pub rule: &'a Rule,
    /// Why it does or does not match.
    pub verdict: Result<bool, String>,
}

/// Rates below would take minutes for a segment, and some kernels refuse them: bytes a second.
const PACE_BYTES_PER_S_MIN: u64 = 8 << 10;

impl Rules {
    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Some rule asks about the connection.
    pub fn of_tcp(&self) -> bool {
        self.rules.iter().any(|rule| rule.of_tcp)
    }

    /// What to do about a request, before anything is known of its answer. Rules whose condition
    /// names the answer are passed over.
    pub fn early(&self, facts: &Facts<'_>) -> Option<(&Rule, Early)> {
        let acts = |rule: &&Rule| rule.early != Early::default();
        let found = self
            .rules
            .iter()
            .filter(acts)
            .find(|rule| self.matches(rule, facts))?;
        Some((found, found.early.clone()))
    }

    /// How to send an answer.
    pub fn choose(&self, facts: &Facts<'_>) -> Option<Choice<'_>> {
        let rule = self.rules.iter().find(|rule| self.matches(rule, facts))?;
        let transport = Transport {
            congestion: rule.congestion.clone(),
            pace_bytes_per_s: rule.pace.as_ref().and_then(|pace| self.rate(pace, facts)),
            notsent_lowat_bytes: rule.notsent_lowat_bytes,
            initial_window_packets: rule.initial_window_packets,
        };
        Some(Choice { rule, transport })
    }

    /// Every rule with how its condition comes out, up to and including the one that wins.
    pub fn explain(&self, facts: &Facts<'_>) -> Vec<Explained<'_>> {
        let mut all = Vec::new();
        for rule in &self.rules {
            let verdict = self.verdict(&rule.when, facts);
            let won = verdict == Ok(true);
            all.push(Explained { rule, verdict });
            if won {
                break;
            }
        }
        all
    }

    /// A condition that cannot be told (a header that is not there, say) does not match.
    fn matches(&self, rule: &Rule, facts: &Facts<'_>) -> bool {
        self.verdict(&rule.when, facts) == Ok(true)
    }

    fn verdict(&self, when: &Program, facts: &Facts<'_>) -> Result<bool, String> {
        match facts.evaluate(when, &self.networks) {
            Ok(Value::Bool(matches)) => Ok(matches),
            Ok(_) => Err("it is neither true nor false".into()),
            Err(ExecutionError::NoSuchKey(key)) => Err(format!("{key} is not known")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn rate(&self, pace: &Pace, facts: &Facts<'_>) -> Option<u64> {
        let kbps = match pace {
            Pace::Fixed(kbps) => *kbps,
            Pace::Computed(program) => match facts.evaluate(program, &self.networks).ok()? {
                Value::Float(kbps) => kbps,
                Value::Int(kbps) => kbps as f64,
                Value::UInt(kbps) => kbps as f64,
                _ => return None,
            },
        };
        // A cast of what is too large or no number is the largest, or 0.
        let rate = (kbps * 125.0) as u64;
        (kbps > 0.0).then_some(rate.max(PACE_BYTES_PER_S_MIN))
    }
}

impl Rule {
    /// Changes an answer's head as the rule says.
    pub fn dress(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name.clone(), value.clone());
        }
    }

    /// What it does, as a line for people.
    pub fn actions(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.early.pass.then(|| "pass".to_owned()));
        parts.extend(
            self.early
                .deny
                .map(|status| format!("deny {}", status.as_u16())),
        );
        parts.extend(self.early.delay.map(|time| format!("delay {time:?}")));
        parts.extend(self.early.ttl.map(|time| format!("ttl {time:?}")));
        let pool = self.early.pool.as_ref();
        parts.extend(pool.map(|name| format!("pool {name}")));
        parts.extend(
            self.congestion
                .as_ref()
                .map(|name| format!("congestion {name}")),
        );
        parts.extend(self.pace.as_ref().map(|pace| match pace {
            Pace::Fixed(kbps) => format!("pace {kbps} kbit/s"),
            Pace::Computed(_) => "pace by expression".to_owned(),
        }));
        parts.extend(
            self.notsent_lowat_bytes
                .map(|b| format!("notsent-lowat {b} B")),
        );
        parts.extend(
            self.initial_window_packets
                .map(|packets| format!("initial window {packets} packets")),
        );
        parts.extend(self.set.iter().map(|(name, _)| format!("set {name}")));
        parts.extend(self.remove.iter().map(|name| format!("remove {name}")));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests;
