//! Objects that are wanted whole: one request brings them, and they are read while it does.

use crate::suite::{bytes, key, usual};
use crate::wild::{Fault, Wild};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use store::{Error, Object, Reason, RemoteObject, Store};

struct Film {
    server: Wild,
    right: Vec<u8>,
    /// Whose threads read.
    _store: Store,
    object: Object,
}

/// A film that is opened while the server's answers are wrong in these ways.
fn film_with(right: Vec<u8>, faults: &[Fault]) -> Film {
    let server = Wild::new(&[("film.mp4", right.clone())], true);
    server.script(faults);
    let store = Store::new(&server.url(), usual()).unwrap();
    let object = store.open_whole(&key("film.mp4")).unwrap();
    Film {
        server,
        right,
        _store: store,
        object,
    }
}

fn film() -> Film {
    film_with(bytes("film.mp4"), &[])
}

impl Film {
    fn remote(&self) -> &Arc<RemoteObject> {
        match &self.object {
            Object::Remote(remote) => remote,
            Object::Local(_) => panic!("it is remote"),
        }
    }

    /// What is poured of a range until there are `enough` bytes, each where it belongs.
    fn pour(&self, range: Range<u64>, enough: usize) -> (Vec<u8>, Result<(), Error>) {
        let mut got = Vec::new();
        let poured = self
            .remote()
            .pour(range.clone(), Reason::Index, |at, piece| {
                assert_eq!(at, range.start + got.len() as u64);
                got.extend_from_slice(piece);
                match got.len() < enough {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
        let start = range.start as usize;
        let right = self.right.get(start..start + got.len());
        assert!(right == Some(&got), "wrong bytes of {range:?}");
        (got, poured)
    }

    /// All of the film comes, of which `range` is asked for.
    fn pour_all(&self, range: Range<u64>) {
        let (got, poured) = self.pour(range, usize::MAX);
        assert!(poured.is_ok(), "{poured:?}");
        assert_eq!(got.len(), self.right.len());
    }

    fn read(&self, range: Range<usize>) {
        let read = self
            .object
            .read(range.start as u64..range.end as u64, Reason::Index);
        assert!(
            read.unwrap() == self.right[range.clone()],
            "wrong bytes of {range:?}"
        );
    }
}

#[test]
fn what_is_on_its_way_is_handed_over_with_what_was_asked_for() {
    let film = film();
    film.pour_all(0..1_000_000);
    assert_eq!(film.server.requests(), 1);
}

#[test]
fn whoever_has_enough_may_ask_for_more_later() {
    let film = film();
    let (got, poured) = film.pour(100..65_536, 1000);
    assert!(poured.is_ok() && got.len() >= 1000, "{poured:?}");
    film.read(2_000_000..2_100_000);
    film.pour_all(0..film.right.len() as u64);
}

#[test]
fn a_read_waits_for_what_is_on_its_way() {
    let film = film();
    film.read(10..400_000);
    film.read(300_000..1_000_000);
    film.read(0..3_000_000);
    assert_eq!(film.server.requests(), 1);
}

#[test]
fn what_is_longer_than_one_request_brings_is_asked_for_after_it() {
    let right: Vec<u8> = bytes("film.mp4").repeat(3);
    let film = film_with(right, &[]);
    film.pour_all(0..film.right.len() as u64);
    assert_eq!(film.server.requests(), 2);
}

#[test]
fn what_breaks_off_is_continued_if_it_is_still_the_same() {
    let whole = 0..bytes("film.mp4").len() as u64;
    let film = film_with(bytes("film.mp4"), &[Fault::Cut(700_000)]);
    film.pour_all(whole.clone());
    let film = film_with(bytes("film.mp4"), &[Fault::Cut(700_000)]);
    film.read(600_000..800_000);
    let film = film_with(bytes("film.mp4"), &[Fault::Cut(700_000), Fault::Change]);
    let (got, poured) = film.pour(whole, usize::MAX);
    assert!(matches!(poured, Err(Error::Changed)), "{poured:?}");
    assert!(got.len() <= 700_000 && film.object.changed());
}
