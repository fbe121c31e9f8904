//! Tests of load generation against servers with known behavior.

#![allow(clippy::unwrap_used)]

mod head;
mod http2;
mod nginx;
mod redirects;
#[path = "../../../../tests/support/nginx.rs"]
mod server;
mod support;

use head::head;
use load::client::{ClientSettings, FailureKind, Url};
use load::rate::{ArrivalSpacing, RateProfile, RequestTarget, arrival_times::ArrivalTimes};
use load::result::{LatencyHistogram, RequestRecord};
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use support::{
    plan, reserve_closed_port, respond_to_all, run_recorded, run_to_end, start_scripted_server,
};

/// Returns the quantile `q` (0 to 1) of the values.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
    values[rank - 1]
}

#[test]
fn percentiles_of_scripted_delays_are_right_to_hdr_precision() {
    let url = start_scripted_server(|mut socket| {
        respond_to_all(&mut socket, "ok", |path| {
            let ms = path.trim_start_matches('/').parse().unwrap();
            std::thread::sleep(Duration::from_millis(ms));
        });
    });
    let delays = [1u64, 5, 20, 80];
    let targets = delays.map(|ms| RequestTarget::from_url(url.join(&ms.to_string()).unwrap()));
    let (run, records) = run_recorded(plan("200", 1.5, targets.into(), ClientSettings::default()));
    assert_eq!((run.due_count(), records.len(), run.unsent), (300, 300, 0));
    for record in &records {
        // The generator cycles through the targets. The server waits for the delay in the path
        // before it responds.
        let delay = delays[record.n as usize % 4] as f64;
        let sent = record.sent_ms.unwrap();
        assert!(
            record.due_ms <= sent && record.end_ms - sent >= delay,
            "{record:?}"
        );
        assert_eq!(record.due_ms, record.n as f64 * 5.0);
    }
    let total = run.merged_stats();
    let due: fn(&RequestRecord) -> f64 = |r| r.end_ms - r.due_ms;
    let sent: fn(&RequestRecord) -> f64 = |r| r.end_ms - r.sent_ms.unwrap();
    let first: fn(&RequestRecord) -> f64 = |r| r.first_ms.unwrap() - r.sent_ms.unwrap();
    for (times, of) in [
        (&total.from_due, due),
        (&total.from_sent, sent),
        (&total.first_byte, first),
    ] {
        let mut exact: Vec<f64> = records.iter().map(of).collect();
        for q in [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0] {
            let (exact, reported) = (quantile(&mut exact, q), times.quantile_ms(q));
            // The histogram has three significant digits and a resolution of one microsecond.
            assert!(
                (reported - exact).abs() <= exact * 0.001 + 0.001,
                "{q}: {exact} {reported}"
            );
        }
    }
}

/// Coordinated omission. A simulated FIFO server needs 1 ms per request, and is frozen from second
/// 50 to second 60. A request is due every 10 ms for 100 s. A closed loop measures only one slow
/// request. The open loop measures how long each due request waits, as users would see it.
#[test]
fn the_open_loop_shows_a_frozen_server_in_its_quantiles() {
    fn serve(start: f64) -> f64 {
        let start = if (50.0..60.0).contains(&start) {
            60.0
        } else {
            start
        };
        let end = start + 0.001;
        if start < 50.0 && end > 50.0 {
            60.0 + (end - 50.0)
        } else {
            end
        }
    }
    let profile = RateProfile::parse_profile("100", Some(100.0), |_| unreachable!()).unwrap();
    let mut open = LatencyHistogram::default();
    let mut free = 0.0f64;
    for due in ArrivalTimes::new(&profile, ArrivalSpacing::Even, 1) {
        free = serve(due.max(free));
        open.record(Duration::from_secs_f64(free - due));
    }
    let near = |found: f64, expected: f64| (found - expected).abs() <= expected * 0.001 + 0.002;
    assert_eq!(open.count(), 10_000);
    for (q, expected) in [(0.9, 1010.0), (0.99, 9110.0), (0.999, 9920.0)] {
        // In the sorted latencies, `expected` is the value after the quantile. Latencies at
        // adjacent ranks differ by 9 ms, because requests are due every 10 ms but are served every
        // 1 ms after the freeze.
        let found = open.quantile_ms(q);
        assert!(
            (found - expected).abs() < 12.0 + expected * 0.001,
            "{q}: {found}"
        );
    }
    let mut closed = LatencyHistogram::default();
    let mut now = 0.0f64;
    while now < 100.0 {
        let end = serve(now);
        closed.record(Duration::from_secs_f64(end - now));
        now = (now + 0.01).max(end);
    }
    assert!(
        (9000..=9002).contains(&closed.count()),
        "{}",
        closed.count()
    );
    for q in [0.5, 0.99, 0.999] {
        assert!(near(closed.quantile_ms(q), 1.0), "{q}");
    }
    assert!(near(closed.max_ms(), 10_001.0), "{}", closed.max_ms());
}

