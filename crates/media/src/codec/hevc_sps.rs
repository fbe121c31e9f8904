//! HEVC sequence parameter sets (ITU-T H.265, 7.3.2.2), up to the colour in their VUI.

use super::avc::dimension;
use super::bits::{Bits, unescape};
use super::color::Sps;

/// Reads an SPS with its NAL header; none if it makes no sense.
pub fn read(nal: &[u8]) -> Option<Sps> {
    let rbsp = unescape(nal.get(2..)?);
    let mut bits = Bits::new(&rbsp);
    bits.skip(4); // sps_video_parameter_set_id
    let sub_layers = bits.u(3);
    bits.skip(1);
    skip_profile(&mut bits, sub_layers);
    bits.ue(); // sps_seq_parameter_set_id
    let chroma = bits.ue();
    let separate = chroma == 3 && bits.bit();
    let (width, height) = (u64::from(bits.ue()), u64::from(bits.ue()));
    let (crop_x, crop_y) = read_window(&mut bits, if separate { 0 } else { chroma });
    let mut sps = Sps {
        width: dimension(width, crop_x)?,
        height: dimension(height, crop_y)?,
        sar: None,
        color: None,
    };
    bits.ue(); // bit_depth_luma_minus8
    bits.ue(); // bit_depth_chroma_minus8
    let order_count_bits = bits.ue().saturating_add(4);
    skip_tools(&mut bits, sub_layers, order_count_bits)?;
    if bits.bit() {
        sps.read_vui(&mut bits);
    }
    (!bits.short()).then_some(sps)
}

/// Pixels outside the conformance window, across and down.
fn read_window(bits: &mut Bits<'_>, chroma: u32) -> (u64, u64) {
    if !bits.bit() {
        return (0, 0);
    }
    let [left, right, top, bottom] = [0; 4].map(|_: u8| u64::from(bits.ue()));
    let unit_x = if matches!(chroma, 1 | 2) { 2 } else { 1 };
    let unit_y = if chroma == 1 { 2 } else { 1 };
    ((left + right) * unit_x, (top + bottom) * unit_y)
}

/// `profile_tier_level` (7.3.3).
fn skip_profile(bits: &mut Bits<'_>, sub_layers: u32) {
    bits.skip(88 + 8);
    let present: Vec<(bool, bool)> = (0..sub_layers).map(|_| (bits.bit(), bits.bit())).collect();
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers as usize));
    }
    for (profile, level) in present {
        bits.skip(if profile { 88 } else { 0 } + if level { 8 } else { 0 });
    }
}

/// From sps_sub_layer_ordering_info_present_flag to strong_intra_smoothing_enabled_flag.
fn skip_tools(bits: &mut Bits<'_>, sub_layers: u32, order_count_bits: u32) -> Option<()> {
    let layers = if bits.bit() { sub_layers + 1 } else { 1 };
    for _ in 0..layers * 3 + 6 {
        bits.ue(); // buffering of each layer; block sizes and hierarchy depths
    }
    if bits.bit() && bits.bit() {
        skip_scaling_lists(bits);
    }
    bits.skip(2); // amp_enabled_flag, sample_adaptive_offset_enabled_flag
    if bits.bit() {
        bits.skip(8); // pcm sample depths
        bits.ue();
        bits.ue();
        bits.skip(1);
    }
    skip_short_term_sets(bits)?;
    if bits.bit() {
        for _ in 0..bits.ue().min(33) {
            bits.skip(order_count_bits.min(16) as usize + 1);
        }
    }
    bits.skip(2); // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
    Some(())
}

/// `scaling_list_data` (7.3.4).
fn skip_scaling_lists(bits: &mut Bits<'_>) {
    for size in 0..4u32 {
        for _ in 0..if size == 3 { 2 } else { 6 } {
            if !bits.bit() {
                bits.ue(); // scaling_list_pred_matrix_id_delta
                continue;
            }
            if size > 1 {
                bits.se(); // scaling_list_dc_coef_minus8
            }
            for _ in 0..64.min(1 << (4 + (size << 1))) {
                bits.se();
            }
        }
    }
}

/// All of `st_ref_pic_set` (7.3.7) in an SPS; none if there are more than the standard allows.
fn skip_short_term_sets(bits: &mut Bits<'_>) -> Option<()> {
    let sets = bits.ue();
    if sets > 64 {
        return None;
    }
    let mut deltas = 0; // NumDeltaPocs of the set before
    for set in 0..sets {
        if set > 0 && bits.bit() {
            bits.skip(1); // delta_rps_sign
            bits.ue(); // abs_delta_rps_minus1
            deltas = (0..=deltas).filter(|_| bits.bit() || bits.bit()).count() as u32;
            continue;
        }
        let (negative, positive) = (bits.ue(), bits.ue());
        if negative > 16 || positive > 16 {
            return None;
        }
        deltas = negative + positive;
        for _ in 0..deltas {
            bits.ue(); // delta_poc_minus1
            bits.skip(1); // used_by_curr_pic_flag
        }
    }
    Some(())
}
