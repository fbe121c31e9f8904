//! Tests of the origin's admin port and CMCD collector.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use support::TestServer;

const TOKEN: &str = "0123456789abcdef";

struct CollectingOrigin {
    server: TestServer,
    _folder: tempfile::TempDir,
}

impl CollectingOrigin {
    fn new(flags: &[&str]) -> CollectingOrigin {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, TOKEN).unwrap();
        let admin = ["--admin", "127.0.0.1:0", "--admin-token-file"];
        let mut all = admin.to_vec();
        all.push(token.to_str().unwrap());
        all.extend(flags);
        CollectingOrigin {
            server: TestServer::new(&all),
            _folder: folder,
        }
    }

    /// Requests a path of the admin port with the token. Returns the head and the body.
    fn admin(&self, path: &str) -> (String, String) {
        let admin = self.server.running().port_address("admin").unwrap();
        let authorization = format!("Authorization: Bearer {TOKEN}\r\n");
        exchange(admin, &format!("GET {path} HTTP/1.1"), &authorization, "")
    }

    fn post(&self, body: &str) -> String {
        let length = format!("Content-Length: {}\r\n", body.len());
        exchange(self.server.address(), "POST /cmcd HTTP/1.1", &length, body).0
    }
}

fn exchange(address: SocketAddr, line: &str, fields: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{line}\r\nHost: x\r\nConnection: close\r\n{fields}\r\n{body}");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn the_origin_collects_requests_and_events_of_a_session() {
    let origin = CollectingOrigin::new(&["--cmcd-collector"]);
    let query = "/film.mp4/.m3u8?CMCD=ot%3Dm%2Csid%3D%22s%22%2Csf%3Dh";
    assert_eq!(origin.server.get(query).status, 200);
    let reply = origin.post("e=ps,msd=300,sid=\"s\",sta=p,v=2\ne=t,bl=(4000),sid=\"s\",v=2");
    assert!(reply.starts_with("HTTP/1.1 204 "), "{reply}");
    let viewers: Value = serde_json::from_str(&origin.admin("/viewers.json").1).unwrap();
    let session = &viewers["latest"][0];
    assert_eq!(session["title"], "film.mp4");
    assert_eq!(session["start_up_ms"], 300.0);
    assert_eq!(session["buffer_ms"], 4000.0);
    assert_eq!(session["reports"], 3);
    assert!(
        origin
            .admin("/viewers")
            .1
            .contains("<td class=\"key\">film.mp4")
    );
    let metrics = origin.admin("/metrics").1;
    for line in [
        "headwater_sessions{network=\"ipv4\",title_class=\"other\"} 1",
        "headwater_cmcd_reports_total{event=\"request\"} 1",
        "headwater_cmcd_reports_total{event=\"ps\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
    }
    let discovered = origin.server.text("/-/collector.json");
    assert_eq!(discovered, "{\"cmcd\":\"/cmcd\"}\n");
}

#[test]
fn viewers_are_grouped_by_the_labels_of_the_metrics() {
    let names = [
        "--cmcd-network",
        "office=127.0.0.0/8",
        "--cmcd-title-class",
        "kids=films/kids/",
    ];
    let origin = CollectingOrigin::new(&[&["--cmcd-collector"][..], &names].concat());
    let reply = origin.post(
        "e=ps,cid=\"films/kids/a\",sid=\"1\",sta=p,v=2\ne=ps,cid=\"films/b\",sid=\"2\",sta=r,v=2",
    );
    assert!(reply.starts_with("HTTP/1.1 204 "), "{reply}");
    let viewers: Value = serde_json::from_str(&origin.admin("/viewers.json").1).unwrap();
    let names_of = |group: &str| {
        let groups = viewers[group].as_array().unwrap();
        let name = |group: &Value| (group["name"].clone(), group["viewers"].clone());
        groups.iter().map(name).collect::<Vec<_>>()
    };
    let one = |name: &str, count: u64| (Value::from(name), Value::from(count));
    assert_eq!(names_of("network_names"), [one("office", 2)]);
    assert_eq!(names_of("title_classes"), [one("kids", 1), one("other", 1)]);
    assert_eq!(names_of("networks"), [one("127.0.0.0/24", 2)]);
    let session = &viewers["latest"][1];
    assert_eq!(session["title_class"], "kids");
    assert_eq!(session["network_name"], "office");
    let page = origin.admin("/viewers").1;
    for cell in [
        "<h2>Title classes</h2>",
        "<td class=\"key\">kids<td",
        "<td class=\"key\">office<td",
    ] {
        assert!(page.contains(cell), "{cell}: {page}");
    }
}

#[test]
fn an_origin_without_a_collector_refuses_events() {
    let origin = CollectingOrigin::new(&[]);
    let reply = origin.post("e=t,v=2");
    assert!(reply.starts_with("HTTP/1.1 405 "), "{reply}");
    assert_eq!(origin.server.text("/-/collector.json"), "{\"cmcd\":null}\n");
    let (head, body) = origin.admin("/viewers");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    assert!(body.contains("cmcd-collector"), "{body}");
}

#[test]
fn the_admin_port_reports_the_state_of_the_origin() {
    let origin = CollectingOrigin::new(&["--cmcd-collector"]);
    origin.server.text("/film.mp4/.m3u8");
    let status: Value = serde_json::from_str(&origin.admin("/status").1).unwrap();
    assert_eq!(status["titles"], 1, "{status}");
    assert_eq!(status["draining"], false);
    assert_eq!(status["library"]["failure"], Value::Null);
    assert_eq!(status["viewers"], 0);
    assert!(
        status["index_memory_bytes"].as_u64().unwrap() > 0,
        "{status}"
    );
    assert!(status["connections"].as_u64().is_some(), "{status}");
    let (head, page) = origin.admin("/");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(
        page.contains("href=\"viewers\"") && page.contains("headwater serve"),
        "{page}"
    );
    assert!(
        head.to_lowercase().contains("content-security-policy:"),
        "{head}"
    );
}
