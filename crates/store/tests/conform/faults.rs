//! A server that answers wrongly: right bytes or a clean error, and nothing of it is kept.

use crate::suite::{bytes, impatient, key, nothing_kept, of, parts, usual};
use crate::wild::{Fault, Wild};
use proptest::prelude::*;
use std::ops::Range;
use std::time::Duration;
use store::{Error, Object, Options, Reason, Store, Timeouts, Transport};

/// What must come of a fault in every answer, however often it is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Must {
    /// The right bytes all the same.
    Right,
    NotFound,
    Changed,
    Denied,
    Slow,
    Broken,
}

fn kind(error: &Error) -> Must {
    match error {
        Error::NotFound => Must::NotFound,
        Error::Changed => Must::Changed,
        Error::Denied(_) => Must::Denied,
        Error::Slow(_) => Must::Slow,
        Error::Broken(_) => Must::Broken,
        other => panic!("an error of another kind: {other:?}"),
    }
}

fn film() -> (Wild, Vec<u8>) {
    let right = bytes("film.mp4");
    (Wild::new(&[("film.mp4", right.clone())], true), right)
}

/// Short waits only where the server falls silent.
fn times(fault: Fault, options: Options) -> Options {
    match fault {
        Fault::Stall(_) | Fault::NoHead | Fault::Loris => impatient(options),
        _ => options,
    }
}

fn open(server: &Wild) -> (Store, Object) {
    open_with(server, usual())
}

fn open_with(server: &Wild, options: Options) -> (Store, Object) {
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    (store, object)
}

/// Nothing wrong is kept: all is well as soon as the server is. Other parts that were asked for
/// before that may still be on their way, and fail.
fn afterwards(object: &Object, wanted: &[Range<u64>], right: &[u8]) -> Result<(), String> {
    let mut last = None;
    for _ in 0..100 {
        let (read, error) = parts(object, wanted, Reason::Segment);
        if !right.starts_with(&read) {
            return Err("wrong bytes were kept".into());
        }
        match error {
            None if read.len() == right.len() => return Ok(()),
            error => last = error,
        }
    }
    Err(format!("it does not get well: {last:?}"))
}

const WANTED: [Range<u64>; 3] = [10_000..400_000, 402_000..500_000, 900_000..1_000_000];

