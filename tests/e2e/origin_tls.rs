//! Tests TLS between edges and their origins. Some tests use pools whose members are listed in DNS,
//! or client certificates of the edges.

use crate::pool_members::{self, DnsServer, IPS, NAME, find_common_port, read_metric, wait_until};
use crate::support::{HeadwaterServer, TempFolder, send_request};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef";
/// Time after which an origin closes an idle connection, so that the edge opens a new connection.
const IDLE_TIMEOUT: &str = "200ms";
/// Pause between requests, which is longer than [`IDLE_TIMEOUT`].
const PAUSE: Duration = Duration::from_millis(500);

/// A certificate authority.
struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

impl TestAuthority {
    fn new() -> TestAuthority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap());
        TestAuthority(issuer.unwrap())
    }

    /// Writes a certificate for `name` to `ROLE.pem`, and its key to `ROLE.key`. Each file is
    /// replaced atomically.
    fn issue(&self, folder: &Path, role: &str, name: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        replace_file(folder, &format!("{role}.key"), &key.serialize_pem());
        replace_file(folder, &format!("{role}.pem"), &certificate.pem());
    }
}

fn replace_file(folder: &Path, name: &str, text: &str) {
    let new = folder.join("new-file");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, folder.join(name)).unwrap();
}

/// A folder with the certificates of an origin and its edges.
struct TlsSetup {
    folder: TempFolder,
    servers: TestAuthority,
    admin: SocketAddr,
}

