//! A real S3 server behind a proxy that closes connections in the middle of a body.

use crate::real_servers::{put_all, s3_options, wait_for_objects};
use crate::servers::{SECRET, skip_server, start_s3};
use crate::suite::{object_bytes, parse_key, read_parts};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use store::{Error, Key, Options, RequestReason, Store};

/// Forwards connections to a port, and closes each connection after a given number of response
/// bytes.
struct BreakingProxy {
    addr: SocketAddr,
    closed: Arc<AtomicUsize>,
}

impl BreakingProxy {
    /// Starts a proxy that closes every connection after `bytes_max` response bytes.
    fn start(port: u16, bytes_max: usize) -> BreakingProxy {
        BreakingProxy::break_some(port, bytes_max, usize::MAX)
    }

    /// Starts a proxy that closes only the first `breaks` connections after `bytes_max` response
    /// bytes.
    fn break_some(port: u16, bytes_max: usize, breaks: usize) -> BreakingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let closed = Arc::new(AtomicUsize::new(0));
        let count = closed.clone();
        std::thread::spawn(move || {
            for (n, client) in listener.incoming().flatten().enumerate() {
                let bytes_max = if n < breaks { bytes_max } else { usize::MAX };
                let count = count.clone();
                std::thread::spawn(move || forward(&client, port, bytes_max, &count));
            }
        });
        BreakingProxy { addr, closed }
    }
}

fn forward(client: &TcpStream, port: u16, bytes_max: usize, closed: &AtomicUsize) {
    let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    // Ignores errors, because either side may close the connection first.
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let (mut left, mut buffer) = (bytes_max, [0; 16 << 10]);
    while left > 0 {
        let room = left.min(buffer.len());
        let Ok(count @ 1..) = (&server).read(&mut buffer[..room]) else {
            break;
        };
        if { client }.write_all(&buffer[..count]).is_err() {
            break;
        }
        left -= count;
    }
    closed.fetch_add(usize::from(left == 0), SeqCst);
    let _ = (
        client.shutdown(Shutdown::Both),
        server.shutdown(Shutdown::Both),
    );
}

#[test]
fn an_s3_body_that_breaks_is_resumed_by_range() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = start_s3(dir.path(), None) else {
        return skip_server("no S3 server: run scripts/storage.sh");
    };
    put_all(&server);
    let direct = format!("http://127.0.0.1:{}", server.port);
    wait_for_objects(&Store::new("s3://films/library", s3_options(&direct, SECRET)).unwrap());
    let proxy = BreakingProxy::start(server.port, 300_000);
    for memory_bytes in [0, 64 << 20] {
        let options = s3_options(&format!("http://{}", proxy.addr), SECRET);
        let options = Options {
            memory_bytes,
            ..options
        };
        let store = Store::new("s3://films/library", options).unwrap();
        let object = store.open(&parse_key("film.mp4")).unwrap();
        let (right, before) = (object_bytes("film.mp4"), proxy.closed.load(SeqCst));
        let (read, error) = read_parts(&object, &[5..2_500_000], RequestReason::Segment);
        assert!(error.is_none(), "{error:?} after {} bytes", read.len());
        assert!(read == right[5..2_500_000]);
        assert!(proxy.closed.load(SeqCst) - before >= 8, "nothing broke");
        // When another film is stored under the same name, a read returns an error and no byte of
        // that film.
        server.put("films/library/film.mp4", &vec![7; right.len()]);
        let (read, error) = read_parts(&object, &[2_600_000..2_900_000], RequestReason::Segment);
        assert!(
            read.is_empty() && matches!(error, Some(Error::Changed)),
            "{error:?}"
        );
        server.put("films/library/film.mp4", &right);
    }
}

/// `object_store` reads the body of a listing itself, and returns an error without the cause. The
/// HTTP client must therefore record the cause.
#[test]
fn an_s3_listing_that_breaks_is_requested_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = start_s3(dir.path(), None) else {
        return skip_server("no S3 server: run scripts/storage.sh");
    };
    put_all(&server);
    let direct = format!("http://127.0.0.1:{}", server.port);
    let direct = Store::new("s3://films/library", s3_options(&direct, SECRET)).unwrap();
    wait_for_objects(&direct);
    let names = |store: &Store| -> Vec<String> {
        let entries = store.list_folder(&Key::ROOT).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    };
    // The connection is closed after 700 bytes. This is more than the head of the response, but
    // less than the whole response.
    let proxy = BreakingProxy::break_some(server.port, 700, 1);
    let options = s3_options(&format!("http://{}", proxy.addr), SECRET);
    let store = Store::new("s3://films/library", options).unwrap();
    assert_eq!(names(&store), names(&direct));
    assert_eq!(proxy.closed.load(SeqCst), 1, "nothing broke");
}
