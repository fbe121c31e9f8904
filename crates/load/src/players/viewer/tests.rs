//! Hours of viewing over links of virtual time: what is asked for, and how it was to watch.

use super::super::abr::{self, Fixed};
use super::super::cmcd::Style;
use super::super::player::{Fetch, Reading};
use super::super::stream::Wish;
use super::*;
use media::manifest::read::{Url, hls, mpd};
use std::collections::BTreeMap;

const MANIFEST: &str = "http://o.test/m.mpd";

/// A ladder of 0.5, 1, 2 and 4 Mb/s with sound beside it, 2 s segments.
fn title(seconds: u32) -> String {
    let video: String = [500, 1000, 2000, 4000]
        .iter()
        .map(|kbps| {
            format!("<Representation id='v{kbps}' bandwidth='{kbps}000' width='640' height='360'/>")
        })
        .collect();
    let template = "<SegmentTemplate timescale='1' duration='2' initialization='$RepresentationID$/i' media='$RepresentationID$/$Number$'/>";
    format!(
        "<MPD mediaPresentationDuration='PT{seconds}S'><Period><AdaptationSet contentType='video'>{template}{video}</AdaptationSet>\
         <AdaptationSet contentType='audio'>{template}<Representation id='a' bandwidth='128000'/></AdaptationSet></Period></MPD>"
    )
}

/// A server and a link: latency, then bits at the rate of the moment, one answer after another.
struct World {
    manifest: String,
    /// From when on, how many bits a second; zero: nothing moves.
    rates: Vec<(Micros, f64)>,
    latency: Micros,
    busy_until: Micros,
    waiting: BTreeMap<(Micros, u32), Answer>,
    asked: Vec<(Micros, What, String)>,
    /// Requests that contain this fail so many times.
    failing: Option<(&'static str, u32)>,
    cancelled: usize,
}

impl World {
    fn new(manifest: String, rates: &[(Micros, f64)]) -> World {
        World {
            manifest,
            rates: rates.to_vec(),
            latency: 20_000,
            busy_until: 0,
            waiting: BTreeMap::new(),
            asked: Vec::new(),
            failing: None,
            cancelled: 0,
        }
    }

    fn bytes(&self, fetch: &Fetch) -> u64 {
        let path = fetch.part.url.path();
        match fetch.what {
            What::Manifest => self.manifest.len() as u64,
            What::Audio => 128_000 * 2 / 8,
            What::Video => {
                let digits = path.trim_start_matches("/v").split('/').next().unwrap();
                digits.parse::<u64>().unwrap() * 1000 * 2 / 8
            }
            _ => 800,
        }
    }

    fn done_at(&self, mut at: Micros, bytes: u64) -> Micros {
        let mut bits = bytes as f64 * 8.0;
        loop {
            let n = self
                .rates
                .iter()
                .rposition(|(from, _)| *from <= at)
                .unwrap();
            let until = self.rates.get(n + 1).map_or(Micros::MAX, |(from, _)| *from);
            let room = (until - at) as f64 * self.rates[n].1 / 1e6;
            if room >= bits {
                return at + (bits / self.rates[n].1 * 1e6) as Micros;
            }
            (at, bits) = (until, bits - room);
        }
    }

    fn ask(&mut self, now: Micros, fetch: &Fetch) {
        self.asked
            .push((now, fetch.what, fetch.part.url.path().to_string()));
        let fails = self
            .failing
            .as_mut()
            .filter(|(text, left)| *left > 0 && fetch.part.url.path().contains(text));
        let fails = fails.map(|(_, left)| *left -= 1).is_some();
        let bytes = self.bytes(fetch);
        let first_byte = now.max(self.busy_until) + self.latency;
        let done = self.done_at(first_byte, bytes);
        self.busy_until = done;
        let document = matches!(fetch.reading, Reading::Manifest).then(|| {
            let url = fetch.part.url.clone();
            let title = mpd::read(&url, self.manifest.as_bytes()).unwrap();
            Document::Stream(Arc::new(
                Stream::new(title, false, &Wish::default()).unwrap(),
            ))
        });
        let answer = Answer {
            ok: !fails,
            bytes,
            sent: Some(now),
            first_byte: Some(first_byte),
            document,
        };
        self.waiting.insert((done, fetch.id), answer);
    }

    /// Plays until the end; gives when that was.
    fn play(&mut self, viewer: &mut Viewer) -> Micros {
        let mut now = 0;
        for _ in 0..1_000_000 {
            match viewer.poll(now) {
                Step::Ask(fetch) => self.ask(now, &fetch),
                Step::Cancel(id) => {
                    self.cancelled += 1;
                    self.waiting.retain(|(_, waiting), _| *waiting != id);
                }
                Step::Done => return now,
                Step::Wait(at) => {
                    let next = self
                        .waiting
                        .keys()
                        .next()
                        .copied()
                        .filter(|(done, _)| *done <= at);
                    assert!(at > now || next.is_some());
                    now = next.map_or(at, |(done, _)| done);
                    if let Some(key) = next
                        && let Some(answer) = self.waiting.remove(&key)
                    {
                        viewer.handle(now, key.1, answer);
                    }
                    assert!(now < 100_000_000_000, "it hangs: {viewer:?}");
                }
            }
        }
        panic!("it never waits: {viewer:?}");
    }

