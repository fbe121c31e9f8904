//! Lengths of AVC slice headers (ISO/IEC 14496-10, 7.3.3). A slice header can only be parsed with
//! its parameter sets, so this module also parses parameter sets (7.3.2.1 and 7.3.2.2).

use super::slice_header_len::{ceil_log2, measure_slice_headers};
use crate::codec::avc::{WITH_CHROMA, skip_scaling_list};
use crate::codec::bit_reader::{BitReader, remove_emulation_prevention};
use std::collections::BTreeMap;

/// The sequence and picture parameter sets of a track.
#[derive(Debug, Clone, Default)]
pub(super) struct AvcParameterSets {
    sequences: BTreeMap<u32, AvcSequence>,
    pictures: BTreeMap<u32, AvcPps>,
}

/// Fields of a sequence parameter set.
#[derive(Debug, Clone, Copy, Default)]
struct AvcSequence {
    separate_planes: bool,
    has_chroma: bool,
    frame_num_bits: u32,
    order_count_type: u32,
    order_count_bits: u32,
    delta_always_zero: bool,
    frames_only: bool,
    map_units: u32,
}

/// Fields of a picture parameter set.
#[derive(Debug, Clone, Copy, Default)]
struct AvcPps {
    sequence: u32,
    is_cabac: bool,
    has_field_order: bool,
    /// `SliceGroupChangeRate`, for slice groups of the types 3 to 5.
    group_change_rate: Option<u32>,
    references: [u32; 2],
    weighted: bool,
    weighted_bi: bool,
    has_deblocking: bool,
    has_redundant: bool,
}

/// Limits that no legal stream exceeds. They apply to the number of parameter sets of one kind, the
/// number of pictures in one reference list, and the number of commands in one
/// `ref_pic_list_modification` or `dec_ref_pic_marking`.
const SETS_MAX: u32 = 256;
const REFERENCES_MAX: u32 = 32;
const COMMANDS_MAX: u32 = 70;

impl AvcParameterSets {
    /// Adds a parameter set. Returns `None` if the parameter set cannot be parsed.
    pub(super) fn insert_parameter_set(&mut self, nal: &[u8]) -> Option<()> {
        let rbsp = remove_emulation_prevention(nal.get(1..)?);
        let mut bits = BitReader::new(&rbsp);
        match nal.first()? & 31 {
            7 => {
                let (id, set) = read_sequence_parameter_set(&mut bits)?;
                self.sequences.insert(id, set);
            }
            8 => {
                let (id, set) = read_picture_parameter_set(&mut bits, &self.sequences)?;
                self.pictures.insert(id, set);
            }
            _ => {}
        }
        Some(())
    }

    /// Returns the length of a slice's NAL header and slice header together, in bytes. Returns
    /// `None` if a header cannot be parsed.
    pub(super) fn slice_headers_len(&self, nal: &[u8]) -> Option<usize> {
        measure_slice_headers(nal, |rbsp| self.parse_slice_headers(rbsp))
    }

    fn parse_slice_headers(&self, rbsp: &[u8]) -> Option<usize> {
        let head = *rbsp.first()?;
        let mut bits = BitReader::new(rbsp.get(1..)?);
        let whole = bits.bits_left();
        bits.read_ue(); // first_mb_in_slice
        let kind = SliceKind::from_type(bits.read_ue());
        let picture = self.pictures.get(&bits.read_ue())?;
        let slice = SliceReader {
            sequence: self.sequences.get(&picture.sequence)?,
            picture,
            kind,
            is_idr: head & 31 == 5,
            is_reference: head & 0x60 != 0,
        };
        slice.skip_slice_fields(&mut bits)?;
        let used = (whole.checked_sub(bits.bits_left())?).div_ceil(8);
        (!bits.is_past_end()).then_some(1 + used)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SliceKind {
    P,
    B,
    I,
    Sp,
    Si,
}

impl SliceKind {
    fn from_type(slice_type: u32) -> SliceKind {
        match slice_type % 5 {
            0 => SliceKind::P,
            1 => SliceKind::B,
            2 => SliceKind::I,
            3 => SliceKind::Sp,
            _ => SliceKind::Si,
        }
    }

    fn has_reference_list(self, list: usize) -> bool {
        match self {
            SliceKind::P | SliceKind::Sp => list == 0,
            SliceKind::B => true,
            SliceKind::I | SliceKind::Si => false,
        }
    }
}

struct SliceReader<'a> {
    sequence: &'a AvcSequence,
    picture: &'a AvcPps,
    kind: SliceKind,
    is_idr: bool,
    is_reference: bool,
}

impl SliceReader<'_> {
    /// Skips the fields after `pic_parameter_set_id`.
    fn skip_slice_fields(&self, bits: &mut BitReader<'_>) -> Option<()> {
        self.skip_picture_order_fields(bits);
        if self.picture.has_redundant {
            bits.read_ue();
        }
        if self.kind == SliceKind::B {
            bits.skip(1); // direct_spatial_mv_pred_flag
        }
        let references = self.read_reference_counts(bits)?;
        for list in 0..2 {
            if self.kind.has_reference_list(list) {
                skip_reference_list_modification(bits)?;
            }
        }
        self.skip_prediction_weights(bits, references);
        if self.is_reference {
            self.skip_reference_marking(bits)?;
        }
        self.skip_coding_parameters(bits);
        self.skip_group_change(bits);
        Some(())
    }

