//! Other clouds, by the emulators that there are of them: Azurite, which is Azure's own, and
//! fake-gcs-server.

use crate::servers::{Process, brought, escaped, ports, send, skip, start};
use crate::suite::{NAMES, bytes, check, key, usual};
use std::process::Command;
use store::{Error, Key, Options, Store};

/// The account that every Azurite has, and its key.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// A shared access signature for all of that account until 2099, made with that key.
const SAS: &str = "sv=2022-11-02&ss=b&srt=sco&sp=rwdlacup&se=2099-01-01T00%3A00%3A00Z\
    &spr=https%2Chttp&sig=fo7pGHVOQAS2pTYWZbjCuO6XFK0TuXyfTtDE10nOgMA%3D";

fn azurite() -> Option<(u16, Process)> {
    let [port] = ports(1)[..] else { return None };
    let mut command = Command::new("node");
    command.arg(brought(
        "azurite/node_modules/azurite/dist/src/blob/main.js",
    )?);
    command.args(["--inMemoryPersistence", "--silent", "--disableTelemetry"]);
    command.args(["--skipApiVersionCheck", "--blobHost", "127.0.0.1"]);
    command.args(["--blobPort", &port.to_string()]);
    Some((port, start(port, &mut command)?))
}

/// Settings by name, with short waits.
pub fn with(settings: &[(&str, &str)]) -> Options {
    let set = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
    Options {
        settings: settings.iter().map(set).collect(),
        ..usual()
    }
}

#[test]
fn azure_with_a_shared_key_and_with_a_shared_access_signature() {
    let Some((port, _azurite)) = azurite() else {
        return skip("no Azurite: run scripts/storage.sh");
    };
    let put = |path: &str, query: &str, head: &str, bytes: &[u8]| {
        let path = format!("/{ACCOUNT}/{}?{query}{SAS}", escaped(path));
        let status = send(port, "PUT", &path, head, bytes);
        assert!(matches!(status, Ok(201)), "PUT {path}: {status:?}");
    };
    put("films", "restype=container&", "", b"");
    for name in NAMES {
        let path = format!("films/library/{name}");
        put(&path, "", "x-ms-blob-type: BlockBlob\r\n", &bytes(name));
    }
    let endpoint = format!("http://127.0.0.1:{port}/{ACCOUNT}");
    let at = |more: (&'static str, &str)| {
        let account = ("azure_storage_account_name", ACCOUNT);
        with(&[account, ("azure_storage_endpoint", &endpoint), more])
    };
    for scheme in ["az", "abfs"] {
        let url = format!("{scheme}://films/library");
        let store = Store::new(&url, at(("azure_storage_account_key", ACCOUNT_KEY))).unwrap();
        check(&store, true);
    }
    let shared = Store::new("az://films/library", at(("azure_storage_sas_key", SAS))).unwrap();
    check(&shared, true);
    let guessed = at(("azure_storage_account_key", "Z3Vlc3NlZA=="));
    let wrong = Store::new("az://films/library", guessed).unwrap();
    for error in [
        wrong.open(&key("film.mp4")).err().unwrap(),
        wrong.list(&Key::ROOT).err().unwrap(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, Error::Denied(_)), "{text}");
        assert!(text.contains("403") && !text.contains("Z3Vlc"), "{text}");
    }
    let key = ("azure_storage_account_key", ACCOUNT_KEY);
    let none = Store::new("az://other/library", at(key)).unwrap();
    let opened = none.open(&crate::suite::key("film.mp4"));
    assert!(matches!(opened, Err(Error::NotFound)));
}

fn fake_gcs() -> Option<(u16, Process)> {
    let [port] = ports(1)[..] else { return None };
    let mut command = Command::new(brought("gcs/fake-gcs-server")?);
    command.args([
        "-scheme",
        "http",
        "-host",
        "127.0.0.1",
        "-backend",
        "memory",
    ]);
    command.args(["-port", &port.to_string()]);
    command.arg(format!("-public-host=127.0.0.1:{port}"));
    Some((port, start(port, &mut command)?))
}

#[test]
fn gcs_by_its_xml_interface() {
    let Some((port, _server)) = fake_gcs() else {
        return skip("no GCS server: run scripts/storage.sh");
    };
    let post = |path: &str, kind: &str, bytes: &[u8]| {
        let kind = format!("Content-Type: {kind}\r\n");
        let status = send(port, "POST", path, &kind, bytes);
        assert!(matches!(status, Ok(200)), "POST {path}: {status:?}");
    };
    post("/storage/v1/b", "application/json", br#"{"name": "films"}"#);
    for name in NAMES {
        let name_of = escaped(&format!("library/{name}")).replace('/', "%2F");
        let path = format!("/upload/storage/v1/b/films/o?uploadType=media&name={name_of}");
        post(&path, "video/mp4", &bytes(name));
    }
    let base = format!("http://127.0.0.1:{port}");
    let settings = [
        ("google_base_url", &*base),
        ("google_skip_signature", "true"),
    ];
    let store = Store::new("gs://films/library", with(&settings)).unwrap();
    check(&store, true);
    let none = Store::new("gs://other/library", with(&settings)).unwrap();
    assert!(matches!(none.open(&key("film.mp4")), Err(Error::NotFound)));
}
