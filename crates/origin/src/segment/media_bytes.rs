//! Reads the media of one segment into the memory from which the segment is sent.

use crate::error;
use crate::send::body_parts::PlannedPart;
use crate::send::body_source::BodySource;
use crate::send::build_body;
use bytes::Bytes;
use net::Error;
use std::ops::Range;
use std::sync::Arc;
use store::{LocalFile, Object, RequestReason};

/// Ranges of a local file that are read later, or bytes of a remote object that have arrived.
pub(super) enum MediaBytes {
    Local {
        file: Arc<LocalFile>,
        ranges: Vec<Range<u64>>,
        reason: RequestReason,
    },
    Arrived(Vec<Bytes>),
}

impl MediaBytes {
    /// Reads ranges of a remote object. For a local file, stores only the ranges, which
    /// [`MediaBytes::read_into`] reads later.
    pub(super) async fn fetch_or_defer_ranges(
        source: &BodySource,
        ranges: Vec<Range<u64>>,
    ) -> Result<MediaBytes, Error> {
        if let Object::Local(file) = &*source.object {
            let (file, reason) = (file.clone(), source.reason);
            return Ok(MediaBytes::Local {
                file,
                ranges,
                reason,
            });
        }
        let pieces = ranges_to_parts(ranges);
        let parts = build_body::read_parts(source, &pieces).await?;
        Ok(MediaBytes::Arrived(parts))
    }

    /// Returns whether [`MediaBytes::read_into`] is quick enough for the event loop.
    pub(super) fn can_read_inline(&self, source: &BodySource) -> bool {
        match self {
            MediaBytes::Local { ranges, .. } => {
                source.can_read_inline(&ranges_to_parts(ranges.clone()))
            }
            MediaBytes::Arrived(_) => true,
        }
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> Result<usize, Error> {
        let len = match self {
            MediaBytes::Local { ranges, .. } => {
                let lens = ranges.iter().map(|range| range.end - range.start);
                lens.fold(0, u64::saturating_add)
            }
            MediaBytes::Arrived(parts) => parts.iter().map(|part| part.len() as u64).sum(),
        };
        usize::try_from(len)
            .map_err(|_| Error::new_internal_error("a segment is longer than the memory"))
    }

    /// Copies the media into `out`, which must have room for all bytes. Returns an error if a local
    /// file has changed since it was opened. Blocks the thread.
    pub(super) fn read_into(&self, out: &mut [u8]) -> Result<(), Error> {
        match self {
            MediaBytes::Local {
                file,
                ranges,
                reason,
            } => {
                let read = file.read_ranges_into(ranges, out, *reason);
                let read = read.and_then(|()| match file.changed() {
                    true => Err(store::Error::Changed),
                    false => Ok(()),
                });
                read.map_err(|e| error::from_store(&e))
            }
            MediaBytes::Arrived(parts) => copy_parts(parts, out),
        }
    }
}

fn ranges_to_parts(ranges: Vec<Range<u64>>) -> Vec<PlannedPart> {
    ranges.into_iter().map(PlannedPart::FileRange).collect()
}

fn copy_parts(parts: &[Bytes], mut out: &mut [u8]) -> Result<(), Error> {
    for part in parts {
        let split = out.split_at_mut_checked(part.len());
        let (start, rest) =
            split.ok_or_else(|| Error::new_internal_error("a segment is longer than planned"))?;
        start.copy_from_slice(part);
        out = rest;
    }
    Ok(())
}
