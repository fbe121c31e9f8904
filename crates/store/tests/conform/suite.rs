//! The tests that every storage library must pass, and helper functions for these tests.

use std::ops::Range;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use store::{
    Error, Key, Object, Options, RemoteObject, RequestReason, SplicedData, SplicedRange,
    StorageTimeouts, Store, TransportOptions,
};
use tokio::runtime::Runtime;

/// The names of all objects in the test library, relative to the library's root.
pub const NAMES: [&str; 5] = [
    "film.mp4",
    "a folder/Der Übermut & co (1981) 100%.mp4",
    "a folder/b.mp4",
    "a folder/deep/c+d=e.mp4",
    "empty.mp4",
];

/// Returns the content of one of [`NAMES`].
pub fn object_bytes(name: &str) -> Vec<u8> {
    let len = match name {
        "empty.mp4" => 0,
        "film.mp4" => 3_000_000,
        _ => 100_000 + name.len(),
    };
    let salt = name.len() as u64;
    (0..len as u64)
        .map(|n| (n.wrapping_mul(2_654_435_761 + salt) >> 11) as u8)
        .collect()
}

pub fn parse_key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

/// Returns options with long timeouts, because a busy machine must not look like a silent server.
pub fn patient_options() -> Options {
    Options {
        transport: TransportOptions {
            timeouts: StorageTimeouts {
                connect: Duration::from_secs(15),
                first_byte: Duration::from_secs(15),
                stall: Duration::from_secs(15),
            },
            ..TransportOptions::default()
        },
        hedge_share: 0.0,
        waste_bytes: 4096,
        ..Options::default()
    }
}

/// Returns [`patient_options`] without a memory cache, so that long ranges are spliced.
pub fn uncached_options() -> Options {
    Options {
        memory_bytes: 0,
        ..patient_options()
    }
}

/// Shortens the timeouts, so that a test soon detects a silent server.
pub fn with_short_timeouts(mut options: Options) -> Options {
    options.transport.timeouts = StorageTimeouts {
        connect: Duration::from_secs(2),
        first_byte: Duration::from_millis(400),
        stall: Duration::from_millis(400),
    };
    options
}

/// The runtime on which callers read. It continues to run after a test, like the runtime of a
/// server, so fetches that are still running can complete.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Runs a future on [`RUNTIME`], and panics if the future takes longer than a minute.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async {
        let ended = tokio::time::timeout(Duration::from_secs(60), work).await;
        ended.expect("the work completes within a minute")
    })
}

/// Appends all bytes of a spliced range to `out`. Returns the number of bytes that passed through a
/// pipe.
pub async fn read_spliced(spliced: &mut SplicedRange, out: &mut Vec<u8>) -> Result<usize, Error> {
    let mut piped = 0;
    while let Some(came) = spliced.next_data().await? {
        match came {
            SplicedData::Bytes(bytes) => out.extend_from_slice(&bytes),
            SplicedData::Piped(pipe, count) => {
                out.extend_from_slice(&pipe.read_into_memory(count).unwrap());
                piped += count;
            }
        }
    }
    Ok(piped)
}

/// Reads ranges as a server does. A single range is spliced if possible, and other ranges are
/// copied.
async fn take_parts(
    object: &Arc<RemoteObject>,
    wanted: &[Range<u64>],
    reason: RequestReason,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if let [range] = wanted
        && let Some(mut spliced) = object.splice_range(range.clone(), reason).await?
    {
        read_spliced(&mut spliced, out).await?;
        return Ok(());
    }
    let mut parts = object
        .open_range_reader(wanted.to_vec(), &[], reason)
        .await?;
    loop {
        let slices = parts.next_bytes().await?;
        if slices.is_empty() {
            return Ok(());
        }
        slices.iter().for_each(|slice| out.extend_from_slice(slice));
    }
}

/// Reads the wanted ranges in order. Returns the received bytes, and the error that interrupted the
/// read, if any.
pub fn read_parts(
    object: &Object,
    wanted: &[Range<u64>],
    reason: RequestReason,
) -> (Vec<u8>, Option<Error>) {
    let mut out = Vec::new();
    let Object::Remote(object) = object else {
        for range in wanted {
            match object.read(range.clone(), reason) {
                Ok(bytes) => out.extend_from_slice(&bytes),
                Err(error) => return (out, Some(error)),
            }
        }
        return (out, None);
    };
    let error = block_on(take_parts(object, wanted, reason, &mut out)).err();
    (out, error)
}

