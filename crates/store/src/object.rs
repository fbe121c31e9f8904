//! An object that is open, local or remote.

use crate::{Error, Identity, LocalFile, Reason, RemoteObject};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// An object, as it was when it was opened. Cheap to clone.
#[derive(Clone)]
pub enum Object {
    /// A file, which can be mapped.
    Local(Arc<LocalFile>),
    /// Ranges of it are had over a network.
    Remote(Arc<RemoteObject>),
}

impl Object {
    /// Whether it is had over a network.
    pub fn is_remote(&self) -> bool {
        matches!(self, Object::Remote(_))
    }

    /// What it was when it was opened.
    pub fn identity(&self) -> &Identity {
        match self {
            Object::Local(file) => file.identity(),
            Object::Remote(object) => object.identity(),
        }
    }

    /// Whether it is what another look at the same place said.
    pub fn is(&self, now: &Identity) -> bool {
        match self {
            Object::Local(file) => file.identity() == now,
            Object::Remote(object) => object.is(now),
        }
    }

    /// Length in bytes, when it was opened.
    pub fn len(&self) -> u64 {
        self.identity().len
    }

    /// Whether it held no byte when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is known to have changed since it was opened. A local file is looked at; of a
    /// remote one it is known once an answer said so.
    pub fn changed(&self) -> bool {
        match self {
            Object::Local(file) => file.changed(),
            Object::Remote(object) => object.changed(),
        }
    }

    /// Reads `range`. Blocks.
    ///
    /// # Errors
    /// [`Error::Changed`] when it is not any more what was opened, or ends before `range` does.
    pub fn read(&self, range: Range<u64>, reason: Reason) -> Result<Bytes, Error> {
        match self {
            Object::Local(file) => file.read(range, reason),
            Object::Remote(object) => object.read(range, reason),
        }
    }

    /// Lets go of what was kept to build an index of it.
    pub fn settle(&self) {
        if let Object::Remote(object) = self {
            object.settle();
        }
    }
}
