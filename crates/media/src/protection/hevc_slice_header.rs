//! Lengths of HEVC slice segment headers (ITU-T H.265, 7.3.6).

use super::hevc_parameter_sets::{HevcParameterSets, HevcPps, HevcSequence};
use super::hevc_reference_pictures::ReferencePictureSet;
use super::slice_header_len::{ceil_log2, measure_slice_headers};
use crate::codec::bit_reader::BitReader;

/// Maximum number of pictures in one reference list.
const REFERENCES_MAX: u32 = 16;
/// Maximum number of entry points of a slice. A slice has one entry point per row of blocks or per
/// tile. A picture has at most 440 tiles (A.4.2), and fewer than 600 rows in level 6.2.
const ENTRY_POINTS_MAX: u32 = 4096;

impl HevcParameterSets {
    /// Returns the length of a slice's NAL header and slice segment header together, in bytes.
    /// Returns `None` if a header cannot be parsed.
    pub(super) fn slice_headers_len(&self, nal: &[u8]) -> Option<usize> {
        measure_slice_headers(nal, |rbsp| self.parse_slice_headers(rbsp))
    }

    fn parse_slice_headers(&self, rbsp: &[u8]) -> Option<usize> {
        let unit_type = rbsp.first()? >> 1 & 63;
        let mut bits = BitReader::new(rbsp.get(2..)?);
        let whole = bits.bits_left();
        let is_first = bits.read_bit();
        if (16..=23).contains(&unit_type) {
            bits.skip(1); // no_output_of_prior_pics_flag
        }
        let picture = self.pictures.get(&bits.read_ue())?;
        let mut slice = SliceSegmentReader {
            sequence: self.sequences.get(&picture.sequence)?,
            picture,
            bits: &mut bits,
        };
        let is_dependent = !is_first && slice.read_segment_address();
        if !is_dependent {
            slice.skip_independent_fields(unit_type)?;
        }
        slice.skip_entry_points_and_extension()?;
        // byte_alignment() is a bit with the value 1, followed by zero bits up to the next byte.
        bits.skip(1);
        let used = whole.checked_sub(bits.bits_left())?.div_ceil(8);
        (!bits.is_past_end()).then_some(2 + used)
    }
}

struct SliceSegmentReader<'a, 'b> {
    sequence: &'a HevcSequence,
    picture: &'a HevcPps,
    bits: &'a mut BitReader<'b>,
}

impl SliceSegmentReader<'_, '_> {
    /// Reads the address. Returns whether this is a dependent slice segment.
    fn read_segment_address(&mut self) -> bool {
        let is_dependent = self.picture.has_dependent_slices && self.bits.read_bit();
        self.bits.skip(self.sequence.address_bits as usize);
        is_dependent
    }

    fn skip_independent_fields(&mut self, unit_type: u8) -> Option<()> {
        self.bits.skip(self.picture.extra_bits as usize);
        let slice_type = self.bits.read_ue();
        self.bits.skip(usize::from(self.picture.has_output_flag));
        if self.sequence.separate_planes {
            self.bits.skip(2);
        }
        // An IDR picture refers to no other pictures.
        let (total, uses_temporal_mvp) = match unit_type {
            19 | 20 => (0, false),
            _ => self.read_reference_pictures()?,
        };
        let mut has_sao = false;
        if self.sequence.has_sao {
            has_sao = self.bits.read_bit();
            has_sao |= self.sequence.has_chroma && self.bits.read_bit();
        }
        match slice_type {
            0 => self.skip_prediction(2, total, uses_temporal_mvp)?,
            1 => self.skip_prediction(1, total, uses_temporal_mvp)?,
            2 => {}
            _ => return None,
        }
        self.skip_quantisation_and_filters(has_sao);
        Some(())
    }

    /// Reads the picture order count and the reference pictures. Returns `NumPicTotalCurr` and
    /// `slice_temporal_mvp_enabled_flag`.
    fn read_reference_pictures(&mut self) -> Option<(u32, bool)> {
        let (bits, sequence) = (&mut *self.bits, self.sequence);
        bits.skip(sequence.order_count_bits as usize);
        let sets = &sequence.reference_sets;
        let mut total = if !bits.read_bit() {
            ReferencePictureSet::read_reference_set(bits, sets.len(), sets, true)?
                .used_picture_count()
        } else {
            let index = bits.read_bits(ceil_log2(sets.len() as u32));
            sets.get(index as usize)?.used_picture_count()
        };
        if sequence.has_long_term {
            total += self.read_long_term_pictures()?;
        }
        let uses_temporal_mvp = self.sequence.has_temporal_mvp && self.bits.read_bit();
        Some((total, uses_temporal_mvp))
    }

