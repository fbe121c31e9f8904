//! The port of `--metrics`, which serves Prometheus metrics during a run.

use super::CommandError;
use crate::rate::RunMetrics;
use net::body::Incoming;
use net::config::{SettingLayers, UsageError};
use net::metrics::Metrics;
use net::{Body, Conn, Error, Limits, Server, ServerOptions, Shutdown};
use std::future::{Ready, ready};
use std::io;
use std::thread::JoinHandle;

/// Maximum number of connections. This is enough for several metrics collectors and a browser.
const CONNECTIONS_MAX: usize = 64;

/// The open metrics port. Dropping this value closes the port.
pub(super) struct MetricsServer {
    pub(super) metrics: RunMetrics,
    shutdown: Shutdown,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Opens the port that the settings name, if any. Prints the URL to standard error, because
/// standard output is reserved for the result.
///
/// # Errors
/// The address cannot be used, or no thread can be started.
pub(super) fn open_metrics_port(
    layers: &SettingLayers,
) -> Result<Option<MetricsServer>, CommandError> {
    let Some(address) = layers
        .setting_text("metrics")
        .filter(|address| !address.is_empty())
    else {
        return Ok(None);
    };
    let listen = ServerOptions {
        addresses: vec![address.to_owned()],
        workers: 1,
        limits: Limits {
            connections_max: CONNECTIONS_MAX,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let server = Server::bind(listen).map_err(|error| {
        let cause = net::describe_io_error(&error);
        UsageError(format!(
            "--metrics: cannot listen on {address}: {cause}; use another address"
        ))
    })?;
    for address in server.addresses() {
        eprintln!("metrics on http://{address}/metrics");
    }
    let metrics = RunMetrics::new();
    let (registry, shutdown) = (metrics.metrics_registry().clone(), Shutdown::new());
    let ending = shutdown.clone();
    let thread = std::thread::Builder::new()
        .name("metrics".into())
        .spawn(move || server.run(|_| metrics_handler(registry.clone()), ending))
        .map_err(CommandError::StartRuntime)?;
    Ok(Some(MetricsServer {
        metrics,
        shutdown,
        thread: Some(thread),
    }))
}

/// Returns a request handler that serves these metrics.
fn metrics_handler(
    registry: Metrics,
) -> impl Fn(http::Request<Incoming>, Conn) -> Ready<http::Response<Body>> + Clone {
    move |request, _| {
        ready(match request.uri().path() {
            "/metrics" => registry.scrape_response(request.headers()),
            _ => {
                let what = "not found; the metrics are at /metrics";
                Error::new_client_error(http::StatusCode::NOT_FOUND, what).to_response()
            }
        })
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.shutdown.stop();
        if let Some(thread) = self.thread.take() {
            // The error is ignored because the result of the run does not depend on this port.
            let _ = thread.join();
        }
    }
}
