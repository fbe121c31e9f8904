//! Tests the metrics of both servers with promtool, Prometheus' own tool.

use crate::support::HeadwaterServer;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// Returns the complaints of `promtool check metrics`, or `None` if promtool is not installed.
pub fn promtool_complaints(metrics: &str) -> Option<String> {
    let mut tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = tool.stdin.take().unwrap();
    input.write_all(metrics.as_bytes()).unwrap();
    drop(input);
    let output = tool.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    match output.status.success() {
        true => Some(text),
        false => Some(format!("{text}\n{}", output.status)),
    }
}

#[test]
fn promtool_accepts_the_metrics_of_both_servers() {
    // Checks that promtool works: it must complain if a counter's name does not end in `_total`.
    let wrong = "# HELP a A.\n# TYPE a counter\na 1\n";
    match promtool_complaints(wrong) {
        None => {
            println!("SKIPPED promtool: not installed; run scripts/install.sh test");
            return;
        }
        Some(complaints) => assert!(complaints.contains("_total"), "{complaints}"),
    }
    let folder = tempfile::tempdir().unwrap();
    let [of_origin, of_edge] =
        ["origin", "edge"].map(|name| folder.path().join(name).display().to_string());
    let origin = HeadwaterServer::serve(&["--records", &of_origin, "--cmcd-collector"]);
    let flags = ["--origin", &origin.url(""), "--records", &of_edge];
    let flags = [&flags[..], &["--cmcd-collector"]].concat();
    let edge = HeadwaterServer::start_program("edge", &flags);
    for server in [&origin, &edge] {
        for target in ["/Headwater/.m3u8", "/Headwater/video-360p.mp4", "/none"] {
            server.get(target);
        }
        server.get(
            "/Headwater/.m3u8?CMCD=bl%3D9000%2Cbr%3D3000%2Cmsd%3D300%2Cot%3Dv%2Csid%3D%22a%22",
        );
        let metrics = server.get_text("/metrics");
        assert!(
            metrics.contains(
                "\nheadwater_cmcd_bitrate_kbps_count{network=\"ipv4\",title_class=\"other\"} 1\n"
            ),
            "{metrics}"
        );
        assert!(metrics.contains("\nheadwater_http_request_duration_seconds_bucket{"));
        let complaints = promtool_complaints(&metrics).unwrap();
        assert!(complaints.is_empty(), "{complaints}");
    }
}

/// Returns the kinds of content for which at least one response was timed.
fn timed_kinds(server: &HeadwaterServer) -> BTreeSet<String> {
    let metrics = server.get_text("/metrics");
    let counts = metrics.lines().filter(|line| {
        line.starts_with("headwater_http_first_byte_seconds_count{") && !line.ends_with(" 0")
    });
    let kind = |line: &str| {
        line.split("kind=\"")
            .nth(1)?
            .split('"')
            .next()
            .map(str::to_owned)
    };
    counts.filter_map(kind).collect()
}

/// For MPDs, the origin once reported the kind `mpd`, but the edge reported the kind `manifest`. No
/// single query could therefore show both servers.
#[test]
fn origin_and_edge_give_a_kind_of_content_one_name() {
    let origin = HeadwaterServer::serve(&[]);
    let edge = HeadwaterServer::start_program("edge", &["--origin", &origin.url("")]);
    edge.get_text("/Headwater/.mpd");
    let multivariant = edge.get_text("/Headwater/.m3u8");
    let first = |playlist: &str| {
        let mut names = playlist.lines().filter(|line| !line.starts_with('#'));
        names.next().unwrap().to_owned()
    };
    let media = format!("/Headwater/{}", first(&multivariant));
    let folder = media.rsplit_once('/').unwrap().0;
    for name in ["init.mp4", &first(&edge.get_text(&media))] {
        edge.get_body(&format!("{folder}/{name}"));
    }
    let kinds = timed_kinds(&origin);
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    assert_eq!(kinds, timed_kinds(&edge));
}
