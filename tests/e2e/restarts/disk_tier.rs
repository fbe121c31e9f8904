//! Checks that a new edge takes over the disk tier of the edge that it replaces.

use super::{RestartSetup, load};
use std::io::{Read, Write};

/// Length of a film that is larger than the buffers of a connection.
const LARGE_BYTES: usize = 24 << 20;

#[test]
fn a_successor_serves_from_disk_while_a_slow_client_keeps_the_old_edge_alive() {
    let setup = RestartSetup::new();
    let large = "films/large-film.bin";
    setup.folder.write_file(large, &vec![7; LARGE_BYTES]);
    let origin = crate::support::HeadwaterServer::serve(&[&setup.path("films")]);
    let mut old = setup.start_edge(&origin);
    let target = load::TARGETS[2];
    assert!(old.get_body(target) == load::make_body(target));
    let mut slow = old.connect();
    slow.write_all(b"GET /large-film.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    slow.read_exact(&mut [0; 1024]).unwrap();

    let new = setup.start_edge(&origin);
    assert_eq!(new.addr, old.addr);
    let objects = || {
        let metrics = new.get_text("/metrics");
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix("headwater_cache_disk_objects "));
        value.unwrap().parse::<u64>().unwrap()
    };
    while objects() == 0 {
        std::thread::yield_now();
    }
    assert!(old.is_alive(), "the old edge waits for its slow client");
    let response = new.get(target);
    // The hit must come from disk, because this is the new edge's first request for the target.
    let status = response.header("cache-status").unwrap();
    assert!(status.contains("hit"), "{status}");
    assert!(response.body == load::make_body(target));
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(&[7; 1024]) && rest.len() > LARGE_BYTES - 1024);
    assert_eq!(old.wait_for_exit(), Some(0));
}