    /// Reads the long-term reference pictures. Returns the number of pictures to which the current
    /// picture refers.
    fn read_long_term_pictures(&mut self) -> Option<u32> {
        let (bits, known) = (&mut *self.bits, &self.sequence.long_term);
        let of_sequence = if known.is_empty() { 0 } else { bits.read_ue() };
        let count = bits.read_ue().saturating_add(of_sequence);
        if count > 33 {
            return None;
        }
        let mut used = 0;
        for n in 0..count {
            let is_used = if n < of_sequence {
                let index = bits.read_bits(ceil_log2(known.len() as u32));
                *known.get(index as usize)?
            } else {
                bits.skip(self.sequence.order_count_bits as usize);
                bits.read_bit()
            };
            used += u32::from(is_used);
            if bits.read_bit() {
                bits.read_ue(); // delta_poc_msb_cycle_lt
            }
        }
        Some(used)
    }

    /// Skips the fields of P slices (`lists` = 1) and B slices (`lists` = 2).
    fn skip_prediction(&mut self, lists: usize, total: u32, uses_temporal_mvp: bool) -> Option<()> {
        let mut references = self.picture.references;
        if self.bits.read_bit() {
            for count in references.iter_mut().take(lists) {
                *count = self.bits.read_ue().saturating_add(1);
            }
        }
        if references.iter().any(|count| *count > REFERENCES_MAX) {
            return None;
        }
        if self.picture.has_list_modification && total > 1 {
            for count in references.iter().take(lists) {
                if self.bits.read_bit() {
                    self.bits.skip((count * ceil_log2(total)) as usize);
                }
            }
        }
        self.bits.skip(usize::from(lists == 2)); // mvd_l1_zero_flag
        self.bits.skip(usize::from(self.picture.has_cabac_init));
        if uses_temporal_mvp {
            let is_second_list = lists == 2 && !self.bits.read_bit();
            if references[usize::from(is_second_list)] > 1 {
                self.bits.read_ue(); // collocated_ref_idx
            }
        }
        let weighted = [self.picture.weighted, self.picture.weighted_bi];
        if weighted[lists - 1] {
            self.skip_prediction_weights(references.get(..lists).unwrap_or_default());
        }
        self.bits.read_ue(); // five_minus_max_num_merge_cand
        Some(())
    }

    /// Skips `pred_weight_table` (7.3.6.3).
    fn skip_prediction_weights(&mut self, references: &[u32]) {
        let (bits, has_chroma) = (&mut *self.bits, self.sequence.has_chroma);
        bits.read_ue();
        if has_chroma {
            bits.read_se();
        }
        for count in references {
            let luma: Vec<bool> = (0..*count).map(|_| bits.read_bit()).collect();
            let chroma = (0..*count).map(|_| has_chroma && bits.read_bit());
            let chroma: Vec<bool> = chroma.collect();
            for (luma, chroma) in luma.into_iter().zip(chroma) {
                let codes = if luma { 2 } else { 0 } + if chroma { 4 } else { 0 };
                (0..codes).for_each(|_| _ = bits.read_se());
            }
        }
    }

    fn skip_quantisation_and_filters(&mut self, has_sao: bool) {
        let (bits, picture) = (&mut *self.bits, self.picture);
        let offsets = if picture.has_chroma_qp_offsets { 2 } else { 0 };
        (0..1 + offsets).for_each(|_| _ = bits.read_se());
        bits.skip(usize::from(picture.has_chroma_qp_list));
        let mut disables_deblocking = picture.disables_deblocking;
        if picture.overrides_deblocking && bits.read_bit() {
            disables_deblocking = bits.read_bit();
            if !disables_deblocking {
                bits.read_se();
                bits.read_se();
            }
        }
        if picture.filters_across_slices && (has_sao || !disables_deblocking) {
            bits.skip(1);
        }
    }

    /// Skips the entry points and the extension of the header.
    fn skip_entry_points_and_extension(&mut self) -> Option<()> {
        if self.picture.has_entry_points {
            let count = self.bits.read_ue();
            if count > ENTRY_POINTS_MAX {
                return None;
            }
            if count > 0 {
                let bits_of_each = self.bits.read_ue().saturating_add(1).min(32);
                self.bits.skip(count as usize * bits_of_each as usize);
            }
        }
        if self.picture.has_header_extension {
            let bytes = self.bits.read_ue().min(256);
            self.bits.skip(bytes as usize * 8);
        }
        Some(())
    }
}