    /// Skips the fields from `colour_plane_id` to the picture order count.
    fn skip_picture_order_fields(&self, bits: &mut BitReader<'_>) {
        let (sequence, mut is_field) = (self.sequence, false);
        if sequence.separate_planes {
            bits.skip(2);
        }
        bits.skip(sequence.frame_num_bits as usize);
        if !sequence.frames_only {
            is_field = bits.read_bit();
            bits.skip(usize::from(is_field));
        }
        if self.is_idr {
            bits.read_ue();
        }
        let both = self.picture.has_field_order && !is_field;
        let deltas = match (sequence.order_count_type, sequence.delta_always_zero) {
            (0, _) => {
                bits.skip(sequence.order_count_bits as usize);
                u32::from(both)
            }
            (1, false) => 1 + u32::from(both),
            _ => 0,
        };
        (0..deltas).for_each(|_| _ = bits.read_se());
    }

    fn read_reference_counts(&self, bits: &mut BitReader<'_>) -> Option<[u32; 2]> {
        let mut references = self.picture.references;
        if self.kind.has_reference_list(0) && bits.read_bit() {
            for (list, count) in references.iter_mut().enumerate() {
                if self.kind.has_reference_list(list) {
                    *count = bits.read_ue().saturating_add(1);
                }
            }
        }
        let legal = references.iter().all(|count| *count <= REFERENCES_MAX);
        legal.then_some(references)
    }

    /// Skips `pred_weight_table` (7.3.3.2).
    fn skip_prediction_weights(&self, bits: &mut BitReader<'_>, references: [u32; 2]) {
        let present = match self.kind {
            SliceKind::P | SliceKind::Sp => self.picture.weighted,
            SliceKind::B => self.picture.weighted_bi,
            SliceKind::I | SliceKind::Si => false,
        };
        if !present {
            return;
        }
        bits.read_ue();
        if self.sequence.has_chroma {
            bits.read_ue();
        }
        for (list, count) in references.into_iter().enumerate() {
            if !self.kind.has_reference_list(list) {
                continue;
            }
            for _ in 0..count {
                let luma = if bits.read_bit() { 2 } else { 0 };
                (0..luma).for_each(|_| _ = bits.read_se());
                let chroma = if self.sequence.has_chroma && bits.read_bit() {
                    4
                } else {
                    0
                };
                (0..chroma).for_each(|_| _ = bits.read_se());
            }
        }
    }

    /// Skips `dec_ref_pic_marking` (7.3.3.3).
    fn skip_reference_marking(&self, bits: &mut BitReader<'_>) -> Option<()> {
        if self.is_idr {
            bits.skip(2);
            return Some(());
        }
        if !bits.read_bit() {
            return Some(());
        }
        for _ in 0..COMMANDS_MAX {
            let operands = match bits.read_ue() {
                0 => return Some(()),
                3 => 2,
                5 => 0,
                1 | 2 | 4 | 6 => 1,
                _ => return None,
            };
            (0..operands).for_each(|_| _ = bits.read_ue());
        }
        None
    }

    /// Skips the fields from `cabac_init_idc` to the deblocking offsets.
    fn skip_coding_parameters(&self, bits: &mut BitReader<'_>) {
        if self.picture.is_cabac && (self.kind.has_reference_list(0)) {
            bits.read_ue();
        }
        bits.read_se(); // slice_qp_delta
        match self.kind {
            SliceKind::Sp => {
                bits.skip(1);
                bits.read_se();
            }
            SliceKind::Si => _ = bits.read_se(),
            _ => {}
        }
        if self.picture.has_deblocking && bits.read_ue() != 1 {
            bits.read_se();
            bits.read_se();
        }
    }

