//! Connections are what they are counted to be.

use crate::suite::{bytes, key, of, parts, usual};
use crate::wild::Wild;
use std::sync::Arc;
use std::time::Duration;
use store::{Error, Holder, Object, Options, Reason, Store, Timeouts, Transport};

fn library(pooled: bool, most: usize) -> (Wild, Store, Object) {
    let server = Wild::new(&[("film.mp4", bytes("film.mp4"))], true);
    let options = Options {
        transport: Transport {
            pooled,
            connections_max: most,
            ..usual().transport
        },
        memory_bytes: 0,
        ..usual()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    (server, store, object)
}

/// Twenty reads, one after the other, of which none is of what another brought.
pub fn read_twenty(object: &Object) {
    for n in 0..20 {
        let range = n * 100_000..n * 100_000 + 50_000;
        let (read, error) = parts(object, std::slice::from_ref(&range), Reason::Segment);
        assert!(error.is_none(), "{error:?}");
        assert!(read == of(&bytes("film.mp4"), &[range]));
    }
}

#[test]
fn kept_connections_are_used_again() {
    let (server, store, object) = library(true, 8);
    read_twenty(&object);
    let connections = store.remote().unwrap().connections();
    assert_eq!((server.requests(), server.accepted()), (21, 1));
    assert_eq!((connections.opened(), connections.reused()), (1, 20));
    assert_eq!(connections.open(), 1);
}

#[test]
fn fresh_ones_are_one_a_request() {
    let (server, store, object) = library(false, 8);
    read_twenty(&object);
    let connections = store.remote().unwrap().connections();
    assert_eq!((server.requests(), server.accepted()), (21, 21));
    assert_eq!((connections.opened(), connections.reused()), (21, 0));
    // Each ends by itself, a moment after its answer did.
    while connections.open() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(connections.closed(), 21);
}

#[test]
fn no_more_are_opened_than_are_allowed() {
    let (server, _store, object) = library(true, 3);
    server.delay(std::time::Duration::from_millis(20));
    let readers: Vec<_> = (0..24)
        .map(|n| {
            let object = object.clone();
            let range = n * 100_000..n * 100_000 + 50_000;
            std::thread::spawn(move || parts(&object, &[range], Reason::Segment).1)
        })
        .collect();
    for reader in readers {
        assert!(reader.join().unwrap().is_none());
    }
    assert!(server.accepted() <= 3, "{}", server.accepted());
}

#[test]
fn a_fetch_is_held_until_it_ends_whoever_leaves() {
    let server = Wild::new(&[("film.mp4", bytes("film.mp4"))], true);
    let held = Arc::new(());
    let options = Options {
        holder: Some(Holder::new({
            let held = held.clone();
            move || held.clone()
        })),
        ..usual()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    let Object::Remote(remote) = &object else {
        unreachable!("it is behind a URL")
    };
    let before = Arc::strong_count(&held);
    server.delay(Duration::from_secs(2));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let parts = remote.parts(vec![0..500_000], &[], Reason::Segment);
        // Who asked leaves before anything came; the fetch goes on, and is held.
        let left = tokio::time::timeout(Duration::from_millis(20), parts).await;
        assert!(left.is_err());
        assert_eq!(Arc::strong_count(&held), before + 1);
        while Arc::strong_count(&held) > before {
            tokio::task::yield_now().await;
        }
    });
    let requests = server.requests();
    let (read, error) = parts(&object, &[100..400_000], Reason::Segment);
    assert!(error.is_none() && read == bytes("film.mp4")[100..400_000]);
    assert_eq!(server.requests(), requests, "it was kept");
}

/// Options whose connections must come within `connect`, with one request at a time and no second try.
fn hurried(connect: Duration) -> Options {
    Options {
        transport: Transport {
            connections_max: 1,
            timeouts: Timeouts {
                connect,
                ..usual().transport.timeouts
            },
            ..usual().transport
        },
        retries: 0,
        memory_bytes: 0,
        ..usual()
    }
}

#[test]
fn a_connection_that_does_not_come_in_time_is_a_slow_storage() {
    // Nobody ever accepts there, and TLS has two ends.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let store = Store::new(&url, hurried(Duration::from_millis(500))).unwrap();
    let error = store.open(&key("film.mp4")).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Slow(_)), "{text}");
    assert!(
        text.contains("no connection to the storage in time"),
        "{text}"
    );
}

#[test]
fn whoever_waits_too_long_for_one_of_few_connections_is_told_so() {
    let server = Wild::new(&[("film.mp4", bytes("film.mp4"))], true);
    let store = Store::new(&server.url(), hurried(Duration::from_millis(500))).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    server.delay(Duration::from_secs(4));
    let first = std::thread::spawn({
        let object = object.clone();
        move || parts(&object, &[0..50_000], Reason::Segment).1
    });
    // Its request is there, and is not answered yet.
    while server.requests() < 2 {
        std::thread::yield_now();
    }
    let (_, error) = parts(&object, &[100_000..150_000], Reason::Segment);
    let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(matches!(error, Some(Error::Slow(_))), "{text}");
    assert!(
        text.contains("all connections to the storage are in use"),
        "{text}"
    );
    assert!(first.join().unwrap().is_none(), "who came first is served");
}
