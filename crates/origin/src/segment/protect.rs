//! Common Encryption of a segment: reads its samples, finds their subsamples, and encrypts them in
//! the memory that is sent.

use crate::drm::content_cipher::ContentCipher;
use crate::error;
use crate::segment::memory_body::MemoryBody;
use crate::segment::transmux::{check_packed_len, run_inline_or_blocking};
use crate::send::body_parts::PlannedPart;
use crate::send::body_source::BodySource;
use crate::send::build_body;
use bytes::Bytes;
use media::plan::{Plan, ProtectedFragment};
use media::presentation::{Presentation, Rendition};
use media::protection::SubsampleMap;
use net::Error;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use store::Arena;

/// Segments up to this length are encrypted inline, others on a blocking thread.
const ENCRYPT_INLINE_BYTES_MAX: usize = 2 << 20;

/// A segment to be encrypted.
pub(crate) struct ProtectJob {
    presentation: Arc<Presentation>,
    rendition: usize,
    fragment: ProtectedFragment,
    cipher: Arc<ContentCipher>,
}

impl ProtectJob {
    /// Names the fragment of the rendition with this index, and its cipher.
    pub(crate) fn new(
        presentation: Arc<Presentation>,
        rendition: usize,
        fragment: ProtectedFragment,
        cipher: Arc<ContentCipher>,
    ) -> ProtectJob {
        ProtectJob {
            presentation,
            rendition,
            fragment,
            cipher,
        }
    }

    /// Reads the samples and writes the segment into memory.
    pub(crate) async fn run(
        self,
        source: &BodySource,
        arena: &Arc<Arena>,
    ) -> Result<MemoryBody, Error> {
        let unmapped = self.plan(None)?;
        let len = usize::try_from(unmapped.len).unwrap_or(usize::MAX);
        let len = check_packed_len(len, "encrypt", "configure shorter segments")?;
        let ranges = unmapped.source_ranges.into_iter();
        let pieces: Vec<_> = ranges.map(PlannedPart::FileRange).collect();
        let parts = build_body::read_parts(source, &pieces).await?;
        let arena = arena.clone();
        run_inline_or_blocking("encrypt", len <= ENCRYPT_INLINE_BYTES_MAX, move || {
            self.encrypt(&parts, &arena)
        })
        .await
    }

    fn rendition(&self) -> Result<&Rendition, Error> {
        let rendition = self.presentation.renditions.get(self.rendition);
        rendition.ok_or_else(error::no_such_segment)
    }

    fn plan(&self, map: Option<&SubsampleMap>) -> Result<Plan, Error> {
        let rendition = self.rendition()?;
        Ok(self
            .presentation
            .plan_protected(rendition, self.fragment, map))
    }

    fn encrypt(&self, parts: &[Bytes], arena: &Arena) -> Result<MemoryBody, Error> {
        let rendition = self.rendition()?;
        let read = |range| read_range(parts, range);
        let presentation = &self.presentation;
        let map = presentation.find_subsamples(rendition, self.fragment, read);
        let map = map.map_err(from_media_error)?;
        let plan = self.plan(map.as_ref())?;
        MemoryBody::write_with(arena, plan.len as usize, |out| {
            let mut rest = copy_start(out, &plan.head)?;
            for part in parts {
                rest = copy_start(rest, part)?;
            }
            let payload = out.get_mut(plan.head.len()..).unwrap_or_default();
            let samples = (payload, map.as_ref());
            let done =
                presentation.encrypt_fragment(rendition, self.fragment, samples, &*self.cipher);
            done.map_err(from_media_error)?;
            Ok(plan.len as usize)
        })
    }
}

/// Copies bytes to the start of `out`, and returns the rest.
fn copy_start<'o>(out: &'o mut [u8], bytes: &[u8]) -> Result<&'o mut [u8], Error> {
    let split = out.split_at_mut_checked(bytes.len());
    let (start, rest) = split.ok_or_else(|| Error::internal("a segment is longer than planned"))?;
    start.copy_from_slice(bytes);
    Ok(rest)
}

/// Returns a range of the concatenated parts. Copies only what spans several parts.
fn read_range(parts: &[Bytes], range: Range<usize>) -> media::Result<Cow<'_, [u8]>> {
    let (mut start, mut len) = (range.start, range.len());
    let mut copied: Option<Vec<u8>> = None;
    for part in parts {
        if start >= part.len() {
            start -= part.len();
            continue;
        }
        let found = part
            .get(start..part.len().min(start + len))
            .unwrap_or_default();
        if found.len() == len && copied.is_none() {
            return Ok(Cow::Borrowed(found));
        }
        copied.get_or_insert_default().extend_from_slice(found);
        (start, len) = (0, len - found.len());
        if len == 0 {
            break;
        }
    }
    match len {
        0 => Ok(Cow::Owned(copied.unwrap_or_default())),
        _ => Err(media::Error::malformed("a sample lies outside its segment")),
    }
}

fn from_media_error(error: media::Error) -> Error {
    error::from_media("", &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_may_span_parts() {
        let parts: Vec<Bytes> = ["ab", "", "cde", "f"].map(Bytes::from).to_vec();
        let read = |range| read_range(&parts, range).map(Cow::into_owned);
        assert_eq!(read(0..2).unwrap(), b"ab");
        assert_eq!(read(1..6).unwrap(), b"bcdef");
        assert_eq!(read(3..4).unwrap(), b"d");
        assert_eq!(read(6..6).unwrap(), b"");
        assert!(read(5..7).is_err());
    }
}
