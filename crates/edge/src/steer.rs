//! The rules at work: on the request when it comes, on the connection before the first byte.

use std::sync::Arc;

use http::Response;
use http::header::{HeaderName, HeaderValue};
use net::metrics::{Family, Metrics, Row};
use net::record::Recorder;
use net::{Body, Conn, TcpInfo};

use crate::cmcd::Cmcd;
use crate::config::Settings;
use crate::observe::Seen;
use crate::reason::{NAME, Outcome};
use crate::receive::Received;
use crate::rules::{Early, Facts, Rules};
use crate::watch::Watcher;

const MATCHES: Row = Row {
    name: "rule_matches",
    unit: "",
    help: "Responses sent as a rule says",
};
const REFUSED: Row = Row {
    name: "transport_refused",
    unit: "",
    help: "Socket options that a rule asked for and the kernel refused",
};

/// CTA-5006: what this hop measured for the player.
const CMSD_DYNAMIC: HeaderName = HeaderName::from_static("cmsd-dynamic");

/// Rules, and what counts their work.
#[derive(Clone)]
pub struct Steer {
    rules: Arc<Rules>,
    watcher: Watcher,
    /// Players' words are wanted in the records.
    recorded: bool,
    matches: Family,
    refused: Family,
}

impl Steer {
    pub fn new(settings: &Settings, metrics: &Metrics, recorder: Option<Recorder>) -> Steer {
        Steer {
            rules: settings.rules.clone(),
            recorded: recorder.is_some(),
            watcher: Watcher::new(settings.tcp_interval, metrics, recorder),
            matches: metrics.family(&MATCHES, &["rule"]),
            refused: metrics.family(&REFUSED, &["option"]),
        }
    }

    /// The same, by other rules.
    pub fn by(&self, rules: Arc<Rules>) -> Steer {
        Steer {
            rules,
            ..self.clone()
        }
    }

    /// What the player says of itself, if anybody wants to know.
    pub fn said(&self, received: &Received<'_>) -> Cmcd {
        if self.recorded || !self.rules.is_empty() || speaks_cmcd(received) {
            Cmcd::of(Some(received.query), received.headers)
        } else {
            Cmcd::default()
        }
    }

    /// What the rules say about a request.
    pub fn early(&self, received: &Received<'_>, cmcd: &Cmcd, conn: &Conn) -> Early {
        if self.rules.is_empty() {
            return Early::default();
        }
        let found = self.rules.early(&facts(received, cmcd, conn));
        found.map(|(_, early)| early).unwrap_or_default()
    }

    /// Sets how the answer is sent, and what its head says of it. Returns the rule's name.
    pub fn late(
        &self,
        received: &Received<'_>,
        cmcd: &Cmcd,
        conn: &Conn,
        response: &mut Response<Body>,
        outcome: Outcome,
    ) -> Option<String> {
        let player = !cmcd.is_empty();
        // Asking the kernel costs about a microsecond.
        let tcp = (player || self.rules.of_tcp())
            .then(|| conn.tcp().ok())
            .flatten();
        if let Some(tcp) = tcp.as_ref().filter(|_| player)
            && let Some(value) = dynamic(tcp)
        {
            response.headers_mut().append(CMSD_DYNAMIC, value);
        }
        if self.rules.is_empty() {
            return None;
        }
        let len = response.body().len();
        let known = (len > 0).then_some(len);
        let (status, headers) = (response.status().as_u16(), response.headers());
        let facts = Facts {
            answer: Some((status, headers, known, outcome.result())),
            tcp: tcp.as_ref(),
            ..facts(received, cmcd, conn)
        };
        let choice = self.rules.choose(&facts)?;
        if !choice.transport.is_empty() {
            for refused in conn.steer(&choice.transport) {
                self.refused.of(&[refused.option]).inc();
                let (option, why) = (refused.option, refused.why);
                tracing::warn!(
                    rule = choice.rule.name,
                    option,
                    why,
                    "an option was refused"
                );
            }
        }
        choice.rule.dress(response.headers_mut());
        self.matches.of(&[&choice.rule.name]).inc();
        Some(choice.rule.name.clone())
    }

    /// Looks at TCP while the answer leaves.
    pub fn watch(&self, seen: &Seen, conn: &Conn, response: Response<Body>) -> Response<Body> {
        self.watcher.watch(seen, conn, response)
    }
}

fn facts<'a>(received: &'a Received<'_>, cmcd: &'a Cmcd, conn: &Conn) -> Facts<'a> {
    let target = received.target.as_ref();
    Facts {
        method: received.method,
        host: &received.host,
        path: target.split('?').next().unwrap_or_default(),
        query: received.query,
        client: conn.client(),
        headers: received.headers,
        cmcd,
        answer: None,
        tcp: None,
    }
}

fn speaks_cmcd(received: &Received<'_>) -> bool {
    received.query.contains("CMCD=") || received.headers.contains_key("cmcd-request")
}

/// `"headwater";etp=9600;rtt=23`, as far as it is known.
fn dynamic(tcp: &TcpInfo) -> Option<HeaderValue> {
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
