//! The connection to the NATS server.

use std::io;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, ServerAddr};
use net::config::mask_secrets;

use crate::config::NatsSettings;

/// Maximum number of messages that wait in the queue of a subscription.
const QUEUED_MAX: usize = 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns connection options with the credentials from the settings.
///
/// # Errors
/// When a file cannot be read. The error contains the file's name.
pub async fn read_connect_options(settings: &NatsSettings) -> io::Result<ConnectOptions> {
    let mut options = ConnectOptions::new()
        .connection_timeout(CONNECT_TIMEOUT)
        .subscription_capacity(QUEUED_MAX);
    if let Some(creds) = &settings.creds {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", creds.display()));
        options = options.credentials_file(creds).await.map_err(named)?;
    }
    if let Some(file) = &settings.token_file {
        options = options.token(net::access_token::read_token_file(file)?.to_string());
    }
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone());
    }
    let first = settings.url.split(',').next().unwrap_or_default();
    let first: Option<ServerAddr> = first.trim().parse().ok();
    let user = first.and_then(|at| Some((at.username()?.to_owned(), at.password()?.to_owned())));
    if let Some((user, password)) = user {
        options = options.user_and_password(user, password);
    }
    Ok(options)
}

/// Connects to one of the servers.
///
/// # Errors
/// When the connection fails. The error contains the URL without secrets.
pub async fn connect_to_nats(
    settings: &NatsSettings,
    options: ConnectOptions,
) -> io::Result<Client> {
    let urls: Vec<&str> = settings.url.split(',').map(str::trim).collect();
    let named = |error| {
        let url = mask_secrets(&settings.url);
        io::Error::other(format!("cannot connect to {url}: {error}"))
    };
    options.connect(urls).await.map_err(named)
}
