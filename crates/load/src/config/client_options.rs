//! Connection options of the commands that send requests.

use super::setting_values::{InvalidChoice, parse_choice, parse_setting, parse_yes_no};
use crate::client::{ClientSettings, HttpVersion};
use net::config::{
    Setting, SettingLayers, UsageError, parse_bytes, parse_count, parse_duration, parse_switch,
};
use std::net::IpAddr;

/// Settings of every command that sends requests.
pub const CLIENT: &[Setting] = &[
    Setting::new(
        "http",
        "1|2",
        "1",
        "HTTP version; 2 uses ALPN over TLS and prior knowledge otherwise",
    ),
    Setting::new(
        "keep-alive",
        "yes|no",
        "yes",
        "Reuse connections for further requests",
    ),
    Setting::new(
        "source",
        "ADDRESS",
        "",
        "Source address of connections; several are used in turn",
    )
    .as_list(),
    Setting::new(
        "dns",
        "once|each",
        "once",
        "Resolve host names once, or for each connection",
    ),
    Setting::new(
        "ca",
        "FILE",
        "",
        "Certificate authorities in PEM, instead of the public ones",
    ),
    Setting::new("insecure", "yes|no", "no", "Accept any server certificate").as_switch(),
    Setting::new(
        "connect-timeout",
        "DURATION",
        "10s",
        "Time limit for a connection, including TLS",
    ),
    Setting::new(
        "timeout",
        "DURATION",
        "30s",
        "Time limit for a request, from its start to the last byte",
    ),
    Setting::new(
        "body-max",
        "BYTES",
        "1TiB",
        "Limit of a response body; a longer one counts as a failure",
    ),
    Setting::new("redirects", "N", "10", "Limit of redirects per request"),
];

/// Reads the client's settings.
///
/// # Errors
/// A setting is invalid. The error names the setting and its source.
pub fn read_client_settings(layers: &SettingLayers) -> Result<ClientSettings, UsageError> {
    let default = ClientSettings::default();
    let time = |name, default| {
        Ok::<_, UsageError>(parse_setting(layers, name, parse_duration)?.unwrap_or(default))
    };
    let sources = layers.setting_texts("source").into_iter().map(|text| {
        let wrong = |_| UsageError(format!("source = {text:?} (--source): invalid IP address; use one of this machine, such as 127.0.0.1"));
        text.parse::<IpAddr>().map_err(wrong)
    });
    let authorities = parse_setting(layers, "ca", |path| std::fs::read(path))?;
    Ok(ClientSettings {
        version: parse_setting(layers, "http", parse_http_version)?.unwrap_or_default(),
        keep_alive: parse_setting(layers, "keep-alive", parse_yes_no)?.unwrap_or(true),
        sources: sources.collect::<Result<_, _>>()?,
        lookup_once: parse_setting(layers, "dns", parse_dns_lookup)?.unwrap_or(true),
        authorities,
        insecure: parse_setting(layers, "insecure", parse_switch)?.unwrap_or(false),
        connect_timeout: time("connect-timeout", default.connect_timeout)?,
        timeout: time("timeout", default.timeout)?,
        body_max: parse_setting(layers, "body-max", parse_bytes)?.unwrap_or(default.body_max),
        redirects_max: parse_setting(layers, "redirects", parse_count)?
            .map_or(default.redirects_max, |n| n as u32),
        ..default
    })
}

fn parse_http_version(text: &str) -> Result<HttpVersion, InvalidChoice> {
    let versions = [("1", HttpVersion::Http1), ("2", HttpVersion::Http2)];
    match text {
        "1.1" => Ok(HttpVersion::Http1),
        _ => parse_choice(text, &versions),
    }
}

fn parse_dns_lookup(text: &str) -> Result<bool, InvalidChoice> {
    parse_choice(text, &[("once", true), ("each", false)])
}
