//! Long bodies, which are read past HTTP.

use super::*;

const LONG: usize = 700_000;
/// The first two pieces of memory: what is taken for a promise, and as much again.
const TAKEN: [usize; 2] = [256 << 10, 512 << 10];

/// An answer of so many bytes, of which `sent` come, and `more` in its head.
fn long(more: &str, sent: usize) -> &'static str {
    let mut text = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n{more}\r\n");
    text.extend((0..sent).map(|n| char::from(b'a' + (n % 23) as u8)));
    text.leak()
}

fn expected() -> Vec<u8> {
    (0..LONG).map(|n| b'a' + (n % 23) as u8).collect()
}

#[test]
fn a_long_body_comes_in_memory_that_fits_and_its_connection_is_kept() {
    let (address, _requests) = server(vec![vec![long("", LONG), OK, long("", LONG)]]);
    let upstream = upstream(address);
    run(async {
        for (reused, short) in [(false, false), (true, true), (true, false)] {
            let mut answer = upstream.send(0, &get("/x")).await.unwrap();
            assert_eq!((answer.timing.reused, answer.is_exact()), (reused, !short));
            assert_eq!(answer.len(), Some(if short { 3 } else { LONG as u64 }));
            let (mut all, mut next) = (Vec::new(), None);
            while let Some(piece) = answer.piece().await.unwrap() {
                let at = piece.as_ptr().addr();
                let beside = next.is_none_or(|next| next == at) || TAKEN.contains(&all.len());
                assert!(short || beside, "{} bytes in", all.len());
                next = Some(at + piece.len());
                all.extend_from_slice(&piece);
            }
            assert!(answer.is_empty());
            assert!(all == if short { b"abc".to_vec() } else { expected() });
            assert_eq!(
                answer.piece().await.unwrap(),
                None,
                "and nothing after its end"
            );
        }
    });
    assert_eq!(upstream.opened.get(), 1);
}

#[test]
fn what_the_server_ends_is_not_used_again() {
    let hidden = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz";
    let hidden = format!("{}{hidden}", long("", LONG)).leak();
    let old = long("", LONG).replacen("1.1", "1.0", 1).leak();
    for answer in [
        long("Connection: x, CLOSE\r\n", LONG),
        long("Connection: close\r\nConnection: x\r\n", LONG),
        old,
        long("", LONG + 1),
        // More than was said may be the next answer, of somebody else's making.
        hidden,
    ] {
        let (address, _requests) = server(vec![vec![answer], vec![OK]]);
        let upstream = upstream(address);
        run(async {
            let mut first = upstream.send(0, &get("/")).await.unwrap();
            assert!(first.is_exact() && body(&mut first).await.unwrap() == expected());
            let mut second = upstream.send(0, &get("/")).await.unwrap();
            assert!(!second.timing.reused);
            assert_eq!(body(&mut second).await.unwrap(), b"abc");
        });
    }
}

#[test]
fn a_long_body_that_is_cut_or_stalls_is_an_error() {
    let (address, _requests) = server(vec![vec![long("", LONG - 7)]]);
    let upstream = upstream(address);
    run(async {
        let mut answer = upstream.send(0, &get("/")).await.unwrap();
        let failed = body(&mut answer).await.unwrap_err();
        assert!(
            failed.why.contains("7 bytes early") && !failed.late,
            "{failed}"
        );
    });

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = super::upstream(listener.local_addr().unwrap());
    let silent = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        head(&mut stream);
        stream.write_all(long("", LONG - 7).as_bytes()).unwrap();
        // Until the client has had enough.
        stream.read(&mut [0]).unwrap()
    });
    run(async {
        let mut answer = upstream.send(0, &get("/")).await.unwrap();
        let failed = body(&mut answer).await.unwrap_err();
        assert!(failed.why.contains("nothing") && failed.late, "{failed}");
    });
    assert_eq!(silent.join().unwrap(), 0, "the connection is closed");
}
