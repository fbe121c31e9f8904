//! How it is to watch: start-up, stalls, levels, leaving, seeking.

use super::super::super::cmcd::Style;
use super::*;

#[test]
fn a_whole_title_over_a_good_link() {
    let mut world = World::new(title(60), &constant(20e6));
    let mut viewer = viewer(plan(), abr::Throughput::default());
    let ended = world.play(&mut viewer);
    assert_eq!(viewer.ended(), Some(End::Finished));
    assert_eq!(
        (world.count(What::Video), world.count(What::Audio)),
        (30, 30)
    );
    assert_eq!(world.count(What::Manifest), 1);
    // The lowest level's and the highest's, and the audio's.
    assert_eq!(world.count(What::Init), 3);
    let summary = viewer.summary();
    assert_eq!((summary.stalls, summary.played_ms), (0, 60_000));
    let delay_ms = summary.start_delay_ms.unwrap();
    assert!((50..400).contains(&delay_ms), "{delay_ms}");
    assert!((60_000_000..61_000_000).contains(&ended), "{ended}");
    assert_eq!(summary.switches, 1);
    // Two seconds at 0.5 Mb/s, then 58 at 4.
    assert!(
        (summary.bitrate_kbps - (500.0 * 2.0 + 4000.0 * 58.0) / 60.0).abs() < 1.0,
        "{summary:?}"
    );
}

#[test]
fn never_more_is_buffered_than_allowed() {
    let mut world = World::new(title(300), &constant(50e6));
    let mut viewer = viewer(plan(), Fixed::Highest);
    world.play(&mut viewer);
    // Segment n starts at 2n and may not be asked for before 2n + 2 − 30 has been played.
    for (at, what, path) in &world.asked {
        if matches!(what, What::Video | What::Audio) {
            let number: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
            let earliest = (number * 2_000_000).saturating_sub(30_000_000);
            assert!(*at >= earliest, "{path} at {at}");
        }
    }
    assert_eq!(viewer.summary().stalls, 0);
}

#[test]
fn what_does_not_fit_the_link_stalls_as_long_as_it_must() {
    // 4 Mb/s and 128 kb/s of sound over 2.064 Mb/s: half as fast as it plays.
    let mut world = World::new(title(100), &constant(2.064e6));
    world.latency = 0;
    let mut viewer = viewer(plan(), Fixed::Highest);
    let ended = world.play(&mut viewer) as f64 / 1e6;
    let summary = viewer.summary();
    assert!((ended - 200.0).abs() < 4.0, "{ended}");
    let waited = (summary.stalled_ms + summary.start_delay_ms.unwrap()) as f64 / 1e3;
    assert!((waited + 100.0 - ended).abs() < 0.1, "{waited} {ended}");
    assert!(
        summary.stalls >= 40 && summary.stall_ratio > 0.45,
        "{summary:?}"
    );
}

