//! The fields of HEVC parameter sets on which the syntax of slice headers depends (ITU-T H.265,
//! 7.3.2.2 and 7.3.2.3).

use super::hevc_reference_pictures::ReferencePictureSet;
use super::slice_header_len::ceil_log2;
use crate::codec::bit_reader::{BitReader, remove_emulation_prevention};
use crate::codec::hevc_sps::{skip_profile_tier_level, skip_scaling_lists};
use std::collections::BTreeMap;

/// The sequence and picture parameter sets of a track.
#[derive(Debug, Clone, Default)]
pub(super) struct HevcParameterSets {
    pub(super) sequences: BTreeMap<u32, HevcSequence>,
    pub(super) pictures: BTreeMap<u32, HevcPps>,
}

/// Fields of a sequence parameter set.
#[derive(Debug, Clone, Default)]
pub(super) struct HevcSequence {
    pub(super) separate_planes: bool,
    pub(super) has_chroma: bool,
    pub(super) order_count_bits: u32,
    /// Length of `slice_segment_address` in bits.
    pub(super) address_bits: u32,
    pub(super) has_sao: bool,
    pub(super) reference_sets: Vec<ReferencePictureSet>,
    pub(super) has_long_term: bool,
    /// For each long-term reference picture of the SPS, whether the current picture refers to this
    /// picture.
    pub(super) long_term: Vec<bool>,
    pub(super) has_temporal_mvp: bool,
}

/// Fields of a picture parameter set.
#[derive(Debug, Clone, Default)]
pub(super) struct HevcPps {
    pub(super) sequence: u32,
    pub(super) has_dependent_slices: bool,
    pub(super) has_output_flag: bool,
    pub(super) extra_bits: u32,
    pub(super) has_cabac_init: bool,
    pub(super) references: [u32; 2],
    pub(super) has_chroma_qp_offsets: bool,
    pub(super) weighted: bool,
    pub(super) weighted_bi: bool,
    pub(super) has_entry_points: bool,
    pub(super) filters_across_slices: bool,
    pub(super) overrides_deblocking: bool,
    pub(super) disables_deblocking: bool,
    pub(super) has_list_modification: bool,
    pub(super) has_header_extension: bool,
    pub(super) has_chroma_qp_list: bool,
}

const SEQUENCES_MAX: u32 = 16;
const PICTURES_MAX: u32 = 64;
/// Profiles of screen content coding, whose slice headers have additional fields.
const SCREEN_CONTENT_PROFILES: [u32; 2] = [9, 11];

impl HevcParameterSets {
    /// Adds a parameter set. Returns `None` if the parameter set cannot be parsed.
    pub(super) fn insert_parameter_set(&mut self, nal: &[u8]) -> Option<()> {
        let rbsp = remove_emulation_prevention(nal.get(2..)?);
        let mut bits = BitReader::new(&rbsp);
        match nal.first()? >> 1 & 63 {
            33 => {
                let (id, set) = read_sequence_parameter_set(&mut bits)?;
                self.sequences.insert(id, set);
            }
            34 => {
                let (id, set) = read_picture_parameter_set(&mut bits)?;
                self.pictures.insert(id, set);
            }
            _ => {}
        }
        Some(())
    }
}

fn read_sequence_parameter_set(bits: &mut BitReader<'_>) -> Option<(u32, HevcSequence)> {
    bits.skip(4);
    let sub_layers = bits.read_bits(3);
    bits.skip(1);
    let profile = bits.clone().read_bits(8) & 31;
    if SCREEN_CONTENT_PROFILES.contains(&profile) {
        return None;
    }
    skip_profile_tier_level(bits, sub_layers);
    let id = bits.read_ue();
    let chroma = bits.read_ue();
    let separate_planes = chroma == 3 && bits.read_bit();
    let size = [bits.read_ue(), bits.read_ue()];
    if bits.read_bit() {
        skip_exp_golomb_codes(bits, 4); // conformance window
    }
    skip_exp_golomb_codes(bits, 2); // bit depths
    let order_count_bits = bits.read_ue().saturating_add(4);
    if order_count_bits > 16 {
        return None;
    }
    let layers = if bits.read_bit() { sub_layers + 1 } else { 1 };
    skip_exp_golomb_codes(bits, layers * 3);
    let block_bits = bits
        .read_ue()
        .saturating_add(3)
        .saturating_add(bits.read_ue());
    if block_bits > 6 {
        return None;
    }
    let blocks = size.map(|pixels| u64::from(pixels).div_ceil(1 << block_bits));
    skip_exp_golomb_codes(bits, 4); // transform blocks and hierarchy depths
    if bits.read_bit() && bits.read_bit() {
        skip_scaling_lists(bits);
    }
    bits.skip(1); // amp_enabled_flag
    let has_sao = bits.read_bit();
    if bits.read_bit() {
        bits.skip(8);
        skip_exp_golomb_codes(bits, 2);
        bits.skip(1);
    }
    let reference_sets = read_reference_sets(bits)?;
    let has_long_term = bits.read_bit();
    let set = HevcSequence {
        separate_planes,
        has_chroma: chroma != 0 && !separate_planes,
        order_count_bits,
        address_bits: ceil_log2(u32::try_from(blocks.iter().product::<u64>()).ok()?),
        has_sao,
        reference_sets,
        has_long_term,
        long_term: match has_long_term {
            true => read_sps_long_term_pictures(bits, order_count_bits)?,
            false => Vec::new(),
        },
        has_temporal_mvp: bits.read_bit(),
    };
    (!bits.is_past_end() && id < SEQUENCES_MAX).then_some((id, set))
}

