//! What passes straight through: from the storage's socket into a pipe.

use crate::suite::{bytes, key, nothing_kept, parts, run, take};
use crate::wild::{Fault, Wild};
use std::sync::Arc;
use std::time::Duration;
use store::{Error, Object, Options, Reason, RemoteObject, Store, Straight};

const SEGMENT: std::ops::Range<u64> = 100_001..1_083_000;

fn film() -> (Wild, Vec<u8>) {
    let right = bytes("film.mp4");
    (Wild::new(&[("film.mp4", right.clone())], true), right)
}

fn open(server: &Wild, options: Options) -> (Store, Object, Arc<RemoteObject>) {
    let store = Store::new(&server.url(), options).unwrap();
    let object = store.open(&key("film.mp4")).unwrap();
    let Object::Remote(remote) = object.clone() else {
        unreachable!("it is behind a URL")
    };
    (store, object, remote)
}

async fn segment(object: &Arc<RemoteObject>) -> Result<Option<Straight>, Error> {
    object.straight(SEGMENT, Reason::Segment).await
}

fn of(right: &[u8]) -> &[u8] {
    &right[SEGMENT.start as usize..SEGMENT.end as usize]
}

#[test]
fn nearly_all_bytes_come_by_the_pipe_on_one_connection() {
    let (server, right) = film();
    let (store, _, object) = open(&server, nothing_kept());
    for _ in 0..20 {
        run(async {
            let (mut straight, mut read) = (segment(&object).await.unwrap().unwrap(), Vec::new());
            let piped = take(&mut straight, &mut read).await.unwrap();
            assert!(read == of(&right));
            assert!(piped > read.len() / 2, "{piped}");
        });
    }
    let len = SEGMENT.end - SEGMENT.start;
    assert_eq!(store.meter().requests(Reason::Segment), 20);
    assert_eq!(store.meter().bytes(Reason::Segment), 20 * len);
    assert!(store.meter().piped_bytes() > 10 * len);
    assert_eq!(store.remote().unwrap().held_bytes(), 0);
    assert_eq!(server.accepted(), 1, "its connection is used again");
}

#[test]
fn what_is_kept_or_short_or_has_no_pipe_is_copied() {
    let (server, right) = film();
    let kept = Options {
        memory_bytes: 1 << 20,
        ..nothing_kept()
    };
    let no_pipes = Options {
        pipes: 0,
        ..nothing_kept()
    };
    for (options, range) in [
        (kept, SEGMENT),
        (no_pipes, SEGMENT),
        (nothing_kept(), 5..60_000),
        (nothing_kept(), 7..7),
    ] {
        let (_store, object, remote) = open(&server, options);
        let straight = run(remote.straight(range.clone(), Reason::Segment));
        assert!(straight.unwrap().is_none(), "{range:?}");
        let (read, error) = parts(&object, std::slice::from_ref(&range), Reason::Segment);
        assert!(error.is_none() && read == right[range.start as usize..range.end as usize]);
    }
    let (_store, _, remote) = open(&server, nothing_kept());
    let past = right.len() as u64 - 500_000..right.len() as u64 + 1;
    let error = run(remote.straight(past, Reason::Segment)).err();
    assert!(matches!(error, Some(Error::Changed)), "{error:?}");
}

#[test]
fn whoever_does_not_take_bytes_keeps_no_connection() {
    // More than any pipe holds.
    let right: Vec<u8> = (0..30u32 << 18).flat_map(u32::to_le_bytes).collect();
    let server = Wild::new(&[("film.mp4", right.clone())], true);
    let mut options = nothing_kept();
    options.transport.connections_max = 1;
    let (store, object, remote) = open(&server, options);
    run(async {
        let all = 0..right.len() as u64;
        let straight = remote.straight(all, Reason::Segment).await;
        let mut straight = straight.unwrap().unwrap();
        // Waits for the only connection until the first answer has left it.
        let other =
            tokio::task::spawn_blocking(move || parts(&object, &[50_000..90_000], Reason::Segment));
        let (read, error) = other.await.unwrap();
        assert!(error.is_none() && read == right[50_000..90_000]);
        let mut read = Vec::new();
        let piped = take(&mut straight, &mut read).await.unwrap();
        assert!(read == right);
        assert!(0 < piped && piped < read.len(), "{piped}");
    });
    assert_eq!(store.meter().requests(Reason::Retry), 0);
}

#[test]
fn many_who_ask_at_once_cost_two_requests() {
    let (server, right) = film();
    let (store, object, _) = open(&server, nothing_kept());
    server.delay(Duration::from_secs(2));
    let readers: Vec<_> = (0..16)
        .map(|_| {
            let object = object.clone();
            std::thread::spawn(move || parts(&object, &[SEGMENT], Reason::Segment))
        })
        .collect();
    for reader in readers {
        let (read, error) = reader.join().unwrap();
        assert!(error.is_none() && read == of(&right));
    }
    // The first has a pipe of his own, the others share.
    assert_eq!(store.meter().requests(Reason::Segment), 2);
}

#[test]
fn who_leaves_takes_nothing_from_others() {
    let (server, right) = film();
    let options = Options {
        pipes: 1,
        ..nothing_kept()
    };
    let (_store, _, object) = open(&server, options);
    for _ in 0..5 {
        run(async {
            // The pipe comes back when the fetch before has noticed that it is over.
            let begun = async || loop {
                match segment(&object).await.unwrap() {
                    Some(straight) => return straight,
                    None => tokio::task::yield_now().await,
                }
            };
            begun().await.next().await.unwrap().unwrap();
            let mut read = Vec::new();
            take(&mut begun().await, &mut read).await.unwrap();
            assert!(read == of(&right));
        });
    }
}

#[test]
fn what_breaks_off_in_the_pipe_is_continued_behind_it() {
    let (server, right) = film();
    let (store, _, object) = open(&server, nothing_kept());
    server.script(&[Fault::Cut(300_000)]);
    run(async {
        let (mut straight, mut read) = (segment(&object).await.unwrap().unwrap(), Vec::new());
        let piped = take(&mut straight, &mut read).await.unwrap();
        assert!(read == of(&right));
        assert!(piped > read.len() / 2, "{piped}");
    });
    assert_eq!(store.meter().requests(Reason::Retry), 1);
    server.script(&[Fault::Cut(300_000), Fault::ChangeUnsaid]);
    run(async {
        let (mut straight, mut read) = (segment(&object).await.unwrap().unwrap(), Vec::new());
        let error = take(&mut straight, &mut read).await.unwrap_err();
        assert!(matches!(error, Error::Changed), "{error:?}");
        assert!(read == of(&right)[..300_000]);
    });
    assert!(object.changed());
}
