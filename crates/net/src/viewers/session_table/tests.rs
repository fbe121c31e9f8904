use super::*;
use crate::WeakConnection;
use crate::cmcd::CmcdData;
use crate::viewers::session::ReportMode;
use http::HeaderMap;
use std::sync::Weak;

fn default_classes() -> ViewerClasses {
    let layers = crate::config::SettingLayers::default();
    ViewerClasses::new(&crate::config::CmcdCollectorSettings::new(&layers).unwrap())
}

/// Applies reports to a table. Times are in milliseconds since the start of the test.
struct TableFixture {
    table: ViewerSessionTable,
    start: Instant,
}

impl TableFixture {
    fn new(sessions_max: usize) -> TableFixture {
        TableFixture {
            table: ViewerSessionTable::new(
                sessions_max,
                Duration::from_secs(60),
                default_classes(),
            ),
            start: Instant::now(),
        }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn event(&self, ms: u64, line: &str) -> ViewerSessionTableChange {
        let data = CmcdData::parse_event(&format!("{line},v=2")).expect("a valid event");
        self.apply(ms, &data, ReportMode::Event, "")
    }

    fn request(&self, ms: u64, path: &str, pairs: &str) -> ViewerSessionTableChange {
        let mut headers = HeaderMap::new();
        headers.insert("cmcd-request", pairs.parse().unwrap());
        let data = CmcdData::parse_cmcd(None, &headers);
        self.apply(ms, &data, ReportMode::Request, path)
    }

    fn apply(
        &self,
        ms: u64,
        data: &CmcdData,
        mode: ReportMode,
        path: &str,
    ) -> ViewerSessionTableChange {
        self.apply_from([192, 0, 2, 7], ms, data, mode, path)
    }

    /// Applies an interval report (event `t`) that is sent from the address `client`.
    fn interval_from(&self, client: [u8; 4], ms: u64, id: &str) -> ViewerSessionTableChange {
        let data = CmcdData::parse_event(&format!("e=t,sid=\"{id}\",v=2")).unwrap();
        self.apply_from(client, ms, &data, ReportMode::Event, "")
    }

    fn apply_from(
        &self,
        client: [u8; 4],
        ms: u64,
        data: &CmcdData,
        mode: ReportMode,
        path: &str,
    ) -> ViewerSessionTableChange {
        self.table.apply_report(&ViewerReport {
            data,
            mode,
            path,
            client: client.into(),
            connection: WeakConnection(Weak::new()),
            now: self.at(ms),
        })
    }

    /// Returns the number of stalls of a session, and their total length in milliseconds.
    fn stalls(&self, ms: u64, id: &str) -> (u64, u64) {
        let now = self.at(ms);
        let mut found = None;
        self.table.for_each_session(now, |other, session, _| {
            if other == id {
                found = Some((
                    session.stalls.stalls_so_far(),
                    session.stalls.total_stall_ms(now),
                ));
            }
        });
        found.expect("the session exists")
    }

    fn ids(&self, ms: u64) -> Vec<String> {
        let mut ids = Vec::new();
        let now = self.at(ms);
        self.table
            .for_each_session(now, |id, _, _| ids.push(id.to_owned()));
        ids
    }
}

#[test]
fn states_of_events_become_stalls_with_the_length_of_the_players_clock() {
    let t = TableFixture::new(10);
    let first = t.event(0, "e=ps,sid=\"a\",sta=s,ts=1000");
    assert_eq!(first.report, ReportMetricValues::default());
    let started = t.event(0, "e=ps,sid=\"a\",sta=p,ts=1400");
    assert_eq!(started.report.start_up_ms, Some(400.0));
    assert_eq!(t.event(1, "e=ps,sid=\"a\",sta=r,ts=5000").report.stalls, 1);
    // An interval report (event `t`) in the middle of a stall does not start another stall.
    assert_eq!(t.event(2, "e=t,sid=\"a\",sta=r,ts=5500").report.stalls, 0);
    // The reports arrive 2 ms apart, but the length of the stall is measured with the player's
    // clock (`ts`).
    t.event(3, "e=ps,sid=\"a\",sta=p,ts=7000");
    assert_eq!(t.stalls(3, "a"), (1, 2000));
    // A request with an outdated state changes nothing. An event that arrives out of order changes
    // nothing, either.
    t.request(4, "/f/1.m4s", "sid=\"a\",sta=r,v=2");
    t.event(5, "e=ps,sid=\"a\",sta=r,ts=6000");
    assert_eq!(t.stalls(9000, "a"), (1, 2000));
    assert_eq!(
        t.event(6, "e=e,sid=\"a\",ec=(\"X\"),ts=8000").report.errors,
        1
    );
    // A stall that has not ended is counted up to the time of the query.
    t.event(10, "e=ps,sid=\"a\",sta=r,ts=9000");
    assert_eq!(t.stalls(510, "a"), (2, 2500));
}

/// At its start, dash.js 5.2 reports these states and this start-up delay (`msd`).
#[test]
fn a_start_that_the_player_calls_rebuffering_is_no_stall() {
    let t = TableFixture::new(10);
    t.request(0, "/film/.mpd", "sid=\"d\",msd=2,sta=s,v=2");
    t.event(0, "e=ps,sid=\"d\",sta=s,ts=1000");
    t.event(0, "bl=(0;v 0;a),e=ps,sid=\"d\",sta=r,ts=1100");
    let started = t.event(0, "bl=(2000;v 3900;a),e=ps,sid=\"d\",sta=p,ts=1300");
    assert_eq!(started.report.start_up_ms, Some(300.0));
    assert_eq!(t.stalls(500, "d"), (0, 0));
    assert_eq!(t.event(0, "e=ps,sid=\"d\",sta=r,ts=2000").report.stalls, 1);
}

#[test]
fn flags_of_version_1_count_once_per_stall_and_not_at_the_start() {
    let t = TableFixture::new(10);
    let stalls = |pairs| t.request(0, "/f/v/1.m4s", pairs).report.stalls;
    assert_eq!(stalls("sid=\"a\",ot=v,su,bs,bl=0"), 0, "part of the start");
    assert_eq!(stalls("sid=\"a\",ot=v,bl=4000"), 0);
    assert_eq!(stalls("sid=\"a\",ot=a,bl=4000"), 0);
    assert_eq!(stalls("sid=\"a\",ot=v,bs,bl=100"), 1);
    assert_eq!(stalls("sid=\"a\",ot=a,bs,bl=100"), 0, "the same stall");
    assert_eq!(stalls("sid=\"a\",ot=v,bsa=(3;v),bsda=(2500;v)"), 2);
    assert_eq!(t.stalls(0, "a"), (3, 2500));
}

#[test]
fn bitrates_are_sampled_from_video_segments_or_else_from_intervals() {
    let t = TableFixture::new(10);
    let bitrate = |change: ViewerSessionTableChange| change.report.bitrate_kbps;
    assert_eq!(
        bitrate(t.event(0, "e=t,sid=\"a\",br=(3000;v 128;a)")),
        Some(3000.0)
    );
    assert_eq!(bitrate(t.event(0, "e=bc,sid=\"a\",br=(128;a 90;v)")), None);
    let video = t.request(0, "/f/v/1.m4s", "sid=\"a\",ot=v,br=500");
    assert_eq!(bitrate(video), Some(500.0));
    let audio = t.request(0, "/f/a/1.m4s", "sid=\"a\",ot=a,br=128");
    assert_eq!(bitrate(audio), None);
    // After the first request, bitrates are sampled from video segments only, not from intervals.
    assert_eq!(bitrate(t.event(0, "e=t,sid=\"a\",br=(3000;v)")), None);
}

#[test]
fn the_session_idle_for_longest_is_evicted_and_idle_ones_end() {
    let t = TableFixture::new(2);
    for (ms, id) in [(0, "a"), (1, "b"), (2, "a")] {
        assert_eq!(t.event(ms, &format!("e=t,sid=\"{id}\"")).evicted, 0);
    }
    assert_eq!(t.event(3, "e=t,sid=\"c\"").evicted, 1);
    assert_eq!(t.ids(4), ["c", "a"]);
    assert_eq!(t.table.count_open_sessions(t.at(60_002)), 2);
    assert_eq!(t.ids(60_003), ["c"]);
    assert_eq!(t.table.count_open_sessions(t.at(60_004)), 0);
}

/// Regression: a client that invented session ids evicted the sessions of all other clients.
#[test]
fn a_flood_of_sessions_evicts_those_of_its_own_network() {
    let t = TableFixture::new(100);
    let viewers: Vec<String> = (0..60).map(|n| format!("viewer-{n}")).collect();
    for (n, id) in (0..).zip(&viewers) {
        t.interval_from([198, 51, n, 1], 0, id);
    }
    for n in 0..10_000 {
        let hosts = [1, 2, 3];
        t.interval_from([203, 0, 113, hosts[n % 3]], 1, &format!("invented-{n}"));
    }
    let ids = t.ids(2);
    assert_eq!(ids.len(), 100);
    assert!(viewers.iter().all(|id| ids.contains(id)), "{ids:?}");
    // If a viewer changes to another network, the session belongs to the new network.
    t.interval_from([203, 0, 113, 9], 3, &viewers[0]);
    for n in 0..100 {
        t.interval_from([203, 0, 113, 1], 4, &format!("again-{n}"));
    }
    let ids = t.ids(5);
    assert!(viewers[1..].iter().all(|id| ids.contains(id)), "{ids:?}");
    assert!(!ids.contains(&viewers[0]));
}

#[test]
fn hostile_values_are_bounded() {
    let t = TableFixture::new(10);
    let long = "x".repeat(65);
    for line in [
        format!("e=t,sid=\"{long}\""),
        "e=t,sid=\"\"".into(),
        "e=t".into(),
    ] {
        t.event(0, &line);
    }
    assert_eq!(
        t.table.count_open_sessions(t.at(0)),
        0,
        "no valid session id"
    );
    let change = t.event(
        0,
        "e=t,sid=\"a\",bsa=(99999999999999),bsda=(-5),br=(-1;v),bl=(99999999999999),msd=99999999999",
    );
    let expected = ReportMetricValues {
        stalls: 1_000_000,
        ..ReportMetricValues::default()
    };
    assert_eq!(change.report, expected);
    let line = format!(
        "e=e,sid=\"a\",cdn=\"{0}\",cid=\"{0}\",ec=(\"{0}\")",
        "\u{e4}".repeat(500)
    );
    t.event(0, &line);
    t.table.for_each_session(t.at(0), |_, session, _| {
        let chars = |text: &Option<String>| text.as_ref().unwrap().chars().count();
        assert_eq!(chars(&session.pathway), 64);
        assert_eq!(chars(&session.title), 128);
        assert_eq!(chars(&session.last_error), 64);
    });
}