    fn skip_group_change(&self, bits: &mut BitReader<'_>) {
        let Some(rate) = self.picture.group_change_rate else {
            return;
        };
        let cycles = self.sequence.map_units.div_ceil(rate.max(1));
        bits.skip(ceil_log2(cycles.saturating_add(1)) as usize);
    }
}

/// Skips `ref_pic_list_modification` of one list (7.3.3.1).
fn skip_reference_list_modification(bits: &mut BitReader<'_>) -> Option<()> {
    if !bits.read_bit() {
        return Some(());
    }
    for _ in 0..COMMANDS_MAX {
        match bits.read_ue() {
            0..=2 => _ = bits.read_ue(),
            3 => return Some(()),
            _ => return None,
        }
    }
    None
}

fn read_sequence_parameter_set(bits: &mut BitReader<'_>) -> Option<(u32, AvcSequence)> {
    let profile = bits.read_bits(8);
    bits.skip(16);
    let id = bits.read_ue();
    let mut chroma = 1;
    let mut set = AvcSequence::default();
    if WITH_CHROMA.contains(&profile) {
        chroma = bits.read_ue();
        set.separate_planes = chroma == 3 && bits.read_bit();
        bits.read_ue();
        bits.read_ue();
        bits.skip(1);
        if bits.read_bit() {
            skip_scaling_lists(bits, if chroma == 3 { 12 } else { 8 });
        }
    }
    set.has_chroma = chroma != 0 && !set.separate_planes;
    set.frame_num_bits = read_bit_count(bits)?;
    set.order_count_type = bits.read_ue();
    match set.order_count_type {
        0 => set.order_count_bits = read_bit_count(bits)?,
        1 => {
            set.delta_always_zero = bits.read_bit();
            bits.read_se();
            bits.read_se();
            (0..bits.read_ue().min(255)).for_each(|_| _ = bits.read_se());
        }
        _ => {}
    }
    bits.read_ue(); // max_num_ref_frames
    bits.skip(1);
    let (width, height) = (bits.read_ue(), bits.read_ue());
    set.map_units = width
        .saturating_add(1)
        .saturating_mul(height.saturating_add(1));
    set.frames_only = bits.read_bit();
    (!bits.is_past_end() && id < SETS_MAX).then_some((id, set))
}

/// Reads `log2_max_…_minus4`.
fn read_bit_count(bits: &mut BitReader<'_>) -> Option<u32> {
    let count = bits.read_ue().saturating_add(4);
    (count <= 16).then_some(count)
}

/// Skips `count` scaling lists, each of which may be absent.
fn skip_scaling_lists(bits: &mut BitReader<'_>, count: u32) {
    for list in 0..count {
        if bits.read_bit() {
            skip_scaling_list(bits, if list < 6 { 16 } else { 64 });
        }
    }
}

fn read_picture_parameter_set(
    bits: &mut BitReader<'_>,
    sequences: &BTreeMap<u32, AvcSequence>,
) -> Option<(u32, AvcPps)> {
    let id = bits.read_ue();
    let mut set = AvcPps {
        sequence: bits.read_ue(),
        is_cabac: bits.read_bit(),
        has_field_order: bits.read_bit(),
        ..AvcPps::default()
    };
    let groups = bits.read_ue();
    if groups > 0 {
        let units = sequences.get(&set.sequence)?.map_units;
        set.group_change_rate = read_slice_groups(bits, groups, units)?;
    }
    set.references = [
        bits.read_ue().saturating_add(1),
        bits.read_ue().saturating_add(1),
    ];
    set.weighted = bits.read_bit();
    set.weighted_bi = bits.read_bits(2) == 1;
    bits.read_se();
    bits.read_se();
    bits.read_se();
    set.has_deblocking = bits.read_bit();
    bits.skip(1);
    set.has_redundant = bits.read_bit();
    (!bits.is_past_end() && id < SETS_MAX).then_some((id, set))
}

/// Reads the slice groups. The result contains `SliceGroupChangeRate` if the groups change from
/// picture to picture.
fn read_slice_groups(bits: &mut BitReader<'_>, groups: u32, units: u32) -> Option<Option<u32>> {
    let kind = bits.read_ue();
    match kind {
        _ if groups > 7 => return None,
        0 => (0..=groups).for_each(|_| _ = bits.read_ue()),
        2 => (0..groups * 2).for_each(|_| _ = bits.read_ue()),
        3..=5 => {
            bits.skip(1);
            return Some(Some(bits.read_ue().saturating_add(1)));
        }
        6 => {
            let count = bits.read_ue().saturating_add(1);
            if count > units {
                return None;
            }
            bits.skip(count as usize * ceil_log2(groups + 1) as usize);
        }
        1 => {}
        _ => return None,
    }
    Some(None)
}
