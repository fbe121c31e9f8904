//! Settings of `headwater edge`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use net::config::{
    CommonSettings, SettingLayers, UsageError, parse_bytes, parse_duration, parse_listen_address,
    read_admin_port,
};
use upstream::UpstreamLimits;

use crate::freshness::FreshnessPolicy;
use crate::origins::{
    self, BalanceMethod, HealthPolicy, OriginPolicy, OriginPoolSettings, PoolSettingsByName,
};
pub use crate::rules::TABLES;
use crate::rules::{self, RuleSet};

/// The parsed settings.
#[derive(Debug, Clone)]
pub struct EdgeSettings {
    /// The origin pools.
    pub pools: PoolSettingsByName,
    /// Timeouts, failure handling and retries of origins.
    pub treatment: OriginPolicy,
    /// Interval of the health probes.
    pub health_interval: Duration,
    /// Interval of the DNS lookups for origins.
    pub dns_interval: Duration,
    /// DNS servers for the origins. If empty, the system's DNS servers are used.
    pub dns_servers: Vec<SocketAddr>,
    /// Maximum size of a request's body.
    pub body_bytes_max: u64,
    /// Addresses to listen on, as `HOST:PORT`; at least one.
    pub listen: Vec<String>,
    /// Maximum size of the memory tier.
    pub memory_bytes: u64,
    /// Folder of the disk tier, and its maximum size in bytes.
    pub disk: Option<(PathBuf, u64)>,
    /// Whether the client's Host is forwarded to the origin. A forwarded Host is also a part of the
    /// cache key.
    pub client_host: bool,
    /// Request headers that are forwarded in addition to the default headers.
    pub forward: Vec<HeaderName>,
    /// Whether requests with a cookie bypass the cache.
    pub passes_cookies: bool,
    /// The operator's settings for the freshness of responses.
    pub policy: FreshnessPolicy,
    /// Address of the admin port, and the file with the port's token.
    pub admin: Option<(String, PathBuf)>,
    /// File with the secret that the edge sends to the origins.
    pub edge_secret: Option<PathBuf>,
    /// PEM files of the client certificate for TLS connections to the origins, and of its key.
    pub origin_certificate: Option<(PathBuf, PathBuf)>,
    /// The NATS server that sends commands to all edges.
    pub nats: Option<NatsSettings>,
    /// Interval of TCP samples for the records. If the interval is zero, only the start and the end
    /// of a response are sampled.
    pub tcp_interval: Duration,
    /// The rules of the settings file.
    pub rules: Arc<RuleSet>,
    /// Settings that all Headwater servers share.
    pub common: CommonSettings,
}

/// Reads a setting that is a time; zero if it is not set.
fn read_duration_setting(layers: &SettingLayers, name: &str) -> Result<Duration, UsageError> {
    Ok(layers
        .parse_setting(name, parse_duration)?
        .unwrap_or_default())
}

/// Reads how the edge treats origins: the limits of requests, and the health policy.
fn read_origin_policy(layers: &SettingLayers) -> Result<OriginPolicy, UsageError> {
    Ok(OriginPolicy {
        limits: UpstreamLimits {
            connect_timeout: read_duration_setting(layers, "origin-connect-timeout")?,
            first_byte_timeout: read_duration_setting(layers, "origin-first-byte-timeout")?,
            body_gap_timeout: read_duration_setting(layers, "origin-between-timeout")?,
            requests_max: layers
                .parse_setting("origin-at-once", parse_positive)?
                .unwrap_or(1024),
            ..UpstreamLimits::default()
        },
        care: HealthPolicy {
            failures_max: layers
                .parse_setting("origin-failures", parse_positive)?
                .unwrap_or(3),
            retry_after: read_duration_setting(layers, "origin-retry-after")?,
            slow_start: read_duration_setting(layers, "origin-slow-start")?,
        },
        retry_share: layers
            .parse_setting("origin-retries", parse_percent)?
            .unwrap_or(0.0),
    })
}

