//! An open object, which is local or remote.

use crate::{Error, LocalFile, ObjectVersion, RemoteObject, RequestReason};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// An open object of one version. Cloning an object is cheap.
#[derive(Clone)]
pub enum Object {
    /// A local file, which can be mapped.
    Local(Arc<LocalFile>),
    /// An object that is read in ranges over a network.
    Remote(Arc<RemoteObject>),
}

impl Object {
    /// Returns whether the object is read over a network.
    pub fn is_remote(&self) -> bool {
        matches!(self, Object::Remote(_))
    }

    /// The version at the time of opening.
    pub fn version(&self) -> &ObjectVersion {
        match self {
            Object::Local(file) => file.version(),
            Object::Remote(object) => object.version(),
        }
    }

    /// Returns whether `now` is the version of this object. `now` is the result of a later look-up.
    pub fn is_same_version(&self, now: &ObjectVersion) -> bool {
        match self {
            Object::Local(file) => file.version() == now,
            Object::Remote(object) => object.is_same_version(now),
        }
    }

    /// Length in bytes at the time of opening.
    pub fn len(&self) -> u64 {
        self.version().len
    }

    /// Returns whether the object was empty when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the object is known to have changed since it was opened. A local file is
    /// checked now. A remote object is known to have changed once a response has shown the change.
    pub fn changed(&self) -> bool {
        match self {
            Object::Local(file) => file.changed(),
            Object::Remote(object) => object.changed(),
        }
    }

    /// Reads `range`. Blocks.
    ///
    /// # Errors
    /// [`Error::Changed`] when the object has changed, or ends before `range` does.
    pub fn read(&self, range: Range<u64>, reason: RequestReason) -> Result<Bytes, Error> {
        match self {
            Object::Local(file) => file.read(range, reason),
            Object::Remote(object) => object.read(range, reason),
        }
    }

    /// Reads several ranges. Returns the bytes of each range, in the given order. Ranges of a local
    /// file that are close together are read with one system call. Blocks.
    ///
    /// # Errors
    /// Same as [`Object::read`].
    pub fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        reason: RequestReason,
    ) -> Result<Vec<Bytes>, Error> {
        match self {
            Object::Local(file) => file.read_ranges(ranges, reason),
            Object::Remote(object) => {
                let read = |range: &Range<u64>| object.read(range.clone(), reason);
                ranges.iter().map(read).collect()
            }
        }
    }

    /// Frees the first bytes of a remote object, which were stored to build the object's index.
    pub fn free_first_bytes(&self) {
        if let Object::Remote(object) = self {
            object.free_first_bytes();
        }
    }
}
