//! Objects that are opened with a declared version, without a look-up.

use crate::faulty_server::{Fault, FaultyServer};
use crate::suite::{object_bytes, parse_key, patient_options, read_parts};
use store::{Error, ObjectVersion, RequestReason, Store};

#[test]
fn a_declared_version_is_checked_before_any_byte_is_returned() {
    let right = object_bytes("film.mp4");
    let server = FaultyServer::new(&[("film.mp4", right.clone())], true);
    let store = Store::new(&server.url(), patient_options()).unwrap();
    let actual = *store.open(&parse_key("film.mp4")).unwrap().version();
    let open_declared_version = |version: ObjectVersion| {
        store
            .open_declared_version(&parse_key("film.mp4"), version)
            .unwrap()
    };
    let declared = |len, tag| ObjectVersion {
        len,
        tag,
        ..ObjectVersion::default()
    };
    let wanted = [10_000..400_000, 900_000..1_000_000];
    let expected = crate::suite::concat_ranges(&right, &wanted);
    for tag in [actual.tag, 0] {
        let object = open_declared_version(declared(actual.len, tag));
        let (read, error) = read_parts(&object, &wanted, RequestReason::Segment);
        assert!(read == expected && error.is_none(), "{error:?}");
        assert_eq!(*object.version(), actual);
    }
    let length = open_declared_version(declared(actual.len + 1, actual.tag));
    let (read, error) = read_parts(&length, &wanted, RequestReason::Segment);
    assert!(
        read.is_empty() && matches!(error, Some(Error::OtherLength { .. })),
        "{error:?}"
    );
    // Another object of the same length is refused, even if the server ignores preconditions.
    for fault in [Fault::Change, Fault::ChangeUnsaid] {
        server.set_faults(&[fault]);
        let object = open_declared_version(declared(actual.len, actual.tag));
        let (read, error) = read_parts(&object, &wanted, RequestReason::Segment);
        assert!(
            read.is_empty() && matches!(error, Some(Error::Replaced)),
            "{error:?}"
        );
        assert!(object.changed());
        server.restore_objects();
    }
}
