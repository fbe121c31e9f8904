//! The attacked servers: `serve` and `edge`, each with and without TLS.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::strict::StrictOrigin;
use crate::support::{HeadwaterServer, TempFolder};

/// A connection to a server, encrypted or not.
pub trait ByteStream: Read + Write {}

impl<T: Read + Write> ByteStream for T {}

/// A running server, and how to connect to it.
pub struct TargetServer {
    pub name: &'static str,
    pub is_edge: bool,
    /// The certificate, if the server uses TLS.
    certificate: Option<Vec<u8>>,
    server: HeadwaterServer,
}

/// All servers, and the origin behind the edges.
pub struct AttackedServers {
    pub servers: Vec<TargetServer>,
    pub origin: StrictOrigin,
    _folder: TempFolder,
}

impl AttackedServers {
    /// Starts the servers with further flags.
    pub fn start(flags: &[&str]) -> AttackedServers {
        let folder = TempFolder::new();
        folder.write_file("films/film.bin", &[7; 1000]);
        folder.write_file("secret", b"secret");
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let certificate = made.cert.pem().into_bytes();
        let cert = folder.write_file("cert.pem", &certificate);
        let key = folder.write_file("key.pem", made.signing_key.serialize_pem().as_bytes());
        let tls = [
            "--tls-cert",
            cert.to_str().unwrap(),
            "--tls-key",
            key.to_str().unwrap(),
        ];
        let films = folder.0.join("films").display().to_string();
        let origin = StrictOrigin::new();
        let url = format!("http://{}", origin.address);
        let start = |name, is_edge, is_secure: bool| {
            let tls = if is_secure { &tls[..] } else { &[] };
            let own: &[&str] = match is_edge {
                true => &["--origin", &url],
                false => &[&films],
            };
            let program = if is_edge { "edge" } else { "serve" };
            TargetServer {
                name,
                is_edge,
                certificate: is_secure.then(|| certificate.clone()),
                server: HeadwaterServer::start_program(program, &[own, tls, flags].concat()),
            }
        };
        AttackedServers {
            servers: vec![
                start("serve", false, false),
                start("serve over TLS", false, true),
                start("edge", true, false),
                start("edge over TLS", true, true),
            ],
            origin,
            _folder: folder,
        }
    }

    /// Checks that each server still runs and serves, and that no hidden request reached the origin.
    pub fn assert_unharmed(mut self) {
        for target in &mut self.servers {
            assert!(target.server.is_alive(), "{}", target.name);
            let mut stream = target.connect(b"http/1.1");
            let request = b"GET /film.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            stream.write_all(request).unwrap();
            let response = read_available(&mut stream);
            assert!(response.starts_with("HTTP/1.1 200"), "{}", target.name);
        }
        for request in self.origin.parsed_requests() {
            let line = request.request_line();
            assert!(!line.contains("evil"), "{line}");
        }
    }
}

impl TargetServer {
    /// Opens a connection for this ALPN protocol.
    pub fn connect(&self, protocol: &[u8]) -> Box<dyn ByteStream> {
        let Some(certificate) = &self.certificate else {
            return Box::new(self.server.connect());
        };
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(certificate).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        Box::new(StreamOwned::new(connection, self.server.connect()))
    }
}

/// Reads until the server closes the connection.
pub fn read_available(stream: &mut dyn ByteStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