/// Measures coordinated omission with a real server that is frozen for one second. The run lasts
/// two seconds and has one connection.
#[test]
fn all_requests_due_during_a_freeze_are_delayed() {
    const FROZEN: Duration = Duration::from_millis(1000);
    let begun: Mutex<Option<Instant>> = Mutex::new(None);
    let url = start_scripted_server(move |mut socket| {
        respond_to_all(&mut socket, "ok", |_| {
            let begun = *begun.lock().unwrap().get_or_insert_with(Instant::now);
            let passed = begun.elapsed();
            let frozen = Duration::from_millis(500)..Duration::from_millis(500) + FROZEN;
            if frozen.contains(&passed) {
                std::thread::sleep(frozen.end - passed);
            }
        });
    });
    let mut plan = plan(
        "200",
        2.0,
        vec![RequestTarget::from_url(url)],
        ClientSettings::default(),
    );
    (plan.connections, plan.connections_max) = (1, 1);
    let (run, records) = run_recorded(plan);
    assert_eq!((run.due_count(), records.len(), run.unsent), (400, 400, 0));
    let over = |of: fn(&RequestRecord) -> f64| records.iter().filter(|r| of(r) > 500.0).count();
    let from_due = over(|r| r.end_ms - r.due_ms);
    let from_sent = over(|r| r.end_ms - r.sent_ms.unwrap());
    // The freeze lasts one second, during which 200 requests are due. The first half of these
    // requests waits longer than half a second.
    assert!(from_due >= 95, "{from_due}");
    assert_eq!(from_sent, 1, "one request alone was under way");
    assert!(
        run.merged_stats().late >= 190,
        "{}",
        run.merged_stats().late
    );
}

#[test]
fn failures_are_counted_by_kind_and_the_run_ends() {
    let (_reserved, refused) = reserve_closed_port();
    let say = |text: &'static str| {
        start_scripted_server(move |mut socket| {
            while head(&mut socket).is_some() {
                let _ = socket.write_all(text.as_bytes());
            }
        })
    };
    let reset = start_scripted_server(|mut socket| {
        head(&mut socket);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n123");
        socket2::SockRef::from(&socket)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    });
    let endless = start_scripted_server(|mut socket| {
        head(&mut socket);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while socket.write_all(&[0; 65536]).is_ok() {}
    });
    let silent = start_scripted_server(|mut socket| while head(&mut socket).is_some() {});
    let mut targets: Vec<RequestTarget> = [
        refused,
        reset,
        endless,
        silent,
        say("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
        say("SSH-2.0-OpenSSH\r\n\r\n"),
        Url::parse("http://no-such-host.invalid/").unwrap(),
        say("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    ]
    .map(RequestTarget::from_url)
    .into();
    let mut wrong = RequestTarget::from_url(say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    wrong.check = Some(load::client::ExpectedBody {
        length: Some(3),
        sha256: None,
    });
    targets.push(wrong);
    let settings = ClientSettings {
        timeout: Duration::from_millis(700),
        body_max: 1 << 20,
        ..ClientSettings::default()
    };
    let run = run_to_end(plan("90", 0.5, targets, settings));
    let total = run.merged_stats();
    let expected = [
        (FailureKind::Dns, 5),
        (FailureKind::Refused, 5),
        (FailureKind::Reset, 5),
        (FailureKind::Head, 5),
        (FailureKind::Timeout, 5),
        (FailureKind::TooLong, 5),
        (FailureKind::WrongLength, 5),
        (FailureKind::Redirects, 5),
    ];
    assert_eq!(total.faults, expected.into(), "{:?}", run.examples);
    assert_eq!(total.statuses, [(404, 5)].into());
    assert_eq!(
        (total.requests, total.error_count(), run.unsent),
        (45, 45, 0)
    );
    let text = load::report::text_summary::format_summary(&run);
    for (fault, _) in expected {
        assert!(text.contains(fault.description()), "{text}");
    }
}

#[test]
fn an_unresponsive_host_times_out() {
    // The listener accepts no connections and its backlog is full. Connection attempts therefore
    // get no response, as from a host that is down.
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap().as_socket().unwrap();
    let _queued = std::net::TcpStream::connect(addr).unwrap();
    let url = Url::parse(&format!("http://{addr}/")).unwrap();
    let settings = ClientSettings {
        connect_timeout: Duration::from_millis(200),
        ..ClientSettings::default()
    };
    let run = run_to_end(plan(
        "20",
        0.5,
        vec![RequestTarget::from_url(url)],
        settings,
    ));
    assert_eq!(
        run.merged_stats().faults,
        [(FailureKind::ConnectTimeout, 10)].into()
    );
}

#[test]
fn unsent_requests_are_counted() {
    let url = start_scripted_server(|mut socket| while head(&mut socket).is_some() {});
    let mut plan = plan(
        "100",
        0.5,
        vec![RequestTarget::from_url(url)],
        ClientSettings::default(),
    );
    (plan.connections, plan.connections_max) = (2, 2);
    plan.drain = Duration::from_millis(200);
    let run = run_to_end(plan);
    assert_eq!((run.due_count(), run.merged_stats().requests), (50, 0));
    assert_eq!((run.abandoned, run.unsent), (2, 48));
}

#[test]
fn a_closed_loop_reuses_its_connections() {
    let url = start_scripted_server(|mut socket| respond_to_all(&mut socket, "ok", |_| {}));
    let mut plan = plan(
        "max",
        0.3,
        vec![RequestTarget::from_url(url)],
        ClientSettings::default(),
    );
    plan.threads = 2;
    (plan.connections, plan.connections_max) = (4, 4);
    let run = run_to_end(plan);
    let total = run.merged_stats();
    assert!(total.requests > 100, "{}", total.requests);
    assert_eq!((total.error_count(), run.connections), (0, 4));
}
