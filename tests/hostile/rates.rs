//! Tests clients that send more requests per second than one address may send.

use crate::frames::StreamResult::Status;
use crate::targets::AttackedServers;

#[test]
fn a_flood_of_requests_gets_429_with_retry_after() {
    let flags = ["--requests-per-address-max", "1", "--request-burst", "5s"];
    let attacked = AttackedServers::start(&flags);
    for target in &attacked.servers {
        let mut stream = target.connect(b"http/1.1");
        let mut statuses = Vec::new();
        while !statuses.contains(&429) {
            let request = b"HEAD /film.bin HTTP/1.1\r\nHost: e\r\n\r\n";
            stream.write_all(request).unwrap();
            stream.flush().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(status == 429, head.contains("\r\nretry-after: 1\r\n"));
            statuses.push(status);
        }
        assert!(
            statuses.starts_with(&[200; 5]),
            "{}: {statuses:?}",
            target.name
        );
    }
}

#[test]
fn a_flood_of_http2_connections_gets_429() {
    let flags = ["--requests-per-address-max", "1", "--request-burst", "5s"];
    let attacked = AttackedServers::start(&flags);
    for target in &attacked.servers {
        let request = || target.request("h2", "HEAD", "/film.bin", &[]);
        let mut served = 0;
        let refused = loop {
            match request() {
                Status(200) => served += 1,
                other => break other,
            }
        };
        assert!(served >= 5, "{}: {served}", target.name);
        assert_eq!(refused, Status(429), "{}", target.name);
    }
}
