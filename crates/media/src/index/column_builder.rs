//! Builds one column of a sample table.

use super::packed_integers::PackedIntegers;

/// A list of values in which long runs of equal values take little memory.
#[derive(Debug, Default)]
pub(super) struct ColumnBuilder {
    len: u32,
    values: ColumnValues,
}

#[derive(Debug)]
enum ColumnValues {
    /// Runs of equal values, as (position of the run's first value, value). Adjacent runs have
    /// different values.
    Runs(Vec<(u32, u32)>),
    Single(Vec<u32>),
    /// Values that were added in one call, and are already packed.
    Packed(PackedIntegers),
}

impl Default for ColumnValues {
    fn default() -> ColumnValues {
        ColumnValues::Runs(Vec::new())
    }
}

/// Returns whether a list of `values` values should be stored as runs, if the list has `runs` runs
/// of equal values. Runs are compact if they are much fewer than the values, or so few that their
/// memory does not matter.
pub(super) fn are_runs_compact(runs: usize, values: usize) -> bool {
    runs <= 16 + values / 8
}

impl ColumnBuilder {
    /// Adds `value`. `expected` is the expected final number of values, for which memory is
    /// reserved.
    pub fn push(&mut self, value: u32, expected: usize) {
        self.push_run(1, value, expected);
    }

    /// Adds `value` `count` times.
    #[inline]
    pub fn push_run(&mut self, count: u32, value: u32, expected: usize) {
        if count == 0 {
            return;
        }
        let len = self.len + count;
        if let ColumnValues::Single(values) = &mut self.values {
            match count {
                1 => values.push(value),
                _ => values.resize(len as usize, value),
            }
            self.len = len;
            return;
        }
        if let ColumnValues::Runs(runs) = &mut self.values {
            if runs.last().is_none_or(|last| last.1 != value) {
                runs.push((self.len, value));
            }
            if are_runs_compact(runs.len(), len as usize) {
                self.len = len;
                return;
            }
        }
        self.switch_to_single_values(count, value, expected);
    }

    /// Switches to single values, and adds `value` `count` times.
    #[cold]
    fn switch_to_single_values(&mut self, count: u32, value: u32, expected: usize) {
        let len = self.len + count;
        let mut values = self.take_single_values(expected.max(len as usize));
        values.resize(len as usize, value);
        (self.len, self.values) = (len, ColumnValues::Single(values));
    }

    /// Removes all values and returns them as a list of single values. Runs and packed values are
    /// expanded into a new list, which has memory for `room` values.
    fn take_single_values(&mut self, room: usize) -> Vec<u32> {
        if let ColumnValues::Single(each) = &mut self.values {
            return std::mem::take(each);
        }
        let mut each = Vec::with_capacity(room);
        self.append_expanded(&mut each);
        each
    }

    /// Appends all values, with runs expanded, to `each`.
    fn append_expanded(&self, each: &mut Vec<u32>) {
        match &self.values {
            ColumnValues::Runs(runs) => {
                let ends = runs.iter().skip(1).map(|run| run.0).chain([self.len]);
                for ((_, value), end) in runs.iter().zip(ends) {
                    // A run whose start equals `self.len` contains no value yet.
                    each.resize((end as usize).max(each.len()), *value);
                }
            }
            ColumnValues::Single(values) => each.extend_from_slice(values),
            ColumnValues::Packed(packed) => each.extend((0..packed.len()).map(|n| packed.get(n))),
        }
    }

    /// Adds all `values`.
    pub fn push_all(&mut self, values: impl ExactSizeIterator<Item = u32> + Clone) {
        let count = values.len() as u32;
        let packed = match self.len {
            0 => PackedIntegers::pack_iter(values.clone()),
            _ => {
                values.for_each(|value| self.push(value, 0));
                return;
            }
        };
        match packed.constant_value() {
            Some(value) => self.push_run(count, value, 0),
            None => (self.len, self.values) = (count, ColumnValues::Packed(packed)),
        }
    }

    /// Returns the last value.
    pub fn last(&self) -> Option<u32> {
        (self.len > 0).then(|| self.get(self.len - 1))
    }

