//! Checks that the keys and secrets of protected films occur only in licenses.

use crate::support::{HeadwaterServer, TempFolder};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

const BINARY: &str = env!("CARGO_BIN_EXE_headwater");
const SECRET: &[u8] = b"k9Qz71-secret-of-one-test-0b8Kx2Wd";
const KEY: [u8; 16] = *b"\xd3\x91\x04\xfa\x7c\x2e\xb8\x55\x16\xe9\x40\xcb\x8f\x63\x0a\xd7";

/// All output of a server with protected films. Each entry has a name and bytes.
type WrittenData = Vec<(String, Vec<u8>)>;

/// Returns whether the data contains a value as raw bytes, in hexadecimal, in Base64, or as a list
/// of numbers.
fn is_revealed(data: &[u8], value: &[u8]) -> bool {
    let list = format!("{value:?}");
    let forms = [
        value.to_vec(),
        HEXLOWER.encode(value).into_bytes(),
        HEXUPPER.encode(value).into_bytes(),
        BASE64_NOPAD.encode(value).into_bytes(),
        BASE64URL_NOPAD.encode(value).into_bytes(),
        list.trim_matches(['[', ']']).as_bytes().to_vec(),
    ];
    let contains = |form: &Vec<u8>| data.windows(form.len()).any(|part| part == form);
    forms.iter().any(contains)
}

fn assert_hidden(written: &WrittenData, values: &[&[u8]]) {
    for (name, data) in written {
        assert!(!data.is_empty(), "{name} is empty");
        for value in values {
            assert!(!is_revealed(data, value), "{name} reveals {value:x?}");
        }
    }
}

/// Writes a film with an old modification time, because the index cache on disk does not store
/// recently modified films.
fn write_film(folder: &TempFolder) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("media/demo/video-180p.mp4");
    let film = folder.write_file("films/film.mp4", &std::fs::read(demo).unwrap());
    let past = SystemTime::now() - Duration::from_secs(100);
    let film = std::fs::File::options().write(true).open(film).unwrap();
    film.set_modified(past).unwrap();
}

/// Starts a server that writes its log, its records and its index cache below the folder.
fn start_server(folder: &TempFolder, keys: &str) -> (HeadwaterServer, Vec<String>) {
    write_film(folder);
    let path = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let flags = [
        ("--drm-keys", keys.to_owned()),
        ("--segment", "2s".to_owned()),
        ("--log", "trace".to_owned()),
        ("--records", path("records")),
        ("--index-cache", "memory+disk".to_owned()),
        ("--index-cache-dir", path("indexes")),
    ];
    let flags = flags
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value]);
    let args: Vec<String> = std::iter::once(path("films")).chain(flags).collect();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "log=$1; shift; exec \"$0\" \"$@\" 2> \"$log\"",
        BINARY,
        &path("log"),
    ]);
    let borrowed: Vec<&str> = args.iter().map(String::as_str).collect();
    (HeadwaterServer::spawn(command, "serve", &borrowed), args)
}

/// Requests the film and stops the server. Returns everything that the server has sent or written.
fn collect_written(
    folder: &TempFolder,
    mut server: HeadwaterServer,
    args: &[String],
) -> WrittenData {
    let mut written = WrittenData::new();
    for name in [".json", ".mpd", ".m3u8"] {
        written.push((
            name.to_owned(),
            server.get_body(&format!("/film.mp4/{name}")),
        ));
    }
    let json: serde_json::Value = serde_json::from_slice(&written[0].1).unwrap();
    let rendition = &json["renditions"][0];
    let first = rendition["segments"][0]["t"].to_string();
    let media = rendition["media"].as_str().unwrap().replace("{t}", &first);
    server.get_body(&format!("/film.mp4/{media}"));
    written.push(("/metrics".to_owned(), server.get_body("/metrics")));
    assert_eq!(server.terminate(), Some(0));
    let printed = Command::new(BINARY)
        .arg("serve")
        .args(args)
        .arg("--print-config")
        .output();
    let printed = printed.unwrap();
    written.push((
        "--print-config".to_owned(),
        [printed.stdout, printed.stderr].concat(),
    ));
    for name in ["log", "records"] {
        written.push((name.to_owned(), std::fs::read(folder.0.join(name)).unwrap()));
    }
    let before = written.len();
    read_files(&folder.0.join("indexes"), &mut written);
    assert!(written.len() > before, "the index cache is empty");
    written
}

fn read_files(folder: &Path, written: &mut WrittenData) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => read_files(&path, written),
            false => written.push((path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
}

#[test]
fn a_secret_and_its_keys_are_not_written() {
    let folder = TempFolder::new();
    let secret = folder.write_file("secret", SECRET);
    let (server, args) = start_server(&folder, &format!("secret:{}", secret.display()));
    let license = server.request("POST", "/film.mp4/.license", &[("Content-Length", "0")]);
    let parsed: serde_json::Value = serde_json::from_slice(&license.body).unwrap();
    let key = parsed["keys"][0]["k"].as_str().unwrap();
    let key = BASE64URL_NOPAD.decode(key.as_bytes()).unwrap();
    assert!(key.len() == 16 && is_revealed(&license.body, &key));
    let written = collect_written(&folder, server, &args);
    assert_hidden(&written, &[SECRET, &key]);
}

#[test]
fn keys_of_documents_are_not_written() {
    let folder = TempFolder::new();
    let value = BASE64_NOPAD.encode(&KEY) + "==";
    let document = format!(
        "<CPIX version=\"2.3\"><ContentKeyList><ContentKey kid=\"00000000-0000-0000-0000-0000000000a1\"><Data><Secret><PlainValue>{value}</PlainValue></Secret></Data></ContentKey></ContentKeyList></CPIX>"
    );
    assert!(is_revealed(document.as_bytes(), &KEY));
    let document = folder.write_file("cpix", document.as_bytes());
    let (server, args) = start_server(&folder, &format!("cpix:{}", document.display()));
    let written = collect_written(&folder, server, &args);
    assert_hidden(&written, &[&KEY]);
}
