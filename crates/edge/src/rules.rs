//! Rules that select the treatment of requests and responses. The first matching rule applies.
//!
//! Conditions are written in the Common Expression Language. The rules are evaluated twice for each
//! request. When a request arrives, its response is unknown, so only `pass`, `deny`, `delay`,
//! `ttl`, `pool` and `ignore-client-no-cache` apply. All other actions apply before the first byte
//! of the response is sent.

mod named_networks;
mod rules_file;
mod variables;

pub use rules_file::{TABLES, read_rules};
pub use variables::RuleVariables;

use std::sync::Arc;
use std::time::Duration;

use cel::{ExecutionError, Program, Value};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use net::TransportOptions;

use self::named_networks::NamedNetworks;

/// The rules of a settings file, and the networks that their conditions may use.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    networks: NamedNetworks,
}

/// One rule of the settings file.
#[derive(Debug)]
pub struct Rule {
    /// The configured name, or `rule N` for the Nth rule of the file.
    pub name: String,
    /// The condition as written.
    pub source: String,
    when: Program,
    /// Whether the condition uses the variable `tcp`.
    needs_tcp: bool,
    request_actions: RequestActions,
    congestion: Option<String>,
    pace: Option<PacingRate>,
    notsent_lowat_bytes: Option<u32>,
    initial_window_packets: Option<u32>,
    set_headers: Vec<(HeaderName, HeaderValue)>,
    remove_headers: Vec<HeaderName>,
}

/// Actions that apply when a request arrives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestActions {
    /// Bypass the cache.
    pub pass: bool,
    /// Respond with this status.
    pub deny: Option<StatusCode>,
    /// Wait before serving the request.
    pub delay: Option<Duration>,
    /// Use this freshness lifetime for the response.
    pub ttl: Option<Duration>,
    /// Send the request to this pool.
    pub pool: Option<Arc<str>>,
    /// Ignore the client's `no-cache`, `max-age` and `min-fresh`.
    pub ignore_client_no_cache: bool,
}

/// A pacing rate in kbit/s.
#[derive(Debug)]
enum PacingRate {
    Fixed(f64),
    Computed(Program),
}

/// The rule for a response, and the socket options to set.
#[derive(Debug)]
pub struct RuleChoice<'a> {
    pub rule: &'a Rule,
    pub transport: TransportOptions,
}

/// Result of a rule's condition, for `headwater edge explain`.
#[derive(Debug)]
pub struct RuleVerdict<'a> {
    pub rule: &'a Rule,
    /// Whether the condition is true, or the reason why it cannot be evaluated.
    pub verdict: Result<bool, String>,
}

/// Minimum pacing rate. At a lower rate, a segment would take minutes. Some kernels refuse lower
/// rates.
const PACE_BYTES_PER_S_MIN: u64 = 8 << 10;

impl RuleSet {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether any condition uses the variable `tcp`.
    pub fn needs_tcp(&self) -> bool {
        self.rules.iter().any(|rule| rule.needs_tcp)
    }

    /// Returns the first matching rule that has request actions, and these actions. A condition
    /// that uses the response never matches here.
    pub fn find_request_actions(
        &self,
        facts: &RuleVariables<'_>,
    ) -> Option<(&Rule, RequestActions)> {
        let acts = |rule: &&Rule| rule.request_actions != RequestActions::default();
        let found = self
            .rules
            .iter()
            .filter(acts)
            .find(|rule| self.is_match(rule, facts))?;
        Some((found, found.request_actions.clone()))
    }

