//! What is longer than what is kept whole.

use crate::KEEP;
use crate::support::{Edge, Origin, head};

#[test]
fn what_is_too_long_is_passed_on_and_ranges_of_it_too() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--memory", "16MiB"]);
    let body = vec![7; 4 << 20];
    let mut client = edge.connect();
    client.send("GET", "/film", &["Range: bytes=5-6"]);
    let mut whole = origin.next();
    assert_eq!(whole.header("range"), None);
    whole.send(head(200, &[KEEP], Some(body.len())));
    let part = origin.next();
    assert_eq!(part.header("range"), Some("bytes=5-6"));
    part.answer(206, &["Content-Range: bytes 5-6/4194304"], b"xy");
    let answer = client.answer("GET");
    assert_eq!((answer.status, answer.text().as_str()), (206, "xy"));
    whole.gone();
    // Of unknown length: it turns out on the way.
    client.send("GET", "/live", &[]);
    let mut asked = origin.next();
    asked.send(head(200, &[KEEP, "Transfer-Encoding: chunked"], None));
    let feed = std::thread::spawn(move || {
        for _ in 0..4 {
            asked.send(format!("{:x}\r\n", 1 << 20));
            asked.send(vec![7; 1 << 20]);
            asked.send("\r\n");
        }
        asked.send("0\r\n\r\n");
        asked.done();
    });
    let answer = client.answer("GET");
    feed.join().unwrap();
    assert!(answer.complete);
    assert_eq!(answer.body, body);
    edge.until("headwater_cache_flights", 0);
    assert!(edge.metric("headwater_cache_memory_bytes") < 1 << 20);
}
