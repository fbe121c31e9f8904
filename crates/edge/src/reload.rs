//! Reload of the settings while the edge runs.
//!
//! A reload builds a new [`Edge`] that keeps the cache, the fetches in progress and the counters.
//! Requests that have already started keep the old settings.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use net::config::UsageError;
use tokio::sync::Notify;

use crate::Edge;
use crate::config::EdgeSettings;

/// Reads the settings from flags, environment and file.
pub type SettingsReader = dyn Fn() -> Result<EdgeSettings, UsageError> + Send + Sync;

/// The edge with the current settings. A reload replaces the edge.
pub struct ReloadableEdge {
    current: ArcSwap<Edge>,
    read: Box<SettingsReader>,
    /// Serializes reloads.
    reload_lock: Mutex<()>,
    /// Wakes the task that resolves origins in DNS, because a reload may have added an origin.
    reloaded: Notify,
}

impl ReloadableEdge {
    pub fn new(edge: Edge, read: Box<SettingsReader>) -> ReloadableEdge {
        ReloadableEdge {
            current: ArcSwap::from_pointee(edge),
            read,
            reload_lock: Mutex::default(),
            reloaded: Notify::new(),
        }
    }

    /// Returns the edge with the current settings. A request uses one edge from start to end.
    pub fn current_edge(&self) -> Arc<Edge> {
        self.current.load_full()
    }

    /// Waits for the next reload. Returns at once if there was a reload since the last call.
    pub async fn wait_until_reloaded(&self) {
        self.reloaded.notified().await;
    }

    /// Reads the settings, applies them to later requests, and reopens the records files. Returns
    /// the names of changed settings that keep their old values until a restart.
    ///
    /// # Errors
    /// [`UsageError`] when the settings are invalid. The current settings then stay in use.
    pub fn reload_settings(&self) -> Result<Vec<&'static str>, UsageError> {
        let _turn = self
            .reload_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.current_edge().reopen_records();
        let result = (self.read)().and_then(|settings| self.replace_settings(settings));
        match &result {
            Ok(fixed) if fixed.is_empty() => tracing::info!("settings reloaded"),
            Ok(fixed) => {
                tracing::warn!(?fixed, "settings reloaded; some changes need a restart")
            }
            Err(wrong) => {
                tracing::error!(%wrong, "reload failed; the previous settings stay in use")
            }
        }
        result
    }

    fn replace_settings(
        &self,
        mut settings: EdgeSettings,
    ) -> Result<Vec<&'static str>, UsageError> {
        let old = self.current_edge();
        let fixed = settings.retain_fixed_settings(&old.settings);
        self.current
            .store(Arc::new(old.clone_with_settings(settings)?));
        self.reloaded.notify_one();
        Ok(fixed)
    }
}

impl Edge {
    /// Reopens the records files, because logrotate may have moved them away.
    fn reopen_records(&self) {
        self.telemetry.reopen_records();
        if let Some(recorder) = self.collector.as_ref().and_then(|c| c.recorder()) {
            recorder.reopen();
        }
    }

    /// Builds an edge with other settings. The new edge shares the cache and the other state of
    /// this edge.
    fn clone_with_settings(&self, settings: EdgeSettings) -> Result<Edge, UsageError> {
        let origins = self
            .origins
            .with_settings(&settings.pools, &settings.treatment);
        let origins = origins.map_err(|error| UsageError(format!("origin: {error}")))?;
        Ok(Edge {
            memory: self.memory.clone(),
            disk: self.disk.clone(),
            flights: self.flights.clone(),
            in_flight_bytes: self.in_flight_bytes.clone(),
            arena: self.arena.clone(),
            origins,
            telemetry: self.telemetry.clone(),
            rules: self.rules.clone_with_rules(settings.rules.clone()),
            collector: self.collector.clone(),
            shutdown: self.shutdown.clone(),
            overload: self.overload.clone(),
            loop_token: self.loop_token.clone(),
            settings,
        })
    }
}
