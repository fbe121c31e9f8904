//! Reads the media of a segment, transmuxes or encrypts it, and writes the result into memory.
//!
//! A local film that is packed into a transport stream is read in batches. Each batch is packed
//! into the memory from which the segment is sent, and encrypted there if required. During both
//! steps, the batch is still in the processor's cache. Each byte is copied only twice. The first
//! copy is from the page cache into the batch, and the second copy is from the batch into the
//! segment.

use crate::error;
use crate::error::no_such_segment;
use crate::segment::hls_aes128::{CbcEncryptor, SegmentEncryption};
use crate::segment::memory_body::{MemoryBody, SegmentAllocator};
use crate::send::body_parts::PlannedPart;
use crate::send::body_source::BodySource;
use crate::send::build_body;
use bytes::Bytes;
use media::codec::Codec;
use media::error::ErrorKind;
use media::manifest::hls::encrypted_len;
use media::plan::SegmentAccessUnits;
use media::presentation::Presentation;
use media::ts;
use net::Error;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use store::{LocalFile, Object, RequestReason};
use trace::SpanKind;

/// Maximum length of a packed segment. Ten seconds at 400 Mbit/s fit into this length. The limit is
/// necessary because damaged tables can declare any length.
const PACKED_BYTES_MAX: usize = 512 << 20;
/// Segments longer than this are packed on a blocking thread.
const PACK_INLINE_BYTES_MAX: usize = 2 << 20;
/// Size of a batch. The input and output of one batch together fit into the private cache of a
/// processor core. A batch that contains a single long sample may be larger.
const BATCH_BYTES: u64 = 128 << 10;
/// Maximum size of the read buffer that a thread retains. With a retained buffer, the next segment
/// needs no new memory.
const BATCH_BUFFER_BYTES_MAX: usize = 2 * BATCH_BYTES as usize;

thread_local! {
    static BATCH_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A segment to be transmuxed or encrypted.
pub(crate) struct HlsSegmentJob {
    input: TransmuxInput,
    /// Encryption of the segment, if any.
    encryption: Option<SegmentEncryption>,
}

enum TransmuxInput {
    /// Samples that are packed into a transport stream or as packed audio.
    Samples(SegmentSamples),
    /// A planned segment that only needs encryption.
    Planned(Vec<PlannedPart>),
}

/// Identifies the samples of one segment.
pub(crate) struct SegmentSamples {
    presentation: Arc<Presentation>,
    /// Index of the rendition within the presentation.
    rendition: usize,
    /// Index of the segment within the rendition.
    segment: usize,
}

/// Samples with their sizes, times and positions in the file.
struct ResolvedSamples {
    presentation: Arc<Presentation>,
    rendition: usize,
    units: SegmentAccessUnits,
}

impl SegmentSamples {
    /// Identifies the samples of the segment with the index `segment` in the rendition with the
    /// index `rendition`.
    pub(crate) fn new(
        presentation: Arc<Presentation>,
        rendition: usize,
        segment: usize,
    ) -> SegmentSamples {
        SegmentSamples {
            presentation,
            rendition,
            segment,
        }
    }

    fn resolve_samples(self) -> Result<ResolvedSamples, Error> {
        let rendition = self.presentation.renditions.get(self.rendition);
        let rendition = rendition.ok_or_else(no_such_segment)?;
        Ok(ResolvedSamples {
            units: self.presentation.plan_access_units(rendition, self.segment),
            presentation: self.presentation,
            rendition: self.rendition,
        })
    }
}

impl HlsSegmentJob {
    /// Creates the job that transmuxes samples into a transport stream or packed audio, and
    /// encrypts them if required.
    pub(crate) fn from_samples(
        samples: SegmentSamples,
        encryption: Option<SegmentEncryption>,
    ) -> HlsSegmentJob {
        HlsSegmentJob {
            input: TransmuxInput::Samples(samples),
            encryption,
        }
    }

    /// Creates the job that encrypts a planned segment.
    pub(crate) fn from_parts(
        pieces: Vec<PlannedPart>,
        encryption: SegmentEncryption,
    ) -> HlsSegmentJob {
        HlsSegmentJob {
            input: TransmuxInput::Planned(pieces),
            encryption: Some(encryption),
        }
    }

    /// Reads the media and writes the segment into memory.
    pub(crate) async fn write_segment_into_memory(
        self,
        source: &BodySource,
        memory: &SegmentAllocator,
    ) -> Result<MemoryBody, Error> {
        let encryption = self.encryption;
        let memory = memory.clone();
        match self.input {
            TransmuxInput::Planned(pieces) => {
                let len: u64 = pieces.iter().map(PlannedPart::len).sum();
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let len = refuse_too_long_segment(len, "encrypt", "configure shorter segments")?;
                let parts = build_body::read_parts(source, &pieces).await?;
                let now = len <= PACK_INLINE_BYTES_MAX;
                run_inline_or_blocking("encrypt", now, move || {
                    concat_and_encrypt(&parts, len, encryption.as_ref(), &memory)
                })
                .await
            }
            TransmuxInput::Samples(samples) => {
                samples
                    .resolve_samples()?
                    .pack_samples(source, encryption, memory)
                    .await
            }
        }
    }
}

/// Runs `work` inline if `now` is set, otherwise on a blocking thread. Records the execution as a
/// trace span with this name.
pub(crate) async fn run_inline_or_blocking<T: Send + 'static>(
    name: &'static str,
    now: bool,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let _span = trace::start_span(name, SpanKind::Internal);
    if now {
        return work();
    }
    let task = tokio::task::spawn_blocking(work);
    task.await.unwrap_or_else(|e| Err(error::from_task(&e)))
}

