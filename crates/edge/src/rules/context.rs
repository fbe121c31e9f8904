//! What a rule can know, as variables of its expressions. Numbers are all floating-point, so that
//! `1.5 * cmcd.tb` has one type.

use std::collections::HashMap;
use std::net::IpAddr;

use cel::{Context, ExecutionError, Program, Value};
use http::{HeaderMap, Method};
use net::TcpInfo;

use super::Networks;
use crate::cmcd::{self, Cmcd};

/// The names of all variables. Those of the second list are known only before the answer's first
/// byte.
pub(super) const EARLY: [&str; 7] = [
    "method", "host", "path", "query", "client", "header", "cmcd",
];
pub(super) const LATE: [&str; 3] = ["response", "cache", "tcp"];

/// What is known of a request, and of its answer if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub method: &'a Method,
    pub host: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    pub client: IpAddr,
    pub headers: &'a HeaderMap,
    pub cmcd: &'a Cmcd,
    /// Status, headers and length of the answer, and what the cache did.
    pub answer: Option<(u16, &'a HeaderMap, Option<u64>, &'static str)>,
    pub tcp: Option<&'a TcpInfo>,
}

type Map = HashMap<String, Value>;

impl Facts<'_> {
    /// Runs an expression. Only the variables that it names are made.
    pub(super) fn evaluate(
        &self,
        program: &Program,
        networks: &Networks,
    ) -> Result<Value, ExecutionError> {
        let mut context = Context::default();
        // The name is none of the language's own.
        let _ = context.add_function("ramp", ramp);
        for name in program.references().variables() {
            if let Some(value) = self.variable(name, networks) {
                context.add_variable_from_value(name, value);
            }
        }
        program.execute(&context)
    }

    fn variable(&self, name: &str, networks: &Networks) -> Option<Value> {
        Some(match name {
            "method" => self.method.as_str().into(),
            "path" => self.path.into(),
            "query" => self.query.into(),
            "host" => self.host.into(),
            "client" => {
                let address = self.client.to_string();
                let net = networks.name(self.client);
                map([("address", address.into()), ("net", net.into())])
            }
            "header" => {
                let pairs = self.headers.keys().map(|name| {
                    let value = text(self.headers, name.as_str());
                    (name.as_str().to_owned(), value.into())
                });
                pairs.collect::<Map>().into()
            }
            "cmcd" => {
                let pairs = self.cmcd.iter().map(|(key, value)| {
                    let value = match value {
                        cmcd::Value::Number(number) => (*number).into(),
                        cmcd::Value::Text(text) => text.as_str().into(),
                        cmcd::Value::Flag(flag) => (*flag).into(),
                    };
                    (key.to_owned(), value)
                });
                pairs.collect::<Map>().into()
            }
            "cache" => self.answer.map_or("", |(.., cache)| cache).into(),
            "response" => self.response(),
            "tcp" => self.tcp.map_or_else(|| Map::new().into(), of_tcp),
            _ => return None,
        })
    }

    fn response(&self) -> Value {
        let Some((status, headers, bytes, _)) = self.answer else {
            return Map::new().into();
        };
        let kind = text(headers, "content-type");
        let mut found: Map = [
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

fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value));
    Map::from(pairs).into()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn of_tcp(info: &TcpInfo) -> Value {
    let ms = |us: Option<u32>| us.map(|us| f64::from(us) / 1000.0);
    let loss = match (info.bytes_retrans, info.bytes_sent) {
        (Some(again), Some(sent)) if sent > 0 => Some(again as f64 / sent as f64),
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
    let mut found: Map = known.collect();
    found.insert("algorithm".to_owned(), info.algorithm.as_str().into());
    found.into()
}

/// `ramp(x, x0, y0, x1, y1)`: y0 up to x0, y1 from x1 on, a straight line between. With it, pace by
/// buffer is `ramp(cmcd.bl, 0.0, 3.0, 30000.0, 1.5) * cmcd.tb`.
fn ramp(x: f64, x0: f64, y0: f64, x1: f64, y1: f64) -> f64 {
    if x <= x0 || x1 <= x0 {
        return y0;
    }
    y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).min(1.0)
}
