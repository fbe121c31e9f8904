//! Finds the subsamples of a film's video, so that an index MP4 can contain them. The whole video
//! is read once.

use media::index::{Index, SampleTable, Track};
use media::protection::{PrecomputedSubsamplesBuilder, StoredSubsamples};
use std::ops::Range;
use std::sync::Arc;
use store::{Object, RequestReason};

/// Maximum number of bytes of one read, unless a sample is longer.
const READ_BYTES_MAX: u64 = 8 << 20;

/// Adds the subsamples of every video track that can be encrypted. Blocks.
///
/// # Errors
/// The reason why the media cannot be read, or why its subsamples cannot be found.
pub(super) fn add_subsamples_to_index(index: &mut Index, object: &Object) -> Result<(), String> {
    for track in &mut index.tracks {
        // Encrypted tracks are skipped, because every index already contains their subsamples.
        if track.protection.is_none() && track.codec.video().is_some() {
            let found = find_subsamples(track, object);
            let found = found.map_err(|why| format!("track {}: {why}", track.id))?;
            track.subsamples = found.map(Arc::new);
        }
    }
    match object.changed() {
        true => Err(store::Error::Changed.to_string()),
        false => Ok(()),
    }
}

/// Returns `None` for a codec without subsamples, and for a codec that cannot be encrypted.
fn find_subsamples(track: &Track, object: &Object) -> Result<Option<StoredSubsamples>, String> {
    let text = |error: media::Error| error.to_string();
    let builder = PrecomputedSubsamplesBuilder::new(&track.codec).map_err(text)?;
    let Some(mut builder) = builder else {
        return Ok(None);
    };
    let mut next = 0;
    while next < track.samples.len() {
        let (samples, bytes) = plan_next_read(&track.samples, next);
        let read = object.read(bytes.clone(), RequestReason::Index);
        let read = read.map_err(|error| error.to_string())?;
        for sample in track.samples.iter_range(samples.clone()) {
            // The subtraction does not overflow, because the read contains the whole sample.
            let start = (sample.offset - bytes.start) as usize;
            let bytes = read.get(start..start + sample.size as usize);
            let bytes = bytes.unwrap_or_default();
            builder.add_sample(bytes, sample.is_sync).map_err(text)?;
        }
        next = samples.end;
    }
    builder.finish().map(Some).map_err(text)
}

/// Returns the samples of one read, starting with sample number `first`, and the byte range of the
/// read. The read covers at least one sample, even if this sample is longer than `READ_BYTES_MAX`.
fn plan_next_read(samples: &SampleTable, first: u32) -> (Range<u32>, Range<u64>) {
    let (mut end, mut bytes) = (first, None::<Range<u64>>);
    for sample in samples.iter_range(first..samples.len()) {
        let own = sample.offset..sample.offset + u64::from(sample.size);
        let both = bytes.as_ref().map_or(own.clone(), |bytes| {
            bytes.start.min(own.start)..bytes.end.max(own.end)
        });
        if bytes.is_some() && both.end - both.start > READ_BYTES_MAX {
            break;
        }
        (end, bytes) = (end + 1, Some(both));
    }
    (first..end, bytes.unwrap_or_default())
}