impl TlsSetup {
    /// Creates a folder with a film, and with a certificate for an origin of this name.
    fn new(name: &str) -> TlsSetup {
        let folder = TempFolder::new();
        folder.write_file("films/a.bin", b"film");
        folder.write_file("token", TOKEN.as_bytes());
        let servers = TestAuthority::new();
        servers.issue(&folder.0, "origin", name);
        replace_file(&folder.0, "servers.pem", &servers.0.pem());
        TlsSetup {
            folder,
            servers,
            admin: SocketAddr::from(([127, 0, 0, 1], crate::nginx::port::free())),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.0.join(name).display().to_string()
    }

    /// Starts an origin that requires client certificates from the authorities in `clients.pem`.
    fn start_origin(&self) -> HeadwaterServer {
        let files = ["films", "origin.pem", "origin.key", "clients.pem", "token"];
        let [films, cert, key, clients, token] = files.map(|name| self.path(name));
        let admin = self.admin.to_string();
        let tls = [
            "--tls-cert",
            &cert,
            "--tls-key",
            &key,
            "--client-ca",
            &clients,
        ];
        let rest = ["--admin", &admin, "--admin-token-file", &token];
        let rest = [&rest[..], &["--idle-timeout", IDLE_TIMEOUT]].concat();
        HeadwaterServer::serve(&[&[&films[..]], &tls[..], &rest].concat())
    }

    /// Starts an edge that presents the certificate of `role`, if any.
    fn start_edge(&self, origin: &HeadwaterServer, role: Option<&str>) -> HeadwaterServer {
        let url = format!("https://localhost:{}", origin.addr.port());
        let authorities = self.path("servers.pem");
        let flags = [
            "--origin",
            &url,
            "--origin-ca",
            &authorities,
            "--cookies",
            "pass",
        ];
        let mut flags: Vec<String> = flags.map(str::to_owned).into();
        if let Some(role) = role {
            let files = [("--origin-cert", "pem"), ("--origin-key", "key")];
            for (flag, end) in files {
                flags.extend([flag.to_owned(), self.path(&format!("{role}.{end}"))]);
            }
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        HeadwaterServer::start_program("edge", &flags)
    }

    /// Requests the film over a new connection, on which the client presents the certificate of
    /// `role`, if any.
    fn request_directly(&self, origin: &HeadwaterServer, role: Option<&str>) -> io::Result<()> {
        let config = Arc::new(self.client_config(role));
        request_film(origin, config).map(|_| ())
    }

    fn client_config(&self, role: Option<&str>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.servers.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let Some(role) = role else {
            return builder.with_no_client_auth();
        };
        let chain = CertificateDer::from_pem_file(self.path(&format!("{role}.pem"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.path(&format!("{role}.key"))).unwrap();
        builder.with_client_auth_cert(vec![chain], key).unwrap()
    }
}

/// Requests the film, and returns the kind of the TLS handshake.
fn request_film(origin: &HeadwaterServer, config: Arc<ClientConfig>) -> io::Result<HandshakeKind> {
    let session = ClientConnection::new(config, "localhost".try_into().unwrap());
    let socket = TcpStream::connect(origin.addr)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut stream = StreamOwned::new(session.unwrap(), socket);
    stream.write_all(b"GET /a.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    assert!(text.ends_with("\r\n\r\nfilm"), "{text}");
    Ok(stream.conn.handshake_kind().unwrap())
}

fn get_film(edge: &HeadwaterServer) -> (u16, Vec<u8>) {
    let response = edge.get("/a.bin");
    (response.status, response.body)
}

#[test]
fn only_edges_with_a_certificate_reach_the_origin() {
    let setup = TlsSetup::new("localhost");
    let folder = &setup.folder.0;
    let (ours, theirs) = (TestAuthority::new(), TestAuthority::new());
    replace_file(folder, "clients.pem", &ours.0.pem());
    ours.issue(folder, "edge", "edge");
    theirs.issue(folder, "other", "edge");
    let origin = setup.start_origin();
    for (role, alert) in [(None, "CertificateRequired"), (Some("other"), "alert")] {
        let refused = setup.request_directly(&origin, role).unwrap_err();
        assert!(refused.to_string().contains(alert), "{role:?}: {refused}");
        assert_eq!(setup.start_edge(&origin, role).get("/a.bin").status, 502);
    }
    let edge = setup.start_edge(&origin, Some("edge"));
    assert_eq!(get_film(&edge), (200, b"film".to_vec()));
    // Sessions are not resumed, because a resumed session would not verify the certificate again.
    let config = Arc::new(setup.client_config(Some("edge")));
    for _ in 0..2 {
        let kind = request_film(&origin, config.clone()).unwrap();
        assert_eq!(kind, HandshakeKind::Full);
    }
    // Probes and metrics stay available to programs without a certificate.
    let bearer = format!("Bearer {TOKEN}");
    for (path, headers) in [
        ("/healthz", &[][..]),
        ("/readyz", &[]),
        ("/metrics", &[("Authorization", &bearer[..])]),
    ] {
        let response = send_request(setup.admin, "GET", path, headers);
        assert_eq!(response.status, 200, "{path}");
    }
}

#[test]
fn certificates_of_edges_and_their_authorities_are_rotated_without_a_restart() {
    let setup = TlsSetup::new("localhost");
    let folder = &setup.folder.0;
    let (old, new) = (TestAuthority::new(), TestAuthority::new());
    replace_file(folder, "clients.pem", &old.0.pem());
    old.issue(folder, "edge", "edge");
    old.issue(folder, "old", "edge");
    new.issue(folder, "new", "edge");
    let origin = setup.start_origin();
    let edge = setup.start_edge(&origin, Some("edge"));
    assert_eq!(get_film(&edge).0, 200);
    let is_accepted = |role| setup.request_directly(&origin, Some(role)).is_ok();
    assert!(is_accepted("old") && !is_accepted("new"));
    replace_file(folder, "clients.pem", &(old.0.pem() + &new.0.pem()));
    wait_until("the new authority", || is_accepted("new"));
    new.issue(folder, "edge", "edge");
    replace_file(folder, "clients.pem", &new.0.pem());
    wait_until("the end of the old authority", || !is_accepted("old"));
    assert!(is_accepted("new"));
    let name = "headwater_upstream_connections_opened_total ";
    let opened = read_metric(&edge, name);
    wait_until("the edge's new certificate", || {
        std::thread::sleep(PAUSE);
        let response = edge.request("GET", "/a.bin", &[("Cookie", "a=b")]);
        response.status == 200 && read_metric(&edge, name) > opened
    });
}

#[test]
fn members_in_dns_have_the_certificate_of_the_configured_name() {
    let setup = TlsSetup::new(NAME);
    let Some(mut dns) = DnsServer::new(&setup.folder) else {
        return;
    };
    let port = find_common_port(&IPS[..2]);
    let [cert, key] = ["origin.pem", "origin.key"].map(|name| setup.path(name));
    let tls = ["--tls-cert", &cert, "--tls-key", &key];
    let origin = |ip| pool_members::start_origin_with(&setup.folder, ip, port, &tls);
    let _origins = [origin(IPS[0]), origin(IPS[1])];
    let other = "other.pool.test";
    dns.start(
        &IPS[..2],
        &[
            format!("--host-record={other},{}", IPS[0]),
            format!("--srv-host=_https._tcp.{NAME},{NAME},{port},1,10"),
        ],
    );
    let records = setup.path("records");
    let start_edge = |url: &str| {
        let (server, authorities) = (dns.address.to_string(), setup.path("servers.pem"));
        let flags = ["--origin", url, "--dns-server", &server];
        let files = ["--origin-ca", &authorities[..], "--records", &records];
        HeadwaterServer::start_program("edge", &[&flags[..], &files].concat())
    };
    for url in [
        format!("dns+https://{NAME}:{port}"),
        format!("dns+srv+https://_https._tcp.{NAME}"),
    ] {
        let edge = start_edge(&url);
        assert_eq!(get_film(&edge), (200, b"film".to_vec()), "{url}");
        let metrics = edge.get_text("/metrics");
        assert!(metrics.contains("headwater_upstream_members 2"), "{url}");
    }
    let mut edge = start_edge(&format!("dns+https://{other}:{port}"));
    let refused = edge.get("/a.bin");
    edge.terminate();
    assert_eq!(refused.status, 502);
    // The test looks for the cause in the records, because responses to viewers do not contain the
    // cause.
    let recorded = std::fs::read_to_string(&records).unwrap();
    assert!(recorded.contains("certificate"), "{recorded}");
}
