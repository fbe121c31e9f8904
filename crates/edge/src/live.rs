//! The edge as it is configured now. A reload puts a new one in its place: requests that have begun
//! end by the old settings, and what is kept, fetched and counted is the same for both.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use net::config::Wrong;

use crate::Edge;
use crate::config::Settings;

/// Reads the settings anew.
pub type Read = dyn Fn() -> Result<Settings, Wrong> + Send + Sync;

/// The edge of the settings that were read last.
pub struct Live {
    now: ArcSwap<Edge>,
    read: Box<Read>,
    /// Held while reloading.
    turn: Mutex<()>,
}

impl Live {
    pub fn new(edge: Edge, read: Box<Read>) -> Live {
        Live {
            now: ArcSwap::from_pointee(edge),
            read,
            turn: Mutex::default(),
        }
    }

    /// For one request, from its beginning to its end.
    pub fn now(&self) -> Arc<Edge> {
        self.now.load_full()
    }

    /// Reads the settings anew, and answers by them from now on; opens the file of records anew.
    /// Returns what has changed and takes a restart: that stays as it is.
    ///
    /// # Errors
    /// [`Wrong`] when they mean nothing: then all stays as it is.
    pub fn reload(&self) -> Result<Vec<&'static str>, Wrong> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.now().observer.reopen();
        let result = (self.read)().and_then(|settings| self.replace(settings));
        match &result {
            Ok(fixed) if fixed.is_empty() => tracing::info!("the settings were read anew"),
            Ok(fixed) => {
                tracing::warn!(?fixed, "the settings were read anew; these take a restart")
            }
            Err(wrong) => tracing::error!(%wrong, "the settings stay as they are"),
        }
        result
    }

    fn replace(&self, mut settings: Settings) -> Result<Vec<&'static str>, Wrong> {
        let old = self.now();
        let fixed = settings.keep_fixed(&old.settings);
        self.now.store(Arc::new(old.with(settings)?));
        Ok(fixed)
    }
}

impl Edge {
    /// The same by other settings.
    fn with(&self, settings: Settings) -> Result<Edge, Wrong> {
        let origins = self.origins.by(&settings.pools, &settings.treatment);
        let origins = origins.map_err(|error| Wrong(format!("origin: {error}")))?;
        Ok(Edge {
            memory: self.memory.clone(),
            disk: self.disk.clone(),
            flights: self.flights.clone(),
            flying: self.flying.clone(),
            arena: self.arena.clone(),
            origins,
            observer: self.observer.clone(),
            steer: self.steer.by(settings.rules.clone()),
            shutdown: self.shutdown.clone(),
            instance: self.instance.clone(),
            settings,
        })
    }
}
