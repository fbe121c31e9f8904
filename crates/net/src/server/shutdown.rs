//! Shuts down a server.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::watch;

use crate::metrics::{MetricSpec, Metrics};

const DRAIN: MetricSpec = MetricSpec {
    name: "drain",
    unit: "seconds",
    help: "Time since the process started to drain; 0 while it serves",
};

/// The phase of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShutdownPhase {
    Serving,
    Draining,
    Stopped,
}

/// Shuts down servers. Cheap to clone; all clones share the phase.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: Arc<watch::Sender<ShutdownPhase>>,
    held: Arc<AtomicUsize>,
    handed_over: Arc<AtomicBool>,
    draining_since: Arc<OnceLock<Instant>>,
    signalled: Arc<AtomicBool>,
}

/// A guard for background work, such as a fetch that serves several requests. Draining workers run
/// until the guard is dropped or the drain timeout expires. Without the guard, a worker could exit
/// before its background work is done.
#[derive(Debug)]
pub struct ShutdownHold {
    held: Arc<AtomicUsize>,
}

impl Drop for ShutdownHold {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::Release);
    }
}

impl Shutdown {
    /// Creates a shutdown that has not started.
    pub fn new() -> Shutdown {
        Shutdown {
            phase: Arc::new(watch::Sender::new(ShutdownPhase::Serving)),
            held: Arc::default(),
            handed_over: Arc::default(),
            draining_since: Arc::default(),
            signalled: Arc::default(),
        }
    }

    /// Registers a metric of the time that the drain has taken so far.
    pub fn register_metrics(&self, metrics: &Metrics) {
        let since = self.draining_since.clone();
        metrics.register_scrape_gauge(&DRAIN, move || {
            // The value is rounded up, because 0 means that the drain has not started.
            Some(since.get().map_or(0, |since| since.elapsed().as_secs() + 1))
        });
    }

    /// Creates a shutdown that drains the servers on the first SIGTERM or SIGINT, and stops the
    /// servers on the second signal. A separate thread waits for the signals.
    pub fn on_signals() -> io::Result<Shutdown> {
        use tokio::signal::unix::{SignalKind, signal};
        let shutdown = Shutdown::new();
        let signalled = shutdown.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let (mut term, mut int) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        let wait = async move {
            loop {
                tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
                signalled.handle_signal();
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(wait))?;
        Ok(shutdown)
    }

    /// Makes servers stop accepting connections, and lets open connections finish their requests.
    pub fn drain(&self) {
        self.raise_phase_to(ShutdownPhase::Draining);
    }

    /// Drains the servers after a successor has taken the ports. The ports stay open, and this
    /// process still reports that it is ready, because new connections reach the successor.
    pub fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Release);
        self.drain();
    }

    /// Returns whether a successor has taken the ports.
    pub fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }

    /// Returns whether load balancers should send traffic to the server's address.
    pub fn is_ready(&self) -> bool {
        !self.is_draining() || self.is_handed_over()
    }

    /// Stops the servers at once, without waiting for requests in flight.
    pub fn stop(&self) {
        self.raise_phase_to(ShutdownPhase::Stopped);
    }

    /// Returns whether the shutdown has started.
    pub fn is_draining(&self) -> bool {
        *self.phase.borrow() >= ShutdownPhase::Draining
    }

    /// Makes draining workers wait until the returned guard is dropped or the drain timeout
    /// expires.
    pub fn hold_shutdown(&self) -> ShutdownHold {
        self.held.fetch_add(1, Ordering::Relaxed);
        ShutdownHold {
            held: Arc::clone(&self.held),
        }
    }

    pub(super) fn has_holds(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0
    }

    /// Waits until the shutdown starts.
    pub async fn wait_until_draining(&self) {
        self.wait_for_phase(ShutdownPhase::Draining).await;
    }

    pub(super) async fn wait_until_stopped(&self) {
        self.wait_for_phase(ShutdownPhase::Stopped).await;
    }

    /// Starts the drain on the first signal, and stops the servers at once on the second signal. A
    /// process that drains after a hand-over continues on its first signal, because that signal may
    /// be meant for all processes of a service.
    fn handle_signal(&self) {
        if self.signalled.swap(true, Ordering::Relaxed) {
            self.stop()
        } else {
            self.drain()
        }
    }

    fn raise_phase_to(&self, wanted: ShutdownPhase) {
        self.draining_since.get_or_init(Instant::now);
        self.phase.send_if_modified(|phase| {
            let later = *phase < wanted;
            *phase = wanted.max(*phase);
            later
        });
    }

    async fn wait_for_phase(&self, wanted: ShutdownPhase) {
        // Ignores the result. The wait could fail only if the sender were dropped, but `self` holds
        // the sender.
        let _ = self
            .phase
            .subscribe()
            .wait_for(|phase| *phase >= wanted)
            .await;
    }
}

impl Default for Shutdown {
    fn default() -> Shutdown {
        Shutdown::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_after_a_hand_over_does_not_end_the_drain() {
        let shutdown = Shutdown::new();
        shutdown.hand_over();
        shutdown.handle_signal();
        assert_eq!(*shutdown.phase.borrow(), ShutdownPhase::Draining);
        shutdown.handle_signal();
        assert_eq!(*shutdown.phase.borrow(), ShutdownPhase::Stopped);
    }
}
