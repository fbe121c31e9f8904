//! Tests of playback over simulated links: start-up, stalls, levels, leaving and seeking.

use super::super::super::cmcd::CmcdFormat;
use super::*;

#[test]
fn a_title_plays_without_stalls_over_a_fast_link() {
    let mut world = SimulatedOrigin::new(test_manifest(60), &constant_rate(20e6));
    let mut viewer = test_viewer(test_plan(), abr::ThroughputRule::default());
    let ended = world.play_viewer(&mut viewer);
    assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
    assert_eq!(
        (
            world.count(FetchPurpose::Video),
            world.count(FetchPurpose::Audio)
        ),
        (30, 30)
    );
    assert_eq!(world.count(FetchPurpose::Manifest), 1);
    // The viewer fetches three init segments: one of the lowest level, one of the highest level,
    // and one of the audio.
    assert_eq!(world.count(FetchPurpose::Init), 3);
    let summary = viewer.summary();
    assert_eq!((summary.stalls, summary.played_ms), (0, 60_000));
    let delay_ms = summary.start_delay_ms.unwrap();
    assert!((50..400).contains(&delay_ms), "{delay_ms}");
    assert!((60_000_000..61_000_000).contains(&ended), "{ended}");
    assert_eq!(summary.switches, 1);
    // The viewer plays 2 s at 0.5 Mb/s, and then 58 s at 4 Mb/s.
    assert!(
        (summary.bitrate_kbps - (500.0 * 2.0 + 4000.0 * 58.0) / 60.0).abs() < 1.0,
        "{summary:?}"
    );
}

#[test]
fn the_buffer_never_exceeds_its_limit() {
    let mut world = SimulatedOrigin::new(test_manifest(300), &constant_rate(50e6));
    let mut viewer = test_viewer(test_plan(), FixedLevel::Highest);
    world.play_viewer(&mut viewer);
    // Segment `number` (from 1) ends at 2 · `number` s. The buffer of 30 s has room for the segment
    // only after 2 · `number` − 30 s have been played.
    for (at, purpose, path) in &world.requests {
        if matches!(purpose, FetchPurpose::Video | FetchPurpose::Audio) {
            let number: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
            let earliest = (number * 2_000_000).saturating_sub(30_000_000);
            assert!(*at >= earliest, "{path} at {at}");
        }
    }
    assert_eq!(viewer.summary().stalls, 0);
}

#[test]
fn a_link_too_slow_for_the_title_stalls_as_long_as_expected() {
    // The title needs 4.128 Mb/s: 4 Mb/s for video and 128 kb/s for audio. The link has half of
    // this bandwidth.
    let mut world = SimulatedOrigin::new(test_manifest(100), &constant_rate(2.064e6));
    world.latency = 0;
    let mut viewer = test_viewer(test_plan(), FixedLevel::Highest);
    let ended = world.play_viewer(&mut viewer) as f64 / 1e6;
    let summary = viewer.summary();
    assert!((ended - 200.0).abs() < 4.0, "{ended}");
    let waited = (summary.stalled_ms + summary.start_delay_ms.unwrap()) as f64 / 1e3;
    assert!((waited + 100.0 - ended).abs() < 0.1, "{waited} {ended}");
    assert!(
        summary.stalls >= 40 && summary.stall_ratio > 0.45,
        "{summary:?}"
    );
}

/// Regression: during a stall, a viewer with a full video buffer was polled every microsecond.
#[test]
fn a_stalled_viewer_whose_video_buffer_is_full_waits_for_audio() {
    // The audio ends after 9 s. At this time, the viewer waits for room in the video buffer.
    let manifest = test_manifest(60);
    let (video, audio) = manifest.split_once("contentType='audio'").unwrap();
    let audio = audio.replace("duration='2'", "duration='3'");
    let manifest = format!("{video}contentType='audio'{audio}");
    let mut world = SimulatedOrigin::new(manifest, &constant_rate(20e6));
    world.failing = Some(("/a/4", 6));
    let settings = PlaybackSettings {
        retries: 6,
        ..PlaybackSettings::default()
    };
    let rule = Box::new(FixedLevel::Lowest);
    let mut viewer = Viewer::new(Arc::new(settings), test_plan(), rule, 0);
    world.play_viewer(&mut viewer);
    assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
    assert_eq!(viewer.summary().stalls, 1);
}