fn read_reference_sets(bits: &mut BitReader<'_>) -> Option<Vec<ReferencePictureSet>> {
    let count = bits.read_ue() as usize;
    if count > 64 {
        return None;
    }
    let mut sets = Vec::with_capacity(count);
    for index in 0..count {
        let set = ReferencePictureSet::read_reference_set(bits, index, &sets, false)?;
        sets.push(set);
    }
    Some(sets)
}

fn read_sps_long_term_pictures(
    bits: &mut BitReader<'_>,
    order_count_bits: u32,
) -> Option<Vec<bool>> {
    let count = bits.read_ue();
    let pictures = (0..count.min(33)).map(|_| {
        bits.skip(order_count_bits as usize);
        bits.read_bit()
    });
    let pictures = pictures.collect();
    (count <= 32).then_some(pictures)
}

fn read_picture_parameter_set(bits: &mut BitReader<'_>) -> Option<(u32, HevcPps)> {
    let id = bits.read_ue();
    let mut set = HevcPps {
        sequence: bits.read_ue(),
        has_dependent_slices: bits.read_bit(),
        has_output_flag: bits.read_bit(),
        extra_bits: bits.read_bits(3),
        ..HevcPps::default()
    };
    bits.skip(1); // sign_data_hiding_enabled_flag
    set.has_cabac_init = bits.read_bit();
    set.references = [
        bits.read_ue().saturating_add(1),
        bits.read_ue().saturating_add(1),
    ];
    bits.read_se(); // init_qp_minus26
    bits.skip(1);
    let has_transform_skip = bits.read_bit();
    if bits.read_bit() {
        bits.read_ue();
    }
    bits.read_se();
    bits.read_se();
    set.has_chroma_qp_offsets = bits.read_bit();
    set.weighted = bits.read_bit();
    set.weighted_bi = bits.read_bit();
    bits.skip(1);
    let has_tiles = bits.read_bit();
    set.has_entry_points = bits.read_bit() || has_tiles;
    if has_tiles {
        skip_tiles(bits)?;
    }
    set.filters_across_slices = bits.read_bit();
    if bits.read_bit() {
        set.overrides_deblocking = bits.read_bit();
        set.disables_deblocking = bits.read_bit();
        if !set.disables_deblocking {
            skip_exp_golomb_codes(bits, 2);
        }
    }
    if bits.read_bit() {
        skip_scaling_lists(bits);
    }
    set.has_list_modification = bits.read_bit();
    bits.read_ue();
    set.has_header_extension = bits.read_bit();
    set.has_chroma_qp_list = read_extensions(bits, has_transform_skip)?;
    (!bits.is_past_end() && id < PICTURES_MAX).then_some((id, set))
}

fn skip_tiles(bits: &mut BitReader<'_>) -> Option<()> {
    let (columns, rows) = (bits.read_ue(), bits.read_ue());
    if columns > 64 || rows > 64 {
        return None;
    }
    if !bits.read_bit() {
        skip_exp_golomb_codes(bits, columns + rows);
    }
    bits.skip(1);
    Some(())
}

/// Returns `chroma_qp_offset_list_enabled_flag`; `None` if the parameter set has extensions for
/// several layers or for screen content.
fn read_extensions(bits: &mut BitReader<'_>, has_transform_skip: bool) -> Option<bool> {
    if !bits.read_bit() {
        return Some(false);
    }
    let (has_range, others) = (bits.read_bit(), bits.read_bits(7));
    if others != 0 {
        return None;
    }
    if !has_range {
        return Some(false);
    }
    if has_transform_skip {
        bits.read_ue();
    }
    bits.skip(1);
    Some(bits.read_bit())
}

/// Skips Exp-Golomb codes, both signed and unsigned. Both kinds have the same form.
fn skip_exp_golomb_codes(bits: &mut BitReader<'_>, count: u32) {
    for _ in 0..count {
        bits.read_ue();
    }
}
