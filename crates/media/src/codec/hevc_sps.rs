//! Parses HEVC sequence parameter sets (ITU-T H.265, 7.3.2.2), up to the colour in the VUI.

use super::avc::crop_dimension;
use super::bit_reader::{BitReader, remove_emulation_prevention};
use super::color_and_aspect::SequenceParameters;

/// Parses a NAL unit that contains a sequence parameter set. Returns `None` if the set is invalid.
pub fn parse_sps(nal: &[u8]) -> Option<SequenceParameters> {
    let rbsp = remove_emulation_prevention(nal.get(2..)?);
    let mut bits = BitReader::new(&rbsp);
    bits.skip(4); // sps_video_parameter_set_id
    let sub_layers = bits.read_bits(3);
    bits.skip(1);
    skip_profile_tier_level(&mut bits, sub_layers);
    bits.read_ue(); // sps_seq_parameter_set_id
    let chroma = bits.read_ue();
    let separate = chroma == 3 && bits.read_bit();
    let (width, height) = (u64::from(bits.read_ue()), u64::from(bits.read_ue()));
    let (crop_x, crop_y) = read_conformance_crop(&mut bits, if separate { 0 } else { chroma });
    let mut sps = SequenceParameters {
        width: crop_dimension(width, crop_x)?,
        height: crop_dimension(height, crop_y)?,
        sar: None,
        color: None,
    };
    bits.read_ue(); // bit_depth_luma_minus8
    bits.read_ue(); // bit_depth_chroma_minus8
    let order_count_bits = bits.read_ue().saturating_add(4);
    skip_tools(&mut bits, sub_layers, order_count_bits)?;
    if bits.read_bit() {
        sps.read_vui(&mut bits);
    }
    (!bits.is_past_end()).then_some(sps)
}

/// Reads how many pixels of the width and of the height are outside the conformance window.
fn read_conformance_crop(bits: &mut BitReader<'_>, chroma: u32) -> (u64, u64) {
    if !bits.read_bit() {
        return (0, 0);
    }
    let [left, right, top, bottom] = [0; 4].map(|_: u8| u64::from(bits.read_ue()));
    let unit_x = if matches!(chroma, 1 | 2) { 2 } else { 1 };
    let unit_y = if chroma == 1 { 2 } else { 1 };
    ((left + right) * unit_x, (top + bottom) * unit_y)
}

/// Skips `profile_tier_level` (7.3.3).
pub fn skip_profile_tier_level(bits: &mut BitReader<'_>, sub_layers: u32) {
    bits.skip(88 + 8);
    let present: Vec<(bool, bool)> = (0..sub_layers)
        .map(|_| (bits.read_bit(), bits.read_bit()))
        .collect();
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers as usize));
    }
    for (profile, level) in present {
        bits.skip(if profile { 88 } else { 0 } + if level { 8 } else { 0 });
    }
}

/// Skips the fields from `sps_sub_layer_ordering_info_present_flag` to
/// `strong_intra_smoothing_enabled_flag`.
fn skip_tools(bits: &mut BitReader<'_>, sub_layers: u32, order_count_bits: u32) -> Option<()> {
    let layers = if bits.read_bit() { sub_layers + 1 } else { 1 };
    for _ in 0..layers * 3 + 6 {
        bits.read_ue(); // buffering of each layer, block sizes, hierarchy depths
    }
    if bits.read_bit() && bits.read_bit() {
        skip_scaling_lists(bits);
    }
    bits.skip(2); // amp_enabled_flag, sample_adaptive_offset_enabled_flag
    if bits.read_bit() {
        bits.skip(8); // PCM bit depths of luma and chroma
        bits.read_ue();
        bits.read_ue();
        bits.skip(1);
    }
    skip_short_term_sets(bits)?;
    if bits.read_bit() {
        for _ in 0..bits.read_ue().min(33) {
            bits.skip(order_count_bits.min(16) as usize + 1);
        }
    }
    bits.skip(2); // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
    Some(())
}

/// Skips `scaling_list_data` (7.3.4).
pub fn skip_scaling_lists(bits: &mut BitReader<'_>) {
    for size in 0..4u32 {
        for _ in 0..if size == 3 { 2 } else { 6 } {
            if !bits.read_bit() {
                bits.read_ue(); // scaling_list_pred_matrix_id_delta
                continue;
            }
            if size > 1 {
                bits.read_se(); // scaling_list_dc_coef_minus8
            }
            for _ in 0..64.min(1 << (4 + (size << 1))) {
                bits.read_se();
            }
        }
    }
}

/// Skips every `st_ref_pic_set` (7.3.7) of an SPS. Returns `None` if there are more sets or
/// pictures than the standard allows.
fn skip_short_term_sets(bits: &mut BitReader<'_>) -> Option<()> {
    let sets = bits.read_ue();
    if sets > 64 {
        return None;
    }
    let mut deltas = 0; // NumDeltaPocs of the previous set
    for set in 0..sets {
        if set > 0 && bits.read_bit() {
            bits.skip(1); // delta_rps_sign
            bits.read_ue(); // abs_delta_rps_minus1
            deltas = (0..=deltas)
                .filter(|_| bits.read_bit() || bits.read_bit())
                .count() as u32;
            continue;
        }
        let (negative, positive) = (bits.read_ue(), bits.read_ue());
        if negative > 16 || positive > 16 {
            return None;
        }
        deltas = negative + positive;
        for _ in 0..deltas {
            bits.read_ue(); // delta_poc_minus1
            bits.skip(1); // used_by_curr_pic_flag
        }
    }
    Some(())
}
