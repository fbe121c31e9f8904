//! Refuses work when memory is nearly used up, before the kernel kills the process.
//!
//! A thread compares the memory in use with the limit and stores an [`OverloadLevel`]. Each request
//! reads this level with relaxed atomic loads. The limits on connections and on copied response
//! bytes bound the memory that clients can use. This module is the last protection, and also covers
//! memory that these limits do not count.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use std::{fmt, io};

use http::{Request, StatusCode, Version};

use crate::Error;
use crate::metrics::{Counter, Gauge, MetricSpec, Metrics};
use crate::resources::MemoryLimit;

/// The shortest pause between measurements, which applies near the limit. In this pause, a server
/// that fills its cache at 1 GB/s allocates 100 MB. With a limit of 1 GiB, this is less than the
/// 10 % that remain above `CONSTRAINED_PERCENT`.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const CONSTRAINED_PERCENT: u64 = 90;
const OVERLOADED_PERCENT: u64 = 95;

const LEVEL: MetricSpec = MetricSpec {
    name: "overload_level",
    unit: "",
    help: "0: normal; 1: at 90 % of the memory limit, no caching and no new HTTP/2 streams; 2: at 95 %, only 503",
};
const USED: MetricSpec = MetricSpec {
    name: "memory_used",
    unit: "bytes",
    help: "Memory in use without the pages of files, as compared with the limit",
};
const LIMIT: MetricSpec = MetricSpec {
    name: "memory_limit",
    unit: "bytes",
    help: "Memory that this process may use (setting memory-limit)",
};
const REFUSED: MetricSpec = MetricSpec {
    name: "overload_refused",
    unit: "",
    help: "Requests refused for lack of memory, by action: stream (HTTP/2, may be repeated) or response (503)",
};

/// The server's reaction to its memory use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum OverloadLevel {
    /// No restrictions.
    Normal = 0,
    /// From 90 % of the limit, the server stops caching responses and refuses new HTTP/2 streams.
    Constrained = 1,
    /// From 95 % of the limit, requests get 503.
    Overloaded = 2,
}

impl OverloadLevel {
    fn from_use(used_bytes: u64, limit_bytes: u64) -> OverloadLevel {
        let reaches = |percent: u64| {
            u128::from(used_bytes) * 100 >= u128::from(limit_bytes) * u128::from(percent)
        };
        match () {
            () if reaches(OVERLOADED_PERCENT) => OverloadLevel::Overloaded,
            () if reaches(CONSTRAINED_PERCENT) => OverloadLevel::Constrained,
            () => OverloadLevel::Normal,
        }
    }
}

/// A function that frees memory. Each measurement calls this function with the current level.
type ReliefAction = Box<dyn Fn(OverloadLevel) + Send + Sync>;

/// Watches the memory use of a process. Cheap to clone; all clones share the level.
#[derive(Clone, Default)]
pub struct OverloadManager(Arc<OverloadState>);

#[derive(Default)]
struct OverloadState {
    level: AtomicU8,
    actions: Mutex<Vec<ReliefAction>>,
    level_gauge: Gauge,
    used: Gauge,
    streams: Counter,
    responses: Counter,
}

impl OverloadManager {
    /// Starts a thread that measures the memory in use. The thread ends after the last clone of the
    /// manager is dropped.
    ///
    /// A manager from [`OverloadManager::default`] measures nothing, and its level stays normal.
    ///
    /// # Errors
    /// When the system cannot create a thread.
    pub fn start_memory_monitor(
        limit: MemoryLimit,
        metrics: &Metrics,
    ) -> io::Result<OverloadManager> {
        let limit_gauge = metrics.gauge(&LIMIT);
        limit_gauge.set(i64::try_from(limit.bytes()).unwrap_or(i64::MAX));
        let refused = metrics.counter_family(&REFUSED, &["action"]);
        let state = Arc::new(OverloadState {
            level_gauge: metrics.gauge(&LEVEL),
            used: metrics.gauge(&USED),
            streams: refused.with_labels(&["stream"]),
            responses: refused.with_labels(&["response"]),
            ..OverloadState::default()
        });
        state.measure_memory(&limit);
        let watched = Arc::downgrade(&state);
        std::thread::Builder::new()
            .name("memory".into())
            .spawn(move || watch_memory(&watched, &limit))?;
        Ok(OverloadManager(state))
    }

    #[cfg(test)]
    pub(crate) fn with_fixed_level(level: OverloadLevel) -> OverloadManager {
        let manager = OverloadManager::default();
        manager.0.level.store(level as u8, Relaxed);
        manager
    }

    /// Returns the level of the last measurement.
    pub fn level(&self) -> OverloadLevel {
        match self.0.level.load(Relaxed) {
            0 => OverloadLevel::Normal,
            1 => OverloadLevel::Constrained,
            _ => OverloadLevel::Overloaded,
        }
    }

    /// Returns whether enough memory is available to cache a response.
    pub fn has_memory_to_cache(&self) -> bool {
        self.level() == OverloadLevel::Normal
    }

