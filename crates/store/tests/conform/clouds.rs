//! Tests Azure and Google Cloud Storage with the emulators Azurite and fake-gcs-server.

use crate::servers::{
    Process, download_server, free_ports, percent_escape, request_status, skip_server, start_server,
};
use crate::suite::{NAMES, check_library, object_bytes, parse_key, patient_options};
use std::process::Command;
use store::{Error, Key, Options, Store};

/// Azurite's built-in account, and the account's key, which Azurite documents publicly.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// A shared access signature for the whole account, created with `ACCOUNT_KEY` and valid until
/// 2099.
const SAS: &str = "sv=2022-11-02&ss=b&srt=sco&sp=rwdlacup&se=2099-01-01T00%3A00%3A00Z\
    &spr=https%2Chttp&sig=fo7pGHVOQAS2pTYWZbjCuO6XFK0TuXyfTtDE10nOgMA%3D";

fn start_azurite() -> Option<(u16, Process)> {
    let [port] = free_ports(1)[..] else {
        return None;
    };
    let mut command = Command::new("node");
    command.arg(download_server(
        "azurite/node_modules/azurite/dist/src/blob/main.js",
    )?);
    command.args(["--inMemoryPersistence", "--silent", "--disableTelemetry"]);
    command.args(["--skipApiVersionCheck", "--blobHost", "127.0.0.1"]);
    command.args(["--blobPort", &port.to_string()]);
    Some((port, start_server(port, &mut command)?))
}

/// Returns [`patient_options`] with these storage settings.
pub fn options_with(settings: &[(&str, &str)]) -> Options {
    let set = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
    Options {
        settings: settings.iter().map(set).collect(),
        ..patient_options()
    }
}

#[test]
fn azure_accepts_a_shared_key_and_a_shared_access_signature() {
    let Some((port, _azurite)) = start_azurite() else {
        return skip_server("no Azurite: run scripts/storage.sh");
    };
    let put = |path: &str, query: &str, head: &str, bytes: &[u8]| {
        let path = format!("/{ACCOUNT}/{}?{query}{SAS}", percent_escape(path));
        let status = request_status(port, "PUT", &path, head, bytes);
        assert!(matches!(status, Ok(201)), "PUT {path}: {status:?}");
    };
    put("films", "restype=container&", "", b"");
    for name in NAMES {
        let path = format!("films/library/{name}");
        put(
            &path,
            "",
            "x-ms-blob-type: BlockBlob\r\n",
            &object_bytes(name),
        );
    }
    let endpoint = format!("http://127.0.0.1:{port}/{ACCOUNT}");
    let at = |more: (&'static str, &str)| {
        let account = ("azure_storage_account_name", ACCOUNT);
        options_with(&[account, ("azure_storage_endpoint", &endpoint), more])
    };
    for scheme in ["az", "abfs"] {
        let url = format!("{scheme}://films/library");
        let store = Store::new(&url, at(("azure_storage_account_key", ACCOUNT_KEY))).unwrap();
        check_library(&store, true);
    }
    let shared = Store::new("az://films/library", at(("azure_storage_sas_key", SAS))).unwrap();
    check_library(&shared, true);
    let guessed = at(("azure_storage_account_key", "Z3Vlc3NlZA=="));
    let wrong = Store::new("az://films/library", guessed).unwrap();
    for error in [
        wrong.open(&parse_key("film.mp4")).err().unwrap(),
        wrong.list_folder(&Key::ROOT).err().unwrap(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, Error::Denied(_)), "{text}");
        assert!(text.contains("403") && !text.contains("Z3Vlc"), "{text}");
    }
    let key = ("azure_storage_account_key", ACCOUNT_KEY);
    let none = Store::new("az://other/library", at(key)).unwrap();
    let error = none.open(&parse_key("film.mp4")).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Denied(_)), "{text}");
    assert!(text.contains("ContainerNotFound; check the name"), "{text}");
}

fn start_fake_gcs() -> Option<(u16, Process)> {
    let [port] = free_ports(1)[..] else {
        return None;
    };
    let mut command = Command::new(download_server("gcs/fake-gcs-server")?);
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
    Some((port, start_server(port, &mut command)?))
}

#[test]
fn gcs_serves_objects_by_its_xml_interface() {
    let Some((port, _server)) = start_fake_gcs() else {
        return skip_server("no GCS server: run scripts/storage.sh");
    };
    let post = |path: &str, kind: &str, bytes: &[u8]| {
        let kind = format!("Content-Type: {kind}\r\n");
        let status = request_status(port, "POST", path, &kind, bytes);
        assert!(matches!(status, Ok(200)), "POST {path}: {status:?}");
    };
    post("/storage/v1/b", "application/json", br#"{"name": "films"}"#);
    for name in NAMES {
        let name_of = percent_escape(&format!("library/{name}")).replace('/', "%2F");
        let path = format!("/upload/storage/v1/b/films/o?uploadType=media&name={name_of}");
        post(&path, "video/mp4", &object_bytes(name));
    }
    let base = format!("http://127.0.0.1:{port}");
    let settings = [
        ("google_base_url", &*base),
        ("google_skip_signature", "true"),
    ];
    let store = Store::new("gs://films/library", options_with(&settings)).unwrap();
    check_library(&store, true);
    let none = Store::new("gs://other/library", options_with(&settings)).unwrap();
    assert!(matches!(
        none.open(&parse_key("film.mp4")),
        Err(Error::NotFound)
    ));
}