    /// Changes the last value.
    pub fn set_last(&mut self, value: u32) {
        let Some(at) = self.len.checked_sub(1) else {
            return;
        };
        match &mut self.values {
            ColumnValues::Runs(runs) => {
                runs.pop_if(|last| last.0 == at);
                if runs.last().is_none_or(|last| last.1 != value) {
                    runs.push((at, value));
                }
            }
            _ => {
                let mut each = self.take_single_values(0);
                if let Some(last) = each.last_mut() {
                    *last = value;
                }
                self.values = ColumnValues::Single(each);
            }
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns value `n`; 0 past the end.
    pub fn get(&self, n: u32) -> u32 {
        match &self.values {
            _ if n >= self.len => 0,
            ColumnValues::Runs(runs) => {
                runs.get(run_index_of_value(runs, n)).map_or(0, |run| run.1)
            }
            ColumnValues::Single(values) => values.get(n as usize).copied().unwrap_or(0),
            ColumnValues::Packed(packed) => packed.get(n),
        }
    }

    /// Returns the sum of `count` values, starting with value `from`. All of these values must
    /// exist.
    #[inline]
    pub fn sum_range(&self, from: u32, count: u32) -> u64 {
        match &self.values {
            ColumnValues::Runs(runs) => self.sum_runs(runs, from, from + count),
            ColumnValues::Single(values) => {
                let values = values.get(from as usize..(from + count) as usize);
                let values = values.unwrap_or_default().iter();
                values.map(|value| u64::from(*value)).sum()
            }
            ColumnValues::Packed(packed) => packed.sum_range(from..from + count),
        }
    }

    fn sum_runs(&self, runs: &[(u32, u32)], from: u32, end: u32) -> u64 {
        let (mut sum, mut at, mut n) = (0, from, run_index_of_value(runs, from));
        while let Some((_, value)) = runs.get(n).filter(|_| at < end) {
            n += 1;
            let until = runs.get(n).map_or(self.len, |next| next.0).min(end);
            sum += u64::from(*value) * u64::from(until.saturating_sub(at));
            at = until;
        }
        sum
    }

    /// Returns runs of equal values, as (position of the run's first value, value). Returns `None`
    /// if there are too many runs (see [`are_runs_compact`]).
    pub fn equal_runs(&self) -> Option<Vec<(u32, u32)>> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        if let ColumnValues::Runs(runs) = &self.values {
            return are_runs_compact(runs.len(), self.len as usize).then(|| runs.clone());
        }
        for n in 0..self.len {
            let value = self.get(n);
            if runs.last().is_none_or(|run| run.1 != value) {
                runs.push((n, value));
                if !are_runs_compact(runs.len(), self.len as usize) {
                    return None;
                }
            }
        }
        Some(runs)
    }

    /// Packs the values into as few bytes as possible.
    pub fn to_packed(&self) -> PackedIntegers {
        match &self.values {
            ColumnValues::Runs(runs) if runs.len() < 2 => {
                PackedIntegers::repeat(runs.first().map_or(0, |run| run.1), self.len)
            }
            ColumnValues::Runs(_) => {
                let mut each = Vec::with_capacity(self.len as usize);
                self.append_expanded(&mut each);
                PackedIntegers::new(&each)
            }
            ColumnValues::Single(values) => PackedIntegers::new(values),
            ColumnValues::Packed(packed) => packed.clone(),
        }
    }
}

/// Returns the index of the run that contains value `n`.
fn run_index_of_value(runs: &[(u32, u32)], n: u32) -> usize {
    match runs.len() {
        1 => 0,
        _ => runs.partition_point(|run| run.0 <= n).saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates sequences of pushes. Each push has some values and a flag. If the flag is set, the
    /// values are equal and are pushed as one run.
    fn pushes() -> impl Strategy<Value = Vec<(Vec<u32>, bool)>> {
        let alike = (0u32..3, 0usize..90).prop_map(|(value, count)| (vec![value; count], true));
        let mixed = (proptest::collection::vec(0u32..3, 0..40), Just(false));
        proptest::collection::vec(prop_oneof![alike, mixed], 0..6)
    }

    proptest! {
        #[test]
        fn a_column_returns_the_pushed_values(added in pushes(), last in 0u32..3) {
            let (mut column, mut values) = (ColumnBuilder::default(), Vec::new());
            for (some, is_run) in added {
                values.extend_from_slice(&some);
                match some.first().filter(|_| is_run) {
                    Some(value) => column.push_run(some.len() as u32, *value, 0),
                    None => column.push_all(some.iter().copied()),
                }
            }
            column.set_last(last);
            if let Some(value) = values.last_mut() {
                *value = last;
            }
            prop_assert_eq!(column.last(), values.last().copied());
            prop_assert_eq!(column.len() as usize, values.len());
            let sum: u32 = values.iter().skip(1).sum();
            prop_assert_eq!(column.sum_range(1.min(column.len()), column.len().saturating_sub(1)), sum.into());
            let packed = column.to_packed();
            for (n, value) in values.iter().enumerate() {
                prop_assert_eq!((column.get(n as u32), packed.get(n as u32)), (*value, *value));
            }
            prop_assert_eq!(packed.len(), column.len());
            let few = values.chunk_by(|a, b| a == b).map(|run| run[0]).collect::<Vec<_>>();
            if let Some(runs) = column.equal_runs() {
                prop_assert_eq!(runs.iter().map(|run| run.1).collect::<Vec<_>>(), few);
                prop_assert!(runs.iter().all(|run| values[run.0 as usize] == run.1));
            } else {
                prop_assert!(!are_runs_compact(few.len(), values.len()));
            }
        }
    }
}