impl EdgeSettings {
    /// Parses the settings.
    ///
    /// # Errors
    /// [`UsageError`] for the first invalid value, with the setting's name and source.
    pub fn from_layers(layers: &SettingLayers) -> Result<EdgeSettings, UsageError> {
        let time = |name| read_duration_setting(layers, name);
        let name = |text: &String| {
            let wrong = |_| UsageError(format!("forward: invalid header name {text:?}"));
            text.parse().map_err(wrong)
        };
        Ok(EdgeSettings {
            treatment: read_origin_policy(layers)?,
            health_interval: time("origin-health-interval")?.max(HEALTH_INTERVAL_MIN),
            dns_interval: time("origin-dns-interval")?.max(DNS_INTERVAL_MIN),
            dns_servers: layers.parse_list_setting("dns-server", parse_dns_server)?,
            body_bytes_max: layers.parse_setting("body-max", parse_bytes)?.unwrap_or(0),
            listen: layers.parse_list_setting("listen", parse_listen_address)?,
            memory_bytes: read_memory_setting(layers)?,
            disk: match layers.setting_path("disk-dir") {
                Some(folder) => Some((
                    folder,
                    layers.parse_setting("disk", parse_disk_size)?.unwrap_or(0),
                )),
                None => None,
            },
            client_host: layers
                .parse_setting("forward-host", parse_host_policy)?
                .unwrap_or(false),
            forward: layers
                .setting_texts("forward")
                .iter()
                .map(name)
                .collect::<Result<_, _>>()?,
            passes_cookies: layers
                .parse_setting("cookies", parse_cookie_policy)?
                .unwrap_or(false),
            policy: FreshnessPolicy {
                negative: time("negative-ttl")?,
                heuristic_max: time("heuristic-max")?,
                ttl: None,
                stale_if_error: time("stale-if-error")?,
            },
            admin: read_admin_port(layers)?,
            edge_secret: layers.setting_path("edge-secret-file"),
            origin_certificate: origins::pair_certificate_and_key(
                layers.setting_path("origin-cert"),
                layers.setting_path("origin-key"),
            )?,
            nats: NatsSettings::from_layers(layers)?,
            tcp_interval: time("tcp-interval")?,
            rules: Arc::new(match layers.settings_file() {
                Some((path, text)) => rules::read_rules(path, text)?,
                None => RuleSet::default(),
            }),
            pools: read_pools(layers)?,
            common: CommonSettings::new(layers)?,
        })
    }

    /// Copies from `running` the settings that cannot change without a restart. Returns the names
    /// of the settings that differed.
    pub fn retain_fixed_settings(&mut self, running: &EdgeSettings) -> Vec<&'static str> {
        let mut fixed = Vec::new();
        let mut is_fixed = |name, same: bool| {
            if !same {
                fixed.push(name);
            }
        };
        is_fixed("listen", self.listen == running.listen);
        is_fixed("memory", self.memory_bytes == running.memory_bytes);
        is_fixed("disk", self.disk == running.disk);
        is_fixed("admin", self.admin == running.admin);
        is_fixed("edge-secret-file", self.edge_secret == running.edge_secret);
        is_fixed(
            "origin-cert",
            self.origin_certificate == running.origin_certificate,
        );
        is_fixed("nats", self.nats == running.nats);
        is_fixed("tcp-interval", self.tcp_interval == running.tcp_interval);
        is_fixed("common settings", self.common == running.common);
        self.listen.clone_from(&running.listen);
        self.memory_bytes = running.memory_bytes;
        self.disk.clone_from(&running.disk);
        self.admin.clone_from(&running.admin);
        self.edge_secret.clone_from(&running.edge_secret);
        self.origin_certificate
            .clone_from(&running.origin_certificate);
        self.nats.clone_from(&running.nats);
        self.tcp_interval = running.tcp_interval;
        self.common = running.common.clone();
        fixed
    }

    /// Time after an unshareable response during which requests for the same key do not wait for
    /// each other.
    pub const UNSHAREABLE_TTL: Duration = Duration::from_secs(10);
}

