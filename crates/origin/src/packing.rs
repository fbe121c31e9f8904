//! Transport streams and packed audio: samples read, and packed; and whatever is encrypted.
//!
//! A film of this machine is read in batches that the processor's cache holds until they are packed,
//! and packed where they are sent from: each byte is copied from the page cache, and once more. There it
//! is encrypted too, while the cache still holds it.

use crate::error;
use crate::pieces::{self, Piece, Source};
use crate::ready::Held;
use crate::seal::{Sealed, Sealing};
use crate::segment::no_segment;
use bytes::Bytes;
use media::codec::Codec;
use media::error::Kind;
use media::manifest::hls::encrypted_len;
use media::plan::AccessUnits;
use media::presentation::Presentation;
use media::ts;
use net::Error;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use store::{Arena, LocalFile, Object, Reason};

/// The longest segment that is packed: ten seconds of 400 Mbit/s. Damaged tables can ask for any length.
const PACKED_BYTES_MAX: usize = 512 << 20;
/// Packing more than this is left to a thread that may take its time.
const PACK_NOW_BYTES_MAX: usize = 2 << 20;
/// Read and packed at a time: with what becomes of it, it stays in a core's own cache. One sample may
/// be longer.
const BATCH_BYTES: u64 = 128 << 10;
/// What a thread keeps of what it read into, so that the next segment needs no memory that is new.
const SPARE_BYTES_MAX: usize = 2 * BATCH_BYTES as usize;

thread_local! {
    static BATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A segment to be packed.
pub(crate) struct Packing {
    source: Source,
    what: What,
    /// How it is encrypted, if it is.
    sealed: Option<Sealed>,
}

enum What {
    /// Samples, in a transport stream or as packed audio.
    Samples(Samples),
    /// A segment that only needs to be encrypted.
    AsIs(Arc<[Piece]>),
}

/// What is packed.
struct Samples {
    presentation: Arc<Presentation>,
    place: usize,
    units: AccessUnits,
}

impl Packing {
    /// Of segment `n` of the rendition at `place`.
    pub(crate) fn new(
        source: Source,
        presentation: &Arc<Presentation>,
        place: usize,
        n: usize,
        sealed: Option<Sealed>,
    ) -> Result<Packing, Error> {
        let rendition = presentation.renditions.get(place).ok_or_else(no_segment)?;
        let samples = Samples {
            units: presentation.units(rendition, n),
            presentation: presentation.clone(),
            place,
        };
        Ok(Packing {
            source,
            what: What::Samples(samples),
            sealed,
        })
    }

    /// Of what these pieces are.
    pub(crate) fn as_is(source: Source, pieces: &Arc<[Piece]>, sealed: Option<Sealed>) -> Packing {
        Packing {
            source,
            what: What::AsIs(pieces.clone()),
            sealed,
        }
    }

    /// Reads and packs it.
    pub(crate) async fn run(self, arena: &Arc<Arena>) -> Result<Held, Error> {
        let Packing {
            source,
            what,
            sealed,
        } = self;
        let arena = arena.clone();
        match what {
            What::AsIs(pieces) => {
                let len: u64 = pieces.iter().map(Piece::len).sum();
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let len = bounded(len, "is not encrypted", "wish for shorter ones")?;
                let parts = pieces::read(&source, &pieces).await?;
                let now = len <= PACK_NOW_BYTES_MAX;
                work(now, move || copy(&parts, len, sealed.as_ref(), &arena)).await
            }
            What::Samples(samples) => samples.run(source, sealed, arena).await,
        }
    }
}

/// Here and now, or by a thread that may wait.
async fn work(
    now: bool,
    work: impl FnOnce() -> Result<Held, Error> + Send + 'static,
) -> Result<Held, Error> {
    if now {
        return work();
    }
    let task = tokio::task::spawn_blocking(work);
    task.await.unwrap_or_else(|e| Err(error::of_task(&e)))
}

impl Samples {
    async fn run(
        self,
        source: Source,
        sealed: Option<Sealed>,
        arena: Arc<Arena>,
    ) -> Result<Held, Error> {
        let len = self.len_max()?;
        let now = len <= PACK_NOW_BYTES_MAX;
        let ranges = self.units.ranges.iter();
        let pieces: Vec<_> = ranges.cloned().map(Piece::Of).collect();
        match &*source.object {
            Object::Local(file) if self.goes_into_ts()? => {
                let now = now && source.is_quick(&pieces);
                let (file, reason) = (file.clone(), source.reason);
                work(now, move || {
                    self.batched(&file, reason, (len, sealed.as_ref()), &arena)
                })
                .await
            }
            _ => {
                let parts = pieces::read(&source, &pieces).await?;
                work(now, move || {
                    self.whole(&parts, len, sealed.as_ref(), &arena)
                })
                .await
            }
        }
    }

    fn codec(&self) -> Result<&Codec, Error> {
        let rendition = self.presentation.renditions.get(self.place);
        let rendition = rendition.ok_or_else(no_segment)?;
        Ok(&self.presentation.track(rendition).codec)
    }

    fn goes_into_ts(&self) -> Result<bool, Error> {
        self.codec().map(ts::can_ts)
    }

    fn batches(&self) -> Result<ts::Batches<'_>, Error> {
        ts::Batches::new(self.codec()?, &self.units).map_err(of_media)
    }

    /// No more bytes than this come of it.
    fn len_max(&self) -> Result<usize, Error> {
        let len = if self.goes_into_ts()? {
            self.batches()?.len_max()
        } else {
            let bytes = self.units.units.iter().map(|unit| u64::from(unit.size));
            let frames = self.units.units.len() as u64;
            let len = ts::packed_audio_len(self.codec()?, frames, bytes.sum());
            usize::try_from(len).unwrap_or(usize::MAX)
        };
        bounded(len, "is not packed", "ask for CMAF")
    }

    /// Packs what was read.
    fn whole(
        &self,
        parts: &[Bytes],
        len: usize,
        sealed: Option<&Sealed>,
        arena: &Arena,
    ) -> Result<Held, Error> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        if self.goes_into_ts()? {
            let mut batches = self.batches()?;
            let all = batches.next(u64::MAX).ok_or_else(no_segment)?;
            return Held::made(arena, room(len, sealed), |out| {
                let mut out = Out::new(out, sealed);
                out.write(|room| batches.write(&all, &parts, room).map_err(of_media))?;
                out.end()
            });
        }
        let packed = ts::wrap(self.codec()?, &self.units, &parts).map_err(of_media)?;
        let len = packed.len();
        copy(&[packed.into()], len, sealed, arena)
    }

    /// Reads and packs a transport stream, batch by batch. Blocks.
    fn batched(
        &self,
        file: &LocalFile,
        reason: Reason,
        (len, sealed): (usize, Option<&Sealed>),
        arena: &Arena,
    ) -> Result<Held, Error> {
        file.ask(&self.units.ranges, reason).map_err(of_store)?;
        let mut batches = self.batches()?;
        let held = Held::made(arena, room(len, sealed), |out| {
            pack(&mut batches, file, Out::new(out, sealed))
        })?;
        if file.changed() {
            return Err(of_store(store::Error::Changed));
        }
        Ok(held)
    }
}

