//! Common Encryption of a segment: reads its samples, finds their subsamples, and encrypts them in
//! the memory that is sent. Samples of an encrypted source are decrypted first.

use crate::drm::source_cipher::TrackCiphers;
use crate::error;
use crate::segment::memory_body::MemoryBody;
use crate::segment::transmux::{check_packed_len, run_inline_or_blocking};
use crate::send::body_parts::PlannedPart;
use crate::send::body_source::BodySource;
use crate::send::build_body;
use bytes::Bytes;
use media::plan::{KnownSubsamples, Plan, ProtectedFragment};
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
#[derive(Clone)]
pub(crate) struct ProtectJob {
    presentation: Arc<Presentation>,
    rendition: usize,
    fragment: ProtectedFragment,
    ciphers: TrackCiphers,
}

impl ProtectJob {
    /// Names the fragment of the rendition with this index, and its ciphers.
    pub(crate) fn new(
        presentation: Arc<Presentation>,
        rendition: usize,
        fragment: ProtectedFragment,
        ciphers: TrackCiphers,
    ) -> ProtectJob {
        ProtectJob {
            presentation,
            rendition,
            fragment,
            ciphers,
        }
    }

    /// Returns the subsamples that are known before the media is read: those of the index, or
    /// `recent` ones.
    pub(crate) fn known_subsamples(
        &self,
        recent: Option<Arc<SubsampleMap>>,
    ) -> Result<KnownSubsamples, Error> {
        let rendition = self.rendition()?;
        let known = self.presentation.known_subsamples(rendition, self.fragment);
        Ok(match (known, recent) {
            (KnownSubsamples::Unknown, Some(map)) => KnownSubsamples::Map((*map).clone()),
            (known, _) => known,
        })
    }

    /// Plans the segment with its subsamples.
    pub(crate) fn plan_mapped(&self, map: Option<&SubsampleMap>) -> Result<Plan, Error> {
        let plan = self.plan(map)?;
        check_len(&plan)?;
        Ok(plan)
    }

    /// Returns the numbers of the segment's samples in the track.
    pub(crate) fn samples(&self) -> Result<Range<u32>, Error> {
        let rendition = self.rendition()?;
        Ok(self.presentation.fragment_samples(rendition, self.fragment))
    }

    /// Returns the sizes of samples, in bytes.
    pub(crate) fn sample_sizes(
        &self,
        samples: Range<u32>,
    ) -> Result<impl Iterator<Item = u32> + '_, Error> {
        let track = self.presentation.track(self.rendition()?);
        Ok(track.samples.range(samples).map(|sample| sample.size))
    }

    /// Encrypts samples in place, after decrypting those of an encrypted source. Payload and map start
    /// at the first of them.
    pub(crate) fn encrypt_samples(
        &self,
        samples: Range<u32>,
        payload: &mut [u8],
        map: Option<&SubsampleMap>,
    ) -> Result<(), Error> {
        self.decrypt_samples(samples.clone(), payload)?;
        let (presentation, cipher) = (&self.presentation, &*self.ciphers.content);
        presentation
            .encrypt_samples_of(self.rendition()?, samples, (payload, map), cipher)
            .map_err(from_media_error)
    }

    /// Reads the samples and writes the segment into memory. Also returns its subsamples, unless
    /// the index contains them.
    pub(crate) async fn run(
        self,
        source: &BodySource,
        arena: &Arc<Arena>,
    ) -> Result<(MemoryBody, Option<SubsampleMap>), Error> {
        let unmapped = self.plan(None)?;
        let len = check_len(&unmapped)?;
        let ranges = unmapped.source_ranges.into_iter();
        let pieces: Vec<_> = ranges.map(PlannedPart::FileRange).collect();
        let parts = build_body::read_parts(source, &pieces).await?;
        let arena = arena.clone();
        run_inline_or_blocking("encrypt", len <= ENCRYPT_INLINE_BYTES_MAX, move || {
            self.encrypt(&parts, &arena)
        })
        .await
    }

    /// Decrypts samples in place, if the source is encrypted.
    fn decrypt_samples(&self, samples: Range<u32>, payload: &mut [u8]) -> Result<(), Error> {
        let Some(cipher) = &self.ciphers.source else {
            return Ok(());
        };
        self.presentation
            .decrypt_samples_of(self.rendition()?, samples, payload, &**cipher)
            .map_err(from_media_error)
    }

    /// Returns a decrypted copy of the fragment's samples; `None` if the source is not encrypted.
    fn decrypt_parts(&self, parts: &[Bytes]) -> Result<Option<Bytes>, Error> {
        if self.ciphers.source.is_none() {
            return Ok(None);
        }
        let mut payload = parts.concat();
        self.decrypt_samples(self.samples()?, &mut payload)?;
        Ok(Some(payload.into()))
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

    fn encrypt(
        &self,
        parts: &[Bytes],
        arena: &Arena,
    ) -> Result<(MemoryBody, Option<SubsampleMap>), Error> {
        let rendition = self.rendition()?;
        let decrypted = self.decrypt_parts(parts)?;
        let parts = decrypted.as_ref().map_or(parts, std::slice::from_ref);
        let read = |range| read_range(parts, range);
        let presentation = &self.presentation;
        let (map, is_new) = match self.known_subsamples(None)? {
            KnownSubsamples::Map(map) => (Some(map), false),
            KnownSubsamples::WholeSamples => (None, false),
            KnownSubsamples::Unknown => {
                let map = presentation.find_subsamples(rendition, self.fragment, read);
                (map.map_err(from_media_error)?, true)
            }
        };
        let plan = self.plan(map.as_ref())?;
        let memory = MemoryBody::write_with(arena, plan.len as usize, |out| {
            let mut rest = copy_start(out, &plan.head)?;
            for part in parts {
                rest = copy_start(rest, part)?;
            }
            let payload = out.get_mut(plan.head.len()..).unwrap_or_default();
            let samples = (payload, map.as_ref());
            let done = presentation.encrypt_fragment(
                rendition,
                self.fragment,
                samples,
                &*self.ciphers.content,
            );
            done.map_err(from_media_error)?;
            Ok(plan.len as usize)
        })?;
        Ok((memory, map.filter(|_| is_new)))
    }
}

/// Returns the length of a segment, unless it is too long for memory.
fn check_len(plan: &Plan) -> Result<usize, Error> {
    let len = usize::try_from(plan.len).unwrap_or(usize::MAX);
    check_packed_len(len, "encrypt", "configure shorter segments")
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
