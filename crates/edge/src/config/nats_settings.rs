//! Settings of the NATS server that sends commands to all edges.

use std::path::PathBuf;

use net::config::{Setting, SettingLayers, UsageError};

/// The declarations of these settings.
pub(super) const NATS: &[Setting] = &[
    Setting::new(
        "nats",
        "URL",
        "",
        "NATS server with commands for all edges: nats://HOST:PORT or tls://HOST:PORT",
    ),
    Setting::new(
        "nats-creds",
        "FILE",
        "",
        "Credentials file of NATS (JWT and key), as written by nsc",
    ),
    Setting::new(
        "nats-token-file",
        "FILE",
        "",
        "File with the token of the NATS server",
    ),
    Setting::new(
        "nats-ca",
        "FILE",
        "",
        "Certificate authorities for the NATS server [default: the system's]",
    ),
    Setting::new(
        "node-name",
        "NAME",
        "",
        "Name of this edge in the fleet, different from all others [default: the host name]",
    ),
];

/// Address and credentials of the NATS server, and this edge's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`. Commas separate several servers of a cluster.
    pub url: String,
    /// Path of a credentials file, which contains a JWT and a key.
    pub creds: Option<PathBuf>,
    /// Path of a file with a token.
    pub token_file: Option<PathBuf>,
    /// Path of a file with certificate authorities, which replace the system's authorities.
    pub ca: Option<PathBuf>,
    /// The edge's name. It must be unique, because the server delivers a stored command only once
    /// for each name.
    pub node: String,
}

impl NatsSettings {
    /// Reads the settings. Returns `None` if `nats` is not set.
    ///
    /// # Errors
    /// [`UsageError`] for an invalid edge name, or if `nats` is set and this build lacks the
    /// feature `nats`.
    pub(super) fn from_layers(layers: &SettingLayers) -> Result<Option<NatsSettings>, UsageError> {
        let given = layers.parse_setting("node-name", parse_node_name)?;
        let Some(url) = layers.setting_text("nats") else {
            return Ok(None);
        };
        if !cfg!(feature = "nats") {
            let why = "--nats is not supported by this build; build headwater with --features nats";
            return Err(UsageError(why.into()));
        }
        let node = match given {
            Some(name) => name,
            None => read_host_name()?,
        };
        Ok(Some(NatsSettings {
            url: url.to_owned(),
            creds: layers.setting_path("nats-creds"),
            token_file: layers.setting_path("nats-token-file"),
            ca: layers.setting_path("nats-ca"),
            node,
        }))
    }
}

/// Checks an edge's name, which becomes a part of the name of the edge's NATS consumer.
fn parse_node_name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=64).contains(&text.len()) && text.chars().all(is_allowed) {
        true => Ok(text.to_owned()),
        false => Err("must be 1 to 64 letters, digits, -, _ and .".into()),
    }
}

fn read_host_name() -> Result<String, UsageError> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.map_err(|error| error.to_string());
    let name = name.and_then(|name| parse_node_name(name.trim()));
    name.map_err(|why| UsageError(format!("the host name {why}; add --node-name NAME")))
}
