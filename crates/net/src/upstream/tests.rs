//! Against a server that sends exactly the bytes it is told to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;

use super::*;

mod straight;

/// Each connection is one script: for each request, the bytes to answer with; then it closes.
fn server(scripts: Vec<Vec<&'static str>>) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for script in scripts {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in script {
                tell.send(head(&mut stream)).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    (address, requests)
}

fn head(stream: &mut TcpStream) -> String {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

fn upstream(address: SocketAddr) -> Upstream {
    let url = format!("http://{address}").parse().unwrap();
    let patience = Patience {
        between: Duration::from_millis(300),
        ..Patience::default()
    };
    Upstream::new(&url, 1, patience, &Authorities::Public).unwrap()
}

fn get(path: &str) -> Request<()> {
    Request::get(path).header("host", "o").body(()).unwrap()
}

async fn body(answer: &mut Answer) -> Result<Vec<u8>, Failed> {
    let mut all = Vec::new();
    while let Some(piece) = answer.piece().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

#[test]
fn connections_are_kept_and_a_closed_one_is_replaced() {
    let (address, requests) = server(vec![vec![OK, OK], vec![OK]]);
    let upstream = upstream(address);
    run(async {
        for expected in [false, true, false] {
            let mut answer = upstream.send(0, &get("/x")).await.unwrap();
            assert_eq!(answer.timing.reused, expected);
            assert_eq!(body(&mut answer).await.unwrap(), b"abc");
        }
    });
    assert_eq!(upstream.opened.get(), 2);
    assert!(
        requests
            .recv()
            .unwrap()
            .starts_with("GET /x HTTP/1.1\r\nhost: o\r\n")
    );
}

#[test]
fn a_body_that_is_cut_or_stalls_is_an_error_whatever_its_framing() {
    for (answer, why) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "cut"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "cut",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX",
            "cut",
        ),
    ] {
        let (address, _requests) = server(vec![vec![answer]]);
        let upstream = upstream(address);
        let failed = run(async {
            let mut answer = upstream.send(0, &get("/")).await.unwrap();
            body(&mut answer).await.unwrap_err()
        });
        assert!(failed.why.contains(why), "{answer:?}: {failed}");
    }
}

#[test]
fn what_is_no_answer_is_an_error() {
    for answer in [
        "",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        "HTTP/1.1 99999 OK\r\n\r\n",
    ] {
        let (address, _requests) = server(vec![vec![answer]]);
        let failed = run(upstream(address).send(0, &get("/")));
        assert!(failed.is_err(), "{answer:?}");
    }
}

#[test]
fn a_server_is_a_host_and_no_more() {
    for url in ["ftp://a", "http://u@a", "http://a/b", "/x", "a:1"] {
        let parsed = url.parse().unwrap();
        assert!(
            Upstream::new(&parsed, 1, Patience::default(), &Authorities::Public).is_err(),
            "{url}"
        );
    }
    for url in ["http://a", "https://a:8443/", "http://[::1]:80"] {
        let parsed = url.parse().unwrap();
        assert!(
            Upstream::new(&parsed, 1, Patience::default(), &Authorities::Public).is_ok(),
            "{url}"
        );
    }
}

fn post(body: &'static str) -> Request<Body> {
    let request = Request::post("/x").header("host", "o");
    request.body(Body::full(body)).unwrap()
}

/// Whoever answers nothing may have done what it was asked to do.
#[test]
fn what_must_not_be_done_twice_is_sent_twice_only_if_it_cannot_have_arrived() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (address, requests) = server(vec![vec![OK, ""], vec![OK]]);
    let upstream = upstream(address);
    run(async {
        let mut first = upstream.send(0, &get("/first")).await.unwrap();
        body(&mut first).await.unwrap();
        // It came on the kept connection, which was then closed without a word.
        let (failed, unsent) = upstream.send_once(0, post("a")).await.unwrap_err();
        assert!(failed.sent && unsent.is_none(), "{failed:?}");
        let mut second = upstream.send_once(0, post("b")).await.unwrap();
        body(&mut second).await.unwrap();
    });
    let heads: Vec<String> = requests.try_iter().collect();
    assert!(heads[1].starts_with("POST /x") && heads[1].contains("content-length: 1"));
    assert_eq!((heads.len(), upstream.opened.get()), (3, 2));
}
