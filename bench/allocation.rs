//! Measures the time that a server's allocations take. Each request needs 20 small blocks (strings and header values),
//! a buffer of 8 KiB and a buffer of 64 KiB. Another thread frees a quarter of these blocks and buffers, as with tasks
//! that move between workers. Decision 26 has the results of these commands, with `gnu` and `musl`
//! (`rustup target add x86_64-unknown-linux-musl`):
//!
//!     rustc -O --edition 2024 -C target-feature=+crt-static --target x86_64-unknown-linux-musl bench/allocation.rs
//!     bash -c 'time ./allocation THREADS'
//!
//! The CPU time per request is the sum of user and system time, divided by the number of threads and by `REQUESTS`.

use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

const REQUESTS: usize = 300_000;
const SMALL: [usize; 20] = [
    16, 24, 32, 40, 48, 64, 64, 80, 96, 100, 112, 128, 144, 160, 192, 200, 256, 320, 384, 512,
];

/// Allocates and frees what one request needs, and returns the part that another thread frees.
fn serve_request(n: usize) -> Vec<Vec<u8>> {
    let mut held: Vec<Vec<u8>> = SMALL
        .iter()
        .map(|size| Vec::with_capacity(size + n % 7))
        .collect();
    held.push(Vec::with_capacity(8 << 10));
    held.push(Vec::with_capacity(64 << 10));
    for buffer in &mut held {
        buffer.push(n as u8);
    }
    let sent = held.split_off(held.len() * 3 / 4);
    black_box(held);
    sent
}

fn main() {
    let threads: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let start = Instant::now();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(256)).unzip();
    let workers: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(own, receiver)| {
            let other = senders[(own + 1) % threads].clone();
            std::thread::spawn(move || {
                for n in 0..REQUESTS {
                    let _ = other.try_send(serve_request(n));
                    while let Ok(freed) = receiver.try_recv() {
                        black_box(freed);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    println!("{:.0}", start.elapsed().as_nanos() as f64 / REQUESTS as f64);
}
