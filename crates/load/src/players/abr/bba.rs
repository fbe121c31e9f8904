//! The rule BBA-0 (Huang et al., SIGCOMM 2014, section 4), which chooses the bitrate from the
//! buffer level alone.

use super::{AbrRule, LevelDecision, PlayerView};

/// Share of the buffer limit up to which the lowest level is chosen.
const RESERVOIR: f64 = 0.375;
/// Share of the buffer limit from which the highest level is chosen. In the paper, the two
/// thresholds are 90 s and 216 s, and the buffer limit is 240 s.
const UPPER: f64 = 0.9;

/// Maps the buffer level linearly to a bitrate between the lowest and the highest bitrate. The
/// level changes only when the mapped bitrate reaches the bitrate of an adjacent level.
#[derive(Debug, Clone, Copy, Default)]
pub struct BbaRule;

impl AbrRule for BbaRule {
    fn choose_level(&mut self, view: &PlayerView<'_>) -> LevelDecision {
        let top = view.bitrates.len().saturating_sub(1);
        let (low, high) = (view.buffer_max_s * RESERVOIR, view.buffer_max_s * UPPER);
        let last = view.last.unwrap_or(0).min(top);
        if view.buffer_s <= low {
            return 0.into();
        }
        if view.buffer_s >= high {
            return top.into();
        }
        let (least, most) = (view.bitrates[0], view.bitrates[top]);
        let rate = least + (most - least) * (view.buffer_s - low) / (high - low);
        let next_up = view
            .bitrates
            .get(last + 1)
            .copied()
            .unwrap_or(f64::INFINITY);
        let next_down = last
            .checked_sub(1)
            .map_or(f64::NEG_INFINITY, |down| view.bitrates[down]);
        if rate >= next_up {
            // Choose the highest level whose bitrate is at most `rate`. This level is above the
            // last level, because `rate` is at least `next_up`.
            let below = view.bitrates.iter().rposition(|bitrate| *bitrate <= rate);
            below.unwrap_or(last).into()
        } else if rate <= next_down {
            // Choose the lowest level whose bitrate is at least `rate`.
            let above = view.bitrates.iter().position(|bitrate| *bitrate >= rate);
            above.unwrap_or(last).into()
        } else {
            last.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LADDER: [f64; 4] = [1e6, 2e6, 4e6, 8e6];

    fn choose_level(buffer_s: f64, last: usize) -> usize {
        let view = PlayerView {
            now_s: 0.0,
            bitrates: &LADDER,
            buffer_s,
            buffer_max_s: 40.0,
            segment_s: 2.0,
            chosen: 5,
            left: 100,
            last: Some(last),
            estimate: None,
        };
        BbaRule.choose_level(&view).level
    }

    #[test]
    fn the_reservoir_and_the_upper_bound_fix_the_level() {
        // The rule chooses the lowest level up to 15 s of buffer and the highest level from 36 s,
        // independently of the last level.
        for last in 0..4 {
            assert_eq!((choose_level(0.0, last), choose_level(15.0, last)), (0, 0));
            assert_eq!((choose_level(36.0, last), choose_level(40.0, last)), (3, 3));
        }
        // A buffer of 18 s is mapped to 2 Mb/s, and a buffer of 24 s to 4 Mb/s.
        assert_eq!(
            (
                choose_level(17.9, 0),
                choose_level(18.1, 0),
                choose_level(24.1, 0)
            ),
            (0, 1, 2)
        );
    }

    #[test]
    fn a_level_holds_until_the_line_crosses_its_neighbor() {
        assert_eq!((choose_level(23.9, 1), choose_level(15.1, 1)), (1, 1));
        // The player leaves the level of 4 Mb/s only when the mapped bitrate falls to 2 Mb/s.
        assert_eq!((choose_level(18.1, 2), choose_level(17.9, 2)), (2, 1));
    }

    proptest::proptest! {
        #[test]
        fn a_fuller_buffer_never_lowers_the_level(a in 0.0..40.0_f64, b in 0.0..40.0_f64, last in 0_usize..4) {
            let (less, more) = (a.min(b), a.max(b));
            proptest::prop_assert!(choose_level(less, last) <= choose_level(more, last));
        }
    }
}
