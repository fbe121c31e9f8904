//! The settings of every server.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{
    CmcdCollectorSettings, Setting, SettingLayers, TracingSettings, UsageError,
    parse_listen_address, units,
};
use crate::metrics::Metrics;
use crate::record::{RecordFormat, Recorder};
use crate::resources::MemoryLimit;
use crate::server::TlsIdentity;
use crate::viewers::CmcdCollector;
use crate::{Cidr, Limits, MinRate, ServerOptions, TrustedNetworks};

/// Default value of the setting `send-memory`.
pub(crate) const SEND_MEMORY: &str = "25% up to 1GiB";

/// The settings that every server has, except the addresses to listen on.
pub const COMMON: &[Setting] = &[
    Setting::new(
        "workers",
        "N",
        "0",
        "Worker threads; 0 starts one per usable processor (affinity, CPU quota)",
    ),
    Setting::new(
        "tls-cert",
        "FILE",
        "",
        "Certificate chain in PEM; enables TLS on all listeners",
    ),
    Setting::new("tls-key", "FILE", "", "Private key in PEM"),
    Setting::new(
        "client-ca",
        "FILE",
        "",
        "PEM file of authorities; clients then need a certificate that one of them signed",
    ),
    Setting::new(
        "log-format",
        "text|json",
        "text",
        "Format of the log on standard error",
    ),
    Setting::new(
        "log",
        "FILTER",
        "info",
        "Log filter: error, warn, info, debug, or tracing's directives",
    ),
    Setting::new(
        "records",
        "FILE",
        "",
        "File for a record of each request, in records-format",
    ),
    Setting::new(
        "records-format",
        "json|common|combined|w3c",
        "json",
        "Format of the records file; all but json are access logs",
    ),
    Setting::new(
        "connections-max",
        "N",
        "32768",
        "Limit on open connections; a further one gets 503",
    ),
    Setting::new(
        "connections-per-address-max",
        "N",
        "16384",
        "Limit on open connections of one client address",
    ),
    Setting::new(
        "requests-per-address-max",
        "N",
        "0",
        "Limit on requests per second of one client address (IPv6: /64); then 429; 0: none",
    ),
    Setting::new(
        "requests-per-network-max",
        "N",
        "0",
        "Limit on requests per second of one network (IPv4: /24, IPv6: /48); 0: none",
    ),
    Setting::new(
        "request-burst",
        "DURATION",
        "10s",
        "Burst limit of an idle client: the requests that its rate limit permits in this time",
    ),
    Setting::new(
        "header-timeout",
        "DURATION",
        "10s",
        "Timeout for the header of a request to arrive",
    ),
    Setting::new(
        "idle-timeout",
        "DURATION",
        "75s",
        "Time after which a connection without a request is closed",
    ),
    Setting::new(
        "stall-timeout",
        "DURATION",
        "30s",
        "Time after which a client that reads nothing of its response is cut",
    ),
    Setting::new(
        "memory-limit",
        "MEMORY",
        "",
        "Memory for this process [default: the control group's limit, else the RAM]",
    ),
    Setting::new(
        "send-memory",
        "MEMORY",
        SEND_MEMORY,
        "Buffer limit of TLS and HTTP/2 responses; beyond it, 503",
    ),
    Setting::new(
        "min-rate",
        "SIZE",
        "1KiB",
        "Minimum bytes per second of a client while 80 % of send-memory is used; 0B: none",
    ),
    Setting::new(
        "header-bytes-max",
        "SIZE",
        "64KiB",
        "Limit on the header bytes of a request; beyond it, 431",
    ),
    Setting::new(
        "http2-streams-max",
        "N",
        "128",
        "Limit on concurrent requests of one HTTP/2 connection",
    ),
    Setting::new(
        "http2-stream-window",
        "SIZE",
        "256KiB",
        "HTTP/2 flow-control window of a stream, for request bodies",
    ),
    Setting::new(
        "http2-connection-window",
        "SIZE",
        "1MiB",
        "HTTP/2 flow-control window of a connection, for request bodies",
    ),
    Setting::new(
        "connection-send-buffer",
        "SIZE",
        "4MiB",
        "Limit on buffered response bytes of a connection; beyond it, frames have 4KiB",
    ),
    Setting::new(
        "near-rtt",
        "DURATION",
        "1ms",
        "Round-trip time below which clients are not paced by BBR; 0s paces all",
    ),
    Setting::new(
        "announce",
        "DURATION",
        "0s",
        "Time after SIGTERM in which /readyz fails but connections are still accepted",
    ),
    Setting::new(
        "drain-timeout",
        "DURATION",
        "30s",
        "Time after announce in which responses in progress may finish",
    ),
    Setting::new(
        "handover-socket",
        "FILE",
        "",
        "Unix socket over which a new process takes the ports of this one, which then drains",
    ),
    Setting::new(
        "trust-proxy",
        "NETWORK",
        "",
        "Network of proxies that send a PROXY header, version 2, such as 10.0.0.0/8",
    )
    .as_list(),
    Setting::new(
        "trust-forwarded",
        "NETWORK",
        "",
        "Network of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8",
    )
    .as_list(),
];

