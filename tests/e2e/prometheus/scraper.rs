//! A Prometheus process that scrapes servers every second.

use crate::servers::{self, Process};
use crate::support::{HttpResponse, TempFolder, report_skip, send_request};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

/// Maximum time to wait for any condition.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running Prometheus with its folder.
pub struct Prometheus {
    address: SocketAddr,
    _process: Process,
    _folder: TempFolder,
}

/// A server to scrape: job, scheme and address.
pub type ScrapeTarget<'a> = (&'a str, &'a str, SocketAddr);

impl Prometheus {
    /// Starts Prometheus. Reports a skip and returns `None` if Prometheus is not installed.
    pub fn start(targets: &[ScrapeTarget<'_>], rules: Option<&str>) -> Option<Prometheus> {
        if Command::new("prometheus")
            .arg("--version")
            .output()
            .is_err()
        {
            report_skip("prometheus: not installed; run scripts/install.sh test");
            return None;
        }
        // Tries several ports, because another process may take a free port before Prometheus
        // listens on it.
        (0..5).find_map(|_| Prometheus::try_start(targets, rules))
    }

    fn try_start(targets: &[ScrapeTarget<'_>], rules: Option<&str>) -> Option<Prometheus> {
        let folder = TempFolder::new();
        let config = render_config(targets, rules.is_some());
        let config = folder.write_file("prometheus.yml", config.as_bytes());
        folder.write_file("rules.yaml", rules.unwrap_or_default().as_bytes());
        let port = servers::free_ports(1)[0];
        let process = servers::start_server(
            port,
            Command::new("prometheus")
                .arg(format!("--config.file={}", config.display()))
                .arg(format!(
                    "--storage.tsdb.path={}",
                    folder.0.join("data").display()
                ))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--enable-feature=exemplar-storage"),
        )?;
        Some(Prometheus {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            _process: process,
            _folder: folder,
        })
    }

    /// Returns the values of an instant query. Panics if Prometheus rejects the query.
    pub fn query(&self, query: &str) -> Vec<f64> {
        let response = self.get(&format!("/api/v1/query?query={}", escape_query(query)));
        // Prometheus is not ready yet.
        if response.status == 503 {
            return Vec::new();
        }
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(response.status, 200, "{query}: {body}");
        let results = body["data"]["result"].as_array().unwrap();
        let value = |result: &Value| result["value"][1].as_str().unwrap().parse().unwrap();
        results.iter().map(value).collect()
    }

    /// Returns the names of the alerts that fire now.
    pub fn firing_alerts(&self) -> Vec<String> {
        let response = self.get("/api/v1/alerts");
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let alerts = body["data"]["alerts"].as_array().cloned();
        let firing = alerts.unwrap_or_default();
        let firing = firing.iter().filter(|alert| alert["state"] == "firing");
        let name = |alert: &Value| alert["labels"]["alertname"].as_str().unwrap().to_owned();
        firing.map(name).collect()
    }

    pub fn get(&self, target: &str) -> HttpResponse {
        send_request(self.address, "GET", target, &[])
    }
}

fn render_config(targets: &[ScrapeTarget<'_>], has_rules: bool) -> String {
    let mut config = String::from(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nscrape_configs:\n",
    );
    for (job, scheme, address) in targets {
        config += &format!(
            "  - job_name: {job}\n    scheme: {scheme}\n    tls_config:\n      \
             insecure_skip_verify: true\n    static_configs:\n      - targets: ['{address}']\n"
        );
    }
    if has_rules {
        config += "rule_files:\n  - rules.yaml\n";
    }
    config
}

/// Calls `work` and then `is_true`, until `is_true` returns true. Returns false after [`PATIENCE`].
pub fn wait_until(mut work: impl FnMut(), mut is_true: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        work();
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

fn escape_query(query: &str) -> String {
    let escape = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
        other => format!("%{other:02X}"),
    };
    query.bytes().map(escape).collect()
}
