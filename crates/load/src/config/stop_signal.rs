//! Stops a run early and keeps its results.

use super::CommandError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns a flag that the first Ctrl-C or SIGTERM sets. A second signal ends the process at once.
pub(super) fn stop_on_ctrl_c() -> Result<&'static AtomicBool, CommandError> {
    static STOP: AtomicBool = AtomicBool::new(false);
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let terminate = tokio::signal::unix::SignalKind::terminate();
            let Ok(mut terminate) = tokio::signal::unix::signal(terminate) else {
                return;
            };
            loop {
                tokio::select! {
                    _ = tokio::signal::ctrl_c() => {}
                    _ = terminate.recv() => {}
                }
                if STOP.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
                eprintln!("stopping: requests in flight have one second to finish; interrupt again to exit at once");
            }
        });
    };
    let spawned = std::thread::Builder::new()
        .name("signals".into())
        .spawn(wait);
    spawned.map_err(CommandError::StartSignalThread)?;
    Ok(&STOP)
}
