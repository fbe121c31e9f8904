//! The moof box: samples of a fragment.

use super::Sample;
use super::draft::Draft;
use super::movie::Movie;
use crate::bmff::tfhd::Tfhd;
use crate::bmff::trex::Trex;
use crate::bmff::trun::Trun;
use crate::bmff::{Mp4Box, tfdt};
use crate::error::{Error, Result};

/// `sample_is_non_sync_sample` (8.8.3.1).
const NON_SYNC: u32 = 0x0001_0000;

/// Adds the samples of a moof box to the tracks of `movie`.
pub(super) fn read_moof(moof: &Mp4Box<'_>, movie: &mut Movie) -> Result<()> {
    movie.has_fragments = true;
    // Where a traf without a base of its own counts from: the moof for the first, then where
    // the data of the one before ended (8.8.7.1).
    let mut implicit = moof.at;
    for child in moof.children() {
        let child = child.map_err(|error| error.inside(*b"moof"))?;
        if child.name == *b"traf" {
            let read = read_traf(&child, moof.at, implicit, movie);
            implicit =
                read.map_err(|error| error.inside(*b"traf").inside(*b"moof").at(child.at))?;
        }
    }
    Ok(())
}

/// Adds the samples of a traf box, and tells where their bytes end.
fn read_traf(traf: &Mp4Box<'_>, moof_at: u64, implicit: u64, movie: &mut Movie) -> Result<u64> {
    let tfhd = traf.need(b"tfhd")?.read(Tfhd::parse)?;
    let trex = movie.trex.get(&tfhd.track).copied().unwrap_or_default();
    let base = match tfhd.base_data_offset {
        Some(base) => base,
        None if tfhd.base_is_moof => moof_at,
        None => implicit,
    };
    let defaults = Defaults::new(&tfhd, &trex);
    let position = movie.drafts.iter().position(|draft| draft.id == tfhd.track);
    if let Some(draft) = position.and_then(|at| movie.drafts.get_mut(at))
        && let Some(tfdt) = traf.find(b"tfdt")?
    {
        draft.begin_fragment(tfdt.read(tfdt::parse)?)?;
    }
    let mut at = base;
    for child in traf.children() {
        let child = child?;
        if child.name != *b"trun" {
            continue;
        }
        let run = child.read(Trun::parse)?;
        if let Some(offset) = run.data_offset {
            at = base.checked_add_signed(i64::from(offset)).ok_or_else(|| {
                let what = format!("its data offset {offset} from byte {base} is outside the file");
                Error::malformed(what).inside(*b"trun")
            })?;
        }
        if run.count > 0
            && let Some(draft) = position.and_then(|at| movie.drafts.get_mut(at))
        {
            add(&run, &defaults, at, draft).map_err(|error| error.inside(*b"trun"))?;
        }
        at = at.saturating_add(run.bytes(defaults.size));
    }
    Ok(at)
}

/// What samples take where their run says nothing.
struct Defaults {
    description: u32,
    duration: u32,
    size: u32,
    flags: u32,
}

impl Defaults {
    fn new(tfhd: &Tfhd, trex: &Trex) -> Defaults {
        Defaults {
            description: tfhd.description.unwrap_or(trex.description).max(1),
            duration: tfhd.duration.unwrap_or(trex.duration),
            size: tfhd.size.unwrap_or(trex.size),
            flags: tfhd.flags.unwrap_or(trex.flags),
        }
    }
}

/// Adds the samples of a run whose bytes begin at `at`.
fn add(run: &Trun<'_>, defaults: &Defaults, mut at: u64, draft: &mut Draft) -> Result<()> {
    draft.use_entry(defaults.description)?;
    draft.expect(run.count)?;
    let mut first_flags = run.first_flags;
    for row in run.rows() {
        let flags = row.flags.or(first_flags).unwrap_or(defaults.flags);
        first_flags = None;
        let size = row.size.unwrap_or(defaults.size);
        draft.push(Sample {
            dts: 0,
            duration: row.duration.unwrap_or(defaults.duration),
            cts: row.cts,
            size,
            sync: flags & NON_SYNC == 0,
            offset: at,
        })?;
        at = at.saturating_add(u64::from(size));
    }
    Ok(())
}