    fn count(&self, what: What) -> usize {
        self.asked
            .iter()
            .filter(|(_, asked, _)| *asked == what)
            .count()
    }
}

fn plan() -> Plan {
    Plan {
        manifest: Part {
            url: Url::parse(MANIFEST).unwrap(),
            range: None,
        },
        device: Device::named("any").unwrap(),
        leave_at: Micros::MAX,
        patience: None,
        seeks: Vec::new(),
        session: 7,
    }
}

fn viewer(plan: Plan, abr: impl Abr + 'static) -> Viewer {
    Viewer::new(Arc::new(Setup::default()), plan, Box::new(abr), 0)
}

fn constant(bps: f64) -> Vec<(Micros, f64)> {
    vec![(0, bps)]
}

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
    let mut told = Vec::new();
    let mut now = 0;
    loop {
        match viewer.poll(now) {
            Step::Ask(fetch) => {
                world.ask(now, &fetch);
                told.push(*fetch.cmcd.unwrap());
            }
            Step::Wait(at) => {
                let key = world
                    .waiting
                    .keys()
                    .next()
                    .copied()
                    .filter(|(done, _)| *done <= at);
                now = key.map_or(at, |(done, _)| done);
                if let Some(answer) = key.and_then(|key| world.waiting.remove(&key)) {
                    viewer.handle(now, key.unwrap().1, answer);
                }
            }
            Step::Cancel(_) => {}
            Step::Done => break,
        }
    }
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
fn hls_playlists_are_fetched_when_their_level_is() {
    let master = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"e\",URI=\"a.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=500000,AUDIO=\"a\"\nv500.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=4000000,AUDIO=\"a\"\nv4000.m3u8\n";
    let url = Url::parse("http://o.test/m.m3u8").unwrap();
    let hls::Playlist::Multivariant(title) = hls::read(&url, master.as_bytes()).unwrap() else {
        panic!()
    };
    let stream = Arc::new(Stream::new(title, true, &Wish::default()).unwrap());
    let mut viewer = viewer(plan(), abr::Throughput::default());
    let mut asked = Vec::new();
    let mut now = 0;
    loop {
        match viewer.poll(now) {
            Step::Ask(fetch) => {
                let path = fetch.part.url.path().to_string();
                let document = match fetch.what {
                    What::Manifest => Some(Document::Stream(stream.clone())),
                    What::Playlist => {
                        let name = path.trim_matches('/').trim_end_matches(".m3u8");
                        let text: String = (0..10)
                            .map(|n| format!("#EXTINF:2\n{name}/{n}\n"))
                            .collect();
                        let read =
                            hls::read(&fetch.part.url, format!("#EXTM3U\n{text}").as_bytes());
                        let hls::Playlist::Media(media) = read.unwrap() else {
                            panic!()
                        };
                        Some(Document::Segments(Arc::new(media.segments)))
                    }
                    _ => None,
                };
                asked.push(path);
                let answer = Answer {
                    ok: true,
                    bytes: 100_000,
                    sent: Some(now),
                    first_byte: Some(now),
                    document,
                };
                now += 5000;
                viewer.handle(now, fetch.id, answer);
            }
            Step::Wait(at) => now = at,
            Step::Cancel(_) => {}
            Step::Done => break,
        }
    }
    assert_eq!(viewer.ended(), Some(End::Finished));
    let main: Vec<&String> = asked.iter().filter(|path| path.contains("v")).collect();
    assert_eq!(main[..3], ["/v500.m3u8", "/v500/0", "/v4000.m3u8"]);
    assert_eq!(
        asked.iter().filter(|path| path.ends_with(".m3u8")).count(),
        3
    );
    assert_eq!(viewer.summary().played_ms, 20_000);
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

#[test]
fn a_media_playlist_by_itself_is_a_title() {
    let url = Url::parse("http://o.test/a.m3u8").unwrap();
    let read = hls::read(
        &url,
        b"#EXTM3U\n#EXTINF:2\na\n#EXTINF:2\nb\n#EXT-X-ENDLIST\n",
    );
    let hls::Playlist::Media(media) = read.unwrap() else {
        panic!()
    };
    let segments = Arc::new(media.segments);
    let mut viewer = viewer(plan(), abr::Dynamic::default());
    let (mut asked, mut now) = (Vec::new(), 0);
    loop {
        match viewer.poll(now) {
            Step::Ask(fetch) => {
                asked.push(fetch.part.url.path().to_string());
                let document = (fetch.what == What::Manifest)
                    .then(|| Document::Segments(Arc::clone(&segments)));
                let answer = Answer {
                    ok: true,
                    bytes: 1000,
                    sent: Some(now),
                    first_byte: Some(now),
                    document,
                };
                now += 5000;
                viewer.handle(now, fetch.id, answer);
            }
            Step::Wait(at) => now = at,
            Step::Cancel(_) => {}
            Step::Done => break,
        }
    }
    assert_eq!(asked, ["/m.mpd", "/a", "/b"]);
    assert_eq!(viewer.ended(), Some(End::Finished));
}
