//! Origins over TLS. Each origin is a real nginx with a certificate of a private authority.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../tests/support/port.rs"]
mod port;
mod support;

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::{ADMIN_AUTHORIZATION, ADMIN_TOKEN, TestEdge};

/// A certificate authority, and an nginx with a certificate signed by it.
struct TlsOrigin {
    authority: String,
    url: String,
    nginx: Child,
}

impl TlsOrigin {
    /// Starts nginx, which responds to every request with `body`. Returns `None` if nginx is
    /// missing.
    fn new(folder: &Path, body: &str) -> Option<TlsOrigin> {
        fs::create_dir_all(folder).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let own = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".into()]).unwrap();
        let leaf = leaf.signed_by(&own, &authority).unwrap();
        fs::write(folder.join("leaf.pem"), leaf.pem()).unwrap();
        fs::write(folder.join("key.pem"), own.serialize_pem()).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port::free()));
        let dir = folder.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {dir}/{kind};"))
            .concat();
        let config = format!(
            "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
             events {{ worker_connections 64; }}
             http {{ access_log off; {temporary} server {{ listen {address} ssl;
               ssl_certificate {dir}/leaf.pem; ssl_certificate_key {dir}/key.pem;
               location / {{ add_header Cache-Control no-store; return 200 '{body}'; }} }} }}"
        );
        fs::write(folder.join("nginx.conf"), config).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-c").arg(folder.join("nginx.conf"));
        command.arg("-e").arg(folder.join("start.log"));
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(nginx) = quiet.spawn() else {
            println!("SKIPPED origins over TLS: there is no nginx");
            return None;
        };
        let secure = TlsOrigin {
            authority: authority.pem(),
            url: format!("https://localhost:{}", address.port()),
            nginx,
        };
        for _ in 0..2000 {
            if TcpStream::connect(address).is_ok() {
                return Some(secure);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("nginx does not listen");
    }
}

impl Drop for TlsOrigin {
    fn drop(&mut self) {
        let pid = self.nginx.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.nginx.wait();
    }
}

fn start_edge(url: &str, flags: &[&str]) -> TestEdge {
    let words = ["edge", "--origin", url, "--listen", "127.0.0.1:0"];
    TestEdge::start(words.iter().chain(flags))
}

fn write_file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn only_configured_authorities_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let Some(one) = TlsOrigin::new(&at("one"), "one") else {
        return;
    };
    let other = TlsOrigin::new(&at("other"), "other").unwrap();
    let refused = start_edge(&one.url, &[]).get_path("/a");
    assert_eq!(refused.status, 502);
    // The response does not name the cause, which is only in the edge's log.
    let why = refused.header("headwater-error").unwrap();
    assert_eq!(why, "upstream; the origin is not reachable");
    let ca = write_file(folder.path(), "ca.pem", &one.authority);
    let flags = ["--origin-ca", ca.to_str().unwrap()];
    assert_eq!(start_edge(&one.url, &flags).get_path("/a").text(), "one");
    assert_eq!(start_edge(&other.url, &flags).get_path("/a").status, 502);
    // The certificate is valid for `localhost`, but not for 127.0.0.1.
    let address = one.url.replace("localhost", "127.0.0.1");
    assert_eq!(start_edge(&address, &flags).get_path("/a").status, 502);
    write_file(
        folder.path(),
        "ca.pem",
        &(one.authority.clone() + &other.authority),
    );
    assert_eq!(start_edge(&one.url, &flags).get_path("/a").text(), "one");
    assert_eq!(
        start_edge(&other.url, &flags).get_path("/a").text(),
        "other"
    );
}

#[test]
fn a_pool_has_its_own_authorities_and_a_reload_rereads_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let Some(one) = TlsOrigin::new(&at("one"), "one") else {
        return;
    };
    let other = TlsOrigin::new(&at("other"), "other").unwrap();
    let ca = write_file(folder.path(), "ca.pem", &one.authority);
    let archive = write_file(folder.path(), "archive.pem", &other.authority);
    let (url, ca, archive) = (&other.url, ca.display(), archive.display());
    let text = format!(
        "origin-ca = \"{ca}\"\n[pool.archive]\norigin = [\"{url}\"]\nca = \"{archive}\"\n\
         [[rule]]\nwhen = 'path == \"/archive\"'\npool = \"archive\"\n"
    );
    let config = write_file(folder.path(), "edge.toml", &text);
    let token = write_file(folder.path(), "token", ADMIN_TOKEN);
    let flags = [
        "--config",
        config.to_str().unwrap(),
        "--admin",
        "127.0.0.1:0",
        "--admin-token-file",
        token.to_str().unwrap(),
    ];
    let edge = start_edge(&one.url, &flags);
    assert_eq!(edge.get_path("/a").text(), "one");
    assert_eq!(edge.get_path("/archive").text(), "other");
    let reload = || {
        edge.request_admin("POST", "/reload", &[ADMIN_AUTHORIZATION])
            .status
    };
    // After a change of the certificate authorities, the edge does not reuse its open connections.
    write_file(folder.path(), "ca.pem", &other.authority);
    assert_eq!((reload(), edge.get_path("/a").status), (200, 502));
    assert_eq!(edge.get_path("/archive").text(), "other");
    write_file(folder.path(), "ca.pem", "nothing");
    assert_eq!((reload(), edge.get_path("/a").status), (400, 502));
    write_file(folder.path(), "ca.pem", &one.authority);
    assert_eq!(reload(), 200);
    assert_eq!(edge.get_path("/a").text(), "one");
}
