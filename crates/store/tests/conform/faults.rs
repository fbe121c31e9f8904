//! Checks reads from a server that injects faults. Each read returns the correct bytes or a clean
//! error, and no wrong byte is cached.

use crate::faulty_server::{Fault, FaultyServer};
use crate::suite::{
    concat_ranges, object_bytes, parse_key, patient_options, read_parts, uncached_options,
    with_short_timeouts,
};
use proptest::prelude::*;
use std::ops::Range;
use std::time::Duration;
use store::{Error, Object, Options, RequestReason, StorageTimeouts, Store, TransportOptions};

/// The expected result when every response has the same fault.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FaultOutcome {
    /// The correct bytes, despite the fault.
    Right,
    NotFound,
    Changed,
    Denied,
    Slow,
    Broken,
}

fn error_kind(error: &Error) -> FaultOutcome {
    match error {
        Error::NotFound => FaultOutcome::NotFound,
        Error::Changed => FaultOutcome::Changed,
        Error::Denied(_) => FaultOutcome::Denied,
        Error::Slow(_) => FaultOutcome::Slow,
        Error::Broken(_) => FaultOutcome::Broken,
        other => panic!("unexpected error: {other:?}"),
    }
}

fn start_film() -> (FaultyServer, Vec<u8>) {
    let right = object_bytes("film.mp4");
    (
        FaultyServer::new(&[("film.mp4", right.clone())], true),
        right,
    )
}

/// Shortens the timeouts if the fault makes the server silent or very slow.
fn timeouts_for(fault: Fault, options: Options) -> Options {
    match fault {
        Fault::Stall(_) | Fault::NoHead | Fault::Loris => with_short_timeouts(options),
        _ => options,
    }
}

fn open_film(server: &FaultyServer) -> (Store, Object) {
    open_with(server, patient_options())
}

fn open_with(server: &FaultyServer, options: Options) -> (Store, Object) {
    let store = Store::new(&server.url(), options).unwrap();
    let object = open_patiently(&store);
    (store, object)
}

/// Opens the film while the server injects no fault. Retries after a timeout, because a busy
/// machine can exceed the short timeouts of some tests.
fn open_patiently(store: &Store) -> Object {
    for _ in 0..100 {
        match store.open(&parse_key("film.mp4")) {
            Err(Error::Slow(_)) => {}
            opened => return opened.unwrap(),
        }
    }
    panic!("a server without faults was slow 100 times");
}

/// Checks that no wrong byte was cached. Reads must return the correct bytes after the server has
/// recovered. Repeats a failed read, because earlier requests may still be in flight and fail.
fn read_afterwards(object: &Object, wanted: &[Range<u64>], right: &[u8]) -> Result<(), String> {
    let mut last = None;
    for _ in 0..100 {
        let (read, error) = read_parts(object, wanted, RequestReason::Segment);
        if !right.starts_with(&read) {
            return Err("wrong bytes were cached".into());
        }
        match error {
            None if read.len() == right.len() => return Ok(()),
            error => last = error,
        }
    }
    Err(format!("reads do not recover: {last:?}"))
}

const WANTED: [Range<u64>; 3] = [10_000..400_000, 402_000..500_000, 900_000..1_000_000];

