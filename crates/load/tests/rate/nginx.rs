//! Tests against nginx with TLS, HTTP/2 and ranges, and with HLS and DASH titles that ffmpeg
//! encodes.

use super::server::Nginx;
use super::support::{plan, run_recorded, run_to_end};
use load::client::{
    BodyDigest, ClientSettings, Dialer, ExpectedBody, FailureKind, HttpVersion, Url,
};
use load::rate::manifest_targets::{self, SegmentWeighting};
use load::rate::{RandomRanges, RequestKind, RequestTarget};
use std::path::Path;
use std::process::Command;

/// Prepares an ffmpeg command that encodes four seconds in two renditions, with a tone if `sound`
/// is set. The caller adds the output.
fn ffmpeg_ladder(sound: bool) -> Command {
    let words = "-v error -nostdin -f lavfi -i testsrc2=s=160x90:r=24:d=4 -f lavfi -i sine=d=4";
    let video = "-c:v libx264 -preset ultrafast -g 24 -b:v:0 100k -b:v:1 300k";
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(words.split(' '));
    ffmpeg.args(["-map", "0:v", "-map", "0:v"]);
    if sound {
        ffmpeg.args(["-map", "1:a", "-c:a", "aac"]);
    }
    ffmpeg.args(video.split(' '));
    ffmpeg
}

/// Encodes a title with two renditions as HLS into `folder`.
fn make_hls(folder: &Path) {
    let folder = folder.to_str().unwrap();
    let status = ffmpeg_ladder(false)
        .args(["-f", "hls", "-hls_time", "1"])
        .args(["-hls_playlist_type", "vod", "-hls_segment_type", "fmp4"])
        .args(["-hls_fmp4_init_filename", "init_%v.mp4"])
        .args(["-master_pl_name", "all.m3u8", "-var_stream_map", "v:0 v:1"])
        .arg("-hls_segment_filename")
        .arg(format!("{folder}/s_%v_%d.m4s"))
        .arg(format!("{folder}/v_%v.m3u8"))
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn all_parts_of_a_manifest_are_requested_and_counted_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    make_hls(folder.path());
    let Some(nginx) = Nginx::of(folder.path(), folder.path(), "", "") else {
        return;
    };
    let url = Url::parse(&nginx.url("all.m3u8")).unwrap();
    let dialer = Dialer::new(ClientSettings::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut targets = runtime
        .block_on(manifest_targets::list_manifest_targets(
            &dialer,
            &url,
            SegmentWeighting::Even,
        ))
        .unwrap();
    let count = |kind| targets.iter().filter(|target| target.kind == kind).count();
    let counts = [
        RequestKind::Manifest,
        RequestKind::Init,
        RequestKind::Segment,
    ]
    .map(count);
    assert_eq!(counts, [3, 2, 8]);
    for target in &mut targets {
        let name = target
            .url
            .path_segments()
            .unwrap()
            .next_back()
            .unwrap()
            .to_owned();
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        let mut digest = BodyDigest::default();
        digest.hash_bytes(&bytes);
        target.check = Some(ExpectedBody {
            length: Some(bytes.len() as u64),
            sha256: Some(digest.into_sha256()),
        });
    }
    let run = run_to_end(plan("130", 1.0, targets, ClientSettings::default()));
    let kinds = run.stats_by_kind();
    let requests = |kind: RequestKind| kinds[&kind].requests;
    assert_eq!(
        [
            RequestKind::Manifest,
            RequestKind::Init,
            RequestKind::Segment
        ]
        .map(requests),
        [30, 20, 80]
    );
    assert_eq!(
        (
            run.merged_stats().error_count(),
            &run.merged_stats().statuses
        ),
        (0, &[(200, 130)].into())
    );
    let start = runtime
        .block_on(manifest_targets::list_manifest_targets(
            &dialer,
            &url,
            SegmentWeighting::Start,
        ))
        .unwrap();
    assert!(start.iter().any(|target| target.weight == 0.25));
}

#[test]
fn all_files_of_an_mpd_are_requested() {
    let folder = tempfile::tempdir().unwrap();
    let status = ffmpeg_ladder(true)
        .args(["-f", "dash", "-seg_duration", "1"])
        .arg(folder.path().join("all.mpd"))
        .status();
    assert!(status.unwrap().success());
    let Some(nginx) = Nginx::of(folder.path(), folder.path(), "", "") else {
        return;
    };
    let url = Url::parse(&nginx.url("all.mpd")).unwrap();
    let dialer = Dialer::new(ClientSettings::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let targets = runtime.block_on(manifest_targets::list_manifest_targets(
        &dialer,
        &url,
        SegmentWeighting::Even,
    ));
    let targets = targets.unwrap();
    let listed: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".m4s") || name.ends_with(".mpd"))
        .collect();
    let mut target_paths: Vec<&str> = targets.iter().map(|target| target.url.path()).collect();
    let mut file_paths: Vec<String> = listed.iter().map(|name| format!("/{name}")).collect();
    target_paths.sort_unstable();
    file_paths.sort_unstable();
    assert_eq!(target_paths, file_paths);
    let count = targets.len() as u64;
    let run = run_to_end(plan(
        &count.to_string(),
        1.0,
        targets,
        ClientSettings::default(),
    ));
    let kinds = run.stats_by_kind();
    let requests = |kind: RequestKind| kinds[&kind].requests;
    assert_eq!(
        (requests(RequestKind::Manifest), requests(RequestKind::Init)),
        (1, 3)
    );
    assert_eq!(run.merged_stats().statuses, [(200, count)].into());
}

