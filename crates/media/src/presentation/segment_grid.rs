//! The grid of segment boundaries, which depends only on key frame times and the target duration.
//!
//! All times are nanoseconds on the served timeline. These times are used only to choose the key
//! frames at which segments start. The served times are computed exactly from the samples of these
//! key frames.

use std::cell::LazyCell;

/// Key frame times of a video rendition.
#[derive(Debug, Clone)]
pub(super) struct KeyFrameTimes {
    /// Presentation time of each key frame; ascending, not empty.
    pub(super) times: Vec<i64>,
    /// End of the rendition.
    pub(super) end: i64,
    /// Mean duration of a picture.
    pub(super) frame_duration: i64,
}

/// A group of renditions that are cut at the same times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentGrid {
    /// Indexes of the renditions, ascending.
    pub(super) members: Vec<usize>,
    /// Start of each segment except the first.
    pub(super) times: Vec<i64>,
    /// For each member, the positions of the key frames that start its segments, including the
    /// first segment.
    pub(super) cuts: Vec<Vec<usize>>,
    /// Duration of the longest segment of any member.
    longest_segment: i64,
}

/// The last segment is joined to the previous one if it is shorter than the target length divided
/// by this number.
pub(super) const TAIL_DIVISOR: i64 = 10;

/// Builds one grid for each group of renditions that align.
///
/// Renditions align if they start together and have common key frames (within half a frame) often
/// enough. The longest segment of the common grid decides whether this is often enough. This
/// segment must last at most twice the target length, or at most twice the longest segment that one
/// of the renditions would have in a separate grid. Renditions that do not align form further
/// groups. Players cannot switch seamlessly between groups.
pub(super) fn build_grids(keys: &[KeyFrameTimes], target_ns: i64) -> Vec<SegmentGrid> {
    let all: Vec<usize> = (0..keys.len()).collect();
    // The grids of single renditions are built lazily, because most titles do not need them.
    let longest = LazyCell::new(|| -> Vec<i64> {
        let grids = all
            .iter()
            .map(|n| cut_at_common_keys(keys, &[*n], target_ns));
        grids.map(|grid| grid.longest_segment).collect()
    });
    let alone = |n: usize| longest[n];
    if let Some(grid) = build_common_grid(keys, &all, &alone, target_ns) {
        return vec![grid];
    }
    let mut groups: Vec<SegmentGrid> = Vec::new();
    for n in 0..keys.len() {
        let join = groups.iter_mut().find_map(|group| {
            let members: Vec<usize> = group.members.iter().copied().chain([n]).collect();
            Some((build_common_grid(keys, &members, &alone, target_ns)?, group))
        });
        match join {
            Some((grid, group)) => *group = grid,
            None => groups.push(cut_at_common_keys(keys, &[n], target_ns)),
        }
    }
    groups
}

/// Builds the grid of `members` if they align. `alone` returns the duration of the longest segment
/// that a member would have with a grid of its own.
fn build_common_grid(
    keys: &[KeyFrameTimes],
    members: &[usize],
    alone: &dyn Fn(usize) -> i64,
    target_ns: i64,
) -> Option<SegmentGrid> {
    let first = &keys[*members.first()?];
    let together = |n: &usize| {
        keys[*n].find_key_frame_near(first.times[0], 0, first.frame_duration) == Some(0)
    };
    if !members.iter().all(together) {
        return None;
    }
    let grid = cut_at_common_keys(keys, members, target_ns);
    let within = |longest: i64| grid.longest_segment <= longest.saturating_mul(2);
    (within(target_ns) || members.iter().any(|n| within(alone(*n)))).then_some(grid)
}

