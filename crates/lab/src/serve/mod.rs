//! The Workflow Manager of NBMP over HTTP. It accepts workflows and tasks, and runs one after the
//! other as `lab run` would.
//!
//! Path of a request: `authorization.rs` admits it, and `router.rs` finds its route.
//! `change_requests.rs` passes bodies to `prepare.rs`, which turns them into runs or reports faults
//! with JSONPaths. `workflow_registry.rs` stores workflows and their states. `workflow_runner.rs`
//! is the only thread that runs them; `reporter.rs` posts reports meanwhile. `describe.rs`
//! describes workflows, and `function_discovery.rs` lists functions.
//!
//! Every client that may post can run commands. The manager therefore listens on loopback or
//! requires a token, and rejects other host names and other sites.

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
use net::{Limits, ListenOptions, ProgramError, RunningProgram, Server, Shutdown};
use std::sync::Arc;
use workflow_registry::WorkflowRegistry;

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 256;

/// Serves on its own threads until `shutdown` drains, then stops the running workflow.
///
/// # Errors
/// [`ProgramError`] if an address or a thread is unavailable.
pub(crate) fn start_manager(
    settings: WorkflowManagerSettings,
    shutdown: Shutdown,
) -> Result<RunningProgram, ProgramError> {
    let listen = ListenOptions {
        addresses: settings.listen.clone(),
        workers: 1,
        limits: Limits {
            connections_max: CONNECTIONS_MAX,
            ..Limits::default()
        },
        ..ListenOptions::default()
    };
    let server = Server::bind(listen).map_err(ProgramError::cannot("--listen"))?;
    authorization::loopback_or_token(&settings, server.addresses())?;
    let registry = Arc::new(WorkflowRegistry::new(settings.workflows_max));
    let manager = Arc::new(WorkflowManager { settings, registry });
    let mut running = RunningProgram::new(shutdown);
    let works = manager.clone();
    running.spawn_thread("runner", move || {
        workflow_runner::run_workflows(&works);
        Ok(())
    })?;
    let manager_to_stop = manager.clone();
    running.until_drained("end", {
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