/// What is kept, and what is wanted: the second passes straight through.
fn ways() -> [(Options, &'static [Range<u64>]); 2] {
    [(usual(), &WANTED), (nothing_kept(), &WANTED[..1])]
}

const ALWAYS: [(Fault, Must); 20] = [
    (Fault::None, Must::Right),
    (Fault::Redirect, Must::Right),
    (Fault::NoRange, Must::Broken),
    (Fault::OtherRange, Must::Broken),
    (Fault::NoContentRange, Must::Broken),
    (Fault::Cut(0), Must::Broken),
    (Fault::Stall(0), Must::Slow),
    (Fault::Stall(50_000), Must::Slow),
    (Fault::Short, Must::Broken),
    (Fault::Long, Must::Broken),
    (Fault::NoHead, Must::Slow),
    (Fault::Loris, Must::Slow),
    (Fault::Status(403), Must::Denied),
    (Fault::Status(404), Must::NotFound),
    (Fault::Status(500), Must::Broken),
    (Fault::Close, Must::Broken),
    (Fault::Elsewhere, Must::Broken),
    (Fault::Round, Must::Broken),
    (Fault::Change, Must::Changed),
    (Fault::ChangeUnsaid, Must::Changed),
];

#[test]
fn each_fault_of_every_answer_is_a_clean_error() {
    let all = ALWAYS
        .into_iter()
        .flat_map(|(fault, must)| ways().map(|(options, ranges)| (fault, must, options, ranges)));
    let ways: Vec<_> = all
        .map(|(fault, must, options, ranges)| {
            std::thread::spawn(move || {
                let (server, right) = film();
                let (_store, object) = open_with(&server, times(fault, options));
                server.script(&[fault; 40]);
                let (read, error) = parts(&object, ranges, Reason::Segment);
                let wanted = of(&right, ranges);
                assert!(
                    wanted.starts_with(&read),
                    "{fault:?}: wrong bytes were given"
                );
                let came = error.as_ref().map_or(Must::Right, kind);
                assert_eq!(came, must, "{fault:?}: {error:?}");
                assert_eq!(error.is_none(), read == wanted, "{fault:?}");
                if let Some(error) = error {
                    assert!(!error.to_string().contains("SECRET"), "{error}");
                }
                server.heal();
                assert_eq!(afterwards(&object, ranges, &wanted), Ok(()), "{fault:?}");
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
                let (server, right) = film();
                let store = Store::new(&server.url(), times(fault, usual())).unwrap();
                server.script(&[fault; 40]);
                let opened = store.open(&key("film.mp4"));
                let came = opened.as_ref().err().map_or(Must::Right, kind);
                // Nothing was there yet that it could have changed from.
                let must = match (fault, must) {
                    (_, Must::Changed) => Must::Right,
                    // The little that is asked for comes in two turns.
                    (Fault::Stall(50_000), _) => Must::Right,
                    (_, must) => must,
                };
                assert_eq!(came, must, "{fault:?}: {:?}", opened.err());
                server.heal();
                let object = store.open(&key("film.mp4")).unwrap();
                let read = object.read(0..right.len() as u64, Reason::Index).unwrap();
                assert!(read == right, "{fault:?}");
            })
        })
        .collect();
    ways.into_iter().for_each(|way| way.join().unwrap());
}

#[test]
fn one_fault_is_mended() {
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
        for options in [usual(), nothing_kept()] {
            let (server, right) = film();
            let (store, object) = open_with(&server, times(fault, options));
            server.script(&[fault]);
            let (read, error) = parts(&object, &WANTED[..1], Reason::Segment);
            assert!(error.is_none(), "{fault:?}: {error:?}");
            assert!(read == of(&right, &WANTED[..1]), "{fault:?}");
            assert_eq!(server.faults_left(), 0);
            let retries = store.meter().requests(Reason::Retry);
            // A kept connection that ends before any answer is asked again without a word.
            let expected = u64::from(fault != Fault::Close && fault != Fault::Garbage);
            assert!(retries >= expected && retries <= 1, "{fault:?}: {retries}");
        }
    }
}

#[test]
fn what_can_not_be_proved_the_same_is_not_continued() {
    let right = bytes("film.mp4");
    let server = Wild::new(&[("film.mp4", right.clone())], false);
    let (_store, object) = open(&server);
    server.script(&[Fault::Cut(100_000), Fault::ChangeUnsaid]);
    let (read, error) = parts(&object, &WANTED, Reason::Segment);
    assert!(of(&right, &WANTED).starts_with(&read));
    assert!(matches!(error, Some(Error::Changed)), "{error:?}");
    assert!(object.changed());
}

#[test]
fn a_changed_film_is_another_identity() {
    let (server, right) = film();
    let (store, object) = open(&server);
    server.script(&[Fault::Change]);
    let (read, error) = parts(&object, &[500_000..600_000], Reason::Segment);
    assert!(read.is_empty() && matches!(error, Some(Error::Changed)));
    assert!(object.changed());
    let now = store.open(&key("film.mp4")).unwrap();
    assert_ne!(now.identity(), object.identity());
    let (read, error) = parts(&now, &[500_000..600_000], Reason::Segment);
    let new: Vec<u8> = right[500_000..600_000]
        .iter()
        .map(|b| b.wrapping_add(1))
        .collect();
    assert!(error.is_none() && read == new);
}

