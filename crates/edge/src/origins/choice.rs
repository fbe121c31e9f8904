//! In which order the origins of a pool are asked for something. Pure.
//!
//! Rendezvous hashing with weights: each origin draws a lot for each key, and the lowest is asked
//! first. An origin that goes takes only its own keys along, and they spread over all others; a
//! share of one half draws half of the keys.

/// What decides which origin is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// The path: each file has its origin.
    Path,
    /// The path without its last part: what lies together has one origin, which then has one index
    /// to make.
    Folder,
    /// The order in which they are written: the first, and others only if it fails.
    First,
}

impl Balance {
    /// From the settings' word.
    pub fn parse(text: &str) -> Result<Balance, String> {
        match text {
            "path" => Ok(Balance::Path),
            "folder" => Ok(Balance::Folder),
            "first" => Ok(Balance::First),
            _ => Err("it is path, folder or first".into()),
        }
    }

    /// What of a target is drawn lots for.
    fn key(self, target: &str) -> &str {
        let path = target.split('?').next().unwrap_or_default();
        match self {
            Balance::Folder => path.rsplit_once('/').map_or(path, |(folder, _)| folder),
            _ => path,
        }
    }
}

/// Members of a pool, as numbers into `shares`, each once. Those without a share come last: they
/// are asked if nobody else is left.
pub fn order(balance: Balance, shares: &[(u64, f64)], target: &str) -> Vec<usize> {
    let key = hash(balance.key(target).as_bytes());
    let lot = |n: usize, (seed, share): (u64, f64)| {
        let out = share <= 0.0;
        let weight = if out { 1.0 } else { share };
        let lot = match balance {
            Balance::First => n as f64,
            _ => -unit(mixed(seed ^ key)).ln() / weight,
        };
        (out, lot, n)
    };
    let mut lots: Vec<_> = shares.iter().enumerate().map(|(n, s)| lot(n, *s)).collect();
    lots.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    lots.into_iter().map(|(.., n)| n).collect()
}

/// FNV-1a: the same on every machine and in every version, so that all edges agree.
pub fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The finish of SplitMix64: each bit depends on all.
fn mixed(seed: u64) -> u64 {
    let x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Above 0, at most 1.
fn unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: usize = 30_000;

    fn firsts(shares: &[f64]) -> Vec<usize> {
        let names = ["http://a", "http://b", "http://c", "http://d"];
        let shares: Vec<_> = shares
            .iter()
            .zip(names)
            .map(|(share, name)| (hash(name.as_bytes()), *share))
            .collect();
        let first = |n| order(Balance::Path, &shares, &format!("/film/{n}.m4s"))[0];
        (0..KEYS).map(first).collect()
    }

    fn count(firsts: &[usize], member: usize) -> f64 {
        firsts.iter().filter(|n| **n == member).count() as f64 / KEYS as f64
    }

    #[test]
    fn keys_spread_by_share_and_only_those_of_who_is_gone_move() {
        let all = firsts(&[1.0; 4]);
        for member in 0..4 {
            assert!((count(&all, member) - 0.25).abs() < 0.01);
        }
        let without = firsts(&[1.0, 1.0, 0.0, 1.0]);
        for (before, after) in all.iter().zip(&without) {
            assert!(before == after || *before == 2);
        }
        for member in [0, 1, 3] {
            assert!((count(&without, member) - 1.0 / 3.0).abs() < 0.01);
        }
        let half = firsts(&[1.0, 1.0, 0.5, 1.0]);
        assert!((count(&half, 2) - 0.5 / 3.5).abs() < 0.01);
    }

    #[test]
    fn all_are_in_the_order_those_without_a_share_last() {
        for balance in [Balance::Path, Balance::Folder, Balance::First] {
            let order = order(balance, &[(1, 0.0), (2, 1.0), (3, 0.0), (4, 0.1)], "/a");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert!([1, 3].contains(&order[0]) && [1, 3].contains(&order[1]));
        }
        assert_eq!(order(Balance::First, &[(1, 1.0), (2, 1.0)], "/a"), [0, 1]);
        assert_eq!(order(Balance::Path, &[], "/a"), [0; 0]);
    }

    #[test]
    fn what_lies_in_a_folder_has_one_origin() {
        let shares: Vec<_> = (0..5).map(|n| (n, 1.0)).collect();
        let first = |balance, target: &str| order(balance, &shares, target)[0];
        let of = |n| first(Balance::Folder, &format!("/film/{n}.m4s?x={n}"));
        assert!((0..100).all(|n| of(n) == of(0)));
        let of = |n| first(Balance::Path, &format!("/film/{n}.m4s"));
        assert!((0..100).any(|n| of(n) != of(0)));
        assert_eq!(
            first(Balance::Path, "/a?x=1"),
            first(Balance::Path, "/a?x=2")
        );
    }
}
