//! Which origins there are: `origin`, and `[pool.NAME]` tables of the settings file beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use net::config::Wrong;
use net::upstream::Authorities;
use serde::Deserialize;

use super::Balance;

/// Pools by name; the empty name is `origin`'s.
pub type Pools = BTreeMap<Arc<str>, Pool>;

/// Origins that all can answer the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// At least one.
    pub origins: Vec<Uri>,
    pub balance: Balance,
    /// A path to ask for now and then.
    pub health: Option<String>,
    /// Whose certificates they may have.
    pub authorities: Authorities,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    pool: BTreeMap<String, Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    origin: Vec<String>,
    balance: Option<String>,
    health: Option<String>,
    ca: Option<PathBuf>,
}

impl Pool {
    /// # Errors
    /// In words, when a URL or path is none, or there is no URL.
    pub fn new(
        origins: &[String],
        balance: Balance,
        health: Option<String>,
    ) -> Result<Pool, String> {
        let url = |text: &String| {
            let url = text.parse::<Uri>();
            url.map_err(|error| format!("{text:?}: {error}"))
        };
        if let Some(path) = health.as_ref().filter(|path| !path.starts_with('/')) {
            return Err(format!("{path:?}: a path to ask for begins with /"));
        }
        let origins: Vec<Uri> = origins.iter().map(url).collect::<Result<_, _>>()?;
        if origins.is_empty() {
            return Err("it has no origin, such as \"http://127.0.0.1:8080\"".into());
        }
        Ok(Pool {
            origins,
            balance,
            health,
            authorities: Authorities::default(),
        })
    }

    /// With certificates of these authorities alone, if a file of them is given.
    ///
    /// # Errors
    /// In words, when it cannot be read, or holds none.
    pub fn trusting(self, file: Option<&Path>) -> Result<Pool, String> {
        let Some(file) = file else {
            return Ok(self);
        };
        let read = Authorities::read(file);
        let authorities = read.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Pool {
            authorities,
            ..self
        })
    }
}

/// Reads the `[pool.NAME]` tables; what they leave open is as in `usual`.
///
/// # Errors
/// With file and pool, for what means nothing.
pub fn read(path: &str, text: &str, usual: &Pool) -> Result<Pools, Wrong> {
    let file: File = toml::from_str(text).map_err(|error| Wrong(format!("{path}: {error}")))?;
    let pools = file.pool.into_iter().map(|(name, written)| {
        let balance = written.balance.as_deref().map(Balance::parse).transpose();
        let health = written.health.or_else(|| usual.health.clone());
        let pool = balance.and_then(|balance| {
            let pool = Pool::new(&written.origin, balance.unwrap_or(usual.balance), health)?;
            let authorities = usual.authorities.clone();
            Pool {
                authorities,
                ..pool
            }
            .trusting(written.ca.as_deref())
        });
        let pool = pool.map_err(|why| Wrong(format!("{path}: [pool.{name}]: {why}")))?;
        if name.is_empty() {
            return Err(Wrong(format!("{path}: a pool has a name")));
        }
        Ok((name.into(), pool))
    });
    pools.collect()
}
