//! BBA-0 (Huang et al., SIGCOMM 2014, section 4): the buffer alone decides.

use super::{Abr, Choice, View};

/// Share of the buffer's bound below which the lowest level is asked for.
const RESERVOIR: f64 = 0.375;
/// Share of it at which the highest is: 90 s and 216 s of 240 s in the paper.
const UPPER: f64 = 0.9;

/// A line from the lowest bitrate to the highest over the buffer, with hysteresis of a level.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bba;

impl Abr for Bba {
    fn choose(&mut self, view: &View<'_>) -> Choice {
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
            // The highest below the line, and at least one up.
            let below = view.bitrates.iter().rposition(|bitrate| *bitrate <= rate);
            below.unwrap_or(last).into()
        } else if rate <= next_down {
            // The lowest above it.
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

    fn choose(buffer_s: f64, last: usize) -> usize {
        let view = View {
            bitrates: &LADDER,
            buffer_s,
            buffer_max_s: 40.0,
            segment_s: 2.0,
            chosen: 5,
            left: 100,
            last: Some(last),
            estimate: None,
        };
        Bba.choose(&view).level
    }

    #[test]
    fn reservoir_and_cushion() {
        // Lowest up to 15 s, highest from 36 s, whatever was before.
        for last in 0..4 {
            assert_eq!((choose(0.0, last), choose(15.0, last)), (0, 0));
            assert_eq!((choose(36.0, last), choose(40.0, last)), (3, 3));
        }
        // The line passes 2 Mb/s at 18 s and 4 Mb/s at 24 s.
        assert_eq!(
            (choose(17.9, 0), choose(18.1, 0), choose(24.1, 0)),
            (0, 1, 2)
        );
    }

    #[test]
    fn a_level_is_kept_until_the_line_passes_its_neighbour() {
        assert_eq!((choose(23.9, 1), choose(15.1, 1)), (1, 1));
        // Down from 4 Mb/s only when the line is at 2.
        assert_eq!((choose(18.1, 2), choose(17.9, 2)), (2, 1));
    }

    proptest::proptest! {
        #[test]
        fn more_buffer_never_means_less(a in 0.0..40.0_f64, b in 0.0..40.0_f64, last in 0_usize..4) {
            let (less, more) = (a.min(b), a.max(b));
            proptest::prop_assert!(choose(less, last) <= choose(more, last));
        }
    }
}
