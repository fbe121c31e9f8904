//! Parsing of the sample table (`stbl`) into samples.

use super::track_draft::{DURATION_MAX, TrackDraft};
use crate::bmff::stco::ChunkOffsets;
use crate::bmff::stsz::SampleSizes;
use crate::bmff::{Mp4Box, ctts, stsc, stss, stts};
use crate::error::{Error, Result};
use std::ops::Range;

/// Adds the samples of an `stbl` box to `draft`. Refuses chunks that start in the byte range
/// `metadata`.
pub(super) fn read_stbl(
    stbl: &Mp4Box<'_>,
    draft: &mut TrackDraft,
    metadata: Range<u64>,
) -> Result<()> {
    let sizes = match stbl.find_child(b"stsz")? {
        Some(stsz) => stsz.parse_body(SampleSizes::parse_stsz)?,
        None => match stbl.find_child(b"stz2")? {
            Some(stz2) => stz2.parse_body(SampleSizes::parse_stz2)?,
            None => SampleSizes::Constant(0, 0),
        },
    };
    if sizes.is_empty() {
        return Ok(());
    }
    draft
        .reserve_samples(sizes.len())
        .map_err(|error| error.with_enclosing_box(*b"stsz"))?;
    let offsets = match stbl.find_child(b"co64")? {
        Some(co64) => co64.parse_body(ChunkOffsets::parse_co64)?,
        None => stbl
            .require_child(b"stco")?
            .parse_body(ChunkOffsets::parse_stco)?,
    };
    add_columns(stbl, sizes, draft)?;
    draft
        .samples
        .reserve_chunks(offsets.len().min(sizes.len()) as usize);
    let runs = stbl.require_child(b"stsc")?.parse_body(stsc::parse_stsc)?;
    let mut runs = runs.peekable();
    let mut next = 0;
    while let Some(run) = runs.next() {
        let end = runs
            .peek()
            .map_or(offsets.len().saturating_add(1), |next| next.first_chunk);
        if run.first_chunk == 0 || end < run.first_chunk {
            let message = format!("chunk runs are not in order at chunk {}", run.first_chunk);
            return Err(Error::malformed(message).with_enclosing_box(*b"stsc"));
        }
        if next < sizes.len() && run.samples_per_chunk > 0 {
            draft
                .select_sample_entry(run.description_index)
                .map_err(|error| error.with_enclosing_box(*b"stsc"))?;
        }
        for chunk in run.first_chunk..end {
            let count = run.samples_per_chunk.min(sizes.len() - next);
            if count == 0 {
                break;
            }
            let offset = offsets.get(chunk - 1).filter(|at| !metadata.contains(at));
            let Some(offset) = offset else {
                return Err(invalid_chunk_error(&offsets, chunk));
            };
            draft.push_chunk(next, count, offset)?;
            next += count;
        }
    }
    if next < sizes.len() {
        let message = format!("chunks hold {next} of the {} samples", sizes.len());
        return Err(Error::malformed(message).with_enclosing_box(*b"stsc"));
    }
    draft.add_sample_auxiliary(stbl, 0)
}

/// Creates the error for a chunk that is missing or inside the metadata. `chunk` counts from 1.
fn invalid_chunk_error(offsets: &ChunkOffsets<'_>, chunk: u32) -> Error {
    let message = match offsets.get(chunk - 1) {
        None => format!("samples use chunk {chunk}, but there are {}", offsets.len()),
        Some(offset) => format!("chunk {chunk} is at byte {offset}, within the moov box"),
    };
    Error::malformed(message).with_enclosing_box(*b"stco")
}

/// Adds sizes, durations, composition offsets and sync samples, one column at a time.
fn add_columns(stbl: &Mp4Box<'_>, sizes: SampleSizes<'_>, draft: &mut TrackDraft) -> Result<()> {
    let count = sizes.len();
    match sizes {
        SampleSizes::Constant(size, _) => draft.samples.sizes_mut().push_run(count, size, 0),
        SampleSizes::Bits32(words) => {
            let sizes = words.iter().map(|word| u32::from_be_bytes(*word));
            draft.samples.sizes_mut().push_all(sizes);
        }
        _ => draft
            .samples
            .sizes_mut()
            .push_all((0..count).map(|n| sizes.get(n))),
    }
    let stts = stbl.require_child(b"stts")?;
    add_durations(stts.parse_body(stts::parse_stts)?, count, draft)
        .map_err(|error| error.with_enclosing_box(*b"stts"))?;
    match stbl.find_child(b"ctts")? {
        Some(ctts) => {
            let left = for_each_run(
                ctts.parse_body(ctts::parse_ctts)?,
                count,
                |count, composition_offset| {
                    draft
                        .samples
                        .push_composition_offsets(count, composition_offset);
                },
            );
            draft.samples.push_composition_offsets(left, 0);
        }
        None => draft.samples.push_composition_offsets(count, 0),
    }
    if let Some(stss) = stbl.find_child(b"stss")? {
        let numbers = sync_sample_indexes(stss.parse_body(stss::parse_stss)?, count);
        if numbers.len() < count as usize {
            draft.samples.set_sync_samples(numbers);
        }
    }
    Ok(())
}

/// Adds the durations. If there are fewer durations than samples, the last duration is repeated.
fn add_durations(
    runs: impl Iterator<Item = (u32, u32)>,
    count: u32,
    draft: &mut TrackDraft,
) -> Result<()> {
    let (mut next, mut last) = (0, 0);
    let mut too_long = None;
    let left = for_each_run(runs, count, |count, ticks| {
        if ticks > DURATION_MAX && too_long.is_none() {
            too_long = Some((next, ticks));
        }
        draft.samples.push_durations(count, ticks);
        (next, last) = (next + count, ticks);
    });
    if let Some((n, ticks)) = too_long {
        return Err(draft.sample_duration_error(n, ticks));
    }
    draft.samples.push_durations(left, last);
    draft.has_short_stts = left > 0;
    Ok(())
}

/// Passes runs of (count, value) to `take`, for at most `samples` samples in total. Returns the
/// number of samples for which there is no value.
fn for_each_run<T>(
    runs: impl Iterator<Item = (u32, T)>,
    samples: u32,
    mut take: impl FnMut(u32, T),
) -> u32 {
    let mut left = samples;
    for (count, value) in runs {
        let count = count.min(left);
        if count > 0 {
            take(count, value);
        }
        left -= count;
        if left == 0 {
            break;
        }
    }
    left
}

/// Converts sample numbers, which count from 1, to indexes, which count from 0. Drops numbers that
/// are not in ascending order.
fn sync_sample_indexes(numbers: impl Iterator<Item = u32>, count: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = 1;
    for number in numbers.take_while(|number| *number <= count) {
        if number >= next {
            found.push(number - 1);
            next = number + 1;
        }
    }
    found
}
