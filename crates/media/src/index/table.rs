//! The sample table (stbl), flattened into samples.

use super::Sample;
use super::draft::Draft;
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
    let mut columns = Columns::read(stbl, sizes)?;
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
            let offset = place(&offsets, chunk - 1, &metadata)?;
            columns.chunk(next..next + count, offset, draft)?;
            next += count;
        }
    }
    if next < sizes.len() {
        let what = format!("chunks hold {next} of the {} samples", sizes.len());
        return Err(Error::malformed(what).inside(*b"stsc"));
    }
    draft.has_short_stts = columns.durations.ended;
    Ok(())
}

/// Where chunk `n`, from 0, lies; which is not where the metadata does.
fn place(offsets: &Offsets<'_>, n: u32, metadata: &Range<u64>) -> Result<u64> {
    let offset = offsets.get(n).ok_or_else(|| {
        let there = offsets.len();
        Error::malformed(format!(
            "samples use chunk {}, but there are {there}",
            n + 1
        ))
        .inside(*b"stco")
    })?;
    if metadata.contains(&offset) {
        let what = format!("chunk {} lies at byte {offset}, within the moov box", n + 1);
        return Err(Error::malformed(what).inside(*b"stco"));
    }
    Ok(offset)
}

/// The columns of the table, each read in step.
struct Columns<'a, D, C, S> {
    sizes: Sizes<'a>,
    durations: Runs<D, u32>,
    cts: Runs<C, i32>,
    /// Numbers of sync samples, from 1, and the next of them; `None`: every sample is.
    sync: Option<(S, u32)>,
}

impl<'a>
    Columns<
        'a,
        Box<dyn Iterator<Item = (u32, u32)> + 'a>,
        Box<dyn Iterator<Item = (u32, i32)> + 'a>,
        Box<dyn Iterator<Item = u32> + 'a>,
    >
{
    fn read(stbl: &Mp4Box<'a>, sizes: Sizes<'a>) -> Result<Self> {
        let stts = stbl.need(b"stts")?.read(stts::parse)?;
        let ctts: Box<dyn Iterator<Item = (u32, i32)> + 'a> = match stbl.find(b"ctts")? {
            Some(ctts) => Box::new(ctts.read(ctts::parse)?),
            None => Box::new(std::iter::empty()),
        };
        let sync = match stbl.find(b"stss")? {
            Some(stss) => {
                let mut numbers = stss.read(stss::parse)?;
                let first = numbers.next().unwrap_or(0);
                Some((
                    Box::new(numbers) as Box<dyn Iterator<Item = u32> + 'a>,
                    first,
                ))
            }
            None => None,
        };
        Ok(Columns {
            sizes,
            durations: Runs::new(Box::new(stts), None),
            cts: Runs::new(ctts, Some(0)),
            sync,
        })
    }
}

impl<D, C, S> Columns<'_, D, C, S>
where
    D: Iterator<Item = (u32, u32)>,
    C: Iterator<Item = (u32, i32)>,
    S: Iterator<Item = u32>,
{
    /// Adds the samples `range`, whose bytes follow each other from `offset` on.
    fn chunk(&mut self, range: Range<u32>, mut offset: u64, draft: &mut Draft) -> Result<()> {
        for n in range {
            let size = self.sizes.get(n);
            let sample = Sample {
                dts: 0,
                duration: self.durations.next(),
                cts: self.cts.next(),
                size,
                sync: self.is_sync(n),
                offset,
            };
            draft.push(sample)?;
            offset += u64::from(size);
        }
        Ok(())
    }

    fn is_sync(&mut self, n: u32) -> bool {
        let Some((numbers, next)) = &mut self.sync else {
            return true;
        };
        while *next <= n {
            // After the last, or where numbers are out of order: none is left.
            match numbers.next() {
                Some(number) => *next = number,
                None => return false,
            }
        }
        *next == n + 1
    }
}

/// Values in runs, given one by one.
struct Runs<I, T> {
    runs: I,
    left: u32,
    value: T,
    /// What comes after the last run; `None`: its value goes on.
    after: Option<T>,
    ended: bool,
}

impl<I: Iterator<Item = (u32, T)>, T: Copy + Default> Runs<I, T> {
    fn new(runs: I, after: Option<T>) -> Runs<I, T> {
        Runs {
            runs,
            left: 0,
            value: T::default(),
            after,
            ended: false,
        }
    }

    fn next(&mut self) -> T {
        while self.left == 0 {
            let Some((left, value)) = self.runs.next() else {
                self.ended = true;
                self.left = u32::MAX;
                self.value = self.after.unwrap_or(self.value);
                break;
            };
            (self.left, self.value) = (left, value);
        }
        self.left -= 1;
        self.value
    }
}
