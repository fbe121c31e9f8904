//! The sample table (stbl), flattened into samples.

use super::draft::{DURATION_MAX, Draft};
use crate::bmff::stco::Offsets;
use crate::bmff::stsz::Sizes;
use crate::bmff::{Mp4Box, ctts, stsc, stss, stts};
use crate::error::{Error, Result};
use std::ops::Range;

/// Adds the samples of an stbl box to `draft`; none of them may lie in `metadata`.
pub(super) fn read_stbl(stbl: &Mp4Box<'_>, draft: &mut Draft, metadata: Range<u64>) -> Result<()> {
    let sizes = match stbl.find(b"stsz")? {
        Some(stsz) => stsz.read(Sizes::stsz)?,
        None => match stbl.find(b"stz2")? {
            Some(stz2) => stz2.read(Sizes::stz2)?,
            None => Sizes::Same(0, 0),
        },
    };
    if sizes.is_empty() {
        return Ok(());
    }
    draft
        .expect(sizes.len())
        .map_err(|error| error.inside(*b"stsz"))?;
    let offsets = match stbl.find(b"co64")? {
        Some(co64) => co64.read(Offsets::co64)?,
        None => stbl.need(b"stco")?.read(Offsets::stco)?,
    };
    add_columns(stbl, sizes, draft)?;
    draft
        .samples
        .reserve_chunks(offsets.len().min(sizes.len()) as usize);
    let runs = stbl.need(b"stsc")?.read(stsc::parse)?;
    let mut runs = runs.peekable();
    let mut next = 0;
    while let Some(run) = runs.next() {
        let end = runs
            .peek()
            .map_or(offsets.len().saturating_add(1), |next| next.first_chunk);
        if run.first_chunk == 0 || end < run.first_chunk {
            let what = format!("chunk runs are not in order at chunk {}", run.first_chunk);
            return Err(Error::malformed(what).inside(*b"stsc"));
        }
        if next < sizes.len() && run.samples > 0 {
            draft
                .use_entry(run.description)
                .map_err(|error| error.inside(*b"stsc"))?;
        }
        for chunk in run.first_chunk..end {
            let count = run.samples.min(sizes.len() - next);
            if count == 0 {
                break;
            }
            let offset = offsets.get(chunk - 1).filter(|at| !metadata.contains(at));
            let Some(offset) = offset else {
                return Err(misplaced(&offsets, chunk));
            };
            draft.push_chunk(next, count, offset)?;
            next += count;
        }
    }
    if next < sizes.len() {
        let what = format!("chunks hold {next} of the {} samples", sizes.len());
        return Err(Error::malformed(what).inside(*b"stsc"));
    }
    Ok(())
}

/// The error for a chunk, counted from 1, that is not there, or lies where the metadata does.
fn misplaced(offsets: &Offsets<'_>, chunk: u32) -> Error {
    let what = match offsets.get(chunk - 1) {
        None => format!("samples use chunk {chunk}, but there are {}", offsets.len()),
        Some(offset) => format!("chunk {chunk} lies at byte {offset}, within the moov box"),
    };
    Error::malformed(what).inside(*b"stco")
}

/// Adds what the tables say sample by sample, a column at a time: all but where they lie.
fn add_columns(stbl: &Mp4Box<'_>, sizes: Sizes<'_>, draft: &mut Draft) -> Result<()> {
    let count = sizes.len();
    match sizes {
        Sizes::Same(size, _) => draft.samples.sizes().push_run(count, size, 0),
        Sizes::Words(words) => {
            let sizes = words.iter().map(|word| u32::from_be_bytes(*word));
            draft.samples.sizes().append(sizes);
        }
        _ => draft
            .samples
            .sizes()
            .append((0..count).map(|n| sizes.get(n))),
    }
    let stts = stbl.need(b"stts")?;
    add_durations(stts.read(stts::parse)?, count, draft).map_err(|error| error.inside(*b"stts"))?;
    match stbl.find(b"ctts")? {
        Some(ctts) => {
            let left = each_run(ctts.read(ctts::parse)?, count, |count, cts| {
                draft.samples.push_cts(count, cts);
            });
            draft.samples.push_cts(left, 0);
        }
        None => draft.samples.push_cts(count, 0),
    }
    if let Some(stss) = stbl.find(b"stss")? {
        let numbers = sync_samples(stss.read(stss::parse)?, count);
        if numbers.len() < count as usize {
            draft.samples.set_sync(numbers);
        }
    }
    Ok(())
}

/// The last duration goes on where there are fewer than samples.
fn add_durations(
    runs: impl Iterator<Item = (u32, u32)>,
    count: u32,
    draft: &mut Draft,
) -> Result<()> {
    let (mut next, mut last) = (0, 0);
    let mut too_long = None;
    let left = each_run(runs, count, |count, ticks| {
        if ticks > DURATION_MAX && too_long.is_none() {
            too_long = Some((next, ticks));
        }
        draft.samples.push_durations(count, ticks);
        (next, last) = (next + count, ticks);
    });
    if let Some((n, ticks)) = too_long {
        return Err(draft.too_long(n, ticks));
    }
    draft.samples.push_durations(left, last);
    draft.has_short_stts = left > 0;
    Ok(())
}

/// Gives `take` runs of (samples, value) as far as there are samples, and tells how many samples
/// are left without a value.
fn each_run<T>(
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

/// Sync samples, from 0, of those numbered from 1; a number that is out of order is none.
fn sync_samples(numbers: impl Iterator<Item = u32>, count: u32) -> Vec<u32> {
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
