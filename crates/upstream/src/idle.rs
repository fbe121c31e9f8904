//! Connections that wait for their next request.

use crate::Connection;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A list of idle connections to one server, ordered by their last use. By default, a list serves
/// one runtime. A list that detaches idle connections can serve several runtimes.
#[derive(Debug)]
pub struct IdleConnections {
    entries: Mutex<VecDeque<(Instant, Connection)>>,
    idle_timeout: Duration,
    count_max: usize,
    detaches: bool,
}

impl IdleConnections {
    /// Creates a list for the connections of one runtime. If there are more than `count_max`
    /// connections, the least recently used connections are closed.
    pub fn for_one_runtime(idle_timeout: Duration, count_max: usize) -> IdleConnections {
        IdleConnections {
            entries: Mutex::default(),
            idle_timeout,
            count_max,
            detaches: false,
        }
    }

    /// Creates a list that several runtimes share. Each idle connection is detached from its
    /// runtime, which costs two more system calls per request.
    pub fn for_all_runtimes(idle_timeout: Duration, count_max: usize) -> IdleConnections {
        IdleConnections {
            detaches: true,
            ..IdleConnections::for_one_runtime(idle_timeout, count_max)
        }
    }

    /// Takes the most recently used connection that is still open. Surplus connections therefore
    /// stay unused, reach the idle timeout and are closed.
    pub fn take_connection(&self) -> Option<Connection> {
        let mut entries = self.lock_list();
        while let Some((since, connection)) = entries.pop_back() {
            if since.elapsed() < self.idle_timeout
                && let Some(connection) = connection.into_active()
            {
                return Some(connection);
            }
        }
        None
    }

    /// Stores a connection whose exchange is complete, if another request may follow on it.
    pub fn return_connection(&self, connection: Connection) {
        let Some(connection) = connection.into_idle(self.detaches) else {
            return;
        };
        let mut entries = self.lock_list();
        let is_old = |entry: &(Instant, Connection)| entry.0.elapsed() >= self.idle_timeout;
        while entries.len() >= self.count_max || entries.front().is_some_and(is_old) {
            if entries.pop_front().is_none() {
                return;
            }
        }
        entries.push_back((Instant::now(), connection));
    }

    /// Closes connections that have been idle for too long or that the server has closed.
    pub fn sweep(&self) {
        let timeout = self.idle_timeout;
        let is_useful =
            |entry: &mut (Instant, Connection)| entry.0.elapsed() < timeout && entry.1.is_open();
        self.lock_list().retain_mut(is_useful);
    }

    /// Returns whether a connection in the list is open.
    #[cfg(test)]
    pub(crate) fn has_open_connection(&self) -> bool {
        self.lock_list().iter_mut().any(|entry| entry.1.is_open())
    }

    fn lock_list(&self) -> MutexGuard<'_, VecDeque<(Instant, Connection)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