    /// Returns the first matching rule for a response.
    pub fn choose_response_rule(&self, facts: &RuleVariables<'_>) -> Option<RuleChoice<'_>> {
        let rule = self.rules.iter().find(|rule| self.is_match(rule, facts))?;
        let transport = TransportOptions {
            congestion: rule.congestion.clone(),
            pace_bytes_per_s: rule
                .pace
                .as_ref()
                .and_then(|pace| self.evaluate_rate(pace, facts)),
            notsent_lowat_bytes: rule.notsent_lowat_bytes,
            initial_window_packets: rule.initial_window_packets,
        };
        Some(RuleChoice { rule, transport })
    }

    /// Returns the result of each condition, up to and including the first match.
    pub fn explain_verdicts(&self, facts: &RuleVariables<'_>) -> Vec<RuleVerdict<'_>> {
        let mut all = Vec::new();
        for rule in &self.rules {
            let verdict = self.evaluate_rule_condition(&rule.when, facts);
            let won = verdict == Ok(true);
            all.push(RuleVerdict { rule, verdict });
            if won {
                break;
            }
        }
        all
    }

    /// Returns whether the condition is true. A condition that cannot be evaluated, for example
    /// because of a missing header, does not match.
    fn is_match(&self, rule: &Rule, facts: &RuleVariables<'_>) -> bool {
        self.evaluate_rule_condition(&rule.when, facts) == Ok(true)
    }

    fn evaluate_rule_condition(
        &self,
        when: &Program,
        facts: &RuleVariables<'_>,
    ) -> Result<bool, String> {
        match facts.evaluate_program(when, &self.networks) {
            Ok(Value::Bool(matches)) => Ok(matches),
            Ok(_) => Err("the condition is not a boolean".into()),
            Err(ExecutionError::NoSuchKey(key)) => Err(format!("{key} has no value")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn evaluate_rate(&self, pace: &PacingRate, facts: &RuleVariables<'_>) -> Option<u64> {
        let kbps = match pace {
            PacingRate::Fixed(kbps) => *kbps,
            PacingRate::Computed(program) => {
                match facts.evaluate_program(program, &self.networks).ok()? {
                    Value::Float(kbps) => kbps,
                    Value::Int(kbps) => kbps as f64,
                    Value::UInt(kbps) => kbps as f64,
                    _ => return None,
                }
            }
        };
        // The cast saturates: a number that is too large becomes `u64::MAX`, and NaN becomes 0.
        let rate = (kbps * 125.0) as u64;
        (kbps > 0.0).then_some(rate.max(PACE_BYTES_PER_S_MIN))
    }
}

impl Rule {
    /// Applies `set` and `remove` to the response headers.
    pub fn edit_headers(&self, headers: &mut HeaderMap) {
        for name in &self.remove_headers {
            headers.remove(name);
        }
        for (name, value) in &self.set_headers {
            headers.insert(name.clone(), value.clone());
        }
    }

    /// Describes the actions in one line.
    pub fn describe_actions(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.request_actions.pass.then(|| "pass".to_owned()));
        parts.extend(
            self.request_actions
                .deny
                .map(|status| format!("deny {}", status.as_u16())),
        );
        parts.extend(
            self.request_actions
                .delay
                .map(|time| format!("delay {time:?}")),
        );
        parts.extend(self.request_actions.ttl.map(|time| format!("ttl {time:?}")));
        let pool = self.request_actions.pool.as_ref();
        parts.extend(pool.map(|name| format!("pool {name}")));
        let ignores = self.request_actions.ignore_client_no_cache;
        parts.extend(ignores.then(|| "ignore-client-no-cache".to_owned()));
        parts.extend(
            self.congestion
                .as_ref()
                .map(|name| format!("congestion {name}")),
        );
        parts.extend(self.pace.as_ref().map(|pace| match pace {
            PacingRate::Fixed(kbps) => format!("pace {kbps} kbit/s"),
            PacingRate::Computed(_) => "pace by expression".to_owned(),
        }));
        parts.extend(
            self.notsent_lowat_bytes
                .map(|b| format!("notsent-lowat {b} B")),
        );
        parts.extend(
            self.initial_window_packets
                .map(|packets| format!("initial window {packets} packets")),
        );
        parts.extend(
            self.set_headers
                .iter()
                .map(|(name, _)| format!("set {name}")),
        );
        parts.extend(
            self.remove_headers
                .iter()
                .map(|name| format!("remove {name}")),
        );
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests;