/// Returns two cases, each with options and the ranges to read. The first case has a cache, and the
/// second case splices ranges.
fn fault_cases() -> [(Options, &'static [Range<u64>]); 2] {
    [
        (patient_options(), &WANTED),
        (uncached_options(), &WANTED[..1]),
    ]
}

const ALWAYS: [(Fault, FaultOutcome); 20] = [
    (Fault::None, FaultOutcome::Right),
    (Fault::Redirect, FaultOutcome::Right),
    (Fault::NoRange, FaultOutcome::Broken),
    (Fault::OtherRange, FaultOutcome::Broken),
    (Fault::NoContentRange, FaultOutcome::Broken),
    (Fault::Cut(0), FaultOutcome::Broken),
    (Fault::Stall(0), FaultOutcome::Slow),
    (Fault::Stall(50_000), FaultOutcome::Slow),
    (Fault::Short, FaultOutcome::Broken),
    (Fault::Long, FaultOutcome::Broken),
    (Fault::NoHead, FaultOutcome::Slow),
    (Fault::Loris, FaultOutcome::Slow),
    (Fault::Status(403), FaultOutcome::Denied),
    (Fault::Status(404), FaultOutcome::NotFound),
    (Fault::Status(500), FaultOutcome::Broken),
    (Fault::Close, FaultOutcome::Broken),
    (Fault::Elsewhere, FaultOutcome::Broken),
    (Fault::Round, FaultOutcome::Broken),
    (Fault::Change, FaultOutcome::Changed),
    (Fault::ChangeUnsaid, FaultOutcome::Changed),
];

#[test]
fn each_fault_in_every_response_is_a_clean_error() {
    let all = ALWAYS.into_iter().flat_map(|(fault, must)| {
        fault_cases().map(|(options, ranges)| (fault, must, options, ranges))
    });
    let ways: Vec<_> = all
        .map(|(fault, must, options, ranges)| {
            std::thread::spawn(move || {
                let (server, right) = start_film();
                let (_store, object) = open_with(&server, timeouts_for(fault, options));
                server.set_faults(&[fault; 40]);
                let (read, error) = read_parts(&object, ranges, RequestReason::Segment);
                let wanted = concat_ranges(&right, ranges);
                assert!(
                    wanted.starts_with(&read),
                    "{fault:?}: wrong bytes were returned"
                );
                let came = error.as_ref().map_or(FaultOutcome::Right, error_kind);
                assert_eq!(came, must, "{fault:?}: {error:?}");
                assert_eq!(error.is_none(), read == wanted, "{fault:?}");
                if let Some(error) = error {
                    assert!(!error.to_string().contains("SECRET"), "{error}");
                }
                server.restore_objects();
                assert_eq!(
                    read_afterwards(&object, ranges, &wanted),
                    Ok(()),
                    "{fault:?}"
                );
            })
        })
        .collect();
    ways.into_iter().for_each(|way| way.join().unwrap());
}

#[test]
fn each_fault_when_a_film_is_opened_is_a_clean_error() {
    let ways: Vec<_> = ALWAYS
        .into_iter()
        .map(|(fault, must)| {
            std::thread::spawn(move || {
                let (server, right) = start_film();
                let store =
                    Store::new(&server.url(), timeouts_for(fault, patient_options())).unwrap();
                server.set_faults(&[fault; 40]);
                let opened = store.open(&parse_key("film.mp4"));
                let came = opened
                    .as_ref()
                    .err()
                    .map_or(FaultOutcome::Right, error_kind);
                // When a film is opened, no earlier version is known, so no change can be detected.
                let must = match (fault, must) {
                    (_, FaultOutcome::Changed) => FaultOutcome::Right,
                    // The server stalls only after it has sent the bytes that opening needs.
                    (Fault::Stall(50_000), _) => FaultOutcome::Right,
                    (_, must) => must,
                };
                assert_eq!(came, must, "{fault:?}: {:?}", opened.err());
                server.restore_objects();
                let whole = 0..right.len() as u64;
                let restored = read_afterwards(&open_patiently(&store), &[whole], &right);
                assert_eq!(restored, Ok(()), "{fault:?}");
            })
        })
        .collect();
    ways.into_iter().for_each(|way| way.join().unwrap());
}

#[test]
fn an_exact_server_gets_the_path_of_a_library_with_single_slashes() {
    let right = object_bytes("film.mp4");
    let objects = [
        ("film.mp4", right.clone()),
        ("films/film.mp4", right.clone()),
        ("films/new/film.mp4", right.clone()),
    ];
    let server = FaultyServer::new(&objects, true);
    for folder in ["", "films", "films/", "films/new", "films/new/"] {
        let library = server.url() + folder;
        let store = Store::new(&library, patient_options()).unwrap();
        let object = store.open(&parse_key("film.mp4"));
        let object = object.unwrap_or_else(|error| panic!("{library}: {error}"));
        let read = object
            .read(0..right.len() as u64, RequestReason::Index)
            .unwrap();
        assert!(read == right, "{library}");
    }
}

#[test]
fn a_single_fault_is_retried() {
    for fault in [
        Fault::Cut(0),
        Fault::Cut(1),
        Fault::Cut(200_000),
        Fault::Stall(100_000),
        Fault::Short,
        Fault::NoHead,
        Fault::Status(500),
        Fault::Status(503),
        Fault::Status(429),
        Fault::Close,
        Fault::Garbage,
    ] {
        for options in [patient_options(), uncached_options()] {
            let (server, right) = start_film();
            // Lengthens the timeouts, so that the retry also succeeds on a busy machine.
            let mut options = timeouts_for(fault, options);
            options.transport.timeouts.first_byte *= 5;
            options.transport.timeouts.stall *= 5;
            let (store, object) = open_with(&server, options);
            server.set_faults(&[fault]);
            let (read, error) = read_parts(&object, &WANTED[..1], RequestReason::Segment);
            assert!(error.is_none(), "{fault:?}: {error:?}");
            assert!(read == concat_ranges(&right, &WANTED[..1]), "{fault:?}");
            assert_eq!(server.faults_left(), 0);
            let retries = store.meter().request_count(RequestReason::Retry);
            // After `Close` or `Garbage`, the request may be sent again on a new connection without
            // being counted as a retry.
            let expected = u64::from(fault != Fault::Close && fault != Fault::Garbage);
            assert!(retries >= expected && retries <= 1, "{fault:?}: {retries}");
        }
    }
}

/// Number of body bytes before each break, which is enough progress for another resumption.
const BREAK_BYTES: usize = 100_000;

#[test]
fn a_body_that_breaks_repeatedly_is_resumed_under_if_match() {
    for options in [patient_options(), uncached_options()] {
        let (server, right) = start_film();
        let (store, object) = open_with(&server, options);
        let (opened, breaks) = (server.unconditional_requests(), 9);
        server.set_faults(&vec![Fault::Cut(BREAK_BYTES); breaks]);
        let range = 10_000..1_010_000;
        let (read, error) = read_parts(
            &object,
            std::slice::from_ref(&range),
            RequestReason::Segment,
        );
        assert!(error.is_none(), "{error:?} after {} bytes", read.len());
        assert!(read == right[10_000..1_010_000]);
        assert_eq!(server.faults_left(), 0);
        assert_eq!(
            store.meter().request_count(RequestReason::Retry),
            breaks as u64
        );
        // Only the request that opened the film had no precondition.
        assert_eq!(server.unconditional_requests(), opened);
    }
}

#[test]
fn a_film_that_is_replaced_between_two_breaks_is_an_error() {
    for change in [Fault::Change, Fault::ChangeUnsaid] {
        let (server, right) = start_film();
        let (_store, object) = open_with(&server, uncached_options());
        let cut = Fault::Cut(BREAK_BYTES);
        server.set_faults(&[cut, cut, cut, cut, change]);
        let (read, error) = read_parts(&object, &[0..1_000_000], RequestReason::Segment);
        assert!(right.starts_with(&read), "{change:?}: bytes are mixed");
        assert!(
            matches!(error, Some(Error::Changed)),
            "{change:?}: {error:?}"
        );
        assert!(object.changed());
    }
}

#[test]
fn the_resumptions_of_a_body_are_bounded() {
    let (server, right) = start_film();
    let (_store, object) = open_with(&server, uncached_options());
    let before = server.request_count();
    server.set_faults(&[Fault::Cut(70_000); 100]);
    let (read, error) = read_parts(&object, &[0..right.len() as u64], RequestReason::Segment);
    assert!(matches!(error, Some(Error::Broken(_))), "{error:?}");
    assert!(right.starts_with(&read));
    let requests = server.request_count() - before;
    assert!((4..=40).contains(&requests), "{requests}");
}

#[test]
fn a_response_without_a_strong_validator_is_not_resumed() {
    let right = object_bytes("film.mp4");
    // If `Date` is missing or equals `Last-Modified`, the film may have changed twice within one
    // second. `Last-Modified` is then a weak validator (RFC 9110 section 8.8.2.2).
    for date in [None, Some("Sat, 21 Nov 2026 10:00:00 GMT")] {
        let server = FaultyServer::new(&[("film.mp4", right.clone())], false);
        if let Some(date) = date {
            server.set_date(date);
        }
        let (store, object) = open_film(&server);
        server.set_faults(&[Fault::Cut(100_000)]);
        let (read, error) = read_parts(&object, &WANTED[..1], RequestReason::Segment);
        assert!(concat_ranges(&right, &WANTED[..1]).starts_with(&read));
        assert!(matches!(error, Some(Error::Broken(_))), "{error:?}");
        assert_eq!(store.meter().request_count(RequestReason::Retry), 0);
    }
}

#[test]
fn a_date_of_another_hour_is_a_strong_validator() {
    let right = object_bytes("film.mp4");
    let server = FaultyServer::new(&[("film.mp4", right.clone())], false);
    server.set_date("Sat, 21 Nov 2026 12:00:00 GMT");
    let (_store, object) = open_film(&server);
    server.set_faults(&[Fault::Cut(100_000)]);
    let (read, error) = read_parts(&object, &WANTED[..1], RequestReason::Segment);
    assert!(
        error.is_none() && read == concat_ranges(&right, &WANTED[..1]),
        "{error:?}"
    );
    server.set_faults(&[Fault::Cut(100_000), Fault::ChangeUnsaid]);
    let (_, error) = read_parts(&object, &[1_000_000..1_400_000], RequestReason::Segment);
    assert!(matches!(error, Some(Error::Changed)), "{error:?}");
}

#[test]
fn a_changed_film_has_another_version() {
    let (server, right) = start_film();
    let (store, object) = open_film(&server);
    server.set_faults(&[Fault::Change]);
    let (read, error) = read_parts(&object, &[500_000..600_000], RequestReason::Segment);
    assert!(read.is_empty() && matches!(error, Some(Error::Changed)));
    assert!(object.changed());
    let now = store.open(&parse_key("film.mp4")).unwrap();
    assert_ne!(now.version(), object.version());
    let (read, error) = read_parts(&now, &[500_000..600_000], RequestReason::Segment);
    let new: Vec<u8> = right[500_000..600_000]
        .iter()
        .map(|b| b.wrapping_add(1))
        .collect();
    assert!(error.is_none() && read == new);
}

#[test]
fn concurrent_readers_cost_one_request() {
    let (server, right) = start_film();
    let (store, object) = open_film(&server);
    server.set_delay(std::time::Duration::from_millis(50));
    let before = server.request_count();
    let readers: Vec<_> = (0..16)
        .map(|_| {
            let object = object.clone();
            std::thread::spawn(move || {
                read_parts(&object, &[100_000..300_000], RequestReason::Segment)
            })
        })
        .collect();
    for reader in readers {
        let (read, error) = reader.join().unwrap();
        assert!(error.is_none() && read == right[100_000..300_000]);
    }
    assert_eq!(server.request_count() - before, 1);
    assert_eq!(store.meter().request_count(RequestReason::Segment), 1);
    assert_eq!(
        store.meter().read_byte_count(RequestReason::Segment),
        200_000
    );
    // A read of cached bytes sends no request, even for only a part of the cached range.
    let (read, _) = read_parts(&object, &[150_000..250_000], RequestReason::Segment);
    assert!(read == right[150_000..250_000]);
    assert_eq!(server.request_count() - before, 1);
}

#[test]
fn a_pausing_reader_occupies_no_connection() {
    let large: Vec<u8> = (0..3u32 << 19).flat_map(u32::to_le_bytes).collect();
    let server = FaultyServer::new(&[("large.mp4", large.clone())], true);
    let options = Options {
        unsent_bytes: 2 << 20,
        memory_bytes: 0,
        transport: TransportOptions {
            connections_max: 2,
            timeouts: StorageTimeouts {
                stall: Duration::from_secs(3),
                ..patient_options().transport.timeouts
            },
            ..TransportOptions::default()
        },
        ..patient_options()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&parse_key("large.mp4")).unwrap();
    let Object::Remote(remote) = &object else {
        unreachable!("a URL opens a remote object")
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let all = 0..large.len() as u64;
        let (mut readers, mut read) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let parts = remote.open_range_reader(vec![all.clone()], &[], RequestReason::Plain);
            readers.push(parts.await.unwrap());
            read.push(Vec::new());
        }
        // There are more readers than connections. All readers take a few bytes and then pause.
        let mut held_max = 0;
        for turn in 0.. {
            let mut taken = 0;
            for (parts, read) in readers.iter_mut().zip(&mut read) {
                for slice in parts.next_bytes().await.unwrap() {
                    taken += slice.len();
                    read.extend_from_slice(&slice);
                }
            }
            held_max = held_max.max(store.remote().unwrap().reserved_bytes());
            if taken == 0 {
                break;
            }
            if turn == 3 {
                tokio::time::sleep(Duration::from_millis(4500)).await;
            }
        }
        assert!(read.iter().all(|read| *read == large));
        // Each of the five readers may hold two windows of 256 KiB beyond the limit `unsent_bytes`.
        // The limit is doubled here, because two threads may reserve the last free memory at the
        // same time.
        assert!(held_max <= 2 * (2 << 20) + 10 * (256 << 10), "{held_max}");
    });
    assert_eq!(store.meter().request_count(RequestReason::Retry), 0);
    assert_eq!(store.remote().unwrap().reserved_bytes(), 0);
    assert!(
        server.accepted_connections() <= 2,
        "{}",
        server.accepted_connections()
    );
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::None),
        3 => (0usize..300_000).prop_map(Fault::Cut),
        1 => (0usize..300_000).prop_map(Fault::Stall),
        1 => Just(Fault::Short),
        1 => Just(Fault::Long),
        1 => Just(Fault::Status(503)),
        1 => Just(Fault::Status(403)),
        1 => Just(Fault::NoRange),
        1 => Just(Fault::OtherRange),
        1 => Just(Fault::Close),
        1 => Just(Fault::Change),
        1 => Just(Fault::ChangeUnsaid),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 30, ..Default::default() })]

    #[test]
    fn returned_bytes_are_a_prefix_of_the_correct_ones(
        wanted in prop::collection::vec((0u64..900_000, 0u64..200_000), 1..5),
        faults in prop::collection::vec(any_fault(), 0..6),
        plain: bool,
        straight: bool,
    ) {
        let (server, right) = start_film();
        let (options, most, times) = if straight { (uncached_options(), 1, 10) } else { (patient_options(), 5, 1) };
        let (_store, object) = open_with(&server, with_short_timeouts(options));
        let ranges = wanted.into_iter().map(|(start, len)| start..start + len * times);
        let wanted: Vec<_> = ranges.take(most).collect();
        let reason = if plain { RequestReason::Plain } else { RequestReason::Segment };
        server.set_faults(&faults);
        let expected = concat_ranges(&right, &wanted);
        let (read, error) = read_parts(&object, &wanted, reason);
        prop_assert!(expected.starts_with(&read), "wrong bytes after {} of {}", read.len(), expected.len());
        prop_assert_eq!(error.is_none(), read.len() == expected.len());
        server.restore_objects();
        prop_assert_eq!(read_afterwards(&object, &wanted, &expected), Ok(()));
    }
}
