//! Applies Common Encryption to a segment. The samples of the segment are encrypted in the memory
//! from which they are sent. Samples of an encrypted source are decrypted first.

use crate::drm::source_cipher::TrackCiphers;
use crate::error;
use crate::segment::media_bytes::MediaBytes;
use crate::segment::memory_body::{MemoryBody, SegmentAllocator};
use crate::segment::transmux::{refuse_too_long_segment, run_inline_or_blocking};
use crate::send::body_source::BodySource;
use media::plan::{KnownSubsamples, Plan, SegmentOrKeyFrame};
use media::presentation::{Presentation, Rendition};
use media::protection::SubsampleMap;
use net::Error;
use std::ops::Range;
use std::sync::Arc;

/// Segments up to this length are encrypted inline. Longer segments are encrypted on a blocking
/// thread.
const ENCRYPT_INLINE_BYTES_MAX: usize = 2 << 20;

/// A segment or key frame that is to be encrypted.
#[derive(Clone)]
pub(crate) struct ProtectJob {
    presentation: Arc<Presentation>,
    rendition: usize,
    fragment: SegmentOrKeyFrame,
    ciphers: TrackCiphers,
}

impl ProtectJob {
    /// Creates the job for a fragment of the rendition with this index.
    pub(crate) fn new(
        presentation: Arc<Presentation>,
        rendition: usize,
        fragment: SegmentOrKeyFrame,
        ciphers: TrackCiphers,
    ) -> ProtectJob {
        ProtectJob {
            presentation,
            rendition,
            fragment,
            ciphers,
        }
    }

    /// Returns the subsamples that are known before the media is read. If only the media contains
    /// the subsamples, returns the subsamples of an earlier request (`recent`), if any.
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

    /// Plans the segment. `map` contains the subsamples of the segment. `map` is `None` if whole
    /// samples are encrypted.
    pub(crate) fn plan_with_subsamples(&self, map: Option<&SubsampleMap>) -> Result<Plan, Error> {
        let plan = self.plan_fragment(map)?;
        refuse_too_long_plan(&plan)?;
        Ok(plan)
    }

    /// Returns the sample numbers of the segment within its track.
    pub(crate) fn sample_range(&self) -> Result<Range<u32>, Error> {
        let rendition = self.rendition()?;
        Ok(self.presentation.fragment_samples(rendition, self.fragment))
    }

    /// Returns the sizes of samples, in bytes.
    pub(crate) fn sample_sizes(
        &self,
        samples: Range<u32>,
    ) -> Result<impl Iterator<Item = u32> + '_, Error> {
        let track = self.presentation.track(self.rendition()?);
        Ok(track.samples.iter_range(samples).map(|sample| sample.size))
    }

    /// Encrypts samples in place. If the source is encrypted, decrypts the samples first. `payload`
    /// and `map` start at the first sample in `samples`.
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

    /// Reads the samples, and writes the encrypted segment into memory. Also returns the subsamples
    /// of the segment, unless the index contains them.
    pub(crate) async fn encrypt_segment_into_memory(
        self,
        source: &BodySource,
        memory: &SegmentAllocator,
    ) -> Result<(MemoryBody, Option<SubsampleMap>), Error> {
        let unmapped = self.plan_fragment(None)?;
        let len = refuse_too_long_plan(&unmapped)?;
        let media = MediaBytes::fetch_or_defer_ranges(source, unmapped.source_ranges).await?;
        let is_quick = len <= ENCRYPT_INLINE_BYTES_MAX && media.can_read_inline(source);
        let memory = memory.clone();
        run_inline_or_blocking("encrypt", is_quick, move || {
            self.encrypt_fragment(&media, &memory)
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

    fn rendition(&self) -> Result<&Rendition, Error> {
        let rendition = self.presentation.renditions.get(self.rendition);
        rendition.ok_or_else(error::no_such_segment)
    }

    fn plan_fragment(&self, map: Option<&SubsampleMap>) -> Result<Plan, Error> {
        let rendition = self.rendition()?;
        Ok(self
            .presentation
            .plan_protected(rendition, self.fragment, map))
    }

    /// Reads the samples into the memory from which they are sent, and encrypts them in place.
    fn encrypt_fragment(
        &self,
        media: &MediaBytes,
        memory: &SegmentAllocator,
    ) -> Result<(MemoryBody, Option<SubsampleMap>), Error> {
        let (mut head, mut new_map) = (Vec::new(), None);
        let payload = memory.allocate_and_write(media.len()?, |payload| {
            media.read_into(payload)?;
            (head, new_map) = self.encrypt_payload(payload)?;
            Ok(payload.len())
        })?;
        Ok((payload.with_head(head), new_map))
    }

    /// Encrypts the samples in place. Returns the head of the segment. Also returns the subsamples
    /// of the segment, unless the index contains them.
    fn encrypt_payload(
        &self,
        payload: &mut [u8],
    ) -> Result<(Vec<u8>, Option<SubsampleMap>), Error> {
        let samples = self.sample_range()?;
        self.decrypt_samples(samples.clone(), payload)?;
        let (map, is_new) = match self.known_subsamples(None)? {
            KnownSubsamples::Map(map) => (Some(map), false),
            KnownSubsamples::WholeSamples => (None, false),
            KnownSubsamples::Unknown => (self.find_subsamples(payload)?, true),
        };
        let (rendition, cipher) = (self.rendition()?, &*self.ciphers.content);
        self.presentation
            .encrypt_samples_of(rendition, samples, (payload, map.as_ref()), cipher)
            .map_err(from_media_error)?;
        let head = self.plan_fragment(map.as_ref())?.head;
        Ok((head, map.filter(|_| is_new)))
    }

    fn find_subsamples(&self, payload: &[u8]) -> Result<Option<SubsampleMap>, Error> {
        self.presentation
            .find_subsamples(self.rendition()?, self.fragment, payload)
            .map_err(from_media_error)
    }
}

/// Returns the length of a segment, or an error if the length exceeds the limit.
fn refuse_too_long_plan(plan: &Plan) -> Result<usize, Error> {
    let len = usize::try_from(plan.len).unwrap_or(usize::MAX);
    refuse_too_long_segment(len, "encrypt", "configure shorter segments")
}

fn from_media_error(error: media::Error) -> Error {
    error::from_media("", &error)
}
