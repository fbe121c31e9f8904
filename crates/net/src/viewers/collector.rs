//! The collector, which adds the reports of players to sessions, metrics and records.

use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::Conn;
use crate::cmcd::CmcdData;
use crate::config::CmcdCollectorSettings;
use crate::metrics::Metrics;
use crate::record::{CmcdRecord, Recorder};

use super::client_network::ClientNetwork;
use super::collector_metrics::CmcdCollectorMetrics;
use super::session::{ReportMode, ViewerReport};
use super::session_table::ViewerSessionTable;
use super::viewer_class::{ViewerClass, ViewerClasses};

/// Path to which players send event reports, on the port for viewers.
pub const CMCD_PATH: &str = "/cmcd";
/// Path of a JSON object that tells the player page whether the server collects event reports.
pub const DISCOVERY_PATH: &str = "/-/collector.json";

/// Collects the reports of players. One instance serves the whole process.
#[derive(Debug)]
pub struct CmcdCollector {
    pub(super) table: Arc<ViewerSessionTable>,
    pub(super) metrics: CmcdCollectorMetrics,
    recorder: Option<Recorder>,
    sample_percent: u8,
}

impl CmcdCollector {
    /// Creates the collector that the settings describe; `None` if the collector is disabled.
    /// `main` is the process's own recorder, if the process has a recorder.
    ///
    /// # Errors
    /// When the file for the collector's records cannot be opened.
    pub fn from_settings(
        settings: &CmcdCollectorSettings,
        metrics: &Metrics,
        main: Option<&Recorder>,
    ) -> io::Result<Option<Arc<CmcdCollector>>> {
        if !settings.is_enabled {
            return Ok(None);
        }
        let recorder = match &settings.records {
            Some(path) => Some(Recorder::open_for_cmcd(path, main, metrics)?),
            None => None,
        };
        let classes = ViewerClasses::new(settings);
        let table = ViewerSessionTable::new(settings.sessions_max, settings.idle_timeout, classes);
        let table = Arc::new(table);
        Ok(Some(Arc::new(CmcdCollector {
            metrics: CmcdCollectorMetrics::new(metrics, &table),
            table,
            recorder,
            sample_percent: settings.sample_percent,
        })))
    }

    /// Returns the writer of the collector's records, if records are configured.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Collects the CMCD data of a request for media. A request without CMCD data changes nothing.
    pub fn collect_request(&self, data: &CmcdData, path: &str, conn: &Conn) {
        if !data.is_empty() {
            self.collect_report(data, ReportMode::Request, path, conn);
        }
    }

    pub(super) fn collect_report(
        &self,
        data: &CmcdData,
        mode: ReportMode,
        path: &str,
        conn: &Conn,
    ) {
        let report = ViewerReport {
            data,
            mode,
            path,
            client: conn.client(),
            connection: conn.weak_handle(),
            now: Instant::now(),
        };
        let change = self.table.apply_report(&report);
        self.metrics.count_report(mode, data, &change);
        self.record_report(&report, change.class, conn);
    }

    fn record_report(&self, report: &ViewerReport<'_>, class: ViewerClass, conn: &Conn) {
        let (data, mode) = (report.data, report.mode);
        let id = data.string_value("sid").unwrap_or_default();
        let Some(recorder) = &self.recorder else {
            return;
        };
        if !is_sampled(id, self.sample_percent) {
            return;
        }
        let [network_name, title_class] = self.table.classes().network_and_title_names(class);
        recorder.record_cmcd(CmcdRecord {
            time: SystemTime::now(),
            record: "cmcd",
            mode: match mode {
                ReportMode::Request => "request",
                ReportMode::Event => "event",
            },
            connection: conn.id(),
            network: ClientNetwork::from(conn.client()).to_string(),
            network_name: network_name.to_owned(),
            title_class: title_class.to_owned(),
            path: (mode == ReportMode::Request).then(|| report.path.into()),
            cmcd: data.to_full_record(),
        });
    }

    /// Returns the number of sessions.
    pub fn session_count(&self) -> usize {
        self.table.count_open_sessions(Instant::now())
    }
}

/// Returns whether the reports of a session are recorded. All servers choose the same sessions, so
/// that the records of a chosen session are complete.
fn is_sampled(id: &str, percent: u8) -> bool {
    // FNV-1a is fast, and returns the same value on every server. A viewer can choose its session
    // id, but the id decides only whether the viewer's own reports are recorded.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) % 100 < u64::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_contains_its_share_of_the_sessions() {
        let count = |percent| {
            let ids = (0..10_000).map(|n| format!("6e2fb550-c457-11e9-bb97-{n:012x}"));
            ids.filter(|id| is_sampled(id, percent)).count()
        };
        assert_eq!((count(0), count(100)), (0, 10_000));
        assert!((800..1200).contains(&count(10)), "{}", count(10));
    }
}
