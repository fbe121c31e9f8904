//! Storage over TLS: real servers with a certificate of our own authority, sessions resumed, and
//! what is not trusted refused.

use crate::connections::read_twenty;
use crate::nginx::Nginx;
use crate::real::{fill, folder, options, put_all, wait};
use crate::servers::{SECRET, s3, skip};
use crate::suite::{bytes, check, key, of, parts, usual};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};
use store::{Error, Object, Options, Reason, Store, Transport};

/// An authority that nobody else knows, and a certificate of it for this machine.
struct Trust {
    authority: Vec<u8>,
    certificate: PathBuf,
    key: PathBuf,
}

impl Trust {
    fn new(dir: &Path) -> Trust {
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
        Trust {
            authority: authority.pem().into_bytes(),
            certificate,
            key,
        }
    }

    fn options(&self, pooled: bool, rest: Options) -> Options {
        let transport = Transport {
            pooled,
            ca: Some(self.authority.clone()),
            ..rest.transport
        };
        Options { transport, ..rest }
    }

    /// An nginx that serves the suite's objects, with `more` of its settings.
    fn nginx(&self, dir: &Path, more: &str) -> Option<(Nginx, String)> {
        self.nginx_of(dir, "ssl", more)
    }

    fn nginx_of(&self, dir: &Path, listen: &str, more: &str) -> Option<(Nginx, String)> {
        let films = dir.join("films");
        fill(&films);
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

fn film(url: &str, options: Options) -> (Store, Object) {
    let options = Options {
        memory_bytes: 0,
        ..options
    };
    let store = Store::new(url, options).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    (store, object)
}

#[test]
fn nginx_over_tls_is_as_without() {
    let dir = folder();
    let trust = Trust::new(dir.path());
    let Some((_nginx, url)) = trust.nginx(dir.path(), "") else {
        return;
    };
    let ours = trust.options(true, usual());
    check(&Store::new(&url, ours.clone()).unwrap(), false);
    let (store, object) = film(&url, ours);
    read_twenty(&object);
    let connections = store.remote().unwrap().connections();
    assert_eq!((connections.opened(), connections.reused()), (1, 20));
    // Where none is kept, no session is, either.
    let (store, object) = film(&url, trust.options(false, usual()));
    read_twenty(&object);
    let connections = store.remote().unwrap().connections();
    assert_eq!((connections.opened(), connections.resumed()), (21, 0));
    // An authority that is not named is not trusted, and asking again would not help.
    let Err(error) = Store::new(&url, usual()).unwrap().open(&key("film.mp4")) else {
        panic!("a certificate of an unknown authority was trusted");
    };
    let text = error.to_string();
    assert!(
        matches!(error, Error::Broken(_)) && text.contains("UnknownIssuer"),
        "{text}"
    );
}

#[test]
fn a_session_is_resumed_where_a_connection_was_closed() {
    for protocols in ["TLSv1.2", "TLSv1.3"] {
        let dir = folder();
        let trust = Trust::new(dir.path());
        // Two requests a connection, then nginx closes it.
        let more = format!("ssl_protocols {protocols}; keepalive_requests 2;");
        let Some((_nginx, url)) = trust.nginx(dir.path(), &more) else {
            return;
        };
        let (store, object) = film(&url, trust.options(true, usual()));
        for n in 0..9 {
            let (read, error) = parts(&object, &[n * 1000..n * 1000 + 500], Reason::Segment);
            assert!(error.is_none() && read.len() == 500, "{error:?}");
        }
        let connections = store.remote().unwrap().connections();
        let counted = (connections.opened(), connections.resumed());
        assert_eq!(counted, (5, 4), "{protocols}: opened, of which resumed");
    }
}

/// What HTTP the requests were that an nginx was sent, without those of HEAD.
fn spoken(dir: &Path) -> Vec<String> {
    let log = fs::read_to_string(dir.join("access.log")).unwrap();
    let gets = log.lines().filter_map(|line| line.split_once("\"GET "));
    gets.filter_map(|(_, rest)| rest.split_whitespace().nth(1))
        .map(|word| word.trim_end_matches('"').to_owned())
        .collect()
}

#[test]
fn http2_is_spoken_where_it_was_chosen_and_is_offered() {
    for (listen, chosen, expected, opened) in [
        ("ssl http2", true, "HTTP/2.0", 1),
        ("ssl http2", false, "HTTP/1.1", 8),
        ("ssl", true, "HTTP/1.1", 8),
    ] {
        let dir = folder();
        let trust = Trust::new(dir.path());
        // Slow enough that requests are under way together.
        let more = "limit_rate 400k;";
        let Some((nginx, url)) = trust.nginx_of(dir.path(), listen, more) else {
            return;
        };
        let ours = trust.options(true, usual());
        let transport = Transport {
            http2: chosen,
            ..ours.transport
        };
        let (store, object) = film(&url, Options { transport, ..ours });
        let readers: Vec<_> = (0..8)
            .map(|n| {
                let object = object.clone();
                let range = n * 100_000..n * 100_000 + 90_000;
                std::thread::spawn(move || {
                    let (read, error) =
                        parts(&object, std::slice::from_ref(&range), Reason::Segment);
                    assert!(error.is_none(), "{error:?}");
                    assert!(read == of(&bytes("film.mp4"), &[range]));
                })
            })
            .collect();
        readers.into_iter().for_each(|one| one.join().unwrap());
        let connections = store.remote().unwrap().connections();
        let counted = (
            connections.opened(),
            connections.opened() + connections.reused(),
        );
        assert_eq!(counted, (opened, 9), "{listen}, {chosen}: opened, requests");
        assert_eq!(connections.open(), opened);
        // It writes its log when it likes.
        drop(nginx);
        assert_eq!(spoken(dir.path()), vec![expected; 9], "{listen}, {chosen}");
    }
}

#[test]
fn over_http2_storage_is_as_over_http1() {
    let dir = folder();
    let trust = Trust::new(dir.path());
    // It ends a connection after so many requests, with others under way.
    let more = "keepalive_requests 30;";
    let Some((_nginx, url)) = trust.nginx_of(dir.path(), "ssl http2", more) else {
        return;
    };
    let ours = trust.options(true, usual());
    let transport = Transport {
        http2: true,
        ..ours.transport
    };
    let store = Store::new(&url, Options { transport, ..ours }).unwrap();
    check(&store, false);
    let connections = store.remote().unwrap().connections();
    assert!(connections.resumed() > 0 && connections.resumed() == connections.opened() - 1);
}

#[test]
fn an_s3_server_over_tls() {
    let dir = folder();
    let trust = Trust::new(dir.path());
    let Some(server) = s3(dir.path(), Some((&trust.certificate, &trust.key))) else {
        return skip("no S3 server: run scripts/storage.sh");
    };
    put_all(&server);
    let at = format!("https://localhost:{}", server.tls_port);
    for http2 in [false, true] {
        let ours = trust.options(true, options(&at, SECRET));
        let transport = Transport {
            http2,
            ..ours.transport
        };
        let store = Store::new("s3://films/library", Options { transport, ..ours }).unwrap();
        wait(&store);
        check(&store, true);
    }
}
