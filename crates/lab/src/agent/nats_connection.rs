//! The connection of an agent or of the controller to the NATS server.

use super::errors::BusError;
use async_nats::{Client, ConnectOptions, ServerAddr, Subscriber};
use net::config::mask_secrets;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of queued messages per subscription.
const QUEUED_ORDERS_MAX: usize = 1024;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Address and credentials of the NATS server, and the agents to use.
#[derive(Debug, Clone, Default)]
pub(crate) struct NatsSettings {
    /// URL of the NATS server: `nats://HOST:PORT` or `tls://HOST:PORT`. If the server requires a
    /// login, the URL has `USER:PASSWORD@` before the host. Commas separate the servers of a
    /// cluster.
    pub(crate) url: String,
    /// A credentials file (JWT and key) in the format of the tool `nsc`.
    pub(crate) creds: Option<PathBuf>,
    /// File of certificate authorities, which replace the system's authorities.
    pub(crate) ca: Option<PathBuf>,
    /// Name of the fleet. Only agents of this fleet are used.
    pub(crate) fleet: String,
    /// Minimum number of agents.
    pub(crate) agents: usize,
}

/// A connection to the NATS server.
#[derive(Clone)]
pub(super) struct NatsConnection {
    pub(super) client: Client,
    fleet: String,
}

impl NatsSettings {
    /// Returns the host and port of the first server in the URL.
    pub(crate) fn server_address(&self) -> Option<(String, u16)> {
        let first = self.first_server()?;
        Some((first.host().to_owned(), first.port()))
    }

    fn first_server(&self) -> Option<ServerAddr> {
        self.url.split(',').next()?.trim().parse().ok()
    }

    /// Connects to the NATS server. If the connection breaks later, the client reconnects by
    /// itself.
    ///
    /// # Errors
    /// The server is unreachable or refuses the credentials.
    pub(super) async fn connect(&self, name: &str) -> Result<NatsConnection, BusError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(RESPONSE_TIMEOUT)
            .subscription_capacity(QUEUED_ORDERS_MAX);
        if let Some(creds) = &self.creds {
            let read = options.credentials_file(creds).await;
            options = read.map_err(|source| BusError::Credentials {
                path: creds.clone(),
                source,
            })?;
        }
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone());
        }
        let urls: Vec<&str> = self.url.split(',').map(str::trim).collect();
        if let Some((user, password)) = self
            .first_server()
            .and_then(|at| Some((at.username()?.to_owned(), at.password()?.to_owned())))
        {
            options = options.user_and_password(user, password);
        }
        let client = options
            .connect(urls)
            .await
            .map_err(|source| BusError::Connect {
                url: mask_secrets(&self.url).to_string(),
                source,
            })?;
        Ok(NatsConnection {
            client,
            fleet: self.fleet.clone(),
        })
    }
}

impl NatsConnection {
    /// Subject on which the controller asks all agents to report.
    pub(super) fn roll_call_subject(&self) -> String {
        format!("headwater.{}.roll", self.fleet)
    }

    /// Subject on which an agent receives orders.
    pub(super) fn order_subject(&self, id: &str) -> String {
        format!("headwater.{}.agent.{id}", self.fleet)
    }

    /// Subject on which controllers announce that they are alive.
    pub(super) fn pulse_subject(&self) -> String {
        format!("headwater.{}.pulse", self.fleet)
    }

    /// Subject on which the agents of a session announce that they are alive.
    pub(super) fn heartbeat_subject(&self, session: &str) -> String {
        format!("headwater.{}.beats.{session}", self.fleet)
    }

    pub(super) async fn subscribe(&self, subject: String) -> Result<Subscriber, BusError> {
        let subscriber = self.client.subscribe(subject.clone()).await;
        subscriber.map_err(|source| BusError::Subscribe { subject, source })
    }

    /// Publishes a message without an acknowledgement. Messages may be lost while the connection is
    /// down.
    pub(super) async fn publish_unacknowledged(&self, subject: String, bytes: Vec<u8>) {
        let _ = self.client.publish(subject, bytes.into()).await;
    }
}