#[test]
fn rules_follow_the_link_down_and_up() {
    let rates = [(0, 10e6), (60_000_000, 1.3e6), (180_000_000, 10e6)];
    let rules: Vec<Box<dyn AbrRule>> = vec![
        Box::new(abr::ThroughputRule::default()),
        Box::new(abr::BbaRule),
        Box::new(abr::BolaRule::default()),
        Box::new(abr::DynamicRule::default()),
        Box::new(abr::RobustMpc::default()),
    ];
    for rule in rules {
        let mut world = SimulatedOrigin::new(test_manifest(300), &rates);
        let mut viewer = Viewer::new(Arc::new(PlaybackSettings::default()), test_plan(), rule, 0);
        world.play_viewer(&mut viewer);
        let summary = viewer.summary();
        let at = |from: f64, until: f64| {
            let within = |requests: &&(Micros, FetchPurpose, String)| {
                requests.1 == FetchPurpose::Video
                    && (from..until).contains(&(requests.0 as f64 / 1e6))
            };
            let kbps = |requests: &(Micros, FetchPurpose, String)| {
                requests
                    .2
                    .trim_start_matches("/v")
                    .split('/')
                    .next()
                    .unwrap()
                    .parse::<f64>()
                    .unwrap()
            };
            let found: Vec<f64> = world.requests.iter().filter(within).map(kbps).collect();
            found.iter().sum::<f64>() / found.len() as f64
        };
        let (good, bad, again) = (at(20.0, 60.0), at(110.0, 180.0), at(220.0, 290.0));
        assert!(
            good > 3500.0 && bad < 1400.0 && again > 3500.0,
            "{good} {bad} {again}: {viewer:?}"
        );
        assert!(summary.stalled_ms < 4000, "{summary:?} {viewer:?}");
    }
}

#[test]
fn failures_are_retried_and_then_end_the_session() {
    for (failing, end) in [
        (("/v500/1", 3), SessionEnd::Finished),
        (("/v500/1", 4), SessionEnd::Failed),
        (("m.mpd", 4), SessionEnd::Failed),
    ] {
        let mut world = SimulatedOrigin::new(test_manifest(20), &constant_rate(20e6));
        world.failing = Some(failing);
        let mut viewer = test_viewer(test_plan(), FixedLevel::Lowest);
        world.play_viewer(&mut viewer);
        assert_eq!(viewer.end_reason(), Some(end), "{failing:?}");
    }
}

#[test]
fn viewers_leave_give_up_and_seek_as_planned() {
    let mut world = SimulatedOrigin::new(test_manifest(600), &constant_rate(20e6));
    let mut leaver = test_viewer(
        ViewerPlan {
            leave_at: 42_000_000,
            ..test_plan()
        },
        FixedLevel::Lowest,
    );
    assert_eq!(
        (world.play_viewer(&mut leaver), leaver.end_reason()),
        (42_000_000, Some(SessionEnd::Left))
    );
    assert!(leaver.summary().played_ms > 41_000);

    let mut world = SimulatedOrigin::new(
        test_manifest(600),
        &[(0, 20e6), (10_000_000, 0.0), (1_000_000_000, 1.0)],
    );
    let mut impatient = test_viewer(
        ViewerPlan {
            patience: Some(5_000_000),
            ..test_plan()
        },
        FixedLevel::Highest,
    );
    world.play_viewer(&mut impatient);
    assert_eq!(impatient.end_reason(), Some(SessionEnd::GaveUp));
    let last = impatient.journal.stalls.last().unwrap();
    assert_eq!(last.ms, 5000);

    let mut world = SimulatedOrigin::new(test_manifest(600), &constant_rate(20e6));
    let seeks = vec![(10_000_000, 0.5), (20_000_000, 0.5166), (30_000_000, 0.1)];
    let mut seeker = test_viewer(
        ViewerPlan {
            seeks,
            leave_at: 40_000_000,
            ..test_plan()
        },
        FixedLevel::Lowest,
    );
    world.play_viewer(&mut seeker);
    let requests = |path: &str| {
        world
            .requests
            .iter()
            .filter(|requests| requests.2 == path)
            .count()
    };
    // The first seek goes to 300 s, which is in segment 151. The second seek stays within the
    // buffer. The third seek goes to 60 s, which is in segment 31. Segment 100 is never requested.
    assert_eq!(
        (
            requests("/v500/151"),
            requests("/v500/31"),
            requests("/v500/100")
        ),
        (1, 1, 0)
    );
    assert_eq!(seeker.summary().stalls, 0);
    assert!(seeker.journal.seek_wait_ms < 500, "{:?}", seeker.journal);
    // Almost 40 s were played. Media that a seek skips does not count as played.
    assert!(
        (38_000..40_000).contains(&seeker.summary().played_ms),
        "{:?}",
        seeker.summary()
    );
}

