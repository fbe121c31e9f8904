//! Checks objects that are opened to be read whole. One request fetches the object, and readers
//! read the object while it arrives.

use crate::faulty_server::{Fault, FaultyServer};
use crate::suite::{object_bytes, parse_key, patient_options};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use store::{Error, Object, RemoteObject, RequestReason, Store};

struct Film {
    server: FaultyServer,
    right: Vec<u8>,
    /// The store owns the threads that read.
    _store: Store,
    object: Object,
}

/// Opens a film on a server whose first responses have these faults.
fn open_film_with(right: Vec<u8>, faults: &[Fault]) -> Film {
    let server = FaultyServer::new(&[("film.mp4", right.clone())], true);
    server.set_faults(faults);
    let store = Store::new(&server.url(), patient_options()).unwrap();
    let object = store.open_whole(&parse_key("film.mp4")).unwrap();
    Film {
        server,
        right,
        _store: store,
        object,
    }
}

fn start_film() -> Film {
    open_film_with(object_bytes("film.mp4"), &[])
}

impl Film {
    fn remote_object(&self) -> &Arc<RemoteObject> {
        match &self.object {
            Object::Remote(remote) => remote,
            Object::Local(_) => panic!("a URL opens a remote object"),
        }
    }

    /// Reads `range` in parts until at least `enough` bytes have been received. Checks the offsets
    /// and the values of the received bytes.
    fn read_poured(&self, range: Range<u64>, enough: usize) -> (Vec<u8>, Result<(), Error>) {
        let mut got = Vec::new();
        let poured =
            self.remote_object()
                .stream_range(range.clone(), RequestReason::Index, |at, piece| {
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

    /// Reads `range` in parts, and checks that the reader receives the whole film.
    fn pour_all(&self, range: Range<u64>) {
        let (got, poured) = self.read_poured(range, usize::MAX);
        assert!(poured.is_ok(), "{poured:?}");
        assert_eq!(got.len(), self.right.len());
    }

    fn check_read(&self, range: Range<usize>) {
        let read = self
            .object
            .read(range.start as u64..range.end as u64, RequestReason::Index);
        assert!(
            read.unwrap() == self.right[range.clone()],
            "wrong bytes of {range:?}"
        );
    }
}

#[test]
fn pouring_a_range_also_passes_the_bytes_received_beyond_it() {
    let film = start_film();
    film.pour_all(0..1_000_000);
    assert_eq!(film.server.request_count(), 1);
}

#[test]
fn a_reader_that_stops_early_can_read_more_later() {
    let film = start_film();
    let (got, poured) = film.read_poured(100..65_536, 1000);
    assert!(poured.is_ok() && got.len() >= 1000, "{poured:?}");
    film.check_read(2_000_000..2_100_000);
    film.pour_all(0..film.right.len() as u64);
}

#[test]
fn a_read_waits_for_bytes_being_received() {
    let film = start_film();
    film.check_read(10..400_000);
    film.check_read(300_000..1_000_000);
    film.check_read(0..3_000_000);
    assert_eq!(film.server.request_count(), 1);
}

#[test]
fn a_second_request_fetches_the_rest_of_a_long_object() {
    let right: Vec<u8> = object_bytes("film.mp4").repeat(3);
    let film = open_film_with(right, &[]);
    film.pour_all(0..film.right.len() as u64);
    assert_eq!(film.server.request_count(), 2);
}

#[test]
fn an_interrupted_body_resumes_only_on_the_same_version() {
    let whole = 0..object_bytes("film.mp4").len() as u64;
    let film = open_film_with(object_bytes("film.mp4"), &[Fault::Cut(700_000)]);
    film.pour_all(whole.clone());
    let film = open_film_with(object_bytes("film.mp4"), &[Fault::Cut(700_000)]);
    film.check_read(600_000..800_000);
    let film = open_film_with(
        object_bytes("film.mp4"),
        &[Fault::Cut(700_000), Fault::Change],
    );
    let (got, poured) = film.read_poured(whole, usize::MAX);
    assert!(matches!(poured, Err(Error::Changed)), "{poured:?}");
    assert!(got.len() <= 700_000 && film.object.changed());
}
