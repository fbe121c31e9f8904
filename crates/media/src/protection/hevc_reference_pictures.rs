//! Short-term reference picture sets of HEVC (ITU-T H.265, 7.3.7 and 7.4.8).

use crate::codec::bit_reader::BitReader;

/// A picture of a set. The number is the picture order count relative to the current picture. The
/// flag is true if the current picture refers to this picture.
type ReferencePicture = (i32, bool);

/// A short-term reference picture set.
#[derive(Debug, Clone, Default)]
pub(super) struct ReferencePictureSet {
    /// Earlier pictures, nearest first.
    earlier: Vec<ReferencePicture>,
    /// Later pictures, nearest first.
    later: Vec<ReferencePicture>,
}

/// Maximum number of pictures of a set, because `sps_max_dec_pic_buffering_minus1` is at most 15.
const PICTURES_MAX: usize = 16;

impl ReferencePictureSet {
    /// Reads set number `index`. `sets` are the sets of the SPS that were read before. A set in a
    /// slice header has the index `sets.len()`.
    pub(super) fn read_reference_set(
        bits: &mut BitReader<'_>,
        index: usize,
        sets: &[ReferencePictureSet],
        is_in_slice: bool,
    ) -> Option<ReferencePictureSet> {
        if index > 0 && bits.read_bit() {
            return ReferencePictureSet::read_predicted_set(bits, index, sets, is_in_slice);
        }
        let counts = [bits.read_ue() as usize, bits.read_ue() as usize];
        if counts.iter().any(|count| *count > PICTURES_MAX) {
            return None;
        }
        let mut read = |count: usize, sign: i32| -> Vec<ReferencePicture> {
            let mut delta = 0i32;
            let pictures = (0..count).map(|_| {
                let step = bits.read_ue().saturating_add(1).min(1 << 15) as i32;
                delta = delta.saturating_add(sign * step);
                (delta, bits.read_bit())
            });
            pictures.collect()
        };
        Some(ReferencePictureSet {
            earlier: read(counts[0], -1),
            later: read(counts[1], 1),
        })
    }

    /// Reads a set that is predicted from another set (equations 7-61 and 7-62).
    fn read_predicted_set(
        bits: &mut BitReader<'_>,
        index: usize,
        sets: &[ReferencePictureSet],
        is_in_slice: bool,
    ) -> Option<ReferencePictureSet> {
        let back = if is_in_slice { bits.read_ue() } else { 0 };
        let reference = sets.get(index.checked_sub(1 + back as usize)?)?;
        let negative = bits.read_bit();
        let size = bits.read_ue().saturating_add(1).min(1 << 15) as i32;
        let delta = if negative { -size } else { size };
        let count = reference.len() + 1;
        let flags: Vec<(bool, bool)> = (0..count)
            .map(|_| match bits.read_bit() {
                true => (true, true),
                false => (false, bits.read_bit()),
            })
            .collect();
        // The flags are in this order: the reference set's earlier pictures, its later pictures,
        // and the picture to which the reference set belongs.
        let deltas = reference.pictures().map(|(delta, _)| *delta).chain([0]);
        let mut kept: Vec<ReferencePicture> = deltas
            .zip(flags)
            .filter(|(_, (_, is_present))| *is_present)
            .map(|(of_reference, (is_used, _))| (of_reference.saturating_add(delta), is_used))
            .collect();
        kept.sort_by_key(|(delta, _)| delta.abs());
        let select = |sign: i32| {
            let of_sign = kept.iter().filter(|(delta, _)| delta.signum() == sign);
            of_sign.copied().collect::<Vec<_>>()
        };
        let set = ReferencePictureSet {
            earlier: select(-1),
            later: select(1),
        };
        (set.len() <= PICTURES_MAX).then_some(set)
    }

    fn pictures(&self) -> impl Iterator<Item = &ReferencePicture> {
        self.earlier.iter().chain(&self.later)
    }

    fn len(&self) -> usize {
        self.earlier.len() + self.later.len()
    }

    /// Number of pictures to which the current picture refers.
    pub(super) fn used_picture_count(&self) -> u32 {
        self.pictures().filter(|(_, is_used)| *is_used).count() as u32
    }
}
