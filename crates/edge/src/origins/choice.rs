//! The order in which the origins of a pool are tried for a request.
//!
//! The order follows weighted rendezvous hashing. Each pair of origin and key is hashed to a
//! number, and the origin with the lowest number comes first. When an origin fails, only the keys
//! of this origin move, and they are spread over all other origins. An origin with weight 0.5 gets
//! half as many keys as an origin with weight 1.

use super::title_folder::find_title_folder;

/// The method that selects the first origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BalanceMethod {
    /// The hash of the path selects the origin. Requests for the same file are sent to the same
    /// origin.
    Path,
    /// The hash of the title's folder selects the origin. Requests for all files of a title are
    /// sent to one origin, so only this origin needs the title's index.
    Folder,
    /// The first configured origin is selected. The other origins get requests only if all origins
    /// before them fail.
    First,
}

impl BalanceMethod {
    /// Parses the setting.
    pub fn parse_method(text: &str) -> Result<BalanceMethod, String> {
        match text {
            "path" => Ok(BalanceMethod::Path),
            "folder" => Ok(BalanceMethod::Folder),
            "first" => Ok(BalanceMethod::First),
            _ => Err("must be path, folder or first".into()),
        }
    }

    /// Returns the part of a request target that is hashed.
    fn hashed_part(self, target: &str) -> &str {
        let path = target.split('?').next().unwrap_or_default();
        match self {
            BalanceMethod::Folder => find_title_folder(path),
            _ => path,
        }
    }
}

/// Returns all indexes into `shares`, in the order of the attempts. Each element of `shares` is an
/// origin's hash seed and its share of requests. Origins with share 0 are last, so they get
/// requests only if all other origins fail.
pub fn rank_members(balance: BalanceMethod, shares: &[(u64, f64)], target: &str) -> Vec<usize> {
    let key = fnv1a_hash(balance.hashed_part(target).as_bytes());
    let lot = |n: usize, (seed, share): (u64, f64)| {
        let out = share <= 0.0;
        let weight = if out { 1.0 } else { share };
        let lot = match balance {
            BalanceMethod::First => n as f64,
            _ => -unit_interval(mix_bits(seed ^ key)).ln() / weight,
        };
        (out, lot, n)
    };
    let mut lots: Vec<_> = shares.iter().enumerate().map(|(n, s)| lot(n, *s)).collect();
    lots.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    lots.into_iter().map(|(.., n)| n).collect()
}

/// Computes the FNV-1a hash. The hash is the same on all machines and in all versions, so that all
/// edges choose the same origin.
pub fn fnv1a_hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Applies the finalizer of SplitMix64. Each output bit depends on all input bits.
fn mix_bits(seed: u64) -> u64 {
    let x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Maps random bits to a number above 0 and at most 1.
fn unit_interval(bits: u64) -> f64 {
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
            .map(|(share, name)| (fnv1a_hash(name.as_bytes()), *share))
            .collect();
        let first = |n| rank_members(BalanceMethod::Path, &shares, &format!("/film/{n}.m4s"))[0];
        (0..KEYS).map(first).collect()
    }

    fn count(firsts: &[usize], member: usize) -> f64 {
        firsts.iter().filter(|n| **n == member).count() as f64 / KEYS as f64
    }

    #[test]
    fn keys_spread_by_share_and_only_those_of_a_failed_origin_move() {
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
    fn the_order_contains_all_origins_and_suspended_ones_last() {
        for balance in [
            BalanceMethod::Path,
            BalanceMethod::Folder,
            BalanceMethod::First,
        ] {
            let order = rank_members(balance, &[(1, 0.0), (2, 1.0), (3, 0.0), (4, 0.1)], "/a");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert!([1, 3].contains(&order[0]) && [1, 3].contains(&order[1]));
        }
        assert_eq!(
            rank_members(BalanceMethod::First, &[(1, 1.0), (2, 1.0)], "/a"),
            [0, 1]
        );
        assert_eq!(rank_members(BalanceMethod::Path, &[], "/a"), [0; 0]);
    }

    #[test]
    fn files_of_one_folder_have_one_origin() {
        let shares: Vec<_> = (0..5).map(|n| (n, 1.0)).collect();
        let first = |balance, target: &str| rank_members(balance, &shares, target)[0];
        let of = |n| first(BalanceMethod::Folder, &format!("/film/{n}.m4s?x={n}"));
        assert!((0..100).all(|n| of(n) == of(0)));
        // Regression: renditions of a title were spread over the origins, so each origin built the
        // title's index.
        let set = "/film/6000-9f86d081884c7d65/video=";
        let of = |n| first(BalanceMethod::Folder, &format!("{set}{n}/0.m4s"));
        let manifest = first(BalanceMethod::Folder, "/film/.m3u8");
        assert!((0..100).all(|n| of(n) == manifest));
        let of = |n| first(BalanceMethod::Path, &format!("/film/{n}.m4s"));
        assert!((0..100).any(|n| of(n) != of(0)));
        assert_eq!(
            first(BalanceMethod::Path, "/a?x=1"),
            first(BalanceMethod::Path, "/a?x=2")
        );
    }
}