fn pack(batches: &mut ts::Batches<'_>, file: &LocalFile, mut out: Out<'_>) -> Result<usize, Error> {
    let mut buffer = BATCH.take();
    while let Some(batch) = batches.next(BATCH_BYTES) {
        let bytes = read(file, &batch.ranges, &mut buffer)?;
        out.write(|room| batches.write(&batch, &[bytes], room).map_err(of_media))?;
    }
    if buffer.len() <= SPARE_BYTES_MAX {
        BATCH.set(buffer);
    }
    out.end()
}

/// One part behind the other.
fn copy(
    parts: &[Bytes],
    len: usize,
    sealed: Option<&Sealed>,
    arena: &Arena,
) -> Result<Held, Error> {
    if sealed.is_none() {
        return Ok(Held::copied(parts, arena));
    }
    Held::made(arena, room(len, sealed), |out| {
        let mut out = Out::new(out, sealed);
        let steps = parts
            .iter()
            .flat_map(|part| part.chunks(BATCH_BYTES as usize));
        for step in steps {
            out.write(|room| {
                let room = room.get_mut(..step.len());
                let room = room.ok_or_else(|| Error::internal("more bytes than were asked for"))?;
                room.copy_from_slice(step);
                Ok(step.len())
            })?;
        }
        out.end()
    })
}

/// Where a segment is written to, and encrypted if it is to be.
struct Out<'o> {
    bytes: &'o mut [u8],
    len: usize,
    sealing: Option<Sealing>,
}

impl<'o> Out<'o> {
    fn new(bytes: &'o mut [u8], sealed: Option<&Sealed>) -> Out<'o> {
        Out {
            bytes,
            len: 0,
            sealing: sealed.map(Sealed::begin),
        }
    }

    /// Has the next bytes written to the begin of what room there is.
    fn write(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        self.len += write(self.bytes.get_mut(self.len..).unwrap_or_default())?;
        match &mut self.sealing {
            Some(sealing) => sealing.advance(self.bytes, self.len),
            None => Ok(()),
        }
    }

    /// How long all of it is.
    fn end(self) -> Result<usize, Error> {
        match self.sealing {
            Some(sealing) => sealing.end(self.bytes, self.len),
            None => Ok(self.len),
        }
    }
}

/// Bytes that a segment takes when it is encrypted, if it is to be.
fn room(len: usize, sealed: Option<&Sealed>) -> usize {
    sealed.map_or(len, |_| encrypted_len(len as u64) as usize)
}

/// The length, if so much is made at a time.
fn bounded(len: usize, wrong: &str, remedy: &str) -> Result<usize, Error> {
    if len > PACKED_BYTES_MAX {
        let what = format!("a segment of {len} bytes {wrong}, over {PACKED_BYTES_MAX}; {remedy}");
        return Err(of_media(media::Error::new(Kind::TooLarge, what)));
    }
    Ok(len)
}

/// Reads ranges that the file has into `buffer`, one behind the other.
fn read<'b>(
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
        file.read_into(range.start, now).map_err(of_store)?;
        rest = later;
    }
    Ok(bytes)
}

fn of_store(error: store::Error) -> Error {
    error::of_store(&error)
}

fn of_media(error: media::Error) -> Error {
    error::of_media("", &error)
}
