//! Lists of URLs that are to be here before anybody asks.

use crate::KEEP;
use crate::support::{AUTHORIZED, Edge, Origin, TOKEN};

#[test]
fn a_list_warms_the_cache_up() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let (address, seen) = Origin::answering(|asked| match asked.target() {
        "/film/no.m4s" => (404, vec!["Cache-Control: no-store".into()], vec![]),
        "/film/me.m4s" => (200, vec!["Cache-Control: private".into()], b"me".to_vec()),
        _ => (200, vec![KEEP.into()], vec![7; 100_000]),
    });
    let (token, disk) = (token.to_str().unwrap(), folder.path().join("disk"));
    let mut flags = vec!["--admin", "127.0.0.1:0", "--admin-token-file", token];
    flags.extend(["--disk-dir", disk.to_str().unwrap()]);
    let mut edge = Edge::new(address, &flags);
    let list = "#EXTM3U\n1.m4s\n2.m4s\n/film/3.m4s\nno.m4s\nme.m4s\n";
    let warm = |edge: &Edge, expected: &str| {
        let mut client = edge.admin_port();
        let len = format!("Content-Length: {}", list.len());
        client.send("POST", "/warm?base=/film/", &[AUTHORIZED, &len]);
        client.stream_write(list.as_bytes());
        let answer = client.answer("POST");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let found: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let counts =
            ["listed", "fetched", "here", "passed", "failed"].map(|name| found[name].to_string());
        assert_eq!(counts.join(" "), expected, "{found}");
        assert!(
            found["failures"][0]
                .as_str()
                .unwrap()
                .starts_with("/film/no.m4s: 404")
        );
    };
    warm(&edge, "5 3 0 1 1");
    edge.until("headwater_cache_flights", 0);
    warm(&edge, "5 0 3 1 1");
    // What is on disk is here, too.
    edge.drain();
    let edge = Edge::new(address, &flags);
    edge.until("headwater_cache_disk_objects", 3);
    warm(&edge, "5 0 3 1 1");
    for n in 1..4 {
        assert!(
            edge.get(&format!("/film/{n}.m4s"))
                .cache()
                .contains("; hit")
        );
    }
    let asked = |path: &str| {
        let line = format!("GET {path} ");
        seen.lock()
            .unwrap()
            .iter()
            .filter(|head| head.starts_with(&line))
            .count()
    };
    assert_eq!((asked("/film/1.m4s"), asked("/film/3.m4s")), (1, 1));
}
