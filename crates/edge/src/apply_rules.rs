//! Applies the rules to a request when it arrives. Before the first byte of the response is sent,
//! applies the rules to the connection and the response headers.

use std::net::IpAddr;
use std::sync::Arc;

use http::Response;
use http::header::{HeaderName, HeaderValue};
use net::metrics::{CounterFamily, MetricSpec, Metrics};
use net::record::Recorder;
use net::{Body, Conn, TcpInfo};

use crate::cache_outcome::{CacheOutcome, NAME};
use crate::config::EdgeSettings;
use crate::request_facts::RequestFacts;
use crate::rules::{RequestActions, RuleSet, RuleVariables};
use crate::tcp_sampling::TcpSampler;
use crate::telemetry::PendingRecord;
use net::cmcd::CmcdData;

const MATCHES: MetricSpec = MetricSpec {
    name: "rule_matches",
    unit: "",
    help: "Responses to which a rule applied",
};
const REFUSED: MetricSpec = MetricSpec {
    name: "transport_refused",
    unit: "",
    help: "Socket options of a rule that the kernel refused",
};

/// Response header that reports the measured throughput and round-trip time to the player
/// (CTA-5006).
const CMSD_DYNAMIC: HeaderName = HeaderName::from_static("cmsd-dynamic");
/// Prefix of the four CMCD request headers (CTA-5004 section 2).
const CMCD_PREFIX: &str = "cmcd-";

/// The rules, with counters of rule matches and of refused socket options.
#[derive(Clone)]
pub struct RuleApplier {
    rules: Arc<RuleSet>,
    sampler: TcpSampler,
    /// Whether access records contain CMCD data.
    records_cmcd: bool,
    matches: CounterFamily,
    refused: CounterFamily,
}

impl RuleApplier {
    pub fn new(
        settings: &EdgeSettings,
        metrics: &Metrics,
        recorder: Option<Recorder>,
    ) -> RuleApplier {
        RuleApplier {
            rules: settings.rules.clone(),
            records_cmcd: recorder
                .as_ref()
                .is_some_and(Recorder::records_more_than_access),
            sampler: TcpSampler::new(settings.tcp_interval, metrics, recorder),
            matches: metrics.counter_family(&MATCHES, &["rule"]),
            refused: metrics
                .counter_family(&REFUSED, &["option"])
                .with_initialized_counters(&[
                    "congestion",
                    "pace",
                    "notsent-lowat",
                    "initial-window",
                ]),
        }
    }

    /// Returns an applier with `rules` and with the counters of this applier.
    pub fn clone_with_rules(&self, rules: Arc<RuleSet>) -> RuleApplier {
        RuleApplier {
            rules,
            ..self.clone()
        }
    }

    /// Parses the request's CMCD data if a record, a rule or the response needs the data.
    /// Otherwise, returns empty data.
    pub fn parse_cmcd(&self, facts: &RequestFacts<'_>) -> CmcdData {
        if self.records_cmcd || !self.rules.is_empty() || has_cmcd(facts) {
            CmcdData::parse_cmcd(Some(facts.query), facts.headers)
        } else {
            CmcdData::default()
        }
    }

    /// Returns the actions that the rules define for a request.
    pub fn request_actions(
        &self,
        facts: &RequestFacts<'_>,
        cmcd: &CmcdData,
        client: IpAddr,
    ) -> RequestActions {
        if self.rules.is_empty() {
            return RequestActions::default();
        }
        let matched = self
            .rules
            .find_request_actions(&rule_variables(facts, cmcd, client));
        matched.map(|(_, early)| early).unwrap_or_default()
    }

    /// Applies the first matching rule: sets the connection's transport options and edits the
    /// response headers. Returns the name of the rule.
    pub fn apply_to_response(
        &self,
        facts: &RequestFacts<'_>,
        cmcd: &CmcdData,
        conn: &Conn,
        response: &mut Response<Body>,
        outcome: CacheOutcome,
    ) -> Option<String> {
        let player = !cmcd.is_empty();
        // A read of `TCP_INFO` takes about a microsecond. Therefore `TCP_INFO` is read only if the
        // player or a rule needs the values.
        let tcp = (player || self.rules.needs_tcp())
            .then(|| conn.tcp_info().ok())
            .flatten();
        if let Some(tcp) = tcp.as_ref().filter(|_| player)
            && let Some(value) = cmsd_dynamic_value(tcp)
        {
            response.headers_mut().append(CMSD_DYNAMIC, value);
        }
        if self.rules.is_empty() {
            return None;
        }
        let len = response.body().len();
        let known = (len > 0).then_some(len);
        let (status, headers) = (response.status().as_u16(), response.headers());
        let variables = RuleVariables {
            response: Some((status, headers, known, outcome.result_label())),
            tcp: tcp.as_ref(),
            ..rule_variables(facts, cmcd, conn.client())
        };
        let choice = self.rules.choose_response_rule(&variables)?;
        if !choice.transport.is_empty() {
            for refused in conn.apply_transport(&choice.transport) {
                self.refused.with_labels(&[refused.option]).inc();
                let (option, why) = (refused.option, refused.why);
                tracing::warn!(
                    rule = choice.rule.name,
                    option,
                    why,
                    "the kernel refused a socket option"
                );
            }
        }
        choice.rule.edit_headers(response.headers_mut());
        self.matches.with_labels(&[&choice.rule.name]).inc();
        Some(choice.rule.name.clone())
    }

    /// Samples the connection's TCP statistics until the response has been sent.
    pub fn sample_tcp_during_response(
        &self,
        pending: &PendingRecord,
        conn: &Conn,
        response: &mut Response<Body>,
    ) {
        self.sampler.sample_during_response(pending, conn, response);
    }
}

fn rule_variables<'a>(
    facts: &'a RequestFacts<'_>,
    cmcd: &'a CmcdData,
    client: IpAddr,
) -> RuleVariables<'a> {
    let target = facts.normalized_target.as_ref();
    RuleVariables {
        method: facts.method,
        host: &facts.host,
        path: target.split('?').next().unwrap_or_default(),
        query: facts.query,
        client,
        headers: facts.headers,
        cmcd,
        response: None,
        tcp: None,
    }
}

fn has_cmcd(facts: &RequestFacts<'_>) -> bool {
    let mut names = facts.headers.keys().map(HeaderName::as_str);
    facts.query.contains("CMCD=") || names.any(|name| name.starts_with(CMCD_PREFIX))
}

/// Formats the value of `CMSD-Dynamic`, such as `"headwater";etp=9600;rtt=23`, from the figures
/// that the kernel reports.
fn cmsd_dynamic_value(tcp: &TcpInfo) -> Option<HeaderValue> {
    use std::fmt::Write;
    let mut text = format!("\"{NAME}\"");
    let etp = tcp.delivery_rate_bytes_per_s.filter(|rate| *rate > 0);
    // Writing to a string cannot fail.
    if let Some(rate) = etp {
        let _ = write!(text, ";etp={}", rate.saturating_mul(8) / 1000);
    }
    if let Some(rtt) = tcp.rtt_us {
        let _ = write!(text, ";rtt={}", rtt.div_ceil(1000));
    }
    HeaderValue::try_from(text).ok()
}
