//! Detects the load at which a server no longer keeps up.

/// Minimum share of the offered load that a server achieves below the overload point.
const SHARE_MIN: f64 = 0.98;
/// Maximum tail latency below the overload point, as a multiple of the tail latency of the first
/// point.
const TAIL_FACTOR_MAX: f64 = 3.0;

/// Returns the index of the first point at which the server no longer keeps up. At this point, the
/// server achieves less than 98 % of the offered load, or its tail latency exceeds three times the
/// tail latency of the first point. Each point is (offered load, achieved load, tail latency).
/// Points must be in order of increasing load.
pub fn find_overload_point(points: impl IntoIterator<Item = (f64, f64, f64)>) -> Option<usize> {
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
        assert_eq!(find_overload_point(by_rate), Some(2));
        let by_tail = [
            (100.0, 100.0, 5.0),
            (200.0, 200.0, 15.0),
            (300.0, 300.0, 15.1),
        ];
        assert_eq!(find_overload_point(by_tail), Some(2));
        assert_eq!(find_overload_point([(10.0, 9.0, 1.0)]), Some(0));
        assert_eq!(find_overload_point([(10.0, 10.0, 1.0)]), None);
        assert_eq!(find_overload_point([]), None);
    }
}
