//! Tests long bodies, which are read into buffers that contain only body bytes.

use super::*;

const LONG: usize = 700_000;
/// Body offsets at which the second and the third buffer start.
const TAKEN: [usize; 2] = [256 << 10, 512 << 10];

/// Returns a response that declares `LONG` bytes and contains `sent` bytes. `more` contains
/// additional header fields.
fn long_response(more: &str, sent: usize) -> &'static str {
    let mut text = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n{more}\r\n");
    text.extend((0..sent).map(|n| char::from(b'a' + (n % 23) as u8)));
    text.leak()
}

fn expected_body() -> Vec<u8> {
    (0..LONG).map(|n| b'a' + (n % 23) as u8).collect()
}

#[test]
fn a_long_body_fills_memory_that_fits_and_its_connection_is_reused() {
    let (address, _requests) = start_server(vec![vec![
        long_response("", LONG),
        OK,
        long_response("", LONG),
    ]]);
    let client = connect_to(address);
    block_on(async {
        for (reused, short) in [(false, false), (true, true), (true, false)] {
            let mut response = client.send_repeatable(0, &get_request("/x")).await.unwrap();
            assert_eq!(
                (response.timing.is_reused, response.has_exclusive_memory()),
                (reused, !short)
            );
            assert_eq!(
                response.remaining(),
                Some(if short { 3 } else { LONG as u64 })
            );
            let (mut all, mut next) = (Vec::new(), None);
            while let Some(data) = response.next_data().await.unwrap() {
                let at = data.as_ptr().addr();
                let is_adjacent = next.is_none_or(|next| next == at) || TAKEN.contains(&all.len());
                assert!(short || is_adjacent, "{} bytes in", all.len());
                next = Some(at + data.len());
                all.extend_from_slice(&data);
            }
            assert!(response.is_empty());
            assert!(
                all == if short {
                    b"abc".to_vec()
                } else {
                    expected_body()
                }
            );
            assert_eq!(
                response.next_data().await.unwrap(),
                None,
                "and nothing after its end"
            );
        }
    });
    assert_eq!(client.opened.load(Relaxed), 1);
}

#[test]
fn connections_that_the_server_ends_are_not_reused() {
    let hidden = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz";
    let hidden = format!("{}{hidden}", long_response("", LONG)).leak();
    let old = long_response("", LONG).replacen("1.1", "1.0", 1).leak();
    for response in [
        long_response("Connection: x, CLOSE\r\n", LONG),
        long_response("Connection: close\r\nConnection: x\r\n", LONG),
        old,
        long_response("", LONG + 1),
        // Bytes beyond the declared length may be a smuggled response.
        hidden,
    ] {
        let (address, _requests) = start_server(vec![vec![response], vec![OK]]);
        let client = connect_to(address);
        block_on(async {
            let mut first = client.send_repeatable(0, &get_request("/")).await.unwrap();
            assert!(
                first.has_exclusive_memory()
                    && read_body(&mut first).await.unwrap() == expected_body()
            );
            let mut second = client.send_repeatable(0, &get_request("/")).await.unwrap();
            assert!(!second.timing.is_reused);
            assert_eq!(read_body(&mut second).await.unwrap(), b"abc");
        });
    }
}

#[test]
fn a_long_body_that_is_cut_or_stalls_is_an_error() {
    let (address, _requests) = start_server(vec![vec![long_response("", LONG - 7)]]);
    let client = connect_to(address);
    block_on(async {
        let mut response = client.send_repeatable(0, &get_request("/")).await.unwrap();
        let failed = read_body(&mut response).await.unwrap_err();
        assert!(
            failed.reason.contains("7 bytes early") && !failed.is_timeout,
            "{failed}"
        );
    });

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = connect_to(listener.local_addr().unwrap());
    let silent = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream);
        stream
            .write_all(long_response("", LONG - 7).as_bytes())
            .unwrap();
        // Waits until the client times out.
        stream.read(&mut [0]).unwrap()
    });
    block_on(async {
        let mut response = client.send_repeatable(0, &get_request("/")).await.unwrap();
        let failed = read_body(&mut response).await.unwrap_err();
        assert!(
            failed.reason.contains("nothing") && failed.is_timeout,
            "{failed}"
        );
    });
    assert_eq!(silent.join().unwrap(), 0, "the connection is closed");
}
