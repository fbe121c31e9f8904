//! A minimal server that uses only the `net` crate. It measures the cost of this crate.
//!
//! `cargo run --release -p net --example send -- 127.0.0.1:0 1` starts the server with one worker
//! and prints the address. Then run `wrk -c 32 -d 5 http://…/small`. Each response to `/small` is
//! 5 KB from memory. Each response to `/large` is 1 MB in 16 blocks. Each of these responses starts
//! at a different position in a 200 MB buffer.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Response;
use net::{Body, Server, ServerOptions, Shutdown};

const SMALL: usize = 5_000;
const LARGE: usize = 1_000_000;
const PIECES: usize = 16;
const MEDIA: usize = 200_000_000;

fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "127.0.0.1:0".into());
    let workers = words
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    net::server::raise_descriptor_limit()?;
    let server = Server::bind(ServerOptions {
        addresses: vec![address],
        workers,
        ..ServerOptions::default()
    })?;
    for address in server.addresses() {
        println!("listening on http://{address}");
    }
    std::io::stdout().flush()?;
    let small = Bytes::from(vec![b'#'; SMALL]);
    let media = Bytes::from((0..MEDIA).map(|at| at as u8).collect::<Vec<_>>());
    let count = Arc::new(AtomicUsize::new(0));
    let factory = |_worker| {
        let (small, media, count) = (small.clone(), media.clone(), Arc::clone(&count));
        move |request: http::Request<_>, _conn| {
            let body = match request.uri().path() {
                "/large" => {
                    Body::from_pieces(large_body(&media, count.fetch_add(1, Ordering::Relaxed)))
                }
                _ => Body::from_bytes(small.clone()),
            };
            async move { Response::new(body) }
        }
    };
    server.run(factory, Shutdown::on_signals()?)
}

/// Returns 1 MB of `media` as blocks, with gaps of seven bytes between the blocks. `n` selects the
/// position of the first block.
fn large_body(media: &Bytes, n: usize) -> Vec<Bytes> {
    const STEP: usize = LARGE + 4097;
    let start = n * STEP % (MEDIA - 2 * LARGE);
    let piece = LARGE / PIECES;
    (0..PIECES)
        .map(|at| start + at * (piece + 7))
        .map(|at| media.slice(at..at + piece))
        .collect()
}