impl ResolvedSamples {
    async fn pack_samples(
        self,
        source: &BodySource,
        encryption: Option<SegmentEncryption>,
        memory: SegmentAllocator,
    ) -> Result<MemoryBody, Error> {
        let len = self.packed_len_max()?;
        let now = len <= PACK_INLINE_BYTES_MAX;
        let ranges = self.units.source_ranges.iter();
        let pieces: Vec<_> = ranges.cloned().map(PlannedPart::FileRange).collect();
        match &*source.object {
            Object::Local(file) if self.uses_transport_stream()? => {
                let now = now && source.can_read_inline(&pieces);
                let (file, reason) = (file.clone(), source.reason);
                run_inline_or_blocking("pack", now, move || {
                    self.pack_from_file(&file, reason, (len, encryption.as_ref()), &memory)
                })
                .await
            }
            _ => {
                let parts = build_body::read_parts(source, &pieces).await?;
                run_inline_or_blocking("pack", now, move || {
                    self.pack_from_memory(&parts, len, encryption.as_ref(), &memory)
                })
                .await
            }
        }
    }

    fn codec(&self) -> Result<&Codec, Error> {
        let rendition = self.presentation.renditions.get(self.rendition);
        let rendition = rendition.ok_or_else(no_such_segment)?;
        Ok(&self.presentation.track(rendition).codec)
    }

    fn uses_transport_stream(&self) -> Result<bool, Error> {
        self.codec().map(ts::can_mux_ts)
    }

    fn new_ts_muxer(&self) -> Result<ts::BatchedMuxer<'_>, Error> {
        ts::BatchedMuxer::new(self.codec()?, &self.units).map_err(from_media_error)
    }

    /// Returns an upper bound of the packed length.
    fn packed_len_max(&self) -> Result<usize, Error> {
        let len = if self.uses_transport_stream()? {
            self.new_ts_muxer()?.segment_len_max()
        } else {
            let bytes = self.units.units.iter().map(|unit| u64::from(unit.size));
            let frames = self.units.units.len() as u64;
            let len = ts::packed_audio_segment_len(self.codec()?, frames, bytes.sum());
            usize::try_from(len).unwrap_or(usize::MAX)
        };
        refuse_too_long_segment(len, "transmux", "request CMAF segments")
    }

    /// Packs media that is in memory.
    fn pack_from_memory(
        &self,
        parts: &[Bytes],
        len: usize,
        encryption: Option<&SegmentEncryption>,
        memory: &SegmentAllocator,
    ) -> Result<MemoryBody, Error> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        if self.uses_transport_stream()? {
            let mut batches = self.new_ts_muxer()?;
            let all = batches
                .plan_next_batch(u64::MAX)
                .ok_or_else(no_such_segment)?;
            return memory.allocate_and_write(padded_len(len, encryption), |out| {
                let mut out = SegmentBuffer::new(out, encryption);
                out.write_next(|room| {
                    batches
                        .write_batch(&all, &parts, room)
                        .map_err(from_media_error)
                })?;
                out.finish_segment()
            });
        }
        let packed = ts::mux_ts_or_packed_audio(self.codec()?, &self.units, &parts)
            .map_err(from_media_error)?;
        let len = packed.len();
        concat_and_encrypt(&[packed.into()], len, encryption, memory)
    }

    /// Reads the media in batches, and packs each batch into a transport stream. Blocks the thread.
    fn pack_from_file(
        &self,
        file: &LocalFile,
        reason: RequestReason,
        (len, encryption): (usize, Option<&SegmentEncryption>),
        memory: &SegmentAllocator,
    ) -> Result<MemoryBody, Error> {
        file.check_and_count_request(self.units.source_ranges.iter().cloned(), reason)
            .map_err(from_store_error)?;
        let mut batches = self.new_ts_muxer()?;
        let held = memory.allocate_and_write(padded_len(len, encryption), |out| {
            mux_batches_from_file(&mut batches, file, SegmentBuffer::new(out, encryption))
        })?;
        if file.changed() {
            return Err(from_store_error(store::Error::Changed));
        }
        Ok(held)
    }
}

