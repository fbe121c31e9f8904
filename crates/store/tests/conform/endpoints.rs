//! Several endpoints, routes, and second requests beside slow ones.

use crate::suite::{bytes, key, parts, usual};
use crate::wild::{Fault, Wild};
use std::time::{Duration, Instant};
use store::{Options, Reason, Store, Via, Weighted};

fn server() -> Wild {
    Wild::new(
        &[
            ("film.mp4", bytes("film.mp4")),
            ("film.cmfv", bytes("film.mp4")),
        ],
        true,
    )
}

#[test]
fn when_one_fails_the_other_answers_and_it_comes_back() {
    let (one, two) = (server(), server());
    let options = Options {
        endpoints: [&one, &two]
            .map(|server| Weighted {
                url: server.url(),
                weight: 1.0,
            })
            .to_vec(),
        memory_bytes: 0,
        ..usual()
    };
    let store = Store::new(&one.url(), options).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    let (first, second) = if one.requests() > 0 {
        (&one, &two)
    } else {
        (&two, &one)
    };
    assert_eq!(second.requests(), 0, "an object sticks to one endpoint");
    first.script(&[Fault::Status(500); 1000]);
    let (began, mut down) = (Instant::now(), 0);
    for n in 0..20u64 {
        let (read, error) = parts(&object, &[n..n + 1000], Reason::Segment);
        assert!(error.is_none(), "{n}: {error:?}");
        assert!(read == bytes("film.mp4")[n as usize..n as usize + 1000]);
        down = down.max(store.remote().unwrap().endpoints_down());
    }
    assert_eq!(second.requests(), 20);
    // It is tried again a second later, at the earliest, should all this take so long.
    let again = began.elapsed().as_secs();
    assert!(
        first.requests() as u64 <= 1 + 4 + again,
        "left alone once it is known to be down: {}",
        first.requests()
    );
    assert_eq!(down, 1);
    first.heal();
    let before = first.requests();
    let until = Instant::now() + Duration::from_secs(10);
    while first.requests() == before && Instant::now() < until {
        let (_, error) = parts(&object, &[5..10], Reason::Segment);
        assert!(error.is_none());
    }
    assert!(first.requests() > before, "it is tried again");
    assert_eq!(store.remote().unwrap().endpoints_down(), 0);
}

#[test]
fn matching_objects_go_through_the_other_server() {
    let (storage, cache) = (server(), server());
    let options = Options {
        via: vec![Via {
            matches: r"\.(ism|mp4)$".parse().unwrap(),
            url: cache.url(),
        }],
        ..usual()
    };
    let store = Store::new(&storage.url(), options).unwrap();
    store.open(&key("film.mp4")).unwrap();
    assert_eq!((storage.requests(), cache.requests()), (0, 1));
    store.open(&key("film.cmfv")).unwrap();
    assert_eq!((storage.requests(), cache.requests()), (1, 1));
}

#[test]
fn a_slow_answer_is_raced_within_the_budget() {
    let server = server();
    let options = Options {
        hedge_share: 0.05,
        memory_bytes: 0,
        ..usual()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    for n in 0..64u64 {
        let (_, error) = parts(&object, &[n..n + 1000], Reason::Segment);
        assert!(error.is_none());
    }
    let before = store.meter().requests(Reason::Hedge);
    // One that never answers: without a second request it would cost its timeout and a retry.
    server.script(&[Fault::NoHead]);
    let (read, error) = parts(&object, &[9..1009], Reason::Segment);
    assert!(error.is_none() && read == bytes("film.mp4")[9..1009]);
    assert_eq!(store.meter().requests(Reason::Hedge), before + 1);
    assert_eq!(store.meter().requests(Reason::Retry), 0);
    // However slow all are, second requests stay a share of all.
    server.delay(Duration::from_millis(30));
    for n in 0..40u64 {
        let (_, error) = parts(&object, &[n..n + 1000], Reason::Segment);
        assert!(error.is_none());
    }
    let all = store.meter().requests(Reason::Segment);
    let hedges = store.meter().requests(Reason::Hedge);
    assert!(hedges <= 10 + all / 20 + 1, "{hedges} beside {all}");
}
