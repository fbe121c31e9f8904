//! Settings of the NATS server.

#[cfg(feature = "nats")]
use crate::agent::AgentFleet;
#[cfg(feature = "nats")]
use crate::agent::NatsSettings;
use crate::experiment::ExecutorConnector;
#[cfg(feature = "nats")]
use crate::experiment::ExperimentError;
#[cfg(feature = "nats")]
use net::config::parse_count;
use net::config::{Setting, SettingLayers, UsageError};

/// Settings that agents and controllers share.
pub(super) const NATS: &[Setting] = &[
    Setting::new(
        "nats",
        "URL",
        "",
        "NATS server of the agents: nats://HOST:PORT or tls://HOST:PORT",
    ),
    Setting::new(
        "nats-creds",
        "FILE",
        "",
        "Credentials file of NATS (JWT and key), as written by nsc",
    ),
    Setting::new(
        "nats-ca",
        "FILE",
        "",
        "Certificate authorities for the NATS server [default: the system's]",
    ),
    Setting::new(
        "fleet",
        "NAME",
        "lab",
        "Fleet name; agents of other fleets are ignored",
    ),
];

/// Returns a function that connects to the agents, or `None` if all runs are executed on this
/// machine.
///
/// # Errors
/// A value is invalid.
#[cfg(feature = "nats")]
pub(super) fn create_executor_connector(
    layers: &SettingLayers,
) -> Result<Option<ExecutorConnector>, UsageError> {
    let connect = |meeting| -> ExecutorConnector {
        Box::new(move || {
            let fleet = AgentFleet::connect_to_nats(&meeting);
            let fleet = fleet.map_err(|error| ExperimentError::Agents(Box::new(error)))?;
            Ok(Box::new(fleet))
        })
    };
    Ok(read_nats_settings(layers, "agents")?.map(connect))
}

/// Refuses `--nats`, because this build does not support agents.
///
/// # Errors
/// The setting is given; the error message contains the remedy.
#[cfg(not(feature = "nats"))]
pub(super) fn create_executor_connector(
    layers: &SettingLayers,
) -> Result<Option<ExecutorConnector>, UsageError> {
    match layers.setting_text("nats") {
        Some(_) => {
            let what = "--nats needs the feature nats";
            Err(UsageError(super::missing_feature_message(what, "nats")))
        }
        None => Ok(None),
    }
}

/// Reads the NATS settings. Returns `None` if `--nats` is not given.
///
/// # Errors
/// A value is invalid.
#[cfg(feature = "nats")]
pub(super) fn read_nats_settings(
    layers: &SettingLayers,
    agents: &str,
) -> Result<Option<NatsSettings>, UsageError> {
    let Some(url) = layers.setting_text("nats") else {
        return Ok(None);
    };
    let fleet = layers.parse_setting("fleet", |text| match is_subject_token(text) {
        true => Ok(text.to_owned()),
        false => Err("letters, digits, - and _; at most 64".into()),
    })?;
    let agents = match agents {
        "" => 1,
        setting => layers.parse_setting(setting, parse_count)?.unwrap_or(1),
    };
    Ok(Some(NatsSettings {
        url: url.to_owned(),
        creds: layers.setting_path("nats-creds"),
        ca: layers.setting_path("nats-ca"),
        fleet: fleet.unwrap_or_default(),
        agents,
    }))
}

#[cfg(feature = "nats")]
/// Returns whether a fleet name or agent name may be part of a NATS subject.
pub(super) fn is_subject_token(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&text.len()) && text.chars().all(plain)
}
