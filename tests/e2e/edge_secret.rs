//! Tests the secret that edges and their origin share.

use crate::support::{HeadwaterServer, HttpResponse, TempFolder};
use std::time::{Duration, Instant};

const OLD: &str = "old-0123456789abcdef";
const NEW: &str = "new-0123456789abcdef";
/// Maximum time of every wait.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The secret files of the origin and the edge. Each file is a symbolic link into another folder,
/// as in a secret volume of Kubernetes.
struct SecretSetup {
    folder: TempFolder,
    versions: u32,
}

impl SecretSetup {
    fn new() -> SecretSetup {
        let folder = TempFolder::new();
        folder.write_file("films/a.bin", b"film");
        SecretSetup {
            folder,
            versions: 0,
        }
    }

    /// Replaces the link atomically.
    fn write_secret(&mut self, server: &str, values: &[&str]) {
        self.versions += 1;
        let target = format!("{server}-{}/secret", self.versions);
        let target = self
            .folder
            .write_file(&target, values.join("\n").as_bytes());
        let new = self.folder.0.join("new-link");
        std::os::unix::fs::symlink(target, &new).unwrap();
        std::fs::rename(new, self.folder.0.join(server)).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.0.join(name).display().to_string()
    }

    fn start_origin(&self) -> HeadwaterServer {
        let (films, secret, records) = (self.path("films"), self.path("origin"), self.path("log"));
        let flags = [&films, "--edge-secret-file", &secret, "--records", &records];
        HeadwaterServer::serve(&flags)
    }

    fn start_edge(&self, origin: &HeadwaterServer) -> HeadwaterServer {
        let (url, secret) = (origin.url(""), self.path("edge"));
        let flags = ["--origin", &url, "--edge-secret-file", &secret];
        HeadwaterServer::start_program("edge", &flags)
    }
}

fn get_with(server: &HeadwaterServer, secret: &str) -> HttpResponse {
    let headers = [("Headwater-Edge-Auth", secret)];
    server.request("GET", "/a.bin", &headers)
}

fn wait_for_status(server: &HeadwaterServer, secret: &str, status: u16) {
    let started = Instant::now();
    while get_with(server, secret).status != status {
        assert!(
            started.elapsed() < WAIT_MAX,
            "not {status} within {WAIT_MAX:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn only_edges_with_the_secret_reach_the_origin() {
    let mut setup = SecretSetup::new();
    setup.write_secret("origin", &[OLD]);
    setup.write_secret("edge", &[OLD]);
    let mut origin = setup.start_origin();
    for secret in ["x", NEW, "old-0123456789abcdeF"] {
        assert_eq!(get_with(&origin, secret).status, 403, "{secret}");
    }
    assert_eq!(origin.get("/a.bin").status, 403);
    let refused = origin.get("/metrics");
    assert_eq!(refused.status, 403);
    let text = String::from_utf8(refused.body).unwrap();
    assert!(text.contains("--admin"), "{text}");
    assert_eq!(origin.get("/%2e/healthz").status, 403);
    assert_eq!(origin.get_text("/healthz"), "ok\n");
    assert_eq!(origin.get_text("/readyz"), "ready\n");
    let edge = setup.start_edge(&origin);
    // The edge sends its own secret, even if the viewer's request contains a cookie or another
    // secret.
    for headers in [
        vec![],
        vec![("Cookie", "a=b"), ("Headwater-Edge-Auth", "x")],
    ] {
        let response = edge.request("GET", "/a.bin", &headers);
        assert_eq!((response.status, &response.body[..]), (200, &b"film"[..]));
        assert!(!format!("{response:?}").contains(OLD));
    }
    assert_eq!(origin.terminate(), Some(0));
    let records = std::fs::read_to_string(setup.path("log")).unwrap();
    assert!(
        records.contains("/a.bin") && !records.contains(OLD),
        "{records}"
    );
}

#[test]
fn a_secret_is_rotated_without_a_restart() {
    let mut setup = SecretSetup::new();
    setup.write_secret("origin", &[OLD]);
    setup.write_secret("edge", &[OLD]);
    let origin = setup.start_origin();
    let url = origin.url("");
    let secret = setup.path("edge");
    let flags = ["--origin", &url, "--edge-secret-file", &secret];
    let flags = [&flags[..], &["--cookies", "pass"]].concat();
    let edge = HeadwaterServer::start_program("edge", &flags);
    let get = || edge.request("GET", "/a.bin", &[("Cookie", "a=b")]).status;
    assert_eq!(get(), 200);
    setup.write_secret("origin", &[OLD, NEW]);
    wait_for_status(&origin, NEW, 200);
    assert_eq!(get(), 200);
    setup.write_secret("edge", &[NEW]);
    assert_eq!(get(), 200);
    setup.write_secret("origin", &[NEW]);
    wait_for_status(&origin, OLD, 403);
    // The edge may still send the old secret for about a second.
    let started = Instant::now();
    while get() != 200 {
        assert!(started.elapsed() < WAIT_MAX, "the edge has no new secret");
        std::thread::sleep(Duration::from_millis(20));
    }
}
