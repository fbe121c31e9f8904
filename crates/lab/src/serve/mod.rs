//! The Workflow Manager of NBMP, which is controlled over HTTP. It accepts workflows and tasks, and
//! runs them one after the other, as `lab run` would.
//!
//! `authorization.rs` authorizes a request, and `router.rs` finds the route. `change_requests.rs`
//! passes the body to `prepare.rs`, which turns the body into a runnable workflow or reports faults
//! with JSONPaths. `workflow_registry.rs` stores workflows and their states. The thread in
//! `workflow_runner.rs` is the only thread that runs workflows. During a run, `reporter.rs` posts
//! reports. `describe.rs` describes workflows, and `function_discovery.rs` lists functions.
//!
//! Every client that is allowed to send POST requests can run commands. The manager therefore
//! requires a token unless it listens on a loopback address. It also rejects requests for unknown
//! host names and requests from other sites.

mod authorization;
mod change_requests;
mod describe;
mod function_discovery;
mod manager;
mod nbmp_resource_key;
mod prepare;
mod reporter;
mod reporting_target;
mod response;
mod router;
mod settings;
mod workflow_registry;
mod workflow_runner;

pub(crate) use settings::WorkflowManagerSettings;

use manager::WorkflowManager;
use net::lifecycle::MAIN;
use net::{FatalError, Limits, RunningProgram, Server, ServerOptions, Shutdown};
use std::sync::Arc;
use workflow_registry::WorkflowRegistry;

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 256;

/// Starts the manager on its own threads. When `shutdown` starts to drain, the manager stops the
/// running workflow.
///
/// # Errors
/// An address cannot be bound, a thread cannot be started, or an address requires a token that is
/// not configured.
pub(crate) fn start_manager(
    settings: WorkflowManagerSettings,
    shutdown: Shutdown,
) -> Result<RunningProgram, FatalError> {
    let listen = ServerOptions {
        addresses: settings.listen.clone(),
        workers: 1,
        limits: Limits {
            connections_max: CONNECTIONS_MAX,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let server = Server::bind(listen).map_err(FatalError::cannot("--listen"))?;
    authorization::require_token_unless_loopback(&settings, server.addresses())?;
    let registry = Arc::new(WorkflowRegistry::new(settings.workflows_max));
    let manager = Arc::new(WorkflowManager { settings, registry });
    let mut running = RunningProgram::new(shutdown);
    let works = manager.clone();
    running.spawn_thread("runner", move || {
        workflow_runner::run_workflows(&works);
        Ok(())
    })?;
    let manager_to_stop = manager.clone();
    running.spawn_async_thread("end", {
        let shutdown = running.shutdown().clone();
        move || async move {
            shutdown.wait_until_draining().await;
            manager_to_stop.registry.stop_all();
        }
    })?;
    running.start_server(MAIN, server, move |_| {
        let manager = manager.clone();
        move |request, _| router::handle_request(manager.clone(), request)
    })?;
    Ok(running)
}