#[test]
fn rules_follow_the_link_down_and_up() {
    let rates = [(0, 10e6), (60_000_000, 1.3e6), (180_000_000, 10e6)];
    let rules: Vec<Box<dyn Abr>> = vec![
        Box::new(abr::Throughput::default()),
        Box::new(abr::Bba),
        Box::new(abr::Bola::default()),
        Box::new(abr::Dynamic::default()),
        Box::new(abr::RobustMpc::default()),
    ];
    for rule in rules {
        let mut world = World::new(title(300), &rates);
        let mut viewer = Viewer::new(Arc::new(Setup::default()), plan(), rule, 0);
        world.play(&mut viewer);
        let summary = viewer.summary();
        let at = |from: f64, until: f64| {
            let within = |asked: &&(Micros, What, String)| {
                asked.1 == What::Video && (from..until).contains(&(asked.0 as f64 / 1e6))
            };
            let kbps = |asked: &(Micros, What, String)| {
                asked
                    .2
                    .trim_start_matches("/v")
                    .split('/')
                    .next()
                    .unwrap()
                    .parse::<f64>()
                    .unwrap()
            };
            let found: Vec<f64> = world.asked.iter().filter(within).map(kbps).collect();
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
fn failures_are_asked_again_and_then_it_is_over() {
    for (failing, end) in [
        (("/v500/1", 3), End::Finished),
        (("/v500/1", 4), End::Failed),
        (("m.mpd", 4), End::Failed),
    ] {
        let mut world = World::new(title(20), &constant(20e6));
        world.failing = Some(failing);
        let mut viewer = viewer(plan(), Fixed::Lowest);
        world.play(&mut viewer);
        assert_eq!(viewer.ended(), Some(end), "{failing:?}");
    }
}

#[test]
fn viewers_leave_give_up_and_seek() {
    let mut world = World::new(title(600), &constant(20e6));
    let mut leaver = viewer(
        Plan {
            leave_at: 42_000_000,
            ..plan()
        },
        Fixed::Lowest,
    );
    assert_eq!(
        (world.play(&mut leaver), leaver.ended()),
        (42_000_000, Some(End::Left))
    );
    assert!(leaver.summary().played_ms > 41_000);

    let mut world = World::new(
        title(600),
        &[(0, 20e6), (10_000_000, 0.0), (1_000_000_000, 1.0)],
    );
    let mut impatient = viewer(
        Plan {
            patience: Some(5_000_000),
            ..plan()
        },
        Fixed::Highest,
    );
    world.play(&mut impatient);
    assert_eq!(impatient.ended(), Some(End::GaveUp));
    let last = impatient.journal.stalls.last().unwrap();
    assert_eq!(last.ms, 5000);

    let mut world = World::new(title(600), &constant(20e6));
    let seeks = vec![(10_000_000, 0.5), (20_000_000, 0.5166), (30_000_000, 0.1)];
    let mut seeker = viewer(
        Plan {
            seeks,
            leave_at: 40_000_000,
            ..plan()
        },
        Fixed::Lowest,
    );
    world.play(&mut seeker);
    let asked = |path: &str| world.asked.iter().filter(|asked| asked.2 == path).count();
    // 300 s begin with segment 151; the second seek lies within what is held; 60 s with 31.
    assert_eq!(
        (asked("/v500/151"), asked("/v500/31"), asked("/v500/100")),
        (1, 1, 0)
    );
    assert_eq!(seeker.summary().stalls, 0);
    assert!(seeker.journal.seek_wait_ms < 500, "{:?}", seeker.journal);
    // Near forty seconds of watching, whatever was watched.
    assert!(
        (38_000..40_000).contains(&seeker.summary().played_ms),
        "{:?}",
        seeker.summary()
    );
}

#[test]
fn the_server_is_told() {
    let mut world = World::new(title(20), &constant(20e6));
    let setup = Setup {
        cmcd: Some(Style {
            version: 2,
            in_headers: false,
        }),
        ..Setup::default()
    };
    let mut viewer = Viewer::new(Arc::new(setup), plan(), Box::new(Fixed::Lowest), 0);
    world.play(&mut viewer);
    let told = world.told;
    let sequence: Vec<u32> = told.iter().map(|facts| facts.sequence).collect();
    assert_eq!(sequence, (1..=told.len() as u32).collect::<Vec<_>>());
    assert!(told[0].startup && !told.last().unwrap().startup);
    let video = told
        .iter()
        .find(|facts| facts.bitrate_kbps == Some(500))
        .unwrap();
    assert_eq!(
        (video.top_kbps, video.duration_ms, video.next.as_deref()),
        (Some(4000), Some(2000), Some("2"))
    );
}

#[test]
fn the_same_seed_asks_for_the_same() {
    let run = |seed: u64| {
        let mut world = World::new(title(120), &constant(6e6));
        world.play(&mut viewer(plan(), abr::Random::new(seed)));
        world.asked
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_viewer_takes_little_memory() {
    let mut world = World::new(title(3600), &constant(9e6));
    let mut viewer = viewer(plan(), abr::Random::new(1));
    world.play(&mut viewer);
    // An hour of two-second segments, all of another level than the one before.
    assert!(
        viewer.memory_bytes() < 32 << 10,
        "{}",
        viewer.memory_bytes()
    );
}
