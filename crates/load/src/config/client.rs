//! How the client connects, in words.

use super::yes_no;
use crate::client::{Settings, Version};
use net::config::{Knob, Layers, Wrong, bytes, count, duration};
use std::net::IpAddr;

/// The knobs of everything that asks.
pub const CLIENT: &[Knob] = &[
    Knob::new(
        "http",
        "1|2",
        "1",
        "Version of HTTP: 2 by ALPN over TLS, with prior knowledge else",
    ),
    Knob::new(
        "keep-alive",
        "yes|no",
        "yes",
        "Whether a connection serves more than one request",
    ),
    Knob::new(
        "source",
        "ADDRESS",
        "",
        "Address of this machine to connect from; several in turn",
    )
    .list(),
    Knob::new(
        "dns",
        "once|each",
        "once",
        "Look names up once, or for every connection",
    ),
    Knob::new(
        "ca",
        "FILE",
        "",
        "Trust these authorities (PEM) instead of the public ones",
    ),
    Knob::new("insecure", "yes|no", "no", "Trust any certificate"),
    Knob::new(
        "connect-timeout",
        "DURATION",
        "10s",
        "Time for a connection, TLS included",
    ),
    Knob::new(
        "timeout",
        "DURATION",
        "30s",
        "Time for a request, from its start to the last byte",
    ),
    Knob::new(
        "body-max",
        "BYTES",
        "1TiB",
        "Longest body; a longer one is a failure",
    ),
    Knob::new("redirects", "N", "10", "Redirects that are followed"),
];

/// What they mean.
///
/// # Errors
/// The knob that means nothing, and who set it.
pub fn settings(layers: &Layers) -> Result<Settings, Wrong> {
    let default = Settings::default();
    let time = |name, default| Ok::<_, Wrong>(layers.with(name, duration)?.unwrap_or(default));
    let sources = layers.list("source").into_iter().map(|text| {
        let wrong = |_| Wrong(format!("source = {text:?}: no IP address"));
        text.parse::<IpAddr>().map_err(wrong)
    });
    let authorities = layers.with("ca", |path| std::fs::read(path).map_err(|e| e.to_string()))?;
    Ok(Settings {
        version: layers.with("http", version)?.unwrap_or_default(),
        keep_alive: layers.with("keep-alive", yes_no)?.unwrap_or(true),
        sources: sources.collect::<Result<_, _>>()?,
        lookup_once: layers.with("dns", once)?.unwrap_or(true),
        authorities,
        insecure: layers.with("insecure", yes_no)?.unwrap_or(false),
        connect_timeout: time("connect-timeout", default.connect_timeout)?,
        timeout: time("timeout", default.timeout)?,
        body_max: layers.with("body-max", bytes)?.unwrap_or(default.body_max),
        redirects_max: layers
            .with("redirects", count)?
            .map_or(default.redirects_max, |n| n as u32),
        ..default
    })
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1" | "1.1" => Ok(Version::Http1),
        "2" => Ok(Version::Http2),
        _ => Err("it is 1 or 2".into()),
    }
}

fn once(text: &str) -> Result<bool, String> {
    match text {
        "once" => Ok(true),
        "each" => Ok(false),
        _ => Err("it is once or each".into()),
    }
}
