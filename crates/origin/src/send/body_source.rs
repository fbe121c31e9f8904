//! The source of a planned body, which consists of one or several objects.

use crate::send::body_parts::{PlannedPart, file_ranges, merge_read_bytes};
use crate::send::local_file;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use store::{LocalFile, Object, RequestReason};

/// The object from which ranges are read. Several objects are read like one concatenated object.
#[derive(Clone)]
pub(crate) struct BodySource {
    pub(crate) object: Arc<Object>,
    pub(crate) reason: RequestReason,
    /// Whether the connection copies bodies (TLS, HTTP/2). If so, remote bytes are sent in small
    /// frames.
    pub(crate) is_copied: bool,
    /// Whether the caller has just found the object unchanged. If so, the object is not checked
    /// again for the first frame, unless this frame waits for the disk.
    pub(crate) is_verified: bool,
    /// Ranges of a remote object that are likely to be requested soon. A sibling range that is
    /// close to a requested range is read in the same request.
    pub(crate) sibling_ranges: Option<Arc<[Range<u64>]>>,
    /// Objects that follow `object`. Ranges refer to the concatenation of all objects.
    pub(crate) following_objects: Arc<[Arc<Object>]>,
}

impl BodySource {
    /// Returns the same source for a caller that has just found the object unchanged.
    pub(crate) fn without_first_check(self) -> BodySource {
        BodySource {
            is_verified: true,
            ..self
        }
    }

    /// Returns whether reading these parts is quick enough for the event loop.
    pub(crate) fn can_read_inline(&self, pieces: &[PlannedPart]) -> bool {
        match &*self.object {
            Object::Local(file) => self.build_local_source(file).can_read_inline(pieces),
            Object::Remote(_) => false,
        }
    }

    /// Returns whether the object is a local file.
    pub(crate) fn is_local(&self) -> bool {
        matches!(&*self.object, Object::Local(_))
    }

    /// Reads parts into memory. Returns an error if the object has changed since it was opened.
    /// Blocks the thread.
    pub(crate) fn read_parts_blocking(
        &self,
        pieces: &[PlannedPart],
    ) -> Result<Vec<Bytes>, store::Error> {
        let read = self
            .object
            .read_ranges(&file_ranges(pieces).collect::<Vec<_>>(), self.reason)?;
        match self.object.changed() {
            true => Err(store::Error::Changed),
            false => Ok(merge_read_bytes(pieces, read)),
        }
    }

    pub(super) fn build_local_source(&self, file: &Arc<LocalFile>) -> local_file::LocalSource {
        local_file::LocalSource {
            file: file.clone(),
            reason: self.reason,
            is_verified: self.is_verified,
        }
    }

    pub(super) fn sibling_ranges(&self) -> &[Range<u64>] {
        self.sibling_ranges.as_deref().unwrap_or_default()
    }
}
