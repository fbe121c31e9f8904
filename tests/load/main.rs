//! Tests the command line of `headwater load` against nginx.

#![allow(clippy::unwrap_used)]

#[path = "../support/nginx.rs"]
mod nginx;

use nginx::Nginx;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder for one test, with an nginx process that serves the subfolder `www`.
struct Site {
    folder: PathBuf,
    nginx: Nginx,
}

impl Site {
    /// Starts the site. Prints a message and returns None if nginx is not installed.
    fn start(name: &str) -> Option<Site> {
        Site::with(name, "")
    }

    /// Starts the site with additional directives in the server block; see [`Nginx`].
    fn with(name: &str, server: &str) -> Option<Site> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("load-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        let www = folder.join("www");
        std::fs::create_dir_all(&www).unwrap();
        std::fs::write(www.join("a.m4s"), vec![1; 20_000]).unwrap();
        std::fs::write(www.join("b.m3u8"), "#EXTM3U\n").unwrap();
        let nginx = Nginx::of(&folder, &www, "", server)?;
        Some(Site { folder, nginx })
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }
}

fn load(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headwater"))
        .arg("load")
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(path: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Makes three runs, each with 90 requests in three steps. Each run has its own JSON file, and
/// overwrites the other files of the previous run.
fn three_runs(site: &Site) {
    let [hdr, records, html] = ["a.hdr", "a.jsonl.zst", "a.html"].map(|name| site.path(name));
    let (url, list) = (site.nginx.url("a.m4s"), site.nginx.url("b.m3u8"));
    for name in ["a.json", "b.json", "c.json"] {
        let args = [
            "rate",
            &url,
            &list,
            "--rate",
            "steps:50+50/300ms..150",
            "--json",
            &site.path(name),
            "--hdr",
            &hdr,
            "--records",
            &records,
            "--html",
            &html,
            "--expect",
            "errors = 0",
            "--expect",
            "requests = 90",
            "--arrivals",
            "even",
        ];
        let output = load(&args);
        assert!(
            output.status.success(),
            "{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        assert!(
            text(&output.stdout).contains("90 due, 90 ended"),
            "{}",
            text(&output.stdout)
        );
    }
}

#[test]
fn result_files_agree_and_can_be_merged() {
    let Some(site) = Site::start("files") else {
        return;
    };
    three_runs(&site);
    let [hdr, records, html] = ["a.hdr", "a.jsonl.zst", "a.html"].map(|name| site.path(name));
    let [a, b, c] = ["a.json", "b.json", "c.json"].map(|name| site.path(name));
    assert!(std::fs::read_to_string(&html).unwrap().contains("uPlot"));
    for (files, requests) in [
        (vec![&a], 90),
        (vec![&a, &b, &c], 270),
        (vec![&hdr], 90),
        (vec![&records], 90),
    ] {
        let out = site.path("report.json");
        let mut args = vec!["report", "--json", &out];
        args.extend(files.iter().map(|file| file.as_str()));
        let output = load(&args);
        assert!(
            output.status.success(),
            "{files:?}: {}",
            text(&output.stderr)
        );
        let report = json(&out);
        assert_eq!(report["summary"]["requests"], requests, "{files:?}");
        assert_eq!(report["steps"].as_array().unwrap().len(), 3, "{files:?}");
    }
    // The three files of the last run contain the same percentiles.
    let p50 = |file: &str| {
        let out = site.path("one.json");
        assert!(load(&["report", file, "--json", &out]).status.success());
        let due = &json(&out)["summary"]["from_due_ms"];
        // 90 requests are too few for a p99.
        assert_eq!((&due["samples"], &due["p99"]), (&90.into(), &().into()));
        due["p50"].as_f64().unwrap()
    };
    let (whole, log, raw) = (p50(&c), p50(&hdr), p50(&records));
    assert_eq!(whole, log);
    assert!((raw / whole - 1.0).abs() < 0.002, "{raw} {whole}");
    let files = [&a, &b, &c, &a, &b, &c].map(String::as_str);
    let args = [&["compare", "--a"], &files[..], &["--b"], &files[..]].concat();
    let output_text = text(&load(&args).stdout);
    let first = output_text.lines().next().unwrap();
    assert!(
        first.contains("(95 % interval 1.000 to 1.000, 6 pairs)"),
        "{output_text}"
    );
    let output_text = text(&load(&["compare", "--a", &a, &b, "--b", &a, &b]).stdout);
    assert!(
        output_text.contains("range of 2") && !output_text.contains("95 %"),
        "{output_text}"
    );
}

#[test]
fn a_report_of_a_log_contains_only_what_the_log_contains() {
    let Some(site) = Site::start("log") else {
        return;
    };
    three_runs(&site);
    let hdr = site.path("a.hdr");
    let output_text = text(&load(&["report", &hdr]).stdout);
    // The log has intervals of one second, so the rate of the run is computed over one second. The
    // rate of each step is computed over the length of the step.
    assert!(
        output_text.contains("90 requests at 90.0 per second"),
        "{output_text}"
    );
    assert!(
        output_text.contains("50/s, from due") && output_text.contains("150/s, from due"),
        "{output_text}"
    );
    for word in ["connections", "bodies", "processor time", "first byte"] {
        assert!(!output_text.contains(word), "{word}: {output_text}");
    }
    assert!(
        output_text.contains(&site.nginx.url("a.m4s")),
        "{output_text}"
    );
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let Some(site) = Site::start("dash") else {
        return;
    };
    three_runs(&site);
    let read = |args: &[&str], input: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_headwater"))
            .arg("load")
            .args(args)
            .stdin(std::fs::File::open(site.path(input)).unwrap())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    };
    for file in ["a.json", "a.hdr", "a.jsonl.zst"] {
        let output_text = read(&["report", "-"], file);
        assert!(
            output_text.contains("90 due, 90 ended"),
            "{file}: {output_text}"
        );
    }
    assert!(read(&["report", "-", "--html", "-"], "a.json").starts_with("<!doctype html>"));
    assert!(read(&["report", "-", "--json", "-"], "a.hdr").starts_with("{\"summary\""));
    let (a, url) = (site.path("a.json"), site.nginx.url("a.m4s"));
    let compared = read(&["compare", "--a", "-", "--b", &a, "--html", "-"], "b.json");
    assert!(compared.starts_with("<!doctype html>"));
    std::fs::write(site.path("requests"), format!("GET {url}\n")).unwrap();
    let rate = ["--rate", "50", "--duration", "200ms"];
    let run = |more: &[&str]| read(&[&["rate", "@-"], &rate[..], more].concat(), "requests");
    assert_eq!(run(&["--records", "-"]).lines().count(), 10);
    assert!(run(&["--hdr", "-"]).starts_with('#'));
    let both = load(&[&["rate", &url], &rate[..], &["--hdr", "-", "--json", "-"]].concat());
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
}

#[test]
fn records_contain_url_and_viewer() {
    let Some(site) = Site::start("viewers") else {
        return;
    };
    let film = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.m4s\n#EXT-X-ENDLIST\n";
    std::fs::write(site.folder.join("www/b.m3u8"), film).unwrap();
    let (url, list) = (site.nginx.url("a.m4s"), site.nginx.url("b.m3u8"));
    let records = |args: &[&str]| -> Vec<serde_json::Value> {
        let output = load(&[args, &["--records", "-"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let rated = records(&["rate", &url, "--rate", "50", "--duration", "200ms"]);
    assert!(
        rated
            .iter()
            .all(|record| record["url"] == url.as_str() && record["viewer"].is_null())
    );
    let played = records(&[
        "players",
        &list,
        "--viewers",
        "2",
        "--duration",
        "1s",
        "--mode",
        "sequence",
    ]);
    let (viewers, requests): (Vec<_>, Vec<_>) = played
        .iter()
        .partition(|record| record["record"] == "player");
    assert!(viewers.len() >= 2 && !requests.is_empty(), "{played:?}");
    for request in requests {
        assert!(
            request["url"].as_str().unwrap().starts_with("http://"),
            "{request}"
        );
        let session = &request["viewer"];
        assert!(
            viewers.iter().any(|viewer| viewer["session"] == *session),
            "{request}"
        );
    }
}

#[test]
fn expectations_decide_the_exit_code() {
    let Some(site) = Site::start("expectations") else {
        return;
    };
    let none = site.nginx.url("none.m4s");
    let run = |expect: &str| {
        load(&[
            "rate",
            &none,
            "--rate",
            "50",
            "--duration",
            "200ms",
            "--expect",
            expect,
        ])
    };
    for (expect, code) in [
        ("errors = 10", 0),
        ("errors = 0", 1),
        ("errors < 1%", 1),
        ("p99 < 5 moons", 2),
    ] {
        let output = run(expect);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{expect}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn requests_are_read_and_written_in_vegetas_formats() {
    let Some(site) = Site::start("requests") else {
        return;
    };
    let file = site.path("requests.txt");
    let body = format!(
        "GET {0}\nRange: bytes=0-99\n\nHEAD {0}\n",
        site.nginx.url("a.m4s")
    );
    std::fs::write(&file, body).unwrap();
    let (at, out) = (format!("@{file}"), site.path("again.json"));
    assert!(
        load(&["rate", &at, "--write-targets", &out])
            .status
            .success()
    );
    for at in [at, format!("@{out}")] {
        let result = site.path("result.json");
        let output = load(&[
            "rate",
            &at,
            "--rate",
            "100",
            "--duration",
            "200ms",
            "--json",
            &result,
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let cell = &json(&result)["steps"][0]["kinds"]["segment"];
        assert_eq!(
            (&cell["statuses"]["206"], &cell["statuses"]["200"]),
            (&10.into(), &10.into())
        );
        assert_eq!(cell["bytes"], 1000);
    }
}

#[test]
fn wrong_usage_is_explained() {
    for (args, word) in [
        (vec!["rate", "nowhere"], "invalid URL"),
        (
            vec!["rate", "http://127.0.0.1:1/", "--rate", "fast"],
            "invalid rate; use 100",
        ),
        (
            vec!["rate", "http://127.0.0.1:1/", "--http", "3"],
            "expected 1 or 2",
        ),
        (vec!["rate", "@/no/such/file"], "No such file"),
        (
            vec![
                "compare",
                "--a",
                "/dev/null",
                "--b",
                "/dev/null",
                "/dev/null",
            ],
            "pairs",
        ),
    ] {
        let output = load(&args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).contains(word),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
    assert_eq!(load(&["report", "/dev/null/x"]).status.code(), Some(1));
}

#[test]
fn a_stopped_run_keeps_its_results() {
    let Some(site) = Site::start("stop") else {
        return;
    };
    let (url, out) = (site.nginx.url("a.m4s"), site.path("stopped.json"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args([
            "load",
            "rate",
            &url,
            "--rate",
            "100",
            "--duration",
            "1h",
            "--json",
            &out,
        ])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The first line is printed after one second.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(lines.next().unwrap().unwrap().contains("due"));
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let rest = lines.map_while(Result::ok).count();
    assert!(child.wait().unwrap().success() && rest > 0);
    let result = json(&out);
    assert_eq!(result["stopped"], true);
    assert!(
        result["summary"]["requests"].as_u64().unwrap() >= 90,
        "{}",
        result["summary"]
    );
}

/// Runs against a name whose address changes after the first second. Returns the number of
/// responses of the old address (200) and of the new address (204). Prints a message and returns
/// None if the test cannot change the name.
fn over_a_changed_name(site: &Site, dns: &str) -> Option<(u64, u64)> {
    let (hosts, out) = (site.path("hosts"), site.path("dns.json"));
    std::fs::write(&hosts, "127.0.0.1 film.test\n").unwrap();
    let url = format!("http://film.test:{}/a.m4s", site.nginx.addr.port());
    let script = "mount --bind \"$1\" /etc/hosts || exit 99; shift; exec \"$@\"";
    let mut child = Command::new("unshare")
        .args([
            "-m",
            "sh",
            "-c",
            script,
            "sh",
            &hosts,
            env!("CARGO_BIN_EXE_headwater"),
        ])
        .args([
            "load",
            "rate",
            &url,
            "--rate",
            "50",
            "--duration",
            "3s",
            "--dns",
            dns,
        ])
        .args(["--keep-alive", "no", "--json", &out])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    // The first line of a run is printed after one second.
    let begun = lines.next().and_then(Result::ok);
    if !begun.as_ref().is_some_and(|line| line.contains("due")) {
        let _ = child.wait();
        println!("SKIPPED names that change: no mount namespace here ({begun:?})");
        return None;
    }
    std::fs::write(&hosts, "127.0.0.2 film.test\n").unwrap();
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    let statuses = &json(&out)["steps"][0]["kinds"]["segment"]["statuses"];
    let count = |status: &str| statuses[status].as_u64().unwrap_or(0);
    Some((count("200"), count("204")))
}

#[test]
fn names_are_resolved_once_or_for_each_connection() {
    // The second address responds with another status.
    let second = "listen 127.0.0.2:PORT; if ($server_addr = 127.0.0.2) { return 204; }";
    let Some(site) = Site::with("names", second) else {
        return;
    };
    let Some((first, later)) = over_a_changed_name(&site, "each") else {
        return;
    };
    assert!(first >= 40 && later > 0, "{first} {later}");
    assert_eq!(over_a_changed_name(&site, "once"), Some((150, 0)));
}
