//! Encrypts a segment while its media arrives. The segment's length is known in advance, because
//! its subsamples are known.

use crate::error;
use crate::response::response_cache::segments::SegmentCache;
use crate::response::response_cache::unfinished_segment_budget::UnfinishedSegmentReservation;
use crate::segment::cached_segment::{CachedSegment, SegmentFacts};
use crate::segment::memory_body::MemoryBody;
use crate::segment::protect::ProtectJob;
use crate::send::body_parts::PlannedPart;
use crate::send::body_source::BodySource;
use crate::send::{PartStream, build_body};
use bytes::Bytes;
use futures_util::stream;
use media::plan::Plan;
use media::protection::SubsampleMap;
use net::body::BodyError;
use net::{Body, Chunk, Error};
use std::ops::Range;
use std::sync::Arc;

/// The place of a segment in the cache.
#[derive(Clone, Copy)]
pub(crate) struct SegmentSlot<'a> {
    pub(crate) cache: &'a Arc<SegmentCache>,
    /// The canonical path of the segment, under which its subsamples are stored.
    pub(crate) path: &'a str,
    /// Whether the client requested the canonical path. Only then is the segment stored.
    pub(crate) is_canonical: bool,
}

/// A cache entry that is stored when all bytes of the segment have been encrypted.
pub(crate) struct PendingCacheEntry {
    cache: Arc<SegmentCache>,
    path: Box<str>,
    facts: SegmentFacts,
    _reservation: UnfinishedSegmentReservation,
}

impl SegmentSlot<'_> {
    /// Reserves memory for a cache entry. Returns `None` if the client did not request the canonical
    /// path, or if other unfinished segments hold too much memory.
    pub(crate) fn reserve_entry(
        &self,
        facts: &SegmentFacts,
        len: u64,
    ) -> Option<PendingCacheEntry> {
        if !self.is_canonical {
            return None;
        }
        Some(PendingCacheEntry {
            _reservation: self.cache.unfinished.reserve(len)?,
            cache: self.cache.clone(),
            path: self.path.into(),
            facts: facts.clone(),
        })
    }
}

impl PendingCacheEntry {
    fn store_in_cache(self, bytes: &[Bytes]) {
        let memory = MemoryBody::copy_from(bytes, self.cache.arena());
        let segment = Arc::new(CachedSegment::from_memory(self.facts, memory));
        self.cache.insert_new_segment(&self.path, segment);
    }
}

/// A segment that is being encrypted and sent.
pub(crate) struct ProtectedStream {
    job: ProtectJob,
    map: Option<SubsampleMap>,
    head: Option<Bytes>,
    /// Sample numbers, within the track, of the samples that have not been sent yet.
    samples: Range<u32>,
    /// Number, within the track, of the fragment's first sample.
    first: u32,
    media: PartStream,
    /// Media that has arrived but has not been sent. Its length is less than one sample plus one
    /// frame of the stream `media`.
    pending: Vec<u8>,
    /// Bytes of the segment that have been encrypted so far. They are retained for the cache entry.
    sent: Vec<Bytes>,
    entry: Option<PendingCacheEntry>,
}

impl ProtectedStream {
    /// Requests the media of a remote file, and builds the body. The first samples have arrived
    /// when this function returns, so that an earlier error can still determine the response
    /// status.
    pub(crate) async fn build_body(
        job: ProtectJob,
        (plan, map): (Plan, Option<SubsampleMap>),
        source: &BodySource,
        entry: Option<PendingCacheEntry>,
    ) -> Result<Body, Error> {
        let ranges = plan.source_ranges.into_iter();
        let pieces: Vec<_> = ranges.map(PlannedPart::FileRange).collect();
        let samples = job.sample_range()?;
        let mut stream = ProtectedStream {
            job,
            map,
            head: Some(plan.head.into()),
            first: samples.start,
            samples,
            media: build_body::open_stream(source, &pieces).await?,
            pending: Vec::new(),
            sent: Vec::new(),
            entry,
        };
        let first = stream.next_chunk().await?;
        let frames = stream::try_unfold((first, stream), |(first, mut stream)| async {
            let chunk = match first {
                Some(first) => Some(first),
                None => stream.next_chunk().await.map_err(BodyError::new)?,
            };
            Ok::<_, BodyError>(chunk.map(|chunk| (chunk, (None, stream))))
        });
        Ok(Body::sized_stream(plan.len, frames))
    }

    async fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        while !self.samples.is_empty() {
            let (ready, bytes) = self.count_complete_samples()?;
            if ready > 0 {
                return self.encrypt_complete_samples(ready, bytes).map(Some);
            }
            let frame = self.media.next_frame().await;
            let frame = frame.map_err(|e| error::from_store(&e))?;
            let frame = frame.ok_or_else(|| error::from_store(&store::Error::Changed))?;
            for bytes in frame.iter().filter_map(PlannedPart::as_memory_bytes) {
                self.pending.extend_from_slice(bytes);
            }
        }
        Ok(None)
    }

    /// Returns the number of complete samples in `pending`, and their total length in bytes.
    fn count_complete_samples(&self) -> Result<(u32, usize), Error> {
        let (mut count, mut bytes) = (0, 0);
        for size in self.job.sample_sizes(self.samples.clone())? {
            if bytes + size as usize > self.pending.len() {
                break;
            }
            (count, bytes) = (count + 1, bytes + size as usize);
        }
        Ok((count, bytes))
    }

    fn encrypt_complete_samples(&mut self, count: u32, bytes: usize) -> Result<Chunk, Error> {
        let rest = self.pending.split_off(bytes);
        let mut payload = std::mem::replace(&mut self.pending, rest);
        let ready = self.samples.start..self.samples.start + count;
        let (from, to) = (ready.start - self.first, ready.end - self.first);
        let map = self.map.as_ref();
        let map = map.map(|map| map.slice(from as usize..to as usize));
        self.samples.start = ready.end;
        self.job
            .encrypt_samples(ready, &mut payload, map.as_ref())?;
        let pieces: Vec<Bytes> = self
            .head
            .take()
            .into_iter()
            .chain([payload.into()])
            .collect();
        if self.entry.is_some() {
            self.sent.extend(pieces.iter().cloned());
        }
        if self.samples.is_empty()
            && let Some(entry) = self.entry.take()
        {
            entry.store_in_cache(&std::mem::take(&mut self.sent));
        }
        Ok(Chunk::from_pieces(pieces))
    }
}
