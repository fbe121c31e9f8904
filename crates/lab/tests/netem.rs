//! The kernel's own netem, where there is one: the same link.

#![allow(clippy::unwrap_used)]

use lab::link::{Loss, Namespace, Netem, Queue, Rate, Shape, Way, available, netem_available};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

#[test]
fn netem_delays_both_ways_or_is_refused_with_its_reason() {
    if let Err(why) = available() {
        println!("SKIPPED netem: {why}");
        return;
    }
    if let Err(why) = netem_available() {
        assert!(
            why.starts_with("this machine has no netem: tc qdisc add"),
            "{why}"
        );
        println!("SKIPPED netem: {why}");
        return;
    }
    let way = Way {
        rate: Rate::Constant(10_000_000),
        delay: Duration::from_millis(20),
        jitter: Duration::ZERO,
        queue: Queue::Bytes(100_000),
        loss: Loss::None,
    };
    let (client, server) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let (down, up) = (way.clone(), way);
    let link = Netem::start(&client, &server, 5, &Shape { down, up, seed: 1 }).unwrap();
    let [at_client, at_server] = link.addresses();
    let here = client
        .within(|| UdpSocket::bind((at_client, 4000)))
        .unwrap();
    let there = server
        .within(|| UdpSocket::bind((at_server, 4000)))
        .unwrap();
    let began = Instant::now();
    here.send_to(b"ping", (at_server, 4000)).unwrap();
    let (n, from) = there.recv_from(&mut [0; 100]).unwrap();
    there.send_to(&vec![0; n], from).unwrap();
    here.recv(&mut [0; 100]).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(40));
    let [sent_up, sent_down] = link.sent().unwrap();
    assert!(
        sent_up.bytes > 0 && sent_down.bytes > 0,
        "{sent_up:?} {sent_down:?}"
    );
}
