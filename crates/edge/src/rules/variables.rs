//! Variables of rule expressions. All numeric variables are floating-point, so that both operands
//! of `1.5 * cmcd.tb` have the same type.

use std::collections::HashMap;
use std::net::IpAddr;

use cel::{Context, ExecutionError, Program, Value};
use http::{HeaderMap, Method};
use net::TcpInfo;

use super::NamedNetworks;
use net::cmcd::{CmcdData, CmcdValue};

/// Names of the variables that are known when the request arrives. The variables in
/// `RESPONSE_VARIABLES` become known later, before the first byte of the response is sent.
pub(super) const REQUEST_VARIABLES: [&str; 7] = [
    "method", "host", "path", "query", "client", "header", "cmcd",
];
pub(super) const RESPONSE_VARIABLES: [&str; 3] = ["response", "cache", "tcp"];

/// The values of the variables for one request, and for its response if known.
#[derive(Debug, Clone, Copy)]
pub struct RuleVariables<'a> {
    pub method: &'a Method,
    pub host: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    pub client: IpAddr,
    pub headers: &'a HeaderMap,
    pub cmcd: &'a CmcdData,
    /// Status, headers, length in bytes (if known) and cache result of the response.
    pub response: Option<(u16, &'a HeaderMap, Option<u64>, &'static str)>,
    pub tcp: Option<&'a TcpInfo>,
}

type ExpressionVariables = HashMap<String, Value>;

impl RuleVariables<'_> {
    /// Evaluates an expression. Creates only the variables that the expression uses.
    pub(super) fn evaluate_program(
        &self,
        program: &Program,
        networks: &NamedNetworks,
    ) -> Result<Value, ExecutionError> {
        let mut context = Context::default();
        // `add_function` fails only if a built-in function has the same name.
        let _ = context.add_function("ramp", interpolate_ramp);
        for name in program.references().variables() {
            if let Some(value) = self.make_variable(name, networks) {
                context.add_variable_from_value(name, value);
            }
        }
        program.execute(&context)
    }

    fn make_variable(&self, name: &str, networks: &NamedNetworks) -> Option<Value> {
        Some(match name {
            "method" => self.method.as_str().into(),
            "path" => self.path.into(),
            "query" => self.query.into(),
            "host" => self.host.into(),
            "client" => {
                let address = self.client.to_string();
                let net = networks.find_network_name(self.client);
                map_of([("address", address.into()), ("net", net.into())])
            }
            "header" => {
                let pairs = self.headers.keys().map(|name| {
                    let value = header_text(self.headers, name.as_str());
                    (name.as_str().to_owned(), value.into())
                });
                pairs.collect::<ExpressionVariables>().into()
            }
            "cmcd" => {
                let pairs = self.cmcd.iter().map(|(key, value)| {
                    let value = match value {
                        CmcdValue::Number(number) => (*number).into(),
                        CmcdValue::Text(text) => text.as_str().into(),
                        CmcdValue::Flag(flag) => (*flag).into(),
                    };
                    (key.to_owned(), value)
                });
                pairs.collect::<ExpressionVariables>().into()
            }
            "cache" => self.response.map_or("", |(.., cache)| cache).into(),
            "response" => self.response_variable(),
            "tcp" => self
                .tcp
                .map_or_else(|| ExpressionVariables::new().into(), tcp_variable),
            _ => return None,
        })
    }

    fn response_variable(&self) -> Value {
        let Some((status, headers, bytes, _)) = self.response else {
            return ExpressionVariables::new().into();
        };
        let kind = header_text(headers, "content-type");
        let mut found: ExpressionVariables = [
            ("status".to_owned(), f64::from(status).into()),
            ("type".to_owned(), kind.into()),
        ]
        .into();
        if let Some(bytes) = bytes {
            found.insert("bytes".to_owned(), (bytes as f64).into());
        }
        found.into()
    }
}

fn map_of<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value));
    ExpressionVariables::from(pairs).into()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn tcp_variable(info: &TcpInfo) -> Value {
    let ms = |us: Option<u32>| us.map(|us| f64::from(us) / 1000.0);
    let loss = match (info.bytes_retrans, info.bytes_sent) {
        (Some(retransmitted), Some(sent)) if sent > 0 => Some(retransmitted as f64 / sent as f64),
        (Some(_), Some(_)) => Some(0.0),
        _ => None,
    };
    let rows = [
        ("rtt_ms", ms(info.rtt_us)),
        ("min_rtt_ms", ms(info.min_rtt_us)),
        ("loss", loss),
        ("cwnd", info.cwnd_packets.map(f64::from)),
        (
            "delivery_kbps",
            info.delivery_rate_bytes_per_s
                .map(|rate| rate as f64 / 125.0),
        ),
    ];
    let known = rows.into_iter().filter_map(|(name, value)| {
        let value: Value = value?.into();
        Some((name.to_owned(), value))
    });
    let mut found: ExpressionVariables = known.collect();
    found.insert("algorithm".to_owned(), info.algorithm.as_str().into());
    found.into()
}

/// Implements `ramp(x, x0, y0, x1, y1)`. The result is y0 if x is at most x0, y1 if x is at least
/// x1, and linear in between. For example, `ramp(cmcd.bl, 0.0, 3.0, 30000.0, 1.5) * cmcd.tb` is a
/// pacing rate that depends on the player's buffer.
fn interpolate_ramp(x: f64, x0: f64, y0: f64, x1: f64, y1: f64) -> f64 {
    if x <= x0 || x1 <= x0 {
        return y0;
    }
    y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).min(1.0)
}
