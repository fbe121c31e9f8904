//! Tests how many connections are opened, and how they are reused and counted.

use crate::faulty_server::FaultyServer;
use crate::suite::{concat_ranges, object_bytes, parse_key, patient_options, read_parts};
use std::sync::Arc;
use std::time::Duration;
use store::{
    Error, Object, Options, RequestReason, StorageTimeouts, Store, ThreadHoldFactory,
    TransportOptions,
};

fn open_server(pooled: bool, most: usize) -> (FaultyServer, Store, Object) {
    let server = FaultyServer::new(&[("film.mp4", object_bytes("film.mp4"))], true);
    let options = Options {
        transport: TransportOptions {
            pooled,
            connections_max: most,
            ..patient_options().transport
        },
        memory_bytes: 0,
        ..patient_options()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    (server, store, object)
}

/// Reads twenty ranges that do not overlap, one after the other.
pub fn read_twenty(object: &Object) {
    for n in 0..20 {
        let range = n * 100_000..n * 100_000 + 50_000;
        let (read, error) =
            read_parts(object, std::slice::from_ref(&range), RequestReason::Segment);
        assert!(error.is_none(), "{error:?}");
        assert!(read == concat_ranges(&object_bytes("film.mp4"), &[range]));
    }
}

#[test]
fn pooled_connections_are_reused() {
    let (server, store, object) = open_server(true, 8);
    read_twenty(&object);
    let connections = store.remote().unwrap().connection_counts();
    assert_eq!(
        (server.request_count(), server.accepted_connections()),
        (21, 1)
    );
    assert_eq!(
        (connections.opened_count(), connections.reused_count()),
        (1, 20)
    );
    assert_eq!(connections.open_count(), 1);
}

#[test]
fn without_a_pool_each_request_opens_a_connection() {
    let (server, store, object) = open_server(false, 8);
    read_twenty(&object);
    let connections = store.remote().unwrap().connection_counts();
    assert_eq!(
        (server.request_count(), server.accepted_connections()),
        (21, 21)
    );
    assert_eq!(
        (connections.opened_count(), connections.reused_count()),
        (21, 0)
    );
    // Each connection is closed shortly after its response.
    while connections.open_count() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(connections.closed_count(), 21);
}

#[test]
fn connections_never_exceed_their_maximum() {
    let (server, _store, object) = open_server(true, 3);
    server.set_delay(std::time::Duration::from_millis(20));
    let readers: Vec<_> = (0..24)
        .map(|n| {
            let object = object.clone();
            let range = n * 100_000..n * 100_000 + 50_000;
            std::thread::spawn(move || read_parts(&object, &[range], RequestReason::Segment).1)
        })
        .collect();
    for reader in readers {
        assert!(reader.join().unwrap().is_none());
    }
    assert!(
        server.accepted_connections() <= 3,
        "{}",
        server.accepted_connections()
    );
}

#[test]
fn a_fetch_guard_lives_until_the_fetch_ends() {
    let server = FaultyServer::new(&[("film.mp4", object_bytes("film.mp4"))], true);
    let held = Arc::new(());
    let options = Options {
        holder: Some(ThreadHoldFactory::new({
            let held = held.clone();
            move || held.clone()
        })),
        ..patient_options()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    let Object::Remote(remote) = &object else {
        unreachable!("a URL opens a remote object")
    };
    let before = Arc::strong_count(&held);
    server.set_delay(Duration::from_secs(2));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let parts = remote.open_range_reader(vec![0..500_000], &[], RequestReason::Segment);
        // The reader is dropped before the first byte arrives. The fetch continues and keeps its
        // guard.
        let dropped = tokio::time::timeout(Duration::from_millis(20), parts).await;
        assert!(dropped.is_err());
        assert_eq!(Arc::strong_count(&held), before + 1);
        while Arc::strong_count(&held) > before {
            tokio::task::yield_now().await;
        }
    });
    let requests = server.request_count();
    let (read, error) = read_parts(&object, &[100..400_000], RequestReason::Segment);
    assert!(error.is_none() && read == object_bytes("film.mp4")[100..400_000]);
    assert_eq!(server.request_count(), requests, "the range was cached");
}

/// Returns options with the connect timeout `connect`, at most one connection, and no retries.
fn hurried_options(connect: Duration) -> Options {
    Options {
        transport: TransportOptions {
            connections_max: 1,
            timeouts: StorageTimeouts {
                connect,
                ..patient_options().transport.timeouts
            },
            ..patient_options().transport
        },
        retries: 0,
        memory_bytes: 0,
        ..patient_options()
    }
}

#[test]
fn a_connect_timeout_is_a_slow_storage() {
    // The listener never accepts, so the TLS handshake cannot complete.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let store = Store::new(&url, hurried_options(Duration::from_millis(500))).unwrap();
    let error = store.open(&parse_key("film.mp4")).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Slow(_)), "{text}");
    assert!(
        text.contains("connecting to the storage timed out"),
        "{text}"
    );
}

#[test]
fn waiting_too_long_for_a_connection_is_a_slow_storage() {
    let server = FaultyServer::new(&[("film.mp4", object_bytes("film.mp4"))], true);
    let store = Store::new(&server.url(), hurried_options(Duration::from_millis(500))).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    server.set_delay(Duration::from_secs(4));
    let first = std::thread::spawn({
        let object = object.clone();
        move || read_parts(&object, &[0..50_000], RequestReason::Segment).1
    });
    // Waits until the server has received the first reader's request. The server has not responded
    // yet.
    while server.request_count() < 2 {
        std::thread::yield_now();
    }
    let (_, error) = read_parts(&object, &[100_000..150_000], RequestReason::Segment);
    let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(matches!(error, Some(Error::Slow(_))), "{text}");
    assert!(
        text.contains("all connections to the storage are in use"),
        "{text}"
    );
    assert!(
        first.join().unwrap().is_none(),
        "the first reader is served"
    );
}
