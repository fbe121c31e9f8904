//! Connections that wait for their next request.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connect::Connection;

/// The most that wait, per worker; more are closed.
const IDLE_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Pool {
    /// The latest last. One list a worker: a connection's task runs where it was opened.
    idle: Vec<Mutex<VecDeque<(Instant, Connection)>>>,
    patience: Duration,
}

impl Pool {
    pub(super) fn new(workers: usize, patience: Duration) -> Pool {
        Pool {
            idle: (0..workers.max(1)).map(|_| Mutex::default()).collect(),
            patience,
        }
    }

    /// The one used last that is still open: the others may then grow old and be closed.
    pub(super) fn take(&self, worker: usize) -> Option<Connection> {
        let mut idle = self.of(worker)?;
        while let Some((since, connection)) = idle.pop_back() {
            if since.elapsed() < self.patience && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }

    pub(super) fn give(&self, connection: Connection) {
        let Some(mut idle) = self.of(connection.worker) else {
            return;
        };
        let old = |entry: &(Instant, Connection)| entry.0.elapsed() >= self.patience;
        while idle.len() >= IDLE_MAX || idle.front().is_some_and(old) {
            idle.pop_front();
        }
        if connection.is_open() {
            idle.push_back((Instant::now(), connection));
        }
    }

    fn of(&self, worker: usize) -> Option<MutexGuard<'_, VecDeque<(Instant, Connection)>>> {
        let idle = self.idle.get(worker % self.idle.len())?;
        Some(idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
