//! The NATS server where agents meet.

use async_nats::{Client, ConnectOptions, ServerAddr, Subscriber};
use net::config::masked;
use std::path::PathBuf;
use std::time::Duration;

/// Messages that may wait to be looked at, for each subject.
const WAITING: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// Where agents meet, and which of those that meet there.
#[derive(Debug, Clone, Default)]
pub struct Meeting {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`, with `USER:PASSWORD@` before the host where the server
    /// asks for them; several, with commas, of one cluster.
    pub(crate) url: String,
    /// A credentials file (JWT and key), as `nsc` writes it.
    pub(crate) creds: Option<PathBuf>,
    /// Certificates of the authority that signed the server's, instead of the system's.
    pub(crate) ca: Option<PathBuf>,
    /// Agents of this fleet only.
    pub(crate) fleet: String,
    /// At least so many are waited for.
    pub(crate) agents: usize,
}

/// A connection to it.
#[derive(Clone)]
pub(super) struct Bus {
    pub(super) client: Client,
    fleet: String,
}

impl Meeting {
    /// Host and port of the server, or the first of several.
    pub(crate) fn server(&self) -> Option<(String, u16)> {
        let first = self.first()?;
        Some((first.host().to_owned(), first.port()))
    }

    fn first(&self) -> Option<ServerAddr> {
        self.url.split(',').next()?.trim().parse().ok()
    }

    /// Connects; a connection that breaks later is made anew by itself.
    ///
    /// # Errors
    /// A sentence with the server's URL.
    pub(super) async fn join(&self, name: &str) -> Result<Bus, String> {
        let failed = |what: &dyn std::fmt::Display| format!("--nats {}: {what}", masked(&self.url));
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(PATIENCE)
            .subscription_capacity(WAITING);
        if let Some(creds) = &self.creds {
            let read = options.credentials_file(creds).await;
            options = read.map_err(|error| format!("--nats-creds {}: {error}", creds.display()))?;
        }
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone());
        }
        let urls: Vec<&str> = self.url.split(',').map(str::trim).collect();
        if let Some((user, password)) = self
            .first()
            .and_then(|at| Some((at.username()?.to_owned(), at.password()?.to_owned())))
        {
            options = options.user_and_password(user, password);
        }
        let client = options
            .connect(urls)
            .await
            .map_err(|error| failed(&error))?;
        Ok(Bus {
            client,
            fleet: self.fleet.clone(),
        })
    }
}

impl Bus {
    /// Where it is asked who is there.
    pub(super) fn roll(&self) -> String {
        format!("headwater.{}.roll", self.fleet)
    }

    /// Where an agent gets its orders.
    pub(super) fn orders(&self, id: &str) -> String {
        format!("headwater.{}.agent.{id}", self.fleet)
    }

    /// Where whoever runs an experiment says that it lives.
    pub(super) fn pulse(&self) -> String {
        format!("headwater.{}.pulse", self.fleet)
    }

    /// Where the agents of a session say the same.
    pub(super) fn beats(&self, session: &str) -> String {
        format!("headwater.{}.beats.{session}", self.fleet)
    }

    pub(super) async fn subscribe(&self, subject: String) -> Result<Subscriber, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{subject}: {error}");
        let subscriber = self.client.subscribe(subject.clone()).await;
        subscriber.map_err(|error| failed(&error))
    }

    /// Says something to whoever listens; what cannot be said now is lost, as on any bus.
    pub(super) async fn say(&self, subject: String, bytes: Vec<u8>) {
        let _ = self.client.publish(subject, bytes.into()).await;
    }
}

/// A name of a fleet or an agent: what may stand in a subject.
pub(crate) fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&text.len()) && text.chars().all(plain)
}
