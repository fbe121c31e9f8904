//! How a server is told to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    Draining,
    Stopped,
}

/// Tells servers to end. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: Arc<watch::Sender<Phase>>,
    held: Arc<AtomicUsize>,
}

/// Work that is no request, but that requests wait for: while it is held, no worker ends by
/// itself, so that a task is not lost with the worker that it happens to run on.
#[derive(Debug)]
pub struct Hold {
    held: Arc<AtomicUsize>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::Release);
    }
}

impl Shutdown {
    /// Nothing said yet.
    pub fn new() -> Shutdown {
        Shutdown {
            phase: Arc::new(watch::Sender::new(Phase::Serving)),
            held: Arc::default(),
        }
    }

    /// Drains at the first SIGTERM or SIGINT and stops at the second. A thread of its own waits
    /// for them.
    pub fn on_signals() -> io::Result<Shutdown> {
        use tokio::signal::unix::{SignalKind, signal};
        let shutdown = Shutdown::new();
        let told = shutdown.clone();
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
                told.advance();
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(wait))?;
        Ok(shutdown)
    }

    /// No new connections; those open finish what they do.
    pub fn drain(&self) {
        self.at_least(Phase::Draining);
    }

    /// Ends at once.
    pub fn stop(&self) {
        self.at_least(Phase::Stopped);
    }

    /// True from the moment the end was asked for: a readiness probe answers no.
    pub fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }

    /// Drained workers wait for this work, as long as they may drain at all.
    pub fn hold(&self) -> Hold {
        self.held.fetch_add(1, Ordering::Relaxed);
        Hold {
            held: Arc::clone(&self.held),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0
    }

    /// Returns when the end is asked for.
    pub async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    pub(super) async fn stopped(&self) {
        self.reached(Phase::Stopped).await;
    }

    /// A step further: drain first, then stop.
    fn advance(&self) {
        if self.is_draining() {
            self.stop()
        } else {
            self.drain()
        }
    }

    fn at_least(&self, wanted: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = *phase < wanted;
            *phase = wanted.max(*phase);
            later
        });
    }

    async fn reached(&self, wanted: Phase) {
        // The sender lives as long as `self`, so the wait can only end by the phase.
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
