//! Checks that alerts fire when faults are induced in real servers.

use super::scraper::{Prometheus, wait_until};
use crate::support::{HeadwaterServer, TempFolder};
use std::path::Path;

/// Returns the rules with windows of 5 seconds instead of minutes and hours, and without `for`
/// durations.
fn shorten_windows(rules: &str) -> String {
    let shortened = rules.lines().map(|line| {
        let line = match line.trim_start().starts_with("for: ") {
            true => return String::new(),
            false => line.to_owned(),
        };
        ["[5m]", "[15m]", "[30m]", "[1h]", "[6h]"]
            .iter()
            .fold(line, |line, window| line.replace(window, "[5s]"))
    });
    shortened.collect::<Vec<_>>().join("\n")
}

fn read_shortened_rules() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus/alerts.yaml");
    shorten_windows(&std::fs::read_to_string(path).unwrap())
}

/// Writes a certificate that expires in 3 days, and its key. Returns both paths.
pub fn write_certificate(folder: &TempFolder) -> [String; 2] {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
    let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(3 * 86_400);
    params.not_after = soon.into();
    let key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    let cert = folder.write_file("cert.pem", cert.pem().as_bytes());
    let key = folder.write_file("key.pem", key.serialize_pem().as_bytes());
    [cert, key].map(|path| path.display().to_string())
}

#[test]
fn alerts_fire_from_failing_origins_keys_and_certificates() {
    let folder = TempFolder::new();
    let mut origin = HeadwaterServer::serve(&[]);
    let edge = HeadwaterServer::start_program("edge", &["--origin", &origin.url("")]);
    // No key server listens at this address.
    let keys = [
        "--drm-keys",
        "speke:http://127.0.0.1:9/",
        "--drm-systems",
        "clearkey",
    ];
    let protected = HeadwaterServer::serve(&keys);
    let [cert, key] = write_certificate(&folder);
    let secure = HeadwaterServer::serve(&["--tls-cert", &cert, "--tls-key", &key]);
    let targets = [
        ("edge", "http", edge.addr),
        ("protected", "http", protected.addr),
        ("secure", "https", secure.addr),
    ];
    let Some(prometheus) = Prometheus::start(&targets, Some(&read_shortened_rules())) else {
        return;
    };
    let expected = [
        "HeadwaterErrorsFast",
        "HeadwaterOriginSuspended",
        "HeadwaterKeysFail",
    ];
    let load = || {
        for number in 0..20 {
            edge.get(&format!("/Headwater/.m3u8?{number}"));
        }
    };
    // Waits until the rules have been evaluated with data from before the first fault.
    let is_loaded = || !prometheus.query("headwater:slow:ratio_rate5m").is_empty();
    assert!(wait_until(load, is_loaded));
    let of_certificate = ["HeadwaterCertificateExpires"];
    assert!(wait_until(load, || prometheus.firing_alerts() == of_certificate));
    origin.terminate();
    let fail = || {
        load();
        edge.get("/new");
        protected.get("/Headwater/.m3u8");
    };
    let mut firing = Vec::new();
    let all_fire = wait_until(fail, || {
        firing = prometheus.firing_alerts();
        expected
            .iter()
            .all(|name| firing.iter().any(|found| found == name))
    });
    assert!(all_fire, "only {firing:?}");
}
