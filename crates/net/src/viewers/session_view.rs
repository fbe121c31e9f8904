//! A copy of a session for the viewers page and its JSON, with TCP statistics of the connection.

use std::time::Instant;

use serde::Serialize;

use crate::{TcpInfo, WeakConnection};

use super::session::ViewerSession;

/// A session as an operator sees it. Durations are in milliseconds, bitrates in kbit/s.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SessionView {
    pub session: String,
    pub title: Option<String>,
    /// Name of the title class, as defined in the setting `cmcd-title-class`, or the default name.
    pub title_class: String,
    pub network: String,
    /// Name of the network, as defined in the setting `cmcd-network`, or a default name.
    pub network_name: String,
    pub pathway: Option<String>,
    pub state: &'static str,
    /// False if playback has ended, has failed or was stopped by the viewer.
    pub is_watching: bool,
    /// Time since the first report.
    pub age_ms: u64,
    /// Time since the latest report.
    pub idle_ms: u64,
    pub start_up_ms: Option<f64>,
    pub stalls: u64,
    pub stalled_ms: u64,
    pub bitrate_kbps: Option<f64>,
    pub top_bitrate_kbps: Option<f64>,
    pub buffer_ms: Option<f64>,
    pub throughput_kbps: Option<f64>,
    pub dropped_frames: Option<f64>,
    pub errors: u64,
    pub last_error: Option<String>,
    pub reports: u64,
    /// `None` if the connection is closed, or if its statistics were not read.
    pub tcp: Option<TcpView>,
    #[serde(skip)]
    connection: WeakConnection,
}

/// The TCP statistics of a session's connection.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TcpView {
    pub algorithm: String,
    pub rtt_us: Option<u32>,
    pub delivery_bytes_per_s: Option<u64>,
    /// Retransmitted bytes divided by sent bytes.
    pub retransmitted: Option<f64>,
}

impl SessionView {
    /// `class` contains the network name and the title class, in this order.
    pub(super) fn new(
        id: &str,
        session: &ViewerSession,
        class: [&str; 2],
        now: Instant,
    ) -> SessionView {
        let [network_name, title_class] = class.map(str::to_owned);
        let ms_since = |at| now.saturating_duration_since(at).as_millis() as u64;
        SessionView {
            session: id.to_owned(),
            title: session.title.clone(),
            title_class,
            network: session.network.to_string(),
            network_name,
            pathway: session.pathway.clone(),
            state: session.state.name(),
            is_watching: session.state.is_watching(),
            age_ms: ms_since(session.first_seen),
            idle_ms: ms_since(session.last_seen),
            start_up_ms: session.start_up_ms,
            stalls: session.stalls.stalls_so_far(),
            stalled_ms: session.stalls.total_stall_ms(now),
            bitrate_kbps: session.bitrate_kbps,
            top_bitrate_kbps: session.top_bitrate_kbps,
            buffer_ms: session.buffer_ms,
            throughput_kbps: session.throughput_kbps,
            dropped_frames: session.dropped_frames,
            errors: session.errors,
            last_error: session.last_error.clone(),
            reports: session.reports,
            tcp: None,
            connection: session.connection.clone(),
        }
    }

    /// Reads the TCP statistics of the session's connection. The read is a system call, so the
    /// caller must not hold the lock of the table.
    pub(super) fn read_tcp(&mut self) {
        self.tcp = self.connection.tcp_info().map(TcpView::from);
    }
}

impl From<TcpInfo> for TcpView {
    fn from(info: TcpInfo) -> TcpView {
        let bytes = info.bytes_retrans.zip(info.bytes_sent);
        TcpView {
            algorithm: info.algorithm,
            rtt_us: info.rtt_us,
            delivery_bytes_per_s: info.delivery_rate_bytes_per_s.filter(|rate| *rate > 0),
            retransmitted: bytes
                .map(|(retransmitted, sent)| retransmitted as f64 / sent.max(1) as f64),
        }
    }
}
