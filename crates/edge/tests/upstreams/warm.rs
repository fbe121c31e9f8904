//! Cache warming with lists of URLs.

use crate::KEEP;
use crate::support::{ADMIN_AUTHORIZATION, ADMIN_TOKEN, ScriptedOrigin, TestEdge};

#[test]
fn a_list_of_urls_warms_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, ADMIN_TOKEN).unwrap();
    let (address, seen) = ScriptedOrigin::start_with(|exchange| match exchange.target() {
        "/film/no.m4s" => (404, vec!["Cache-Control: no-store".into()], vec![]),
        "/film/me.m4s" => (200, vec!["Cache-Control: private".into()], b"me".to_vec()),
        _ => (200, vec![KEEP.into()], vec![7; 100_000]),
    });
    let (token, disk) = (token.to_str().unwrap(), folder.path().join("disk"));
    let mut flags = vec!["--admin", "127.0.0.1:0", "--admin-token-file", token];
    flags.extend(["--disk-dir", disk.to_str().unwrap()]);
    let mut edge = TestEdge::new(address, &flags);
    let list = "#EXTM3U\n1.m4s\n2.m4s\n/film/3.m4s\nno.m4s\nme.m4s\n";
    let warm = |edge: &TestEdge, expected: &str| {
        let mut client = edge.admin_port();
        let len = format!("Content-Length: {}", list.len());
        client.send("POST", "/warm?base=/film/", &[ADMIN_AUTHORIZATION, &len]);
        client.write_ignoring_errors(list.as_bytes());
        let response = client.read_response("POST");
        assert_eq!(response.status, 200, "{}", response.text());
        let found: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
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
    edge.wait_for_metric("headwater_cache_flights", 0);
    warm(&edge, "5 0 3 1 1");
    // An object on disk also counts as cached.
    edge.drain();
    let edge = TestEdge::new(address, &flags);
    edge.wait_for_metric("headwater_cache_disk_objects", 3);
    warm(&edge, "5 0 3 1 1");
    for n in 1..4 {
        assert!(
            edge.get_path(&format!("/film/{n}.m4s"))
                .cache_status()
                .contains("; hit")
        );
    }
    let request_count = |path: &str| {
        let line = format!("GET {path} ");
        seen.lock()
            .unwrap()
            .iter()
            .filter(|head| head.starts_with(&line))
            .count()
    };
    assert_eq!(
        (request_count("/film/1.m4s"), request_count("/film/3.m4s")),
        (1, 1)
    );
}
