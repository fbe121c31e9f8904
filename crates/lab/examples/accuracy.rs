//! Compares emulated links with their settings. Prints a table of requested and measured values.
//!
//! `cargo run --release -p lab --example accuracy`

#![allow(clippy::unwrap_used)]

#[path = "../tests/bed/mod.rs"]
mod bed;

use bed::{TestLink, direction_shape};
use lab::link::{DirectionShape, LossModel, QueueSize};
use std::time::{Duration, Instant};

fn main() {
    if TestLink::new("accuracy", direction_shape(None, 0), 1).is_none() {
        return;
    }
    println!("| what | requested | measured | off | lateness p50, p99 (us) |");
    println!("|---|---|---|---|---|");
    [5, 20, 100, 300].into_iter().for_each(measure_goodput);
    measure_capacity();
    [1, 10, 50].into_iter().for_each(round_trip);
    [0.001, 0.01, 0.1].into_iter().for_each(measure_losses);
    [50_000, 250_000].into_iter().for_each(measure_queueing);
}

fn print_row(what: &str, requested: f64, measured: f64, bed: &TestLink) {
    let late = bed.link.report().lateness_us;
    let off = (measured / requested - 1.0) * 100.0;
    let late = format!("{}, {}", late.p50, late.p99);
    println!("| {what} | {requested:.3} | {measured:.3} | {off:+.2} % | {late} |");
}

/// Measures TCP goodput for about ten seconds. The requested value assumes 1448 bytes of payload in
/// each packet of 1500 bytes. The measured time includes about 0.2 s for connecting and slow start.
fn measure_goodput(mbit: u64) {
    let bed = TestLink::new("", direction_shape(Some(mbit * 1_000_000), 5), 1).unwrap();
    let bytes = mbit as usize * 1_000_000 / 8 * 10;
    let took = bed.time_download(bytes, &["cubic"]).as_secs_f64();
    let measured = bytes as f64 * 8.0 / took / 1e6;
    let ideal = mbit as f64 * 1448.0 / 1500.0;
    print_row(
        &format!("TCP at {mbit} Mbit/s, Mbit/s"),
        ideal,
        measured,
        &bed,
    );
}

/// Measures TCP goodput over a link without a rate limit, where the machine is the bottleneck.
fn measure_capacity() {
    let bed = TestLink::new("", direction_shape(None, 0), 1).unwrap();
    let took = bed.time_download(1_000_000_000, &["cubic"]).as_secs_f64();
    let (mbit, down) = (8000.0 / took, bed.link.report().down);
    let late = bed.link.report().lateness_us;
    println!(
        "| TCP without a rate, Mbit/s | – | {mbit:.0} ({:.0} packets/s) | – | {}, {} |",
        down.packets as f64 / took,
        late.p50,
        late.p99
    );
}

/// Measures the round-trip time with one small UDP packet at a time.
fn round_trip(delay_ms: u64) {
    let bed = TestLink::new("", direction_shape(None, delay_ms), 1).unwrap();
    let (here, there) = bed.connect_udp();
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok(n @ 2..) = there.recv(&mut buffer) {
            there.send(&buffer[..n]).unwrap();
        }
    });
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let began = Instant::now();
            here.send(b"ping").unwrap();
            here.recv(&mut [0; 64]).unwrap();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    here.send(b"!").unwrap();
    echo.join().unwrap();
    times.sort_by(f64::total_cmp);
    let requested = 2.0 * delay_ms as f64;
    print_row("round trip, median, ms", requested, times[100], &bed);
    print_row("round trip, p99, ms", requested, times[198], &bed);
}

/// Measures the loss of 100,000 UDP packets.
fn measure_losses(share: f64) {
    let lossy = DirectionShape {
        loss: LossModel::Independent(share),
        ..direction_shape(None, 1)
    };
    let bed = TestLink::new("", lossy, 1).unwrap();
    let (_here, there) = bed.connect_udp();
    for n in 0..100_000 {
        there.send(b"x").unwrap();
        if n % 100 == 0 {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    let down = bed.link.report().down;
    assert_eq!(down.packets, 100_000);
    print_row(
        "lost share, %",
        share * 100.0,
        down.lost as f64 / 1000.0,
        &bed,
    );
}

/// Measures the delay of the last packet of a burst that fills the queue. The requested value is
/// the link delay plus the queue size divided by the rate.
fn measure_queueing(bytes: u64) {
    let narrow = DirectionShape {
        queue: QueueSize::Bytes(bytes),
        ..direction_shape(Some(10_000_000), 10)
    };
    let bed = TestLink::new("", narrow, 1).unwrap();
    let (here, there) = bed.connect_udp();
    let began = Instant::now();
    for _ in 0..bytes / 500 {
        there.send(&[0; 1000]).unwrap();
    }
    here.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut last = Duration::ZERO;
    while here.recv(&mut [0; 2000]).is_ok() {
        last = began.elapsed();
    }
    // The queue holds only whole packets. A packet has 1028 bytes: 1000 bytes of data, and the IP
    // and UDP headers.
    let fits = (bytes / 1028 * 1028) as f64;
    let requested = 10.0 + fits * 8.0 / 10e6 * 1e3;
    let what = format!("longest way past a queue of {bytes} bytes, ms");
    print_row(&what, requested, last.as_secs_f64() * 1e3, &bed);
}