#[test]
fn connections_use_the_given_source_addresses() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.m4s"), "ok").unwrap();
    let Some(nginx) = Nginx::of(folder.path(), folder.path(), "", "") else {
        return;
    };
    let target = RequestTarget::from_url(Url::parse(&nginx.url("a.m4s")).unwrap());
    let settings = ClientSettings {
        sources: vec!["127.0.0.2".parse().unwrap(), "127.0.0.3".parse().unwrap()],
        keep_alive: false,
        ..ClientSettings::default()
    };
    let run = run_to_end(plan("40", 0.5, vec![target], settings));
    assert_eq!(run.merged_stats().statuses, [(200, 20)].into());
    drop(nginx);
    let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    let from = |address: &str| log.lines().filter(|line| line.starts_with(address)).count();
    let (second, third) = (from("127.0.0.2 "), from("127.0.0.3 "));
    assert_eq!((log.lines().count(), second + third), (20, 20), "{log}");
    assert!(second.abs_diff(third) <= 1, "{log}");
}

#[test]
fn random_ranges_are_received_completely() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("film.mp4"), vec![7; 1_000_000]).unwrap();
    let Some(nginx) = Nginx::of(folder.path(), folder.path(), "", "") else {
        return;
    };
    let url = Url::parse(&nginx.url("film.mp4")).unwrap();
    let ranges = Some(RandomRanges {
        file_bytes: 1_000_000,
        size: 70_000,
    });
    let target = RequestTarget {
        kind: RequestKind::Range,
        ranges,
        ..RequestTarget::from_url(url)
    };
    let (run, records) = run_recorded(plan("100", 0.5, vec![target], ClientSettings::default()));
    assert_eq!(run.merged_stats().statuses, [(206, 50)].into());
    assert!(records.iter().all(|record| record.bytes == 70_000));
}

#[test]
fn certificates_are_verified_and_http2_shares_connections() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(folder.path().join("a.m4s"), vec![1; 50_000]).unwrap();
    let tls = format!(
        "ssl_certificate {}; ssl_certificate_key {};",
        cert.display(),
        key.display()
    );
    let Some(nginx) = Nginx::of(folder.path(), folder.path(), "ssl http2", &tls) else {
        return;
    };
    let url = Url::parse(&format!("https://localhost:{}/a.m4s", nginx.addr.port())).unwrap();
    let settings = |version, authorities, insecure| ClientSettings {
        version,
        authorities,
        insecure,
        ..ClientSettings::default()
    };
    let known = Some(made.cert.pem().into_bytes());
    for (name, settings, fault) in [
        (
            "unknown",
            settings(HttpVersion::Http1, None, false),
            Some(FailureKind::Certificate),
        ),
        (
            "known",
            settings(HttpVersion::Http1, known.clone(), false),
            None,
        ),
        ("insecure", settings(HttpVersion::Http1, None, true), None),
        ("HTTP/2", settings(HttpVersion::Http2, known, false), None),
    ] {
        let http2 = settings.version == HttpVersion::Http2;
        let mut plan = plan(
            "100",
            0.3,
            vec![RequestTarget::from_url(url.clone())],
            settings,
        );
        (plan.connections, plan.connections_max, plan.streams) = (2, 2, 10);
        let run = run_to_end(plan);
        let total = run.merged_stats();
        let expected = match fault {
            Some(fault) => ([(fault, 30)].into(), [].into()),
            None => ([].into(), [(200, 30)].into()),
        };
        assert_eq!(
            (total.faults, total.statuses),
            expected,
            "{name}: {:?}",
            run.examples
        );
        if http2 {
            assert!(run.connections <= 2, "{}", run.connections);
            assert_eq!(total.bytes, 30 * 50_000);
        }
    }
}
