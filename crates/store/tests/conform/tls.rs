//! Checks storage over TLS with real servers. The tests cover certificates of a private authority,
//! session resumption, and untrusted certificates.

use crate::connections::read_twenty;
use crate::nginx::Nginx;
use crate::real_servers::{create_folder, put_all, s3_options, wait_for_objects, write_objects};
use crate::servers::{SECRET, skip_server, start_s3};
use crate::suite::{
    check_library, concat_ranges, object_bytes, parse_key, patient_options, read_parts,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use store::{Error, Object, Options, RequestReason, StorageTimeouts, Store, TransportOptions};

/// A private certificate authority, and a certificate that it issued for this machine.
struct TestAuthority {
    authority: Vec<u8>,
    certificate: PathBuf,
    key: PathBuf,
}

impl TestAuthority {
    fn new(dir: &Path) -> TestAuthority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let own = KeyPair::generate().unwrap();
        let names = vec!["localhost".into(), "127.0.0.1".into()];
        let leaf = CertificateParams::new(names).unwrap();
        let leaf = leaf.signed_by(&own, &authority).unwrap();
        let (certificate, key) = (dir.join("leaf.pem"), dir.join("key.pem"));
        fs::write(&certificate, leaf.pem()).unwrap();
        fs::write(&key, own.serialize_pem()).unwrap();
        TestAuthority {
            authority: authority.pem().into_bytes(),
            certificate,
            key,
        }
    }

    fn trusted_options(&self, pooled: bool, rest: Options) -> Options {
        let transport = TransportOptions {
            pooled,
            ca: Some(self.authority.clone()),
            ..rest.transport
        };
        Options { transport, ..rest }
    }

    /// Starts an nginx that serves the suite's objects over TLS. `more` contains additional nginx
    /// settings.
    fn start_nginx(&self, dir: &Path, more: &str) -> Option<(Nginx, String)> {
        self.start_nginx_with(dir, "ssl", more)
    }

    fn start_nginx_with(&self, dir: &Path, listen: &str, more: &str) -> Option<(Nginx, String)> {
        let films = dir.join("films");
        write_objects(&films);
        let server = format!(
            "ssl_certificate {}; ssl_certificate_key {}; {more}",
            self.certificate.display(),
            self.key.display(),
        );
        let nginx = Nginx::of(dir, &films, listen, &server)?;
        let url = format!("https://localhost:{}/", nginx.addr.port());
        Some((nginx, url))
    }
}

fn start_film(url: &str, options: Options) -> (Store, Object) {
    let options = Options {
        memory_bytes: 0,
        ..options
    };
    let store = Store::new(url, options).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    (store, object)
}

#[test]
fn nginx_over_tls_passes_the_suite() {
    let dir = create_folder();
    let trust = TestAuthority::new(dir.path());
    let Some((_nginx, url)) = trust.start_nginx(dir.path(), "") else {
        return;
    };
    let ours = trust.trusted_options(true, patient_options());
    check_library(&Store::new(&url, ours.clone()).unwrap(), false);
    let (store, object) = start_film(&url, ours);
    read_twenty(&object);
    let connections = store.remote().unwrap().connection_counts();
    assert_eq!(
        (connections.opened_count(), connections.reused_count()),
        (1, 20)
    );
    // Without a connection pool, each request opens a connection, and no TLS session is resumed.
    let (store, object) = start_film(&url, trust.trusted_options(false, patient_options()));
    read_twenty(&object);
    let connections = store.remote().unwrap().connection_counts();
    assert_eq!(
        (connections.opened_count(), connections.resumed_count()),
        (21, 0)
    );
    // A certificate of an unknown authority is not trusted.
    let Err(error) = Store::new(&url, patient_options())
        .unwrap()
        .open(&parse_key("film.mp4"))
    else {
        panic!("a certificate of an unknown authority was trusted");
    };
    let text = error.to_string();
    assert!(
        matches!(error, Error::Broken(_)) && text.contains("UnknownIssuer"),
        "{text}"
    );
}

#[test]
fn a_tls_session_is_resumed_after_its_connection_was_closed() {
    for protocols in ["TLSv1.2", "TLSv1.3"] {
        let dir = create_folder();
        let trust = TestAuthority::new(dir.path());
        // nginx closes each connection after two requests.
        let more = format!("ssl_protocols {protocols}; keepalive_requests 2;");
        let Some((_nginx, url)) = trust.start_nginx(dir.path(), &more) else {
            return;
        };
        let (store, object) = start_film(&url, trust.trusted_options(true, patient_options()));
        for n in 0..9 {
            let (read, error) =
                read_parts(&object, &[n * 1000..n * 1000 + 500], RequestReason::Segment);
            assert!(error.is_none() && read.len() == 500, "{error:?}");
        }
        let connections = store.remote().unwrap().connection_counts();
        let counted = (connections.opened_count(), connections.resumed_count());
        assert_eq!(counted, (5, 4), "{protocols}: opened, of which resumed");
    }
}

/// Returns the HTTP version of each GET request in nginx's access log.
fn tls_protocols(dir: &Path) -> Vec<String> {
    let log = fs::read_to_string(dir.join("access.log")).unwrap();
    let gets = log.lines().filter_map(|line| line.split_once("\"GET "));
    gets.filter_map(|(_, rest)| rest.split_whitespace().nth(1))
        .map(|word| word.trim_end_matches('"').to_owned())
        .collect()
}

