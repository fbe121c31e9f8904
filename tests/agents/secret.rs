//! Tests NATS servers that require authorization, either by a password or by a credentials file
//! over TLS.

use crate::assert_success;
use crate::bench::{Bench, Process};
use crate::left::wait;
use crate::network::HUB;
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_password_is_required() {
    let secret = ["--user", "lab", "--pass", "secret"];
    let Some(bench) = Bench::new("secret", &secret, "0") else {
        return;
    };
    let refused = bench.run_command().output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let output_text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        output_text.contains("cannot connect to nats://") && output_text.contains("authorization"),
        "{output_text}"
    );
    let url = format!("nats://lab:secret@{HUB}:4222");
    bench.agent_at(&url, 1, "one", &[]).end();
    // No agent is left, so the run waits for agents. A waiting run can be stopped.
    let (document, out) = (bench.path("parts.toml"), bench.path("waits"));
    let arguments = ["run", &document, "--out", &out, "--nats", &url];
    let run = bench.lab(0, &arguments).stderr(Stdio::null()).spawn();
    let mut run = Process(run.unwrap());
    wait("a folder", || bench.has_file("waits/document.toml"));
    run.signal("-INT");
    assert_eq!(run.wait(), Some(130));
    bench.mark.nothing_stays();
}

#[test]
fn tls_and_credentials_files_are_required() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nats-trust");
    let trust = Trust::new(&folder);
    let Some(bench) = Bench::new("trust", &["-c", &trust.path("server.conf")], "0") else {
        return;
    };
    bench.edit("agents = 2", "agents = 1");
    let url = format!("tls://{HUB}:4222");
    let (ca, creds) = (trust.path("certificate.pem"), trust.path("lab.creds"));
    let with = |creds: &str| {
        let run = bench.run_at(&url, &["--nats-ca", &ca, "--nats-creds", creds]);
        { run }.output().unwrap()
    };
    let refused = with(&trust.path("stranger.creds"));
    let output_text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{output_text}");
    assert!(output_text.contains("authorization"), "{output_text}");
    let missing = with(&trust.path("none.creds"));
    let output_text = String::from_utf8_lossy(&missing.stderr);
    assert!(output_text.contains("--nats-creds"), "{output_text}");
    // Without `--nats-ca`, the connection fails, because the system does not trust the certificate
    // of the test.
    let refused = bench.run_at(&url, &["--nats-creds", &creds]).output();
    let output_text = refused.unwrap().stderr;
    let output_text = String::from_utf8_lossy(&output_text);
    assert!(
        output_text.to_lowercase().contains("certificate"),
        "{output_text}"
    );
    let secrets = ["--nats-ca", &ca, "--nats-creds", &creds];
    let agent = |host, name, label| {
        let arguments = [&["--label", label], &secrets[..]].concat();
        bench.agent_at(&url, host, name, &arguments)
    };
    let agents = [agent(1, "one", "origin"), agent(2, "two", "load")];
    assert_success(&with(&creds));
    assert_eq!(bench.records().len(), 4);
    agents.into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
}

/// An operator, its account, a user of that account, a user of an unknown account, and a self-signed
/// certificate of the server.
struct Trust<'a>(&'a Path);

impl Trust<'_> {
    fn new(folder: &Path) -> Trust<'_> {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).unwrap();
        let trust = Trust(folder);
        trust.certify();
        let operator = KeyPair::new_operator();
        let account = KeyPair::new_account();
        let ours = claim("operator", &operator, &operator);
        let theirs = claim("account", &account, &operator);
        let (public, key) = (account.public_key(), trust.path("key.pem"));
        let certificate = trust.path("certificate.pem");
        let conf = format!(
            "tls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}
            operator: {ours}
            resolver: MEMORY
            resolver_preload: {{ {public}: {theirs} }}"
        );
        std::fs::write(trust.path("server.conf"), conf).unwrap();
        trust.admit("lab.creds", &account);
        trust.admit("stranger.creds", &KeyPair::new_account());
        trust
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn certify(&self) {
        let (key, certificate) = (self.path("key.pem"), self.path("certificate.pem"));
        let alternative = format!("subjectAltName=IP:{HUB}");
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
            .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-subj", "/CN=meeting", "-addext", &alternative])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-keyout", &key, "-out", &certificate])
            .output();
        assert_success(&made.unwrap());
    }

    /// Writes a credentials file in the format of `nsc`.
    fn admit(&self, name: &str, account: &KeyPair) {
        let user = KeyPair::new_user();
        let (token, seed) = (claim("user", &user, account), user.seed().unwrap());
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
            -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(self.path(name), text).unwrap();
    }
}

/// Returns a NATS JWT whose subject is the key `of`. The issuer `by` signs the token.
fn claim(kind: &str, of: &KeyPair, by: &KeyPair) -> String {
    let coded = |bytes: &[u8]| data_encoding::BASE64URL_NOPAD.encode(bytes);
    let part = |value: &Value| coded(value.to_string().as_bytes());
    let mut nats = json!({"type": kind, "version": 2});
    match kind {
        "account" => {
            nats["limits"] = json!({"subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1,
                "imports": -1, "exports": -1, "wildcards": true});
        }
        "user" => {
            for name in ["subs", "data", "payload"] {
                nats[name] = (-1).into();
            }
        }
        _ => {}
    }
    let header = part(&json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let body = part(
        &json!({"jti": kind, "iat": 1_700_000_000, "name": kind, "nats": nats,
        "iss": by.public_key(), "sub": of.public_key()}),
    );
    let signed = format!("{header}.{body}");
    let signature = coded(&by.sign(signed.as_bytes()).unwrap());
    format!("{signed}.{signature}")
}
