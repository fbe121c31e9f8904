//! Parsing of `moof` boxes: the samples of a fragment.

use super::Sample;
use super::movie_draft::MovieDraft;
use super::track_draft::TrackDraft;
use crate::bmff::tfhd::Tfhd;
use crate::bmff::trex::Trex;
use crate::bmff::trun::Trun;
use crate::bmff::{Mp4Box, tfdt};
use crate::error::{Error, Result};

/// `sample_is_non_sync_sample` (8.8.3.1).
const NON_SYNC: u32 = 0x0001_0000;

/// Adds the samples of a `moof` box to the tracks of `movie`.
pub(super) fn read_moof(moof: &Mp4Box<'_>, movie: &mut MovieDraft) -> Result<()> {
    movie.has_fragments = true;
    // Implicit base of the data offsets (8.8.7.1). For the first `traf`, the base is the start of
    // the `moof`. For each later `traf`, the base is the end of the data of the previous `traf`.
    let mut implicit = moof.offset;
    for child in moof.children() {
        let child = child.map_err(|error| error.with_enclosing_box(*b"moof"))?;
        if child.name == *b"traf" {
            let read = read_traf(&child, moof.offset, implicit, movie);
            implicit = read.map_err(|error| {
                error
                    .with_enclosing_box(*b"traf")
                    .with_enclosing_box(*b"moof")
                    .with_byte_offset(child.offset)
            })?;
        }
    }
    Ok(())
}

/// Adds the samples of a `traf` box. Returns the file offset at which the data of the samples ends.
fn read_traf(
    traf: &Mp4Box<'_>,
    moof_at: u64,
    implicit: u64,
    movie: &mut MovieDraft,
) -> Result<u64> {
    let tfhd = traf.require_child(b"tfhd")?.parse_body(Tfhd::parse)?;
    let trex = movie
        .trex_by_track
        .get(&tfhd.track_id)
        .copied()
        .unwrap_or_default();
    let base = match tfhd.base_data_offset {
        Some(base) => base,
        None if tfhd.base_is_moof => moof_at,
        None => implicit,
    };
    let defaults = SampleDefaults::new(&tfhd, &trex);
    let position = movie
        .drafts
        .iter()
        .position(|draft| draft.id == tfhd.track_id);
    if let Some(draft) = position.and_then(|at| movie.drafts.get_mut(at))
        && draft.missing_end.is_none()
        && let Some(tfdt) = traf.find_child(b"tfdt")?
    {
        draft.begin_fragment(tfdt.parse_body(tfdt::parse_tfdt)?)?;
    }
    let samples_before = position.and_then(|at| movie.drafts.get(at));
    let samples_before = samples_before.map_or(0, |draft| draft.samples.len());
    let mut at = base;
    for child in traf.children() {
        let child = child?;
        if child.name != *b"trun" {
            continue;
        }
        let run = child.parse_body(Trun::parse)?;
        if let Some(offset) = run.data_offset {
            at = base.checked_add_signed(i64::from(offset)).ok_or_else(|| {
                let message = format!("data offset {offset} from byte {base} is outside the file");
                Error::malformed(message).with_enclosing_box(*b"trun")
            })?;
        }
        if run.sample_count > 0
            && let Some(draft) = position.and_then(|at| movie.drafts.get_mut(at))
        {
            add_trun_samples(&run, &defaults, at, draft)
                .map_err(|error| error.with_enclosing_box(*b"trun"))?;
        }
        at = at.saturating_add(run.total_bytes(defaults.size));
    }
    if let Some(draft) = position.and_then(|at| movie.drafts.get_mut(at)) {
        draft.add_sample_auxiliary(traf, samples_before)?;
    }
    movie.check_sample_limit()?;
    Ok(at)
}

/// Default values of the sample fields that a run does not contain.
struct SampleDefaults {
    description_index: u32,
    duration: u32,
    size: u32,
    flags: u32,
}

impl SampleDefaults {
    fn new(tfhd: &Tfhd, trex: &Trex) -> SampleDefaults {
        SampleDefaults {
            description_index: tfhd
                .description_index
                .unwrap_or(trex.description_index)
                .max(1),
            duration: tfhd
                .default_sample_duration
                .unwrap_or(trex.default_sample_duration),
            size: tfhd.default_sample_size.unwrap_or(trex.default_sample_size),
            flags: tfhd
                .default_sample_flags
                .unwrap_or(trex.default_sample_flags),
        }
    }
}

/// Adds the samples of a run. The data of the samples starts at file offset `at`.
fn add_trun_samples(
    run: &Trun<'_>,
    defaults: &SampleDefaults,
    mut at: u64,
    draft: &mut TrackDraft,
) -> Result<()> {
    draft.select_sample_entry(defaults.description_index)?;
    draft.reserve_samples(run.sample_count)?;
    let mut first_flags = run.first_sample_flags;
    for (row, missing) in run.samples().zip((1..=run.sample_count).rev()) {
        let flags = row.flags.or(first_flags).unwrap_or(defaults.flags);
        first_flags = None;
        let size = row.size.unwrap_or(defaults.size);
        if draft.missing_end.is_some() || draft.is_beyond_file(size, at) {
            draft.record_missing_samples(missing, size, at);
            return Ok(());
        }
        draft.push_sample(Sample {
            dts: 0,
            duration: row.duration.unwrap_or(defaults.duration),
            composition_offset: row.composition_offset,
            size,
            is_sync: flags & NON_SYNC == 0,
            offset: at,
        })?;
        at = at.saturating_add(u64::from(size));
    }
    Ok(())
}