#[test]
fn http2_is_used_where_it_is_enabled_and_offered() {
    for (listen, chosen, expected, opened) in [
        ("ssl http2", true, "HTTP/2.0", 1),
        ("ssl http2", false, "HTTP/1.1", 8),
        ("ssl", true, "HTTP/1.1", 8),
    ] {
        let dir = create_folder();
        let trust = TestAuthority::new(dir.path());
        // Slow responses make the requests overlap.
        let more = "limit_rate 400k;";
        let Some((nginx, url)) = trust.start_nginx_with(dir.path(), listen, more) else {
            return;
        };
        let ours = trust.trusted_options(true, patient_options());
        let transport = TransportOptions {
            http2: chosen,
            ..ours.transport
        };
        let (store, object) = start_film(&url, Options { transport, ..ours });
        let readers: Vec<_> = (0..8)
            .map(|n| {
                let object = object.clone();
                let range = n * 100_000..n * 100_000 + 90_000;
                std::thread::spawn(move || {
                    let (read, error) = read_parts(
                        &object,
                        std::slice::from_ref(&range),
                        RequestReason::Segment,
                    );
                    assert!(error.is_none(), "{error:?}");
                    assert!(read == concat_ranges(&object_bytes("film.mp4"), &[range]));
                })
            })
            .collect();
        readers.into_iter().for_each(|one| one.join().unwrap());
        let connections = store.remote().unwrap().connection_counts();
        let counted = (
            connections.opened_count(),
            connections.opened_count() + connections.reused_count(),
        );
        assert_eq!(counted, (opened, 9), "{listen}, {chosen}: opened, requests");
        assert_eq!(connections.open_count(), opened);
        // Stops nginx, so that it flushes its access log.
        drop(nginx);
        assert_eq!(
            tls_protocols(dir.path()),
            vec![expected; 9],
            "{listen}, {chosen}"
        );
    }
}

#[test]
fn storage_over_http2_passes_the_suite() {
    let dir = create_folder();
    let trust = TestAuthority::new(dir.path());
    // nginx closes each connection after 30 requests, while other requests are in flight on the
    // same connection.
    let more = "keepalive_requests 30;";
    let Some((_nginx, url)) = trust.start_nginx_with(dir.path(), "ssl http2", more) else {
        return;
    };
    let ours = trust.trusted_options(true, patient_options());
    let transport = TransportOptions {
        http2: true,
        ..ours.transport
    };
    let store = Store::new(&url, Options { transport, ..ours }).unwrap();
    check_library(&store, false);
    let connections = store.remote().unwrap().connection_counts();
    assert!(
        connections.resumed_count() > 0
            && connections.resumed_count() == connections.opened_count() - 1
    );
}

#[test]
fn an_s3_server_over_tls_passes_the_suite() {
    let dir = create_folder();
    let trust = TestAuthority::new(dir.path());
    let Some(server) = start_s3(dir.path(), Some((&trust.certificate, &trust.key))) else {
        return skip_server("no S3 server: run scripts/storage.sh");
    };
    put_all(&server);
    let at = format!("https://localhost:{}", server.tls_port);
    for http2 in [false, true] {
        let ours = trust.trusted_options(true, s3_options(&at, SECRET));
        let transport = TransportOptions {
            http2,
            ..ours.transport
        };
        let store = Store::new("s3://films/library", Options { transport, ..ours }).unwrap();
        wait_for_objects(&store);
        check_library(&store, true);
    }
}

/// Forwards connections to a server. Can hold back all further responses on its open connections,
/// without closing them.
struct SilencingProxy {
    port: u16,
    accepted: Arc<AtomicUsize>,
    /// The number of accepted connections that are silent. These are the oldest connections.
    silent: Arc<AtomicUsize>,
}

impl SilencingProxy {
    fn start(server: SocketAddr) -> SilencingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = SilencingProxy {
            port: listener.local_addr().unwrap().port(),
            accepted: Arc::default(),
            silent: Arc::default(),
        };
        let (accepted, silent) = (proxy.accepted.clone(), proxy.silent.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(server).unwrap();
                let number = accepted.fetch_add(1, SeqCst);
                let silent = silent.clone();
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                // Ignores errors, because either side may close the connection first.
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                std::thread::spawn(move || {
                    forward_until_silent(server, &client, || number < silent.load(SeqCst));
                });
            }
        });
        proxy
    }

    fn silence_open_connections(&self) {
        self.silent.store(self.accepted.load(SeqCst), SeqCst);
    }
}

/// Forwards bytes until the connection is silent, and then only reads them.
fn forward_until_silent(mut from: TcpStream, mut to: &TcpStream, is_silent: impl Fn() -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !is_silent() && to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

#[test]
fn a_silent_http2_connection_gets_no_new_requests() {
    let dir = create_folder();
    let trust = TestAuthority::new(dir.path());
    let Some((nginx, _)) = trust.start_nginx_with(dir.path(), "ssl http2", "") else {
        return;
    };
    let proxy = SilencingProxy::start(nginx.addr);
    let url = format!("https://localhost:{}/", proxy.port);
    let ours = trust.trusted_options(true, patient_options());
    let transport = TransportOptions {
        http2: true,
        timeouts: StorageTimeouts {
            first_byte: Duration::from_secs(1),
            ..ours.transport.timeouts
        },
        ..ours.transport
    };
    let (_store, object) = start_film(&url, Options { transport, ..ours });
    proxy.silence_open_connections();
    let range = 1000..90_000;
    let (read, error) = read_parts(
        &object,
        std::slice::from_ref(&range),
        RequestReason::Segment,
    );
    assert!(error.is_none(), "{error:?}");
    assert!(read == concat_ranges(&object_bytes("film.mp4"), &[range]));
    assert!(proxy.accepted.load(SeqCst) > proxy.silent.load(SeqCst));
}
