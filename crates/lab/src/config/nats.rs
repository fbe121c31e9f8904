//! Where agents meet, as flags say it.

use crate::agent::{Meeting, is_plain};
use net::config::{Knob, Layers, Wrong, count};

/// Knobs of whoever meets there.
pub(super) const NATS: &[Knob] = &[
    Knob::new(
        "nats",
        "URL",
        "",
        "NATS server where agents meet: nats://HOST:PORT, or tls://HOST:PORT",
    ),
    Knob::new(
        "nats-creds",
        "FILE",
        "",
        "Credentials for it (JWT and key), as nsc writes them",
    ),
    Knob::new(
        "nats-ca",
        "FILE",
        "",
        "Certificates that its own must be signed by [default: the system's]",
    ),
    Knob::new(
        "fleet",
        "NAME",
        "lab",
        "Which of the fleets that meet there",
    ),
];

/// The meeting that these settings mean; none where there is none.
///
/// # Errors
/// [`Wrong`] for a value that is none.
pub(super) fn meeting(layers: &Layers, agents: &str) -> Result<Option<Meeting>, Wrong> {
    let Some(url) = layers.one("nats") else {
        return Ok(None);
    };
    let fleet = layers.with("fleet", |text| match is_plain(text) {
        true => Ok(text.to_owned()),
        false => Err("letters, digits, - and _; at most 64".into()),
    })?;
    let agents = match agents {
        "" => 1,
        knob => layers.with(knob, count)?.unwrap_or(1),
    };
    Ok(Some(Meeting {
        url: url.to_owned(),
        creds: layers.path("nats-creds"),
        ca: layers.path("nats-ca"),
        fleet: fleet.unwrap_or_default(),
        agents,
    }))
}