/// Joins the bytes of several ranges.
pub fn concat_ranges(bytes: &[u8], wanted: &[Range<u64>]) -> Vec<u8> {
    let part = |range: &Range<u64>| bytes[range.start as usize..range.end as usize].to_vec();
    wanted.iter().flat_map(part).collect()
}

/// Checks the behaviour that readers of films rely on. `lists` is true if the storage can list
/// objects.
pub fn check_library(store: &Store, lists: bool) {
    check_reads(store);
    check_missing(store, lists);
    if lists {
        check_listing(store);
    } else {
        assert!(matches!(
            store.list_folder(&Key::ROOT),
            Err(Error::Unlisted)
        ));
    }
}

fn check_reads(store: &Store) {
    for name in NAMES {
        let right = object_bytes(name);
        let len = right.len() as u64;
        let object = store
            .open(&parse_key(name))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(object.len(), len, "{name}");
        assert_eq!(
            store.look_up(&parse_key(name)).unwrap(),
            Some(*object.version()),
            "{name}"
        );
        let all = [0..len];
        for reason in [RequestReason::Index, RequestReason::Plain] {
            let read = object
                .read(0..len, reason)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(read == right, "{name}");
        }
        for reason in [RequestReason::Segment, RequestReason::Plain] {
            let (read, error) = read_parts(&object, &all, reason);
            assert!(read == right && error.is_none(), "{name}: {error:?}");
        }
        let past = [len..len + 1, len + 1..len + 2, 0..len + 1];
        for range in past {
            let (read, error) = read_parts(
                &object,
                std::slice::from_ref(&range),
                RequestReason::Segment,
            );
            assert!(
                read.is_empty() && matches!(error, Some(Error::Changed)),
                "{name} {range:?}"
            );
        }
        object.free_first_bytes();
        assert!(
            object.read(0..len, RequestReason::Index).unwrap() == right,
            "{name}"
        );
    }
    let right = object_bytes("film.mp4");
    let object = store.open(&parse_key("film.mp4")).unwrap();
    for wanted in [
        vec![0..1],
        vec![2_999_999..3_000_000],
        vec![5..5, 10..20, 20..30],
        vec![100_000..200_000, 50_000..150_000, 0..10],
        vec![
            1..1000,
            1001..2000,
            900_000..1_700_000,
            1_704_000..1_800_000,
        ],
        (0..200).map(|n| n * 14_000..n * 14_000 + 9_000).collect(),
    ] {
        let (read, error) = read_parts(&object, &wanted, RequestReason::Segment);
        assert!(error.is_none(), "{wanted:?}: {error:?}");
        assert!(read == concat_ranges(&right, &wanted), "{wanted:?}");
    }
    assert!(!object.changed());
}

fn check_missing(store: &Store, lists: bool) {
    for name in ["none.mp4", "a folder/none.mp4", "film.mp4/x.mp4"] {
        assert!(
            matches!(store.open(&parse_key(name)), Err(Error::NotFound)),
            "{name}"
        );
        assert!(
            matches!(store.look_up(&parse_key(name)), Err(Error::NotFound)),
            "{name}"
        );
    }
    assert!(matches!(store.open(&Key::ROOT), Err(Error::NotFound)));
    assert!(store.open(&parse_key("a folder")).is_err());
    if lists {
        assert_eq!(store.look_up(&parse_key("a folder")).unwrap(), None);
    }
}

fn check_listing(store: &Store) {
    let names = |folder: &Key| -> Vec<(String, bool)> {
        let entries = store.list_folder(folder).unwrap();
        entries
            .into_iter()
            .map(|entry| (entry.name, entry.file.is_some()))
            .collect()
    };
    let root = [("a folder", false), ("empty.mp4", true), ("film.mp4", true)];
    let folder = [
        ("Der Übermut & co (1981) 100%.mp4", true),
        ("b.mp4", true),
        ("deep", false),
    ];
    let owned = |list: &[(&str, bool)]| -> Vec<(String, bool)> {
        list.iter()
            .map(|(name, file)| ((*name).to_owned(), *file))
            .collect()
    };
    assert_eq!(names(&Key::ROOT), owned(&root));
    assert_eq!(names(&parse_key("a folder")), owned(&folder));
    for entry in store.list_folder(&Key::ROOT).unwrap() {
        if let Some(identity) = entry.file {
            let looked = store.look_up(&parse_key(&entry.name)).unwrap();
            assert_eq!(
                looked,
                Some(identity),
                "{}: the listing and the look-up agree",
                entry.name
            );
        }
    }
}