    /// Registers an action that each measurement calls with the current level. A cache must shrink
    /// in such an action. Otherwise the memory of the cache could keep the level high, and requests
    /// would be refused forever.
    pub fn add_relief_action(&self, action: impl Fn(OverloadLevel) + Send + Sync + 'static) {
        let mut actions = self
            .0
            .actions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        actions.push(Box::new(action));
    }

    /// Returns whether an HTTP/2 stream is refused. The client may repeat a refused request on
    /// another server or later (RFC 9113 section 8.7). At [`OverloadLevel::Overloaded`], HTTP/2
    /// requests get 503 like all other requests.
    pub(crate) fn refuses_stream<B>(&self, request: &Request<B>, essential: &[&str]) -> bool {
        let refused = self.level() == OverloadLevel::Constrained
            && request.version() >= Version::HTTP_2
            && !essential.contains(&request.uri().path());
        if refused {
            self.0.streams.inc();
        }
        refused
    }

    /// Returns the error for a request that must be refused, or `None` for any other request. Paths
    /// in `essential` are always served, because health probes and metrics must show the overload.
    pub(crate) fn find_refusal<B>(
        &self,
        request: &Request<B>,
        essential: &[&str],
    ) -> Option<Error> {
        let overloaded = self.level() == OverloadLevel::Overloaded;
        if !overloaded || essential.contains(&request.uri().path()) {
            return None;
        }
        self.0.responses.inc();
        Some(Error {
            status: StatusCode::SERVICE_UNAVAILABLE,
            retry: true,
            ..Error::new_internal_error("the server is short of memory")
        })
    }
}

impl fmt::Debug for OverloadManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OverloadManager({:?})", self.level())
    }
}

impl OverloadState {
    /// Measures the memory in use, and returns the pause until the next measurement.
    fn measure_memory(&self, limit: &MemoryLimit) -> Duration {
        let Some(used_bytes) = limit.used_bytes() else {
            return PAUSE_MAX;
        };
        let level = OverloadLevel::from_use(used_bytes, limit.bytes());
        self.used.set(i64::try_from(used_bytes).unwrap_or(i64::MAX));
        self.level_gauge.set(i64::from(level as u8));
        if self.level.swap(level as u8, Relaxed) != level as u8 {
            tracing::warn!(used_bytes, limit_bytes = limit.bytes(), ?level, "memory");
        }
        let actions = self.actions.lock().unwrap_or_else(PoisonError::into_inner);
        actions.iter().for_each(|action| action(level));
        next_measurement_delay(used_bytes, limit.bytes())
    }
}

/// Returns the time until the memory use could reach `CONSTRAINED_PERCENT`, limited to the range
/// from `PAUSE_MIN` to `PAUSE_MAX`. The assumed growth is 1 GB/s, which is one byte per nanosecond.
fn next_measurement_delay(used_bytes: u64, limit_bytes: u64) -> Duration {
    let threshold = limit_bytes / 100 * CONSTRAINED_PERCENT;
    Duration::from_nanos(threshold.saturating_sub(used_bytes)).clamp(PAUSE_MIN, PAUSE_MAX)
}

fn watch_memory(watched: &Weak<OverloadState>, limit: &MemoryLimit) {
    while let Some(state) = watched.upgrade() {
        let pause = state.measure_memory(limit);
        drop(state);
        std::thread::sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_follows_the_share_of_the_limit() {
        for (used, level) in [
            (0, OverloadLevel::Normal),
            (899, OverloadLevel::Normal),
            (900, OverloadLevel::Constrained),
            (949, OverloadLevel::Constrained),
            (950, OverloadLevel::Overloaded),
            (u64::MAX, OverloadLevel::Overloaded),
        ] {
            assert_eq!(OverloadLevel::from_use(used, 1000), level, "{used}");
        }
    }

    #[test]
    fn the_pause_shrinks_towards_the_limit() {
        let limit = 10 << 30;
        assert_eq!(next_measurement_delay(0, limit), PAUSE_MAX);
        assert_eq!(next_measurement_delay(limit, limit), PAUSE_MIN);
        let near = limit / 100 * CONSTRAINED_PERCENT - 300_000_000;
        assert_eq!(
            next_measurement_delay(near, limit),
            Duration::from_millis(300)
        );
    }

    #[test]
    fn a_measurement_sets_the_level_and_calls_the_actions() {
        let metrics = Metrics::new();
        let manager =
            OverloadManager::start_memory_monitor(MemoryLimit::from_configured_bytes(1), &metrics)
                .unwrap();
        assert_eq!(manager.level(), OverloadLevel::Overloaded);
        let (sender, received) = std::sync::mpsc::channel();
        manager.add_relief_action(move |level| sender.send(level).unwrap_or_default());
        assert_eq!(received.recv().unwrap(), OverloadLevel::Overloaded);
        let text = metrics.encode_text().unwrap();
        assert!(text.contains("headwater_overload_level 2\n"), "{text}");
        assert!(text.contains("headwater_memory_limit_bytes 1\n"), "{text}");
        let roomy = MemoryLimit::from_configured_bytes(u64::MAX);
        let manager = OverloadManager::start_memory_monitor(roomy, &Metrics::new()).unwrap();
        assert_eq!(manager.level(), OverloadLevel::Normal);
    }
}