/// Clients with a longer round-trip time are outside the data center. They share links with other
/// traffic, so they are paced.
const NEAR_RTT: Duration = Duration::from_millis(1);

/// The parsed values of [`COMMON`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonSettings {
    /// Number of worker threads. 0 means [`crate::resources::default_workers`].
    pub workers: usize,
    /// Files of the certificate chain and the private key, both in PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// PEM file of the authorities that must have issued the clients' certificates. Requires `tls`.
    pub client_ca: Option<PathBuf>,
    /// Format of the log.
    pub log_format: ProgramLogFormat,
    /// Log filter, which is a level or `tracing` directives.
    pub log: String,
    /// File for a record of each request.
    pub records: Option<PathBuf>,
    /// Format of the records file.
    pub records_format: RecordFormat,
    /// Settings of traces and `Server-Timing`.
    pub tracing: TracingSettings,
    /// The Unix socket over which a successor process receives the listening sockets.
    pub handover_socket: Option<PathBuf>,
    /// Limits per client.
    pub limits: Limits,
    /// Proxies that are trusted to report the client's address.
    pub trust: TrustedNetworks,
    /// Clients with a shorter round-trip time are not paced.
    pub near_rtt: Duration,
    /// The memory limit that the operator has set. If `None`, the limit is detected.
    pub memory_limit_bytes: Option<u64>,
    /// Limit on the copied response bytes that wait to be sent. `None` means 25 % of the memory
    /// limit, at most 1 GiB.
    pub send_memory_bytes: Option<u64>,
    /// Settings of the CMCD collector.
    pub collector: CmcdCollectorSettings,
}

/// Format of the log on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramLogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line, for programs.
    Json,
}

