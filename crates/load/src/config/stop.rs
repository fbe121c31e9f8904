//! Ending a run early, with what it has.

use super::Stop;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first Ctrl-C (or SIGTERM); the second ends the process at once.
pub(super) fn stop_on_ctrl_c() -> Result<&'static AtomicBool, Stop> {
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
                eprintln!("stopping: requests under way have a second; once more ends at once");
            }
        });
    };
    let spawned = std::thread::Builder::new()
        .name("signals".into())
        .spawn(wait);
    spawned.map_err(|error| format!("no thread: {error}"))?;
    Ok(&STOP)
}
