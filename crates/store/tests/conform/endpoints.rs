//! Several endpoints, routes by name, and hedged requests.

use crate::faulty_server::{Fault, FaultyServer};
use crate::suite::{object_bytes, parse_key, patient_options, read_parts, uncached_options};
use std::time::{Duration, Instant};
use store::{Error, KeyRoute, Options, RequestReason, Store, WeightedEndpoint};

fn start_film_server() -> FaultyServer {
    FaultyServer::new(
        &[
            ("film.mp4", object_bytes("film.mp4")),
            ("film.cmfv", object_bytes("film.mp4")),
        ],
        true,
    )
}

#[test]
fn another_endpoint_takes_over_until_the_first_recovers() {
    let (one, two) = (start_film_server(), start_film_server());
    let options = Options {
        endpoints: [&one, &two]
            .map(|server| WeightedEndpoint {
                url: server.url(),
                weight: 1.0,
            })
            .to_vec(),
        memory_bytes: 0,
        ..patient_options()
    };
    let store = Store::new(&one.url(), options).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    let (first, second) = if one.request_count() > 0 {
        (&one, &two)
    } else {
        (&two, &one)
    };
    assert_eq!(
        second.request_count(),
        0,
        "an object sticks to one endpoint"
    );
    first.set_faults(&[Fault::Status(500); 1000]);
    let (began, mut down) = (Instant::now(), 0);
    for n in 0..20u64 {
        let (read, error) = read_parts(&object, &[n..n + 1000], RequestReason::Segment);
        assert!(error.is_none(), "{n}: {error:?}");
        assert!(read == object_bytes("film.mp4")[n as usize..n as usize + 1000]);
        down = down.max(store.remote().unwrap().endpoints_down());
    }
    assert_eq!(second.request_count(), 20);
    // If the reads take longer than a second, the failed endpoint is tried again, at most once per
    // second.
    let again = began.elapsed().as_secs();
    assert!(
        first.request_count() as u64 <= 1 + 4 + again,
        "an endpoint that is down gets no requests: {}",
        first.request_count()
    );
    assert_eq!(down, 1);
    first.restore_objects();
    let before = first.request_count();
    let until = Instant::now() + Duration::from_secs(10);
    while first.request_count() == before && Instant::now() < until {
        let (_, error) = read_parts(&object, &[5..10], RequestReason::Segment);
        assert!(error.is_none());
    }
    assert!(
        first.request_count() > before,
        "the endpoint is tried again"
    );
    assert_eq!(store.remote().unwrap().endpoints_down(), 0);
}

fn options_of_two(servers: &[FaultyServer; 2]) -> Options {
    let endpoints = servers.each_ref().map(|server| WeightedEndpoint {
        url: server.url(),
        weight: 1.0,
    });
    Options {
        endpoints: endpoints.to_vec(),
        ..uncached_options()
    }
}

/// Reads from two servers without a retry budget. The responses of the preferred server have the
/// fault `fault`.
fn read_without_budget(fault: Fault) -> (Vec<u8>, Option<Error>) {
    let servers = [start_film_server(), start_film_server()];
    let options = Options {
        retry_share: 0.0,
        ..options_of_two(&servers)
    };
    let store = Store::new(&servers[0].url(), options).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    let preferred = servers.iter().find(|server| server.request_count() > 0);
    preferred.unwrap().set_faults(&[fault; 1000]);
    read_parts(&object, &[0..500_000], RequestReason::Segment)
}

#[test]
fn a_lost_endpoint_uses_no_budget_for_retries() {
    let lost = [
        Fault::Close,
        Fault::Garbage,
        Fault::Cut(0),
        Fault::Cut(10_000),
        Fault::Status(500),
    ];
    for fault in lost {
        let (read, error) = read_without_budget(fault);
        assert!(error.is_none(), "{fault:?}: {error:?}");
        assert!(read == object_bytes("film.mp4")[..500_000], "{fault:?}");
    }
}

#[test]
fn each_endpoint_is_tried_once_beside_the_retries() {
    let servers = [start_film_server(), start_film_server()];
    let store = Store::new(&servers[0].url(), options_of_two(&servers)).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    let count = || {
        servers
            .iter()
            .map(FaultyServer::request_count)
            .sum::<usize>()
    };
    let before = count();
    for server in &servers {
        server.set_faults(&[Fault::Status(500); 1000]);
    }
    let (_, error) = read_parts(&object, &[0..1000], RequestReason::Segment);
    assert!(matches!(error, Some(Error::Broken(_))), "{error:?}");
    // The four requests are the first request, one request to the other endpoint, and two retries.
    assert_eq!(count() - before, 4);
}

#[test]
fn an_overloaded_endpoint_is_retried_within_the_budget_only() {
    for fault in [Fault::Status(429), Fault::Status(503)] {
        let (read, error) = read_without_budget(fault);
        assert!(matches!(error, Some(Error::Broken(_))), "{error:?}");
        assert!(read.is_empty(), "{fault:?}");
    }
}

#[test]
fn matching_objects_go_through_the_other_server() {
    let (storage, cache) = (start_film_server(), start_film_server());
    let options = Options {
        via: vec![KeyRoute {
            matches: r"\.(ism|mp4)$".parse().unwrap(),
            url: cache.url(),
        }],
        ..patient_options()
    };
    let store = Store::new(&storage.url(), options).unwrap();
    store.open(&parse_key("film.mp4")).unwrap();
    assert_eq!((storage.request_count(), cache.request_count()), (0, 1));
    store.open(&parse_key("film.cmfv")).unwrap();
    assert_eq!((storage.request_count(), cache.request_count()), (1, 1));
}

#[test]
fn a_slow_response_is_hedged_within_the_budget() {
    let server = start_film_server();
    let options = Options {
        hedge_share: 0.05,
        memory_bytes: 0,
        ..patient_options()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    for n in 0..64u64 {
        let (_, error) = read_parts(&object, &[n..n + 1000], RequestReason::Segment);
        assert!(error.is_none());
    }
    let before = store.meter().request_count(RequestReason::Hedge);
    // The first response never arrives. Without a hedged request, the read would need a timeout and
    // a retry.
    server.set_faults(&[Fault::NoHead]);
    let (read, error) = read_parts(&object, &[9..1009], RequestReason::Segment);
    assert!(error.is_none() && read == object_bytes("film.mp4")[9..1009]);
    assert_eq!(
        store.meter().request_count(RequestReason::Hedge),
        before + 1
    );
    assert_eq!(store.meter().request_count(RequestReason::Retry), 0);
    // Hedged requests do not exceed their share of all requests, even if all requests are slow.
    server.set_delay(Duration::from_millis(30));
    for n in 0..40u64 {
        let (_, error) = read_parts(&object, &[n..n + 1000], RequestReason::Segment);
        assert!(error.is_none());
    }
    let all = store.meter().request_count(RequestReason::Segment);
    let hedges = store.meter().request_count(RequestReason::Hedge);
    assert!(hedges <= 10 + all / 20 + 1, "{hedges} hedged of {all}");
}