#[test]
fn many_who_ask_cost_one_request() {
    let (server, right) = film();
    let (store, object) = open(&server);
    server.delay(std::time::Duration::from_millis(50));
    let before = server.requests();
    let readers: Vec<_> = (0..16)
        .map(|_| {
            let object = object.clone();
            std::thread::spawn(move || parts(&object, &[100_000..300_000], Reason::Segment))
        })
        .collect();
    for reader in readers {
        let (read, error) = reader.join().unwrap();
        assert!(error.is_none() && read == right[100_000..300_000]);
    }
    assert_eq!(server.requests() - before, 1);
    assert_eq!(store.meter().requests(Reason::Segment), 1);
    assert_eq!(store.meter().bytes(Reason::Segment), 200_000);
    // And none while it is warm, whole or in part.
    let (read, _) = parts(&object, &[150_000..250_000], Reason::Segment);
    assert!(read == right[150_000..250_000]);
    assert_eq!(server.requests() - before, 1);
}

#[test]
fn whoever_takes_bytes_may_pause_and_keeps_no_connection() {
    let large: Vec<u8> = (0..6u32 << 20).flat_map(u32::to_le_bytes).collect();
    let server = Wild::new(&[("large.mp4", large.clone())], true);
    let options = Options {
        unsent_bytes: 8 << 20,
        memory_bytes: 0,
        transport: Transport {
            connections_max: 2,
            timeouts: Timeouts {
                stall: Duration::from_secs(3),
                ..usual().transport.timeouts
            },
            ..Transport::default()
        },
        ..usual()
    };
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&key("large.mp4")).unwrap();
    let Object::Remote(remote) = &object else {
        unreachable!("it is behind a URL")
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let all = 0..large.len() as u64;
        let (mut readers, mut read) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let parts = remote.parts(vec![all.clone()], &[], Reason::Plain);
            readers.push(parts.await.unwrap());
            read.push(Vec::new());
        }
        // More readers than connections, all of whom take a little and then nothing for long.
        let mut held_max = 0;
        for turn in 0.. {
            let mut taken = 0;
            for (parts, read) in readers.iter_mut().zip(&mut read) {
                for slice in parts.next().await.unwrap() {
                    taken += slice.len();
                    read.extend_from_slice(&slice);
                }
            }
            held_max = held_max.max(store.remote().unwrap().held_bytes());
            if taken == 0 {
                break;
            }
            if turn == 3 {
                tokio::time::sleep(Duration::from_millis(4500)).await;
            }
        }
        assert!(read.iter().all(|read| *read == large));
        // Over the bound each has at most two small windows; two threads may take the last room.
        assert!(held_max <= 2 * (8 << 20) + 10 * (256 << 10), "{held_max}");
    });
    assert_eq!(store.meter().requests(Reason::Retry), 0);
    assert_eq!(store.remote().unwrap().held_bytes(), 0);
    assert!(server.accepted() <= 2, "{}", server.accepted());
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
    fn bytes_delivered_are_a_prefix_of_the_right_ones(
        wanted in prop::collection::vec((0u64..900_000, 0u64..200_000), 1..5),
        faults in prop::collection::vec(any_fault(), 0..6),
        plain: bool,
        straight: bool,
    ) {
        let (server, right) = film();
        let (options, most, times) = if straight { (nothing_kept(), 1, 10) } else { (usual(), 5, 1) };
        let (_store, object) = open_with(&server, impatient(options));
        let ranges = wanted.into_iter().map(|(start, len)| start..start + len * times);
        let wanted: Vec<_> = ranges.take(most).collect();
        let reason = if plain { Reason::Plain } else { Reason::Segment };
        server.script(&faults);
        let expected = of(&right, &wanted);
        let (read, error) = parts(&object, &wanted, reason);
        prop_assert!(expected.starts_with(&read), "wrong bytes after {} of {}", read.len(), expected.len());
        prop_assert_eq!(error.is_none(), read.len() == expected.len());
        server.heal();
        prop_assert_eq!(afterwards(&object, &wanted, &expected), Ok(()));
    }
}