/// Minimum value of `memory`. An object may take 1/32 of the memory tier. With the minimum of 16
/// MiB, objects of almost 512 KiB are cached as a whole.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// Minimum interval of the probes. More frequent probes would put too much load on the origins.
const HEALTH_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Minimum interval between DNS lookups, to protect the DNS server.
const DNS_INTERVAL_MIN: Duration = Duration::from_millis(50);

fn parse_dns_server(text: &str) -> Result<SocketAddr, String> {
    let ip = || text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53));
    let address = text.parse().or_else(|_| ip());
    address.map_err(|_| "must be an address, such as 127.0.0.1:8600".into())
}

fn read_pools(layers: &SettingLayers) -> Result<PoolSettingsByName, UsageError> {
    let balance = layers.parse_setting("origin-balance", BalanceMethod::parse_method)?;
    let health = layers.setting_text("origin-health").map(str::to_owned);
    let origins = layers.setting_texts("origin");
    if origins.is_empty() {
        let missing = "--origin is missing; add the URL of an origin, such as \
                       --origin http://127.0.0.1:8080";
        return Err(UsageError(missing.into()));
    }
    let usual = OriginPoolSettings::new(&origins, balance.unwrap_or(BalanceMethod::Path), health);
    let usual = usual.map_err(|why| UsageError(format!("origin: {why}")))?;
    let usual = usual.with_authorities_file(layers.setting_path("origin-ca").as_deref());
    let usual = usual.map_err(|why| UsageError(format!("origin-ca: {why}")))?;
    let mut pools = match layers.settings_file() {
        Some((path, text)) => origins::read_pools(path, text, &usual)?,
        None => PoolSettingsByName::new(),
    };
    pools.insert("".into(), usual);
    Ok(pools)
}

fn parse_positive<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let count = text.parse().ok().filter(|count| *count >= T::from(1));
    count.ok_or_else(|| "must be a number of at least 1".into())
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent: Option<u32> = text.parse().ok().filter(|percent| *percent <= 100);
    let percent = percent.ok_or("must be a number from 0 to 100")?;
    Ok(f64::from(percent) / 100.0)
}

/// Reads `memory`. If a percentage results in less than [`MEMORY_BYTES_MIN`], returns this minimum.
fn read_memory_setting(layers: &SettingLayers) -> Result<u64, UsageError> {
    let bytes = layers.parse_memory_setting("memory")?.unwrap_or(0);
    let check = |text: &str| match bytes {
        enough if enough >= MEMORY_BYTES_MIN => Ok(enough),
        _ if text.contains('%') => Ok(MEMORY_BYTES_MIN),
        _ => Err("must be at least 16MiB".into()),
    };
    Ok(layers.parse_setting("memory", check)?.unwrap_or(bytes))
}

/// Minimum value of `disk`. By default, `memory` is at most 1 GiB, so an object in memory has at
/// most 32 MiB (1/32) and fits on disk.
const DISK_BYTES_MIN: u64 = 64 << 20;

fn parse_disk_size(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        enough if enough >= DISK_BYTES_MIN => Ok(enough),
        _ => Err("must be at least 64MiB".into()),
    }
}

fn parse_host_policy(text: &str) -> Result<bool, String> {
    match text {
        "origin" => Ok(false),
        "client" => Ok(true),
        _ => Err("must be origin or client".into()),
    }
}

fn parse_cookie_policy(text: &str) -> Result<bool, String> {
    match text {
        "cache" => Ok(false),
        "pass" => Ok(true),
        _ => Err("must be cache or pass".into()),
    }
}

mod help_groups;
mod nats_settings;
mod settings_table;
#[cfg(test)]
mod tests;

pub use nats_settings::NatsSettings;
pub use settings_table::{SETTINGS, define_edge_command, shorten_edge_help};
