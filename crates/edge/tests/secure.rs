//! Origins over TLS: a real nginx, with certificates of authorities that nobody else knows.

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
use support::{AUTHORIZED, Edge, TOKEN};

/// An authority's certificate, and nginx with one that it has signed.
struct Secure {
    authority: String,
    url: String,
    nginx: Child,
}

impl Secure {
    /// Answers everything with `body`. `None`: there is no nginx here.
    fn new(folder: &Path, body: &str) -> Option<Secure> {
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
        let secure = Secure {
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

impl Drop for Secure {
    fn drop(&mut self) {
        let pid = self.nginx.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.nginx.wait();
    }
}

fn edge(url: &str, flags: &[&str]) -> Edge {
    let words = ["edge", "--origin", url, "--listen", "127.0.0.1:0"];
    Edge::start(words.iter().chain(flags))
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn only_the_authorities_that_were_named_are_believed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let Some(one) = Secure::new(&at("one"), "one") else {
        return;
    };
    let other = Secure::new(&at("other"), "other").unwrap();
    let refused = edge(&one.url, &[]).get("/a");
    assert_eq!(refused.status, 502);
    let why = refused.header("headwater-error").unwrap();
    assert!(why.contains("certificate"), "{why}");
    let ca = written(folder.path(), "ca.pem", &one.authority);
    let flags = ["--origin-ca", ca.to_str().unwrap()];
    assert_eq!(edge(&one.url, &flags).get("/a").text(), "one");
    assert_eq!(edge(&other.url, &flags).get("/a").status, 502);
    // A name that the certificate does not have.
    let address = one.url.replace("localhost", "127.0.0.1");
    assert_eq!(edge(&address, &flags).get("/a").status, 502);
    written(
        folder.path(),
        "ca.pem",
        &(one.authority.clone() + &other.authority),
    );
    assert_eq!(edge(&one.url, &flags).get("/a").text(), "one");
    assert_eq!(edge(&other.url, &flags).get("/a").text(), "other");
}

#[test]
fn a_pool_has_its_own_and_a_reload_reads_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let Some(one) = Secure::new(&at("one"), "one") else {
        return;
    };
    let other = Secure::new(&at("other"), "other").unwrap();
    let ca = written(folder.path(), "ca.pem", &one.authority);
    let archive = written(folder.path(), "archive.pem", &other.authority);
    let (url, ca, archive) = (&other.url, ca.display(), archive.display());
    let text = format!(
        "origin-ca = \"{ca}\"\n[pool.archive]\norigin = [\"{url}\"]\nca = \"{archive}\"\n\
         [[rule]]\nwhen = 'path == \"/archive\"'\npool = \"archive\"\n"
    );
    let config = written(folder.path(), "edge.toml", &text);
    let token = written(folder.path(), "token", TOKEN);
    let flags = [
        "--config",
        config.to_str().unwrap(),
        "--admin",
        "127.0.0.1:0",
        "--admin-token-file",
        token.to_str().unwrap(),
    ];
    let edge = edge(&one.url, &flags);
    assert_eq!(edge.get("/a").text(), "one");
    assert_eq!(edge.get("/archive").text(), "other");
    let reload = || edge.admin("POST", "/reload", &[AUTHORIZED]).status;
    // Another authority from now on: not even a connection that is open is used any more.
    written(folder.path(), "ca.pem", &other.authority);
    assert_eq!((reload(), edge.get("/a").status), (200, 502));
    assert_eq!(edge.get("/archive").text(), "other");
    written(folder.path(), "ca.pem", "nothing");
    assert_eq!((reload(), edge.get("/a").status), (400, 502));
    written(folder.path(), "ca.pem", &one.authority);
    assert_eq!(reload(), 200);
    assert_eq!(edge.get("/a").text(), "one");
}
