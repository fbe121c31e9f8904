//! Tests the link that the kernel's netem emulates, if netem is available.

#![allow(clippy::unwrap_used)]

use lab::link::{
    DirectionShape, LinkRate, LinkShape, LossModel, NetemLink, NetworkNamespace, QueueSize,
    check_links_available, check_netem_available,
};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

#[test]
fn netem_delays_both_directions_or_reports_why_it_cannot() {
    if let Err(why) = check_links_available() {
        println!("SKIPPED netem: {why}");
        return;
    }
    if let Err(why) = check_netem_available() {
        assert!(
            why.to_string()
                .starts_with("netem unavailable: tc qdisc add"),
            "{why}"
        );
        println!("SKIPPED netem: {why}");
        return;
    }
    let way = DirectionShape {
        rate: LinkRate::Constant(10_000_000),
        delay: Duration::from_millis(20),
        jitter: Duration::ZERO,
        queue: QueueSize::Bytes(100_000),
        loss: LossModel::None,
    };
    let (client, server) = (
        NetworkNamespace::new().unwrap(),
        NetworkNamespace::new().unwrap(),
    );
    let (down, up) = (way.clone(), way);
    let link = NetemLink::start(&client, &server, 5, &LinkShape { down, up, seed: 1 }).unwrap();
    let [at_client, at_server] = link.addresses();
    let here = client
        .run_in_namespace(|| UdpSocket::bind((at_client, 4000)))
        .unwrap();
    let there = server
        .run_in_namespace(|| UdpSocket::bind((at_server, 4000)))
        .unwrap();
    let began = Instant::now();
    here.send_to(b"ping", (at_server, 4000)).unwrap();
    let (n, from) = there.recv_from(&mut [0; 100]).unwrap();
    there.send_to(&vec![0; n], from).unwrap();
    here.recv(&mut [0; 100]).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(40));
    let [sent_up, sent_down] = link.read_sent_counters().unwrap();
    assert!(
        sent_up.bytes > 0 && sent_down.bytes > 0,
        "{sent_up:?} {sent_down:?}"
    );
}
