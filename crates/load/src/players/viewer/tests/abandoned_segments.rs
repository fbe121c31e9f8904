//! Tests with a link whose bandwidth collapses while a segment is being received.

use super::super::super::abr::{AbandonRule, DynamicRule, HlsJsRule, ShakaRule};
use super::super::super::cmcd::CmcdFormat;
use super::*;

/// Plays a title of two minutes over a link of 6 Mb/s. Shortly after the request of a segment, the
/// bandwidth falls to 0.6 Mb/s for one minute. A segment of the highest level then takes more than
/// 13 s to arrive, but the buffer holds at most 10 s.
fn play_over_collapse(rule: RuleFactory, abandon: AbandonRule) -> (SimulatedOrigin, Viewer) {
    let (steady, _) = play_over(&constant_rate(6e6), rule(), abandon);
    let videos = steady
        .requests
        .iter()
        .filter(|(_, purpose, _)| *purpose == FetchPurpose::Video);
    let at = videos
        .map(|(at, ..)| at + 200_000)
        .find(|at| *at > 20_000_000)
        .unwrap();
    let rates = [(0, 6e6), (at, 0.6e6), (at + 60_000_000, 6e6)];
    play_over(&rates, rule(), abandon)
}

fn play_over(
    rates: &[(Micros, f64)],
    rule: Box<dyn AbrRule>,
    abandon: AbandonRule,
) -> (SimulatedOrigin, Viewer) {
    let mut world = SimulatedOrigin::new(test_manifest(120), rates);
    let cmcd = CmcdFormat {
        version: 1,
        in_headers: false,
    };
    let settings = PlaybackSettings {
        buffer_max_s: 10.0,
        abandon,
        cmcd: Some(cmcd),
        ..PlaybackSettings::default()
    };
    let mut viewer = Viewer::new(Arc::new(settings), test_plan(), rule, 0);
    world.play_viewer(&mut viewer);
    assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
    (world, viewer)
}

/// Returns all video requests, each as (level, segment number, index among all requests). The level
/// is the bitrate in kilobits per second.
fn video_requests(world: &SimulatedOrigin) -> Vec<(u32, u32, usize)> {
    let requests = world.requests.iter().enumerate();
    let videos = requests.filter(|(_, (_, purpose, _))| *purpose == FetchPurpose::Video);
    let parts = videos.map(|(n, (.., path))| {
        let (level, number) = path.trim_start_matches("/v").split_once('/').unwrap();
        (level.parse().unwrap(), number.parse().unwrap(), n)
    });
    parts.collect()
}

/// Returns whether the second request is for the same segment as the first, at a lower level.
fn is_lowered(pair: &[(u32, u32, usize)]) -> bool {
    pair[0].1 == pair[1].1 && pair[0].0 > pair[1].0
}

type RuleFactory = fn() -> Box<dyn AbrRule>;

/// The abandonment rule and the bitrate rule of each player.
const PLAYERS: [(AbandonRule, RuleFactory); 3] = [
    (AbandonRule::HlsJs, || Box::<HlsJsRule>::default()),
    (AbandonRule::DashJs, || Box::<DynamicRule>::default()),
    (AbandonRule::Shaka, || Box::<ShakaRule>::default()),
];

#[test]
fn a_segment_in_a_collapse_is_abandoned_for_a_lower_level() {
    for (abandon, rule) in PLAYERS {
        let (world, viewer) = play_over_collapse(rule, abandon);
        let summary = viewer.summary();
        let videos = video_requests(&world);
        // Skips the start of playback, because the first throughput measurement can cause Shaka
        // Player to abandon a segment.
        let start = videos.partition_point(|video| world.requests[video.2].0 < 19_800_000);
        let in_collapse = &videos[start..];
        let Some([first, second]) = in_collapse.windows(2).find(|pair| is_lowered(pair)) else {
            panic!("{abandon:?} abandoned nothing: {videos:?}")
        };
        assert_eq!(summary.abandoned as usize, world.cancelled.len());
        assert!(summary.abandoned > 0 && summary.abandoned_bytes > 0);
        // The title has 60 segments. Each abandoned segment was requested once more.
        assert_eq!(videos.len(), 60 + world.cancelled.len(), "{abandon:?}");
        let [before, after] = [first.2, second.2].map(|n| &world.reports[n]);
        assert_eq!(after.bitrate_kbps, Some(second.0));
        // dash.js measures the throughput of complete segments only.
        let is_sampled = after.throughput_kbps < before.throughput_kbps;
        assert!(is_sampled || abandon == AbandonRule::DashJs, "{abandon:?}");
    }
}

#[test]
fn abandoning_shortens_stalls() {
    for (abandon, rule) in PLAYERS {
        let stalled_ms = |abandon| play_over_collapse(rule, abandon).1.summary().stalled_ms;
        let (with, without) = (stalled_ms(abandon), stalled_ms(AbandonRule::Never));
        assert!(with < without, "{abandon:?}: {with} ms, {without} ms");
    }
}

#[test]
fn fixed_levels_are_never_abandoned() {
    for (abandon, _) in PLAYERS {
        let (world, _) = play_over_collapse(|| Box::new(FixedLevel::Highest), abandon);
        assert!(world.cancelled.is_empty(), "{abandon:?}");
    }
}

#[test]
fn a_steady_link_abandons_nothing() {
    // Shaka Player is left out. During a segment, Shaka Player chooses the level again from the
    // throughput estimate. Audio responses lower this estimate, so segments are abandoned even on a
    // steady link.
    for (abandon, rule) in [PLAYERS[0], PLAYERS[1]] {
        let (world, _) = play_over(&constant_rate(3e6), rule(), abandon);
        let videos = video_requests(&world);
        let for_lower = videos.windows(2).filter(|pair| is_lowered(pair)).count();
        assert_eq!(for_lower, 0, "{abandon:?}");
    }
}