impl CommonSettings {
    /// Parses the settings.
    ///
    /// # Errors
    /// [`UsageError`] with the setting and the source of the first invalid value.
    pub fn new(layers: &SettingLayers) -> Result<CommonSettings, UsageError> {
        let tls = match (
            layers.setting_path("tls-cert"),
            layers.setting_path("tls-key"),
        ) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                let what = "tls-cert and tls-key must be set together";
                return Err(UsageError(what.into()));
            }
        };
        let client_ca = layers.setting_path("client-ca");
        if client_ca.is_some() && tls.is_none() {
            let what = "client-ca requires TLS; set tls-cert and tls-key";
            return Err(UsageError(what.into()));
        }
        let format = layers.parse_setting("log-format", parse_program_log_format)?;
        Ok(CommonSettings {
            workers: layers
                .parse_setting("workers", units::parse_count)?
                .unwrap_or(0),
            tls,
            client_ca,
            log_format: format.unwrap_or(ProgramLogFormat::Text),
            log: layers.setting_text("log").unwrap_or("info").to_owned(),
            records: layers.setting_path("records"),
            records_format: layers
                .parse_setting("records-format", RecordFormat::from_name)?
                .unwrap_or_default(),
            tracing: TracingSettings::new(layers)?,
            handover_socket: layers.setting_path("handover-socket"),
            limits: read_limits(layers)?,
            trust: TrustedNetworks {
                proxy: read_networks(layers, "trust-proxy")?,
                forwarded: read_networks(layers, "trust-forwarded")?,
            },
            near_rtt: layers
                .parse_setting("near-rtt", units::parse_duration)?
                .unwrap_or(NEAR_RTT),
            memory_limit_bytes: layers.memory_limit_bytes()?,
            send_memory_bytes: layers.parse_memory_setting("send-memory")?,
            collector: CmcdCollectorSettings::new(layers)?,
        })
    }

    /// Returns the memory that this process may use.
    pub fn memory_limit(&self) -> MemoryLimit {
        let set = self
            .memory_limit_bytes
            .map(MemoryLimit::from_configured_bytes);
        set.unwrap_or_else(MemoryLimit::detect_memory_limit)
    }

    /// Reads the certificate and its key, and returns the options of the port for clients.
    ///
    /// # Errors
    /// The errors of [`CommonSettings::read_tls`].
    pub fn server_options(&self) -> io::Result<ServerOptions> {
        Ok(ServerOptions {
            tls: self.read_tls()?,
            limits: self.limits.clone(),
            trust: self.trust.clone(),
            near_rtt: self.near_rtt,
            send_memory_bytes: self.send_memory_bytes,
            workers: self.workers,
            ..ServerOptions::default()
        })
    }

    /// Reads the certificate, its key and the client authorities. Returns `None` if TLS is not
    /// configured.
    ///
    /// # Errors
    /// An error with the name of the file that cannot be read.
    pub fn read_tls(&self) -> io::Result<Option<TlsIdentity>> {
        let Some((cert, key)) = &self.tls else {
            return Ok(None);
        };
        let read = |path: &Path| {
            let named = |e: io::Error| {
                let cause = crate::describe_io_error(&e);
                io::Error::new(e.kind(), format!("cannot read {}: {cause}", path.display()))
            };
            std::fs::read(path).map_err(named)
        };
        Ok(Some(TlsIdentity {
            cert: read(cert)?,
            key: read(key)?,
            client_ca: self.client_ca.as_deref().map(read).transpose()?,
        }))
    }

    /// Opens the records file, if the setting `records` is set.
    ///
    /// # Errors
    /// An error with the name of the file that cannot be opened.
    pub fn open_recorder(&self, metrics: &Metrics) -> io::Result<Option<Recorder>> {
        let Some(path) = &self.records else {
            return Ok(None);
        };
        let named = |e: io::Error| {
            let cause = crate::describe_io_error(&e);
            io::Error::new(e.kind(), format!("cannot open {}: {cause}", path.display()))
        };
        let recorder = Recorder::open_file(path, self.records_format, metrics);
        recorder.map(Some).map_err(named)
    }

    /// Opens the CMCD collector, if it is enabled. `recorder` is the result of
    /// [`Self::open_recorder`].
    ///
    /// # Errors
    /// An error with the name of the records file that cannot be opened.
    pub fn open_collector(
        &self,
        metrics: &Metrics,
        recorder: Option<&Recorder>,
    ) -> io::Result<Option<Arc<CmcdCollector>>> {
        CmcdCollector::from_settings(&self.collector, metrics, recorder)
    }

    /// Starts the log on standard error. If the process already has a log, that log stays in use.
    ///
    /// # Errors
    /// [`UsageError`] when the filter is invalid.
    pub fn start_log(&self) -> Result<(), UsageError> {
        use tracing_subscriber::{EnvFilter, fmt};
        let filter = EnvFilter::try_new(&self.log);
        let filter =
            filter.map_err(|e| UsageError(format!("log = {:?} (--log): {e}", self.log)))?;
        let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
        let terminal = io::IsTerminal::is_terminal(&io::stderr());
        // `try_init` fails only if the process already has a log. That log then stays in use.
        let _ = match self.log_format {
            ProgramLogFormat::Text => builder.with_ansi(terminal).try_init(),
            ProgramLogFormat::Json => builder.json().flatten_event(true).try_init(),
        };
        Ok(())
    }
}

