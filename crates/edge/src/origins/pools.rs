//! Declared origin pools: the default pool from the setting `origin`, and the other pools from the
//! tables `[pool.NAME]` of the settings file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use net::config::UsageError;
use serde::Deserialize;
use upstream::TrustedAuthorities;

use super::BalanceMethod;
use super::dns_origin::DnsOrigin;

/// Pools by name. The default pool has the empty name.
pub type PoolSettingsByName = BTreeMap<Arc<str>, OriginPoolSettings>;

/// Interchangeable origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPoolSettings {
    /// The URLs of the origins, at least one.
    pub origins: Vec<Uri>,
    pub balance: BalanceMethod,
    /// Whether the edge sends its secret to the origins of this pool.
    pub gets_secret: bool,
    /// Path of the health probes.
    pub health: Option<String>,
    /// Certificate authorities that the edge trusts when it verifies the origins' TLS certificates.
    pub authorities: TrustedAuthorities,
}

#[derive(Deserialize)]
struct PoolsFile {
    #[serde(default)]
    pool: BTreeMap<String, PoolTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolTable {
    origin: Vec<String>,
    balance: Option<String>,
    health: Option<String>,
    ca: Option<PathBuf>,
    /// `false` if another organization operates the origins. Such origins must not receive the
    /// secret.
    #[serde(rename = "edge-secret")]
    edge_secret: Option<bool>,
}

impl OriginPoolSettings {
    /// Creates a pool.
    ///
    /// # Errors
    /// A message that describes the invalid URL or health path, or reports that the pool has no
    /// origin.
    pub fn new(
        origins: &[String],
        balance: BalanceMethod,
        health: Option<String>,
    ) -> Result<OriginPoolSettings, String> {
        let url = |text: &String| {
            let url = text.parse::<Uri>();
            let url = url.map_err(|error| format!("{text:?}: {error}"))?;
            match DnsOrigin::from_uri(&url) {
                Some(Err(why)) => Err(why),
                _ => Ok(url),
            }
        };
        if let Some(path) = health.as_ref().filter(|path| !path.starts_with('/')) {
            return Err(format!(
                "{path:?}: the path of a health probe begins with /"
            ));
        }
        let origins: Vec<Uri> = origins.iter().map(url).collect::<Result<_, _>>()?;
        if origins.is_empty() {
            return Err("no origin; add one, such as \"http://127.0.0.1:8080\"".into());
        }
        Ok(OriginPoolSettings {
            origins,
            balance,
            gets_secret: true,
            health,
            authorities: TrustedAuthorities::default(),
        })
    }

    /// Replaces the trusted certificate authorities with the authorities in `file`. Without a
    /// `file`, changes nothing.
    ///
    /// # Errors
    /// A message if the file is unreadable, or contains no valid certificate.
    pub fn with_authorities_file(self, file: Option<&Path>) -> Result<OriginPoolSettings, String> {
        let Some(file) = file else {
            return Ok(self);
        };
        let read = TrustedAuthorities::private_from_pem_file(file);
        let authorities = read.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(OriginPoolSettings {
            authorities,
            ..self
        })
    }
}

/// Reads the `[pool.NAME]` tables. If a table lacks the balance method, the health path or the
/// certificate authorities, its pool gets the missing value from `usual`.
///
/// # Errors
/// The first invalid value, with the names of the file and the pool.
pub fn read_pools(
    path: &str,
    text: &str,
    usual: &OriginPoolSettings,
) -> Result<PoolSettingsByName, UsageError> {
    let file: PoolsFile =
        toml::from_str(text).map_err(|error| UsageError(format!("{path}: {error}")))?;
    let pools = file.pool.into_iter().map(|(name, written)| {
        let balance = written
            .balance
            .as_deref()
            .map(BalanceMethod::parse_method)
            .transpose();
        let health = written.health.or_else(|| usual.health.clone());
        let pool = balance.and_then(|balance| {
            let pool =
                OriginPoolSettings::new(&written.origin, balance.unwrap_or(usual.balance), health)?;
            let authorities = usual.authorities.clone();
            OriginPoolSettings {
                authorities,
                gets_secret: written.edge_secret.unwrap_or(true),
                ..pool
            }
            .with_authorities_file(written.ca.as_deref())
        });
        let pool = pool.map_err(|why| UsageError(format!("{path}: [pool.{name}]: {why}")))?;
        if name.is_empty() {
            return Err(UsageError(format!("{path}: a pool needs a name")));
        }
        Ok((name.into(), pool))
    });
    pools.collect()
}
