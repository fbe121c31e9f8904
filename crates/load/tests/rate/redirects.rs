//! Tests of redirected requests, and of responses that are cut.

use super::head::head;
use super::support::{plan, reserve_closed_port, run_recorded, run_to_end, start_scripted_server};
use load::client::{ClientSettings, FailureKind, Url};
use load::rate::{RandomRanges, RequestTarget};
use std::io::Write;
use std::sync::Barrier;
use std::time::Duration;

/// Starts a server that redirects each path in `from` to the path after it, and passes all other
/// requests to `respond`. `respond` receives the request's head, and returns the status and the
/// body.
fn start_redirecting_server(
    from: &'static [&'static str],
    respond: impl Fn(&str) -> (&'static str, String) + Send + Sync + 'static,
) -> Url {
    start_scripted_server(move |mut socket| {
        while let Some(text) = head(&mut socket) {
            let path = text.split(' ').nth(1).unwrap_or_default();
            let next = from.iter().position(|known| *known == path);
            let next = next.map(|n| from.get(n + 1).copied().unwrap_or("/end"));
            let (status, body) = match next {
                Some(_) => ("302 Found", String::new()),
                None => respond(&text),
            };
            let response = format!(
                "HTTP/1.1 {status}\r\nLocation: {}\r\nContent-Length: {}\r\n\r\n{body}",
                next.unwrap_or_default(),
                body.len()
            );
            if socket.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn range_targets(url: &Url) -> Vec<RequestTarget> {
    let mut target = RequestTarget::from_url(url.clone());
    target.ranges = Some(RandomRanges {
        file_bytes: 1000,
        size: 10,
    });
    vec![target]
}

#[test]
fn redirected_requests_have_the_same_range() {
    let obeying = start_redirecting_server(&["/"], |text| {
        let (_, range) = text.split_once("range: bytes=").unwrap();
        let (first, last) = range.lines().next().unwrap().split_once('-').unwrap();
        let number = |text: &str| text.parse::<usize>().unwrap();
        ("206 Partial", "x".repeat(number(last) + 1 - number(first)))
    });
    let run = run_to_end(plan(
        "50",
        0.2,
        range_targets(&obeying),
        ClientSettings::default(),
    ));
    let total = run.merged_stats();
    assert_eq!(total.statuses, [(206, 10)].into(), "{:?}", run.examples);
    let ignoring = start_redirecting_server(&["/"], |_| ("200 OK", "x".repeat(1000)));
    let run = run_to_end(plan(
        "50",
        0.2,
        range_targets(&ignoring),
        ClientSettings::default(),
    ));
    let faults = run.merged_stats().faults;
    assert_eq!(faults, [(FailureKind::WrongLength, 10)].into());
}

#[test]
fn all_connections_follow_redirects_at_the_same_time() {
    // The server responds once ten redirected requests have arrived.
    let all = Barrier::new(10);
    let url = start_redirecting_server(&["/"], move |_| {
        all.wait();
        ("200 OK", String::new())
    });
    let targets = vec![RequestTarget::from_url(url)];
    let run = run_to_end(plan("100", 0.1, targets, ClientSettings::default()));
    let total = run.merged_stats();
    assert_eq!(
        (total.statuses, total.faults),
        ([(200, 10)].into(), [].into())
    );
}

/// Starts a server that redirects all requests to `target`.
fn redirect_all_to(target: &Url) -> Url {
    let response = format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
    start_scripted_server(move |mut socket| {
        while head(&mut socket).is_some() {
            if socket.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// Regression: records contained the times of the redirect, and its status if the redirected
/// request got no response.
#[test]
fn records_of_redirected_requests_describe_the_last_request() {
    let (_reserved, closed) = reserve_closed_port();
    let silent = start_scripted_server(|mut socket| while head(&mut socket).is_some() {});
    let stuck = start_scripted_server(|mut socket| {
        head(&mut socket);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345");
        head(&mut socket);
    });
    for (target, fault, expected) in [
        (closed, FailureKind::Refused, (0, 0, false, false)),
        (silent, FailureKind::Timeout, (0, 0, true, false)),
        (stuck, FailureKind::BodyTimeout, (200, 5, true, true)),
    ] {
        let settings = ClientSettings {
            timeout: Duration::from_secs(1),
            ..ClientSettings::default()
        };
        let targets = vec![RequestTarget::from_url(redirect_all_to(&target))];
        let (run, records) = run_recorded(plan("50", 0.1, targets, settings));
        let counts = (run.due_count(), run.unsent, run.abandoned);
        assert_eq!((records.len(), counts), (5, (5, 0, 0)), "{fault}");
        for record in records {
            let (is_sent, has_first) = (record.sent_ms.is_some(), record.first_ms.is_some());
            let found = (record.status, record.bytes, is_sent, has_first);
            assert_eq!((record.fault, found), (Some(fault), expected), "{record:?}");
            assert!(
                !has_first || record.sent_ms <= record.first_ms,
                "{record:?}"
            );
        }
    }
}

#[test]
fn the_limit_of_redirects_includes_the_first() {
    let url = start_redirecting_server(&["/", "/2", "/3"], |_| ("200 OK", String::new()));
    for (redirects_max, fault) in [(3, None), (2, Some(FailureKind::Redirects))] {
        let settings = ClientSettings {
            redirects_max,
            ..ClientSettings::default()
        };
        let targets = vec![RequestTarget::from_url(url.clone())];
        let (_, records) = run_recorded(plan("50", 0.1, targets, settings));
        assert_eq!(records.len(), 5);
        for record in records {
            assert_eq!(record.fault, fault, "at most {redirects_max}: {record:?}");
        }
    }
}

#[test]
fn a_cut_response_has_its_status_and_bytes() {
    let url = start_scripted_server(|mut socket| {
        head(&mut socket);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345");
    });
    let targets = vec![RequestTarget::from_url(url)];
    let (run, records) = run_recorded(plan("50", 0.1, targets, ClientSettings::default()));
    for record in &records {
        assert_eq!(
            (record.fault, record.status, record.bytes),
            (Some(FailureKind::Truncated), 200, 5)
        );
    }
    assert_eq!(run.merged_stats().bytes, 5 * records.len() as u64);
}
