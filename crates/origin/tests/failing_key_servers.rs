//! Tests of key servers that are unavailable or slow, that send damaged responses, or whose errors
//! contain internal details.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use support::key_server::{KeyServer, read_request, respond};
use support::keys::*;

#[test]
fn a_failing_key_server_is_reported_without_its_documents() {
    let too_long = "x".repeat((1 << 20) + 1);
    for (status, body, wrong) in [
        ("404 Not Found", "no such title", "status 404 Not Found"),
        ("302 Found", "", "status 302 Found"),
        ("200 OK", "<CPIX", "keys: "),
        (
            "200 OK",
            &three_keys().replace("<AudioFilter/>", "<AudioFilter/><X/>"),
            "the filter X",
        ),
        (
            "200 OK",
            &three_keys().replacen(VALUE, "AAEC", 1),
            "not 16 bytes",
        ),
        ("200 OK", &too_long, "more than 1048576 bytes"),
    ] {
        let (status, body) = (status.to_owned(), body.to_owned());
        let keys = KeyServer::new(move |_| respond(&status, "", &body));
        let response = serve_with_keys(&keys.url("cpix"), &[]).get("/film/.m3u8");
        let error = response.header("headwater-error");
        assert_eq!(
            (response.status, response.header("retry-after")),
            (503, "1"),
            "{error}"
        );
        assert!(
            error.starts_with("upstream; keys: ") && error.contains(wrong),
            "{error}"
        );
        assert!(!error.contains(VALUE), "{error}");
    }
}

#[test]
fn a_key_server_that_is_down_or_silent_is_unavailable() {
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let silent = KeyServer::new(|_| None);
    for url in [
        format!("cpix:http://{unused}/{{title}}"),
        silent.url("cpix"),
    ] {
        let response = serve_with_keys(&url, &[]).get("/film/.mpd");
        let error = response.header("headwater-error");
        assert_eq!(response.status, 503, "{error}");
        assert!(error.starts_with("upstream; keys: "), "{error}");
    }
}

/// Starts a server that reads each request and responds with the bytes that `write` sends.
fn start_raw_server(write: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            write(&mut stream);
        }
    });
    format!("cpix:http://{address}/{{title}}")
}

#[test]
fn damaged_responses_of_key_servers_are_refused() {
    let document = three_keys();
    let head = |len: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n");
    let cut = head(document.len()) + &document[..document.len() / 2];
    let binary = [head(3).as_bytes(), &[0xff, 0xfe, 0x00]].concat();
    let twice = document.replace(LOW, AUDIO);
    let twice = head(twice.len()) + &twice;
    for (bytes, wrong) in [
        (cut.into_bytes(), "is incomplete"),
        (b"keys\r\n\r\n".to_vec(), "keys: "),
        (Vec::new(), "keys: "),
        (binary, "not UTF-8"),
        (twice.into_bytes(), "occurs twice"),
    ] {
        let url = start_raw_server(move |stream| _ = stream.write_all(&bytes));
        let response = serve_with_keys(&url, &[]).get("/film/.m3u8");
        let error = response.header("headwater-error");
        assert_eq!(response.status, 503, "{error}");
        assert!(
            error.starts_with("upstream; keys: ") && error.contains(wrong),
            "{wrong}: {error}"
        );
        assert!(!error.contains(VALUE), "{error}");
    }
}

#[test]
fn a_key_server_that_never_completes_its_response_is_unavailable() {
    let url = start_raw_server(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        // Each byte arrives in time, but the response never completes. The loop ends when the
        // client closes the connection.
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    let response = serve_with_keys(&url, &[]).get("/film/.m3u8");
    let error = response.header("headwater-error");
    assert_eq!(response.status, 503, "{error}");
    assert!(error.contains("no complete response within 10s"), "{error}");
}

#[test]
fn cached_keys_survive_a_failing_key_server() {
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let down = is_down.clone();
    let keys = KeyServer::new(
        move |_| match down.load(std::sync::atomic::Ordering::SeqCst) {
            false => respond("200 OK", "", &three_keys()),
            true => respond("500 Internal Server Error", "", ""),
        },
    );
    let server = serve_with_keys(&keys.url("cpix"), &["--drm-cache", "0s", "--recheck", "0s"]);
    let before = server.text("/film/.mpd");
    is_down.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(server.text("/film/.mpd"), before);
    assert!(keys.requests().len() > 1);
}

/// Regression test: titles that waited for a slow key server occupied all build permits, so other
/// titles could not be built.
#[test]
fn titles_of_other_rules_are_served_while_a_key_server_hangs() {
    const WAITING: usize = 40;
    // Maximum number of titles that are built at the same time.
    const BUILDS_MAX: usize = 16;
    let root = tempfile::tempdir().unwrap();
    let film = support::demo_folder().join("video-180p.mp4");
    let copy = |place: String| {
        let path = root.path().join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(&film, path).unwrap();
    };
    (0..WAITING).for_each(|n| copy(format!("slow/{n}.mp4")));
    for place in ["open/film.mp4", "own/film.mp4"] {
        copy(place.to_owned());
    }
    let silent = KeyServer::new(|_| None);
    let secret = TextFile::new(SECRET);
    let own = format!(
        "{{ path = \"own/**\", keys = {:?} }}",
        secret.keys("secret")
    );
    let flags = [
        "--drm-keys",
        &silent.url("cpix"),
        "--drm-rule",
        "{ path = \"open/**\", keys = \"none\" }",
        "--drm-rule",
        &own,
    ];
    let server = support::TestServer::from_folder(root, &flags);
    let finished = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..WAITING {
            let (server, finished) = (&server, &finished);
            scope.spawn(move || {
                let status = server.get(&format!("/slow/{n}.mp4/.mpd")).status;
                finished.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                assert_eq!(status, 503, "{n}");
            });
        }
        support::wait_until("two titles wait for the key server", || {
            silent.requests().len() >= 2
        });
        for title in ["open/film.mp4", "own/film.mp4"] {
            server.text(&format!("/{title}/.mpd"));
        }
        let finished = finished.load(std::sync::atomic::Ordering::SeqCst);
        assert!(
            finished < WAITING - BUILDS_MAX,
            "{finished} of {WAITING} came first"
        );
    });
}

