//! Checks that each panel of `deploy/grafana` shows data of servers under load.

use super::faults::write_certificate;
use super::scraper::{Prometheus, wait_until};
use crate::support::{HeadwaterServer, TempFolder};
use serde_json::Value;
use std::path::Path;

/// Flags with which the edge collects the CMCD sessions of viewers. The edge assigns a network and
/// a title class to each session.
const COLLECTOR: &[&str] = &[
    "--cmcd-collector",
    "--cmcd-network",
    "lab=127.0.0.0/8",
    "--cmcd-title-class",
    "demo=Headwater",
];

/// A query of a panel, with Grafana's variables replaced.
struct PanelQuery {
    panel: String,
    query: String,
}

fn read_panel_queries() -> Vec<PanelQuery> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/grafana");
    let mut queries = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                queries.push(PanelQuery {
                    panel: panel["title"].as_str().unwrap().to_owned(),
                    query: replace_variables(target["expr"].as_str().unwrap(), &dashboard),
                });
            }
        }
    }
    queries
}

fn replace_variables(query: &str, dashboard: &Value) -> String {
    let query = query.replace("$__rate_interval", "30s");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    variables.iter().fold(query, |query, variable| {
        let name = format!("${}", variable["name"].as_str().unwrap());
        let value = match variable["type"].as_str().unwrap() {
            "textbox" => variable["query"].as_str().unwrap(),
            _ => variable["allValue"].as_str().unwrap_or_default(),
        };
        query.replace(&name, value)
    })
}

/// Reports a new viewer as a player with CMCD version 2 does: the start, the buffer length, a stall
/// and an error. Then requests a segment with its bitrate.
fn report_viewer(edge: &HeadwaterServer, number: u32, segment: &str) {
    let id = format!("cid=\"Headwater\",sid=\"viewer-{number}\"");
    let lines = [
        format!("{id},e=ps,msd=300,sta=p,v=2"),
        format!("{id},e=t,bl=(4000;v),sta=r,v=2"),
        format!("{id},e=e,ec=(\"X-1\"),v=2"),
    ];
    let body = lines.join("\n");
    let head = format!(
        "POST /cmcd HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/cmcd\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let response = edge.send_raw(format!("{head}{body}").as_bytes(), true);
    assert_eq!(response.unwrap().status, 204);
    let cmcd = format!("br=3000,ot=v,sid=\"viewer-{number}\"");
    edge.request("GET", segment, &[("cmcd-object", &cmcd)]);
}

/// Returns the paths of the multivariant playlist, the MPD and the segments of all variants of the
/// built-in film.
fn list_paths(origin: &HeadwaterServer) -> Vec<String> {
    let folder = "/Headwater/";
    let mut paths = vec![format!("{folder}.m3u8"), format!("{folder}.mpd")];
    let names = |text: String| {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for playlist in names(origin.get_text(&paths[0])) {
        let playlist = format!("{folder}{playlist}");
        let base = &playlist[..=playlist.rfind('/').unwrap()];
        let segments = names(origin.get_text(&playlist));
        paths.extend(segments.iter().map(|name| format!("{base}{name}")));
    }
    assert!(paths.len() > 5, "{paths:?}");
    paths
}

#[test]
fn every_panel_shows_data_of_loaded_servers() {
    let folder = TempFolder::new();
    let in_folder = |name: &str| folder.0.join(name).display().to_string();
    let films = HeadwaterServer::serve(&[]);
    let library = films.url("/");
    let origin = HeadwaterServer::serve(&[
        &library,
        "--index-cache",
        "memory+disk",
        "--index-cache-dir",
        &in_folder("index"),
    ]);
    let edge = HeadwaterServer::start_program(
        "edge",
        &[
            &["--origin", &films.url(""), "--disk-dir", &in_folder("disk")],
            COLLECTOR,
        ]
        .concat(),
    );
    let [cert, key] = write_certificate(&folder);
    let secure = HeadwaterServer::serve(&["--tls-cert", &cert, "--tls-key", &key]);
    let targets = [
        ("origin", "http", origin.addr),
        ("films", "http", films.addr),
        ("edge", "http", edge.addr),
        ("secure", "https", secure.addr),
    ];
    let Some(prometheus) = Prometheus::start(&targets, None) else {
        return;
    };
    let mut waiting = read_panel_queries();
    assert!(waiting.len() > 50, "only {} queries", waiting.len());
    let paths = list_paths(&films);
    let mut viewers = 0;
    let load = || {
        viewers += 1;
        report_viewer(&edge, viewers, &paths[paths.len() - 1]);
        for path in &paths {
            films.get(path);
            edge.get(path);
        }
        // The library of `origin` is the server `films`, so `origin` reads this file over HTTP.
        origin.get("/Headwater/video-360p.mp4");
        origin.get("/none");
    };
    let shows_data = |one: &PanelQuery| prometheus.query(&one.query).iter().any(|n| n.is_finite());
    let all_show_data = wait_until(load, || {
        waiting.retain(|one| !shows_data(one));
        waiting.is_empty()
    });
    let missing: Vec<_> = waiting.iter().map(|one| (&one.panel, &one.query)).collect();
    assert!(all_show_data, "without data: {missing:#?}");
    let sessions = r#"headwater_sessions{network="lab",title_class="demo"}"#;
    assert!(prometheus.query(sessions).iter().any(|count| *count > 0.0));
}
