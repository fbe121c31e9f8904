//! Tests emulated links in this process, with real packets and sockets.
//!
//! The lower limits of times are strict, because a link never delivers a packet too early and never
//! exceeds its rate. The upper limits have margins, so that the tests pass on a busy machine.

#![allow(clippy::unwrap_used)]

mod bed;

use bed::{TestLink, direction_shape};
use lab::link::{CompetingFlow, DirectionShape, LossModel, QueueSize};
use std::time::{Duration, Instant};

#[test]
fn a_response_takes_the_delay_of_both_directions() {
    let Some(bed) = TestLink::new("delay", direction_shape(None, 15), 1) else {
        return;
    };
    let (here, there) = bed.connect_udp();
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 100];
        while let Ok(n @ 2..) = there.recv(&mut buffer) {
            there.send(&buffer[..n]).unwrap();
        }
    });
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let began = Instant::now();
            here.send(b"ping").unwrap();
            here.recv(&mut [0; 100]).unwrap();
            began.elapsed()
        })
        .collect();
    here.send(b"!").unwrap();
    echo.join().unwrap();
    times.sort();
    assert!(times[0] >= Duration::from_millis(30), "{times:?}");
    assert!(times[10] < Duration::from_millis(80), "{times:?}");
}

#[test]
fn tcp_reaches_the_rate_and_not_more() {
    let rate = 16_000_000;
    let Some(bed) = TestLink::new("rate", direction_shape(Some(rate), 5), 1) else {
        return;
    };
    let bytes = 2_000_000;
    let took = bed.time_download(bytes, &[]).as_secs_f64();
    let least = bytes as f64 * 8.0 / rate as f64;
    assert!(took > least, "{took} s, {least} s of air time alone");
    assert!(took < 3.0 * least, "{took} s, {least} s of air time");
    let report = bed.link.report();
    assert!(report.down.delivered_bytes > bytes as u64, "{report:?}");
    assert_eq!((report.down.lost, report.refused), (0, 0), "{report:?}");
}

/// Sends numbered packets and returns the numbers of the packets that arrive.
fn count_survivors(bed: &TestLink, packets: u32) -> Vec<u32> {
    let (here, there) = bed.connect_udp();
    let mut came = Vec::new();
    let mut buffer = [0; 100];
    here.set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    for n in 0..packets {
        there.send(&n.to_be_bytes()).unwrap();
        // Read often enough that the kernel's buffers drop no packet.
        if n % 64 == 0 {
            while let Ok(4) = here.recv(&mut buffer) {
                came.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
            }
        }
    }
    here.set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    while let Ok(4) = here.recv(&mut buffer) {
        came.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
    }
    came
}

#[test]
fn losses_are_counted_and_the_seed_decides_them() {
    let lossy = DirectionShape {
        loss: LossModel::Independent(0.1),
        ..direction_shape(None, 1)
    };
    let Some(bed) = TestLink::new("loss", lossy.clone(), 42) else {
        return;
    };
    let packets = 3000;
    let first = count_survivors(&bed, packets);
    let counts = bed.link.report().down;
    assert_eq!(counts.packets, u64::from(packets), "{counts:?}");
    assert_eq!(counts.delivered, first.len() as u64, "{counts:?}");
    // The expected loss is 300 packets, with a standard deviation of 16. The limits are more than
    // five standard deviations away.
    assert!((210..=390).contains(&counts.lost), "{counts:?}");
    let again = TestLink::new("loss", lossy.clone(), 42).unwrap();
    assert_eq!(count_survivors(&again, packets), first);
    let other = TestLink::new("loss", lossy, 43).unwrap();
    assert_ne!(count_survivors(&other, packets), first);
}

#[test]
fn a_full_queue_drops_the_newest() {
    let narrow = DirectionShape {
        queue: QueueSize::Bytes(10_000),
        ..direction_shape(Some(200_000), 1)
    };
    let Some(bed) = TestLink::new("queue", narrow, 1) else {
        return;
    };
    let (here, there) = bed.connect_udp();
    // Send 100 packets at once, far more than fit in the queue. Each packet has 1028 bytes on the
    // link.
    for n in 0..100u32 {
        let mut packet = vec![0; 1000];
        packet[..4].copy_from_slice(&n.to_be_bytes());
        there.send(&packet).unwrap();
    }
    here.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut came = Vec::new();
    let mut buffer = [0; 2000];
    while let Ok(1000) = here.recv(&mut buffer) {
        came.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
    }
    let counts = bed.link.report().down;
    assert_eq!(counts.dropped + counts.delivered, 100, "{counts:?}");
    assert!(counts.queue_max_bytes <= 10_000, "{counts:?}");
    // Nine packets fit in the queue. If the machine needs a second or two to send all 100 packets,
    // more packets arrive, because the queue drains meanwhile.
    assert!((9..60).contains(&came.len()), "{came:?}");
    assert_eq!(came[..9], [0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_competing_download_takes_its_share() {
    let busy = DirectionShape {
        queue: QueueSize::Bytes(64 << 10),
        ..direction_shape(Some(16_000_000), 5)
    };
    let Some(bed) = TestLink::new("compete", busy, 1) else {
        return;
    };
    let flow =
        CompetingFlow::start(bed.link.addresses()[1], &bed.client, &bed.server, "reno").unwrap();
    let before = flow.received_bytes();
    let took = bed.time_download(1_000_000, &[]).as_secs_f64();
    let beside = flow.received_bytes() - before;
    assert!(beside > 0);
    // Together, the two downloads do not exceed the rate of the link, except for packets in flight.
    let bits = (1_000_000 + beside) as f64 * 8.0;
    assert!(bits < 16e6 * took + 8e6, "{took} s, {beside} beside");
    drop(flow);
    assert!(
        CompetingFlow::start(bed.link.addresses()[1], &bed.client, &bed.server, "no-such").is_err()
    );
}