#[test]
fn cmcd_describes_each_request() {
    let mut world = SimulatedOrigin::new(test_manifest(20), &constant_rate(20e6));
    let settings = PlaybackSettings {
        cmcd: Some(CmcdFormat {
            version: 2,
            in_headers: false,
        }),
        ..PlaybackSettings::default()
    };
    let mut viewer = Viewer::new(
        Arc::new(settings),
        test_plan(),
        Box::new(FixedLevel::Lowest),
        0,
    );
    world.play_viewer(&mut viewer);
    let reports = world.reports;
    let sequence: Vec<u32> = reports.iter().map(|facts| facts.sequence).collect();
    assert_eq!(sequence, (1..=reports.len() as u32).collect::<Vec<_>>());
    assert!(reports[0].startup && !reports.last().unwrap().startup);
    let video = reports
        .iter()
        .find(|facts| facts.bitrate_kbps == Some(500))
        .unwrap();
    assert_eq!(
        (video.top_kbps, video.duration_ms, video.next.as_deref()),
        (Some(4000), Some(2000), Some("2"))
    );
}

/// Plays a title of 20 s. Returns the path of the first video segment that is requested.
fn first_video_path(start_level: StartLevel, rule: Box<dyn AbrRule>) -> String {
    let mut world = SimulatedOrigin::new(test_manifest(20), &constant_rate(20e6));
    let settings = PlaybackSettings {
        start_level,
        ..PlaybackSettings::default()
    };
    let mut viewer = Viewer::new(Arc::new(settings), test_plan(), rule, 0);
    world.play_viewer(&mut viewer);
    let mut videos = world.requests.into_iter();
    let first = videos.find(|(_, purpose, _)| *purpose == FetchPurpose::Video);
    first.unwrap().2
}

#[test]
fn the_first_level_fits_the_assumed_throughput() {
    let first_path = |start: StartLevel| first_video_path(start, Box::<abr::HlsJsRule>::default());
    assert!(first_path(StartLevel::RuleChoice).starts_with("/v500/"));
    assert!(first_path(StartLevel::Throughput(100_000.0)).starts_with("/v500/"));
    assert!(first_path(StartLevel::Throughput(1e9)).starts_with("/v4000/"));
    // The manifest lists the level of 500 kb/s first, so `FirstListed` assumes 500 kb/s, limited to
    // the bounds.
    let bounds = |bps_min, bps_max| StartLevel::FirstListed { bps_min, bps_max };
    assert!(first_path(bounds(0.1e6, 5e6)).starts_with("/v500/"));
    assert!(first_path(bounds(2e6, 5e6)).starts_with("/v2000/"));
}

#[test]
fn a_fixed_level_is_the_first_level_too() {
    let path = first_video_path(StartLevel::Throughput(1e6), Box::new(FixedLevel::Highest));
    assert!(path.starts_with("/v4000/"), "{path}");
}

#[test]
fn the_same_seed_requests_the_same_segments() {
    let run = |seed: u64| {
        let mut world = SimulatedOrigin::new(test_manifest(120), &constant_rate(6e6));
        world.play_viewer(&mut test_viewer(test_plan(), abr::RandomLevel::new(seed)));
        world.requests
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_viewer_sleeps_after_its_last_segment() {
    let rules: [Box<dyn AbrRule>; 2] = [
        Box::<abr::DynamicRule>::default(),
        Box::<abr::BolaRule>::default(),
    ];
    for rule in rules {
        // The simulated origin would panic if the viewer woke up every microsecond.
        let mut world = SimulatedOrigin::new(test_manifest(120), &constant_rate(3e6));
        let mut viewer = Viewer::new(Arc::new(PlaybackSettings::default()), test_plan(), rule, 0);
        world.play_viewer(&mut viewer);
        assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
    }
}

#[test]
fn a_viewer_needs_little_memory() {
    let mut world = SimulatedOrigin::new(test_manifest(3600), &constant_rate(9e6));
    let mut viewer = test_viewer(test_plan(), abr::RandomLevel::new(1));
    world.play_viewer(&mut viewer);
    // The viewer has played an hour of two-second segments at random levels.
    assert!(
        viewer.memory_bytes() < 32 << 10,
        "{}",
        viewer.memory_bytes()
    );
}