fn read_limits(layers: &SettingLayers) -> Result<Limits, UsageError> {
    let default = Limits::default();
    let time = |name, default| {
        Ok(layers
            .parse_setting(name, units::parse_duration)?
            .unwrap_or(default))
    };
    let count = |name, default| {
        Ok(layers
            .parse_setting(name, units::parse_count)?
            .unwrap_or(default))
    };
    let rate = |name| Ok(layers.parse_setting(name, parse_request_rate)?.unwrap_or(0));
    let bytes = |name, default| {
        Ok(layers
            .parse_setting(name, parse_header_bytes)?
            .unwrap_or(default))
    };
    let window = |name, default| {
        Ok(layers
            .parse_setting(name, parse_window_bytes)?
            .unwrap_or(default))
    };
    Ok(Limits {
        connections_max: count("connections-max", default.connections_max)?,
        connections_per_address_max: count(
            "connections-per-address-max",
            default.connections_per_address_max,
        )?,
        requests_per_address_max: rate("requests-per-address-max")?,
        requests_per_network_max: rate("requests-per-network-max")?,
        request_burst: time("request-burst", default.request_burst)?,
        header_timeout: time("header-timeout", default.header_timeout)?,
        idle_timeout: time("idle-timeout", default.idle_timeout)?,
        stall_timeout: time("stall-timeout", default.stall_timeout)?,
        announce: time("announce", default.announce)?,
        drain_timeout: time("drain-timeout", default.drain_timeout)?,
        header_bytes_max: bytes("header-bytes-max", default.header_bytes_max)?,
        streams_max: layers
            .parse_setting("http2-streams-max", parse_stream_count)?
            .unwrap_or(default.streams_max),
        stream_window_bytes: window("http2-stream-window", default.stream_window_bytes)?,
        connection_window_bytes: window(
            "http2-connection-window",
            default.connection_window_bytes,
        )?,
        connection_send_buffer_bytes: layers
            .parse_setting("connection-send-buffer", units::parse_bytes)?
            .unwrap_or(default.connection_send_buffer_bytes),
        min_rate: MinRate {
            bytes_per_s: layers
                .parse_setting("min-rate", units::parse_bytes)?
                .unwrap_or(default.min_rate.bytes_per_s),
            ..default.min_rate
        },
        ..default
    })
}

/// Smallest permitted flow-control window. An HTTP/2 connection starts with a window of about this
/// size (RFC 9113), so a smaller value would have no effect on the connection.
const WINDOW_BYTES_MIN: u64 = 64 << 10;

fn parse_window_bytes(text: &str) -> Result<u32, String> {
    let bytes = units::parse_bytes(text)?;
    let fits = (WINDOW_BYTES_MIN..1 << 31).contains(&bytes);
    let window = u32::try_from(bytes).ok().filter(|_| fits);
    window.ok_or_else(|| "expected a window from 64KiB to 2047MiB".to_owned())
}

fn parse_header_bytes(text: &str) -> Result<usize, String> {
    let bytes = usize::try_from(units::parse_bytes(text)?).ok();
    let bytes = bytes.filter(|bytes| (8 << 10..=16 << 20).contains(bytes));
    bytes.ok_or_else(|| "expected a limit from 8KiB to 16MiB".to_owned())
}

fn parse_request_rate(text: &str) -> Result<u32, String> {
    let per_s = u32::try_from(units::parse_count(text)?).ok();
    let per_s = per_s.filter(|per_s| *per_s <= 1_000_000);
    per_s.ok_or_else(|| "expected at most 1000000 requests per second".to_owned())
}

fn parse_stream_count(text: &str) -> Result<u32, String> {
    let count = u32::try_from(units::parse_count(text)?).ok();
    let count = count.filter(|count| (1..=10_000).contains(count));
    count.ok_or_else(|| "expected 1 to 10000 streams".to_owned())
}

/// Parses the settings of a server's admin port. Returns the port's address and the file with the
/// port's token.
///
/// # Errors
/// [`UsageError`] when only one of the two settings is set, or when the address is invalid.
pub fn read_admin_port(layers: &SettingLayers) -> Result<Option<(String, PathBuf)>, UsageError> {
    match (
        layers.parse_setting("admin", parse_listen_address)?,
        layers.setting_path("admin-token-file"),
    ) {
        (Some(listen), Some(token)) => Ok(Some((listen, token))),
        (None, None) => Ok(None),
        _ => {
            let what = "admin and admin-token-file must be set together";
            Err(UsageError(what.into()))
        }
    }
}

fn read_networks(layers: &SettingLayers, name: &str) -> Result<Vec<Cidr>, UsageError> {
    let list = layers.setting_texts(name);
    let parse = |text: &String| {
        Cidr::parse_network(text).map_err(|why| UsageError(format!("{name}: {why}")))
    };
    list.iter().map(parse).collect()
}

fn parse_program_log_format(text: &str) -> Result<ProgramLogFormat, String> {
    match text {
        "text" => Ok(ProgramLogFormat::Text),
        "json" => Ok(ProgramLogFormat::Json),
        _ => Err("expected text or json".into()),
    }
}
