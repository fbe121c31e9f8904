//! Objects of which something was said before anybody looked at them.

use crate::suite::{bytes, key, parts, usual};
use crate::wild::{Fault, Wild};
use store::{Error, Identity, Reason, Store};

#[test]
fn what_was_said_of_an_object_must_be_so_before_any_byte_of_it_is_given() {
    let right = bytes("film.mp4");
    let server = Wild::new(&[("film.mp4", right.clone())], true);
    let store = Store::new(&server.url(), usual()).unwrap();
    let is = *store.open(&key("film.mp4")).unwrap().identity();
    let promise = |said: Identity| store.promise(&key("film.mp4"), said).unwrap();
    let said = |len, tag| Identity {
        len,
        tag,
        ..Identity::default()
    };
    let wanted = [10_000..400_000, 900_000..1_000_000];
    let expected = crate::suite::of(&right, &wanted);
    for tag in [is.tag, 0] {
        let object = promise(said(is.len, tag));
        let (read, error) = parts(&object, &wanted, Reason::Segment);
        assert!(read == expected && error.is_none(), "{error:?}");
        assert_eq!(*object.identity(), is);
    }
    let length = promise(said(is.len + 1, is.tag));
    let (read, error) = parts(&length, &wanted, Reason::Segment);
    assert!(
        read.is_empty() && matches!(error, Some(Error::OtherLength { .. })),
        "{error:?}"
    );
    // Another object of the same length, whether the server honours conditions or not.
    for fault in [Fault::Change, Fault::ChangeUnsaid] {
        server.script(&[fault]);
        let object = promise(said(is.len, is.tag));
        let (read, error) = parts(&object, &wanted, Reason::Segment);
        assert!(
            read.is_empty() && matches!(error, Some(Error::Replaced)),
            "{error:?}"
        );
        assert!(object.changed());
        server.heal();
    }
}
