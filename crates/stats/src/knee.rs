//! Where a server stops keeping up with a ramp.

/// Achieved below this share of offered: over the knee.
const SHARE_MIN: f64 = 0.98;
/// A tail this many times that of the first point: over the knee.
const TAIL_FACTOR_MAX: f64 = 3.0;

/// The first of these (offered, achieved, tail of the latency), in order of growing load, where less
/// than 98 % of what was offered was achieved, or the tail is beyond three times the first one's.
pub fn knee(points: impl IntoIterator<Item = (f64, f64, f64)>) -> Option<usize> {
    let mut base = None;
    points.into_iter().position(|(offered, achieved, tail)| {
        let base = *base.get_or_insert(tail);
        achieved < SHARE_MIN * offered || tail > TAIL_FACTOR_MAX * base
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planted_knee_is_found() {
        let by_rate = [
            (100.0, 100.0, 5.0),
            (200.0, 199.0, 6.0),
            (300.0, 280.0, 9.0),
        ];
        assert_eq!(knee(by_rate), Some(2));
        let by_tail = [
            (100.0, 100.0, 5.0),
            (200.0, 200.0, 15.0),
            (300.0, 300.0, 15.1),
        ];
        assert_eq!(knee(by_tail), Some(2));
        assert_eq!(knee([(10.0, 9.0, 1.0)]), Some(0));
        assert_eq!(knee([(10.0, 10.0, 1.0)]), None);
        assert_eq!(knee([]), None);
    }
}