fn mux_batches_from_file(
    batches: &mut ts::BatchedMuxer<'_>,
    file: &LocalFile,
    mut out: SegmentBuffer<'_>,
) -> Result<usize, Error> {
    let mut buffer = BATCH_BUFFER.take();
    while let Some(batch) = batches.plan_next_batch(BATCH_BYTES) {
        let bytes = read_ranges(file, &batch.source_ranges, &mut buffer)?;
        out.write_next(|room| {
            batches
                .write_batch(&batch, &[bytes], room)
                .map_err(from_media_error)
        })?;
    }
    if buffer.len() <= BATCH_BUFFER_BYTES_MAX {
        BATCH_BUFFER.set(buffer);
    }
    out.finish_segment()
}

/// Concatenates the parts, and encrypts the result if required.
fn concat_and_encrypt(
    parts: &[Bytes],
    len: usize,
    encryption: Option<&SegmentEncryption>,
    memory: &SegmentAllocator,
) -> Result<MemoryBody, Error> {
    if encryption.is_none() {
        return memory.copy_parts(parts);
    }
    memory.allocate_and_write(padded_len(len, encryption), |out| {
        let mut out = SegmentBuffer::new(out, encryption);
        let steps = parts
            .iter()
            .flat_map(|part| part.chunks(BATCH_BYTES as usize));
        for step in steps {
            out.write_next(|room| {
                let room = room.get_mut(..step.len());
                let room = room
                    .ok_or_else(|| Error::new_internal_error("a segment is longer than planned"))?;
                room.copy_from_slice(step);
                Ok(step.len())
            })?;
        }
        out.finish_segment()
    })
}

/// The memory into which a segment is written. The segment is encrypted in place if required.
struct SegmentBuffer<'o> {
    bytes: &'o mut [u8],
    len: usize,
    encryptor: Option<CbcEncryptor>,
}

impl<'o> SegmentBuffer<'o> {
    fn new(bytes: &'o mut [u8], encryption: Option<&SegmentEncryption>) -> SegmentBuffer<'o> {
        SegmentBuffer {
            bytes,
            len: 0,
            encryptor: encryption.map(SegmentEncryption::start_encryption),
        }
    }

    /// Calls `write` to fill the start of the remaining memory, and encrypts all complete blocks.
    fn write_next(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        self.len += write(self.bytes.get_mut(self.len..).unwrap_or_default())?;
        match &mut self.encryptor {
            Some(encryptor) => encryptor.encrypt_blocks(self.bytes, self.len),
            None => Ok(()),
        }
    }

    /// Adds the padding if the segment is encrypted, and returns the total length.
    fn finish_segment(self) -> Result<usize, Error> {
        match self.encryptor {
            Some(encryptor) => encryptor.finish_encryption(self.bytes, self.len),
            None => Ok(self.len),
        }
    }
}

/// Returns the length that a segment needs in memory, including the padding.
fn padded_len(len: usize, encryption: Option<&SegmentEncryption>) -> usize {
    encryption.map_or(len, |_| encrypted_len(len as u64) as usize)
}

/// Returns the length, or an error if the length exceeds the limit.
pub(crate) fn refuse_too_long_segment(
    len: usize,
    wrong: &str,
    remedy: &str,
) -> Result<usize, Error> {
    if len > PACKED_BYTES_MAX {
        let what =
            format!("cannot {wrong} a segment of {len} bytes, over {PACKED_BYTES_MAX}; {remedy}");
        return Err(from_media_error(media::Error::new(
            ErrorKind::TooLarge,
            what,
        )));
    }
    Ok(len)
}

/// Reads ranges of the file into `buffer`, one directly after the other.
fn read_ranges<'b>(
    file: &LocalFile,
    ranges: &[Range<u64>],
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8], Error> {
    let len: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let len = len as usize;
    if buffer.len() < len {
        *buffer = vec![0; len.max(BATCH_BYTES as usize)];
    }
    let (bytes, _) = buffer.split_at_mut(len);
    let mut rest = &mut *bytes;
    for range in ranges {
        let (now, later) = rest.split_at_mut((range.end - range.start) as usize);
        file.read_into(range.start, now).map_err(from_store_error)?;
        rest = later;
    }
    Ok(bytes)
}

fn from_store_error(error: store::Error) -> Error {
    error::from_store(&error)
}

fn from_media_error(error: media::Error) -> Error {
    error::from_media("", &error)
}
