//! Tests the commands that packages and container images need: health checks and manual pages.

use crate::support::{HeadwaterServer, TempFolder};
use std::net::TcpListener;
use std::process::{Command, Output};

fn run_to_end(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(args)
        .output()
        .unwrap()
}

fn check_health(url: &str) -> (Option<i32>, String) {
    let output = run_to_end(&["health", url]);
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), errors)
}

#[test]
fn health_follows_the_status_of_the_server() {
    let origin = HeadwaterServer::serve(&[]);
    for path in ["/readyz", "/healthz"] {
        assert_eq!(check_health(&origin.url(path)), (Some(0), String::new()));
    }
    let (code, errors) = check_health(&origin.url("/missing"));
    assert_eq!(code, Some(1));
    assert!(errors.contains("the server responded with 404"), "{errors}");
}

#[test]
fn health_of_a_missing_or_foreign_server_is_an_error() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let foreign = silent.local_addr().unwrap();
    let responder = std::thread::spawn(move || {
        use std::io::Write;
        let (mut client, _) = silent.accept().unwrap();
        client.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
    });
    let (code, errors) = check_health(&format!("http://{foreign}/"));
    responder.join().unwrap();
    assert_eq!(code, Some(1), "{errors}");
    let (code, errors) = check_health(&format!("http://{foreign}/"));
    assert_eq!(code, Some(1));
    assert!(errors.contains("refused"), "{errors}");
    for wrong in [
        "https://127.0.0.1/",
        "127.0.0.1:8080",
        "http://",
        "http://a b/",
    ] {
        assert_eq!(check_health(wrong).0, Some(2), "{wrong}");
    }
}

#[test]
fn health_does_not_wait_for_the_end_of_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let responder = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        // Returns when the client has closed the connection.
        let _ = client.read_to_end(&mut Vec::new());
    });
    let result = check_health(&format!("http://{address}/"));
    responder.join().unwrap();
    assert_eq!(result, (Some(0), String::new()));
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = TempFolder::new();
    let pages = folder.0.join("man1");
    let output = run_to_end(&["man-pages", pages.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    for page in ["headwater", "headwater-serve", "headwater-load-rate"] {
        let text = std::fs::read_to_string(pages.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(&format!(".TH {page} 1")), "{text}");
    }
}