/// Regression test: the library list waited five seconds for each title whose key server does not
/// respond.
#[test]
fn the_library_list_names_titles_whose_key_server_hangs() {
    let silent = KeyServer::new(|_| None);
    let open = "{ path = \"open/**\", keys = \"none\" }";
    let server = serve_with_keys(&silent.url("cpix"), &["--drm-rule", open]);
    for place in ["open/film.mp4", "slow/a.mp4", "slow/b.mp4"] {
        let path = server.path(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(support::demo_folder().join("video-180p.mp4"), path).unwrap();
    }
    let titles = list_titles(&server);
    let title = |path: &str| titles.iter().find(|title| title["path"] == path).unwrap();
    assert_eq!(title("open/film.mp4")["duration_ms"], 48_000);
    for late in [title("film"), title("slow")] {
        assert_eq!(late["duration_ms"], serde_json::Value::Null, "{late}");
        assert_eq!(late["error"], serde_json::Value::Null, "{late}");
    }
}

/// Regression test: the library list showed the error of a key server until the film's files
/// changed, even if the key server had recovered.
#[test]
fn the_library_list_recovers_with_the_key_server() {
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let down = is_down.clone();
    let keys = KeyServer::new(
        move |_| match down.load(std::sync::atomic::Ordering::SeqCst) {
            false => respond("200 OK", "", &three_keys()),
            true => respond("500 Internal Server Error", "", ""),
        },
    );
    let server = serve_with_keys(&keys.url("cpix"), &["--recheck", "0s"]);
    let film = || {
        list_titles(&server)
            .into_iter()
            .find(|title| title["path"] == "film")
            .unwrap()
    };
    let error = film()["error"].clone();
    assert!(error.as_str().unwrap().contains("status 500"), "{error}");
    is_down.store(false, std::sync::atomic::Ordering::SeqCst);
    // The server requests the keys again ten seconds after a failure.
    let recovered = (0..60).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_secs(1));
        Some(film()).filter(|film| film["error"].is_null())
    });
    assert_eq!(recovered.unwrap()["duration_ms"], 48_000);
}

fn list_titles(server: &support::TestServer) -> Vec<serde_json::Value> {
    let list: serde_json::Value = serde_json::from_str(&server.text("/-/library.json")).unwrap();
    list["titles"].as_array().unwrap().clone()
}

/// Regression test: the error response contained the address of the key server, the path of a
/// document and errors of the operating system.
#[test]
fn viewers_do_not_learn_addresses_paths_and_texts_of_key_servers() {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let talkative =
        KeyServer::new(|_| respond("500 Internal Server Error", "", "no route to 10.1.2.3"));
    let cut = start_raw_server(|stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<");
    });
    let missing = format!("cpix:{}/{{title}}.cpix", folder.path().display());
    for (keys, shown, hidden) in [
        (
            format!("cpix:http://{unused}/{{title}}"),
            "the key server is unavailable",
            unused.to_string(),
        ),
        (
            talkative.url("cpix"),
            "with status 500",
            "no route to 10.1.2.3".to_owned(),
        ),
        (
            cut,
            "response of the key server is incomplete",
            "8 bytes early".to_owned(),
        ),
        (
            missing,
            "cannot read the key document",
            folder.path().join("film.cpix").display().to_string(),
        ),
    ] {
        let server = serve_with_keys(&keys, &["--records", records.to_str().unwrap()]);
        let response = server.get("/film/.mpd");
        let body = String::from_utf8(response.body.clone()).unwrap();
        let header = response.header("headwater-error").to_owned();
        let list = server.text("/-/library.json");
        drop(server);
        assert_eq!(response.status, 503, "{body}");
        for text in [&body, &header, &list] {
            assert!(
                !text.contains(&hidden) && !text.contains("os error"),
                "{text}"
            );
            assert!(!text.contains("127.0.0.1"), "{text}");
        }
        assert!(
            body.contains(shown) && header.contains(shown),
            "{body} {header}"
        );
        let written = std::fs::read_to_string(&records).unwrap();
        assert!(written.contains(&hidden), "{hidden}: {written}");
        std::fs::remove_file(&records).unwrap();
    }
}
