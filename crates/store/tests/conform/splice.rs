//! Checks reads that splice a range from the storage's socket into a pipe.

use crate::faulty_server::{Fault, FaultyServer};
use crate::suite::{block_on, object_bytes, parse_key, read_parts, read_spliced, uncached_options};
use std::sync::Arc;
use std::time::Duration;
use store::{Error, Object, Options, RemoteObject, RequestReason, SplicedRange, Store};

const SEGMENT: std::ops::Range<u64> = 100_001..1_083_000;

fn start_film() -> (FaultyServer, Vec<u8>) {
    let right = object_bytes("film.mp4");
    (
        FaultyServer::new(&[("film.mp4", right.clone())], true),
        right,
    )
}

fn open_film(server: &FaultyServer, options: Options) -> (Store, Object, Arc<RemoteObject>) {
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&parse_key("film.mp4")).unwrap();
    let Object::Remote(remote) = object.clone() else {
        unreachable!("a URL opens a remote object")
    };
    (store, object, remote)
}

async fn splice_segment(object: &Arc<RemoteObject>) -> Result<Option<SplicedRange>, Error> {
    object.splice_range(SEGMENT, RequestReason::Segment).await
}

fn segment_bytes(right: &[u8]) -> &[u8] {
    &right[SEGMENT.start as usize..SEGMENT.end as usize]
}

#[test]
fn most_bytes_are_spliced_on_one_connection() {
    let (server, right) = start_film();
    let (store, _, object) = open_film(&server, uncached_options());
    for _ in 0..20 {
        block_on(async {
            let (mut spliced, mut read) =
                (splice_segment(&object).await.unwrap().unwrap(), Vec::new());
            let piped = read_spliced(&mut spliced, &mut read).await.unwrap();
            assert!(read == segment_bytes(&right));
            assert!(piped > read.len() / 2, "{piped}");
        });
    }
    let len = SEGMENT.end - SEGMENT.start;
    assert_eq!(store.meter().request_count(RequestReason::Segment), 20);
    assert_eq!(
        store.meter().read_byte_count(RequestReason::Segment),
        20 * len
    );
    assert!(store.meter().piped_bytes() > 10 * len);
    assert_eq!(store.remote().unwrap().reserved_bytes(), 0);
    assert_eq!(server.accepted_connections(), 1, "the connection is reused");
}

#[test]
fn cached_short_and_pipeless_ranges_are_copied() {
    let (server, right) = start_film();
    let cached = Options {
        memory_bytes: 1 << 20,
        ..uncached_options()
    };
    let no_pipes = Options {
        pipes: 0,
        ..uncached_options()
    };
    for (options, range) in [
        (cached, SEGMENT),
        (no_pipes, SEGMENT),
        (uncached_options(), 5..60_000),
        (uncached_options(), 7..7),
    ] {
        let (_store, object, remote) = open_film(&server, options);
        let spliced = block_on(remote.splice_range(range.clone(), RequestReason::Segment));
        assert!(spliced.unwrap().is_none(), "{range:?}");
        let (read, error) = read_parts(
            &object,
            std::slice::from_ref(&range),
            RequestReason::Segment,
        );
        assert!(error.is_none() && read == right[range.start as usize..range.end as usize]);
    }
    let (_store, _, remote) = open_film(&server, uncached_options());
    let past = right.len() as u64 - 500_000..right.len() as u64 + 1;
    let error = block_on(remote.splice_range(past, RequestReason::Segment)).err();
    assert!(matches!(error, Some(Error::Changed)), "{error:?}");
}

#[test]
fn a_slow_reader_of_a_splice_occupies_no_connection() {
    // The film is longer than the capacity of any pipe.
    let right: Vec<u8> = (0..30u32 << 18).flat_map(u32::to_le_bytes).collect();
    let server = FaultyServer::new(&[("film.mp4", right.clone())], true);
    let mut options = uncached_options();
    options.transport.connections_max = 1;
    let (store, object, remote) = open_film(&server, options);
    block_on(async {
        let all = 0..right.len() as u64;
        let spliced = remote.splice_range(all, RequestReason::Segment).await;
        let mut spliced = spliced.unwrap().unwrap();
        // This read waits for the only connection, which becomes free when the first response has
        // been received.
        let other = tokio::task::spawn_blocking(move || {
            read_parts(&object, &[50_000..90_000], RequestReason::Segment)
        });
        let (read, error) = other.await.unwrap();
        assert!(error.is_none() && read == right[50_000..90_000]);
        let mut read = Vec::new();
        let piped = read_spliced(&mut spliced, &mut read).await.unwrap();
        assert!(read == right);
        assert!(0 < piped && piped < read.len(), "{piped}");
    });
    assert_eq!(store.meter().request_count(RequestReason::Retry), 0);
}

#[test]
fn concurrent_splices_cost_two_requests() {
    let (server, right) = start_film();
    let (store, object, _) = open_film(&server, uncached_options());
    server.set_delay(Duration::from_secs(2));
    let readers: Vec<_> = (0..16)
        .map(|_| {
            let object = object.clone();
            std::thread::spawn(move || read_parts(&object, &[SEGMENT], RequestReason::Segment))
        })
        .collect();
    for reader in readers {
        let (read, error) = reader.join().unwrap();
        assert!(error.is_none() && read == segment_bytes(&right));
    }
    // The first reader splices its own response, and all other readers share a second response.
    assert_eq!(store.meter().request_count(RequestReason::Segment), 2);
}

#[test]
fn a_dropped_splice_takes_no_bytes_from_others() {
    let (server, right) = start_film();
    let options = Options {
        pipes: 1,
        ..uncached_options()
    };
    let (_store, _, object) = open_film(&server, options);
    for _ in 0..5 {
        block_on(async {
            // Retries until the only pipe is free. The pipe becomes free when the previous fetch
            // notices that its reader was dropped.
            let begun = async || loop {
                match splice_segment(&object).await.unwrap() {
                    Some(spliced) => return spliced,
                    None => tokio::task::yield_now().await,
                }
            };
            begun().await.next_data().await.unwrap().unwrap();
            let mut read = Vec::new();
            read_spliced(&mut begun().await, &mut read).await.unwrap();
            assert!(read == segment_bytes(&right));
        });
    }
}

#[test]
fn an_interrupted_splice_resumes_only_on_the_same_version() {
    let (server, right) = start_film();
    let (store, _, object) = open_film(&server, uncached_options());
    server.set_faults(&[Fault::Cut(300_000)]);
    block_on(async {
        let (mut spliced, mut read) = (splice_segment(&object).await.unwrap().unwrap(), Vec::new());
        let piped = read_spliced(&mut spliced, &mut read).await.unwrap();
        assert!(read == segment_bytes(&right));
        assert!(piped > read.len() / 2, "{piped}");
    });
    assert_eq!(store.meter().request_count(RequestReason::Retry), 1);
    server.set_faults(&[Fault::Cut(300_000), Fault::ChangeUnsaid]);
    block_on(async {
        let (mut spliced, mut read) = (splice_segment(&object).await.unwrap().unwrap(), Vec::new());
        let error = read_spliced(&mut spliced, &mut read).await.unwrap_err();
        assert!(matches!(error, Error::Changed), "{error:?}");
        assert!(read == segment_bytes(&right)[..300_000]);
    });
    assert!(object.changed());
}