/// Cuts `members` at common key frames. Each cut is at the common key frame whose distance from the
/// previous cut is closest to the target length. If two key frames are equally close, the earlier
/// one is used.
fn cut_at_common_keys(keys: &[KeyFrameTimes], members: &[usize], target_ns: i64) -> SegmentGrid {
    let tail = target_ns / TAIL_DIVISOR;
    let mut cuts: Vec<Vec<usize>> = members.iter().map(|_| vec![0]).collect();
    let mut times = Vec::new();
    // Cuts are chosen from the key frames of the longest rendition. A shorter rendition does not
    // constrain the cuts after its end.
    let lead = members
        .iter()
        .max_by_key(|n| (keys[**n].end, std::cmp::Reverse(**n)));
    let Some(lead) = lead.map(|n| &keys[*n]) else {
        return SegmentGrid {
            members: Vec::new(),
            times,
            cuts,
            longest_segment: 0,
        };
    };
    let mut at = 0;
    loop {
        let target_time = lead.times[at].saturating_add(target_ns);
        let common = |key: &usize| {
            let time = lead.times[*key];
            time <= lead.end - tail
                && members.iter().zip(&cuts).all(|(n, cuts)| {
                    let (keys, last) = (&keys[*n], cuts[cuts.len() - 1]);
                    time > keys.end - tail
                        || keys
                            .find_key_frame_near(time, last + 1, lead.frame_duration)
                            .is_some()
                })
        };
        let middle = lead
            .times
            .partition_point(|time| *time < target_time)
            .max(at + 1);
        let later = (middle..lead.times.len())
            .take_while(|key| lead.times[*key] <= lead.end - tail)
            .find(common);
        let distance = |key: &usize| lead.times[*key].abs_diff(target_time);
        let later_distance = later.as_ref().map_or(u64::MAX, distance);
        let earlier = (at + 1..middle)
            .rev()
            .take_while(|key| distance(key) <= later_distance)
            .find(common);
        let nearest = earlier.into_iter().chain(later).min_by_key(distance);
        // There is no further cut if the end of the rendition is closer to `target_time` than the
        // key frame `nearest` is. A last segment of about the target length is therefore not
        // divided.
        let before_end = |key: &usize| distance(key) <= lead.end.abs_diff(target_time);
        let Some(next) = nearest.filter(before_end) else {
            break;
        };
        let time = lead.times[next];
        for (n, cuts) in members.iter().zip(&mut cuts) {
            let (keys, last) = (&keys[*n], cuts[cuts.len() - 1]);
            let cut = keys.find_key_frame_near(time, last + 1, lead.frame_duration);
            cuts.extend(cut.filter(|_| time <= keys.end - tail));
        }
        times.push(time);
        at = next;
    }
    let longest = members
        .iter()
        .zip(&cuts)
        .map(|(n, cuts)| keys[*n].longest_segment(cuts))
        .max();
    SegmentGrid {
        members: members.to_vec(),
        times,
        cuts,
        longest_segment: longest.unwrap_or(0),
    }
}

impl KeyFrameTimes {
    /// Returns the position of the key frame nearest to `time`, among the key frames from position
    /// `from` on. Returns `None` if this key frame is more than half a frame away.
    fn find_key_frame_near(&self, time: i64, from: usize, frame: i64) -> Option<usize> {
        let half = self.frame_duration.min(frame) / 2;
        let after = self.count_key_frames_before(time, from);
        let near = after.saturating_sub(1).max(from)..=after.min(self.times.len() - 1);
        near.min_by_key(|key| self.times[*key].abs_diff(time))
            .filter(|key| self.times[*key].abs_diff(time) <= half.unsigned_abs())
    }

    /// Counts the key frames before `time`. Searches from position `from` in doubling steps,
    /// because the result is usually close to `from`.
    fn count_key_frames_before(&self, time: i64, from: usize) -> usize {
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

    fn longest_segment(&self, cuts: &[usize]) -> i64 {
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
        fn counting_near_a_guess_equals_the_partition_point(
            times in proptest::collection::btree_set(-20i64..90, 1..60), time in -22i64..92, from in 0usize..70
        ) {
            let times: Vec<i64> = times.into_iter().collect();
            let count = times.partition_point(|key| *key < time);
            let keys = KeyFrameTimes { times, end: 100, frame_duration: 1 };
            prop_assert_eq!(keys.count_key_frames_before(time, from), count);
        }
    }
}
