//! Where segments begin: a pure function of the key frames' times.
//!
//! All times here are nanoseconds on the served timeline. They only choose which key frames to
//! cut at; what is served is computed from those samples, exactly.

use std::cell::LazyCell;

/// What the grid needs to know of a video rendition.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// When each key frame is shown; ascending, not empty.
    pub(super) times: Vec<i64>,
    /// When the rendition ends.
    pub(super) end: i64,
    /// How long a picture is shown, on average.
    pub(super) frame: i64,
}

/// Renditions cut at the same times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    /// Positions of the renditions in the list given, ascending.
    pub(super) members: Vec<usize>,
    /// When each segment begins, but for the first.
    pub(super) times: Vec<i64>,
    /// Per member, the key frames that segments begin with, the first one included.
    pub(super) cuts: Vec<Vec<usize>>,
    /// The longest segment of any member.
    longest: i64,
}

/// A last segment shorter than this part of the wished length is joined to the one before.
pub(super) const TAIL: i64 = 10;

/// A grid for each group of renditions that align.
///
/// Renditions align when they begin together and have key frames in common (within half a
/// frame) so often that no segment of the common grid is more than twice as long as the longest
/// that any of them would have alone. Others go into further groups: each is cut well, but
/// players cannot switch seamlessly between groups.
pub(super) fn groups(keys: &[Keys], wish: i64) -> Vec<Grid> {
    let all: Vec<usize> = (0..keys.len()).collect();
    // Mostly nobody asks.
    let longest = LazyCell::new(|| -> Vec<i64> {
        let grids = all.iter().map(|n| grid(keys, &[*n], wish));
        grids.map(|grid| grid.longest).collect()
    });
    let alone = |n: usize| longest[n];
    if let Some(grid) = joint(keys, &all, &alone, wish) {
        return vec![grid];
    }
    let mut groups: Vec<Grid> = Vec::new();
    for n in 0..keys.len() {
        let join = groups.iter_mut().find_map(|group| {
            let members: Vec<usize> = group.members.iter().copied().chain([n]).collect();
            Some((joint(keys, &members, &alone, wish)?, group))
        });
        match join {
            Some((grid, group)) => *group = grid,
            None => groups.push(grid(keys, &[n], wish)),
        }
    }
    groups
}

/// The grid of `members`, if they align; `alone` gives the longest segment that each would have
/// alone.
fn joint(
    keys: &[Keys],
    members: &[usize],
    alone: &dyn Fn(usize) -> i64,
    wish: i64,
) -> Option<Grid> {
    let first = &keys[*members.first()?];
    let together = |n: &usize| keys[*n].at(first.times[0], 0, first.frame) == Some(0);
    if !members.iter().all(together) {
        return None;
    }
    let grid = grid(keys, members, wish);
    let within = |longest: i64| grid.longest <= longest.saturating_mul(2);
    (within(wish) || members.iter().any(|n| within(alone(*n)))).then_some(grid)
}

/// Cuts `members` at their common key frames, each the nearest to the wished length after the
/// one before; of two as near, the earlier.
fn grid(keys: &[Keys], members: &[usize], wish: i64) -> Grid {
    let tail = wish / TAIL;
    let mut cuts: Vec<Vec<usize>> = members.iter().map(|_| vec![0]).collect();
    let mut times = Vec::new();
    // The longest rendition leads: the others have no say after their ends.
    let lead = members
        .iter()
        .max_by_key(|n| (keys[**n].end, std::cmp::Reverse(**n)));
    let Some(lead) = lead.map(|n| &keys[*n]) else {
        return Grid {
            members: Vec::new(),
            times,
            cuts,
            longest: 0,
        };
    };
    let mut at = 0;
    loop {
        let want = lead.times[at].saturating_add(wish);
        let common = |key: &usize| {
            let time = lead.times[*key];
            time <= lead.end - tail
                && members.iter().zip(&cuts).all(|(n, cuts)| {
                    let (keys, last) = (&keys[*n], cuts[cuts.len() - 1]);
                    time > keys.end - tail || keys.at(time, last + 1, lead.frame).is_some()
                })
        };
        let middle = lead.times.partition_point(|time| *time < want).max(at + 1);
        let later = (middle..lead.times.len())
            .take_while(|key| lead.times[*key] <= lead.end - tail)
            .find(common);
        let distance = |key: &usize| lead.times[*key].abs_diff(want);
        let far = later.as_ref().map_or(u64::MAX, distance);
        let sooner = (at + 1..middle)
            .rev()
            .take_while(|key| distance(key) <= far)
            .find(common);
        let nearest = sooner.into_iter().chain(later).min_by_key(distance);
        // The end competes too: a last segment of the wished length is not cut once more.
        let before_end = |key: &usize| distance(key) <= lead.end.abs_diff(want);
        let Some(next) = nearest.filter(before_end) else {
            break;
        };
        let time = lead.times[next];
        for (n, cuts) in members.iter().zip(&mut cuts) {
            let (keys, last) = (&keys[*n], cuts[cuts.len() - 1]);
            let cut = keys.at(time, last + 1, lead.frame);
            cuts.extend(cut.filter(|_| time <= keys.end - tail));
        }
        times.push(time);
        at = next;
    }
    let longest = members
        .iter()
        .zip(&cuts)
        .map(|(n, cuts)| keys[*n].longest(cuts))
        .max();
    Grid {
        members: members.to_vec(),
        times,
        cuts,
        longest: longest.unwrap_or(0),
    }
}

impl Keys {
    /// The key frame nearest to `time`, not before position `from`, if it is within half a frame.
    fn at(&self, time: i64, from: usize, frame: i64) -> Option<usize> {
        let half = self.frame.min(frame) / 2;
        let after = self.after(time, from);
        let near = after.saturating_sub(1).max(from)..=after.min(self.times.len() - 1);
        near.min_by_key(|key| self.times[*key].abs_diff(time))
            .filter(|key| self.times[*key].abs_diff(time) <= half.unsigned_abs())
    }

    /// How many key frames come before `time`: mostly a few more than `from`, near which is looked
    /// first, at twice the distance each time.
    fn after(&self, time: i64, from: usize) -> usize {
        let before = |key: &i64| *key < time;
        let (mut low, mut step) = (from.min(self.times.len()), 1);
        if low > 0 && !before(&self.times[low - 1]) {
            return self.times[..low].partition_point(before);
        }
        while let Some(key) = self.times.get(low + step - 1)
            && before(key)
        {
            low += step;
            step *= 2;
        }
        let high = self.times.len().min(low + step - 1);
        low + self.times[low..high].partition_point(before)
    }

    fn longest(&self, cuts: &[usize]) -> i64 {
        let ends = cuts
            .iter()
            .skip(1)
            .map(|cut| self.times[*cut])
            .chain([self.end]);
        let lengths = cuts
            .iter()
            .zip(ends)
            .map(|(cut, end)| end - self.times[*cut]);
        lengths.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn looking_near_finds_the_same(
            times in proptest::collection::btree_set(-20i64..90, 1..60), time in -22i64..92, from in 0usize..70
        ) {
            let times: Vec<i64> = times.into_iter().collect();
            let count = times.partition_point(|key| *key < time);
            let keys = Keys { times, end: 100, frame: 1 };
            prop_assert_eq!(keys.after(time, from), count);
        }
    }
}
