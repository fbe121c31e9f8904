//! One column of a sample table while it is being collected.

use super::packed::Packed;

/// Values in order, which cost little as long as many in a row are the same.
#[derive(Debug, Default)]
pub(super) struct Column {
    len: u32,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// Runs of equal values, neighbours of which differ: the first of each, and the value.
    Runs(Vec<(u32, u32)>),
    Each(Vec<u32>),
    /// All of them came at once.
    Packed(Packed),
}

impl Default for Values {
    fn default() -> Values {
        Values::Runs(Vec::new())
    }
}

/// Whether so many runs of so many values cost less than a value each, or next to nothing.
pub(super) fn are_few(runs: usize, values: usize) -> bool {
    runs <= 16 + values / 8
}

impl Column {
    /// Adds `value`; `expected` values are there in the end, as far as is known.
    pub fn push(&mut self, value: u32, expected: usize) {
        self.push_run(1, value, expected);
    }

    /// Adds `count` times `value`.
    #[inline]
    pub fn push_run(&mut self, count: u32, value: u32, expected: usize) {
        if count == 0 {
            return;
        }
        let len = self.len + count;
        if let Values::Each(values) = &mut self.values {
            match count {
                1 => values.push(value),
                _ => values.resize(len as usize, value),
            }
            self.len = len;
            return;
        }
        if let Values::Runs(runs) = &mut self.values {
            if runs.last().is_none_or(|last| last.1 != value) {
                runs.push((self.len, value));
            }
            if are_few(runs.len(), len as usize) {
                self.len = len;
                return;
            }
        }
        self.push_each(count, value, expected);
    }

    /// From here on each value is told by itself.
    #[cold]
    fn push_each(&mut self, count: u32, value: u32, expected: usize) {
        let len = self.len + count;
        let mut values = self.take_each(expected.max(len as usize));
        values.resize(len as usize, value);
        (self.len, self.values) = (len, Values::Each(values));
    }

    /// Takes the values out, one by one, with room for so many where they were not so before.
    fn take_each(&mut self, room: usize) -> Vec<u32> {
        if let Values::Each(each) = &mut self.values {
            return std::mem::take(each);
        }
        let mut each = Vec::with_capacity(room);
        self.spread(&mut each);
        each
    }

    /// Appends all values to `each`.
    fn spread(&self, each: &mut Vec<u32>) {
        match &self.values {
            Values::Runs(runs) => {
                let ends = runs.iter().skip(1).map(|run| run.0).chain([self.len]);
                for ((_, value), end) in runs.iter().zip(ends) {
                    // A run that begins at the end is not there yet.
                    each.resize((end as usize).max(each.len()), *value);
                }
            }
            Values::Each(values) => each.extend_from_slice(values),
            Values::Packed(packed) => each.extend((0..packed.len()).map(|n| packed.get(n))),
        }
    }

    /// Adds all of `values`.
    pub fn append(&mut self, values: impl ExactSizeIterator<Item = u32> + Clone) {
        let count = values.len() as u32;
        let packed = match self.len {
            0 => Packed::of(values.clone()),
            _ => {
                values.for_each(|value| self.push(value, 0));
                return;
            }
        };
        match packed.constant() {
            Some(value) => self.push_run(count, value, 0),
            None => (self.len, self.values) = (count, Values::Packed(packed)),
        }
    }

    /// The last value.
    pub fn last(&self) -> Option<u32> {
        (self.len > 0).then(|| self.get(self.len - 1))
    }

    /// Changes the last value.
    pub fn set_last(&mut self, value: u32) {
        let Some(at) = self.len.checked_sub(1) else {
            return;
        };
        match &mut self.values {
            Values::Runs(runs) => {
                runs.pop_if(|last| last.0 == at);
                if runs.last().is_none_or(|last| last.1 != value) {
                    runs.push((at, value));
                }
            }
            _ => {
                let mut each = self.take_each(0);
                if let Some(last) = each.last_mut() {
                    *last = value;
                }
                self.values = Values::Each(each);
            }
        }
    }

    /// How many values.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Value `n`; 0 past the end.
    pub fn get(&self, n: u32) -> u32 {
        match &self.values {
            _ if n >= self.len => 0,
            Values::Runs(runs) => runs.get(run(runs, n)).map_or(0, |run| run.1),
            Values::Each(values) => values.get(n as usize).copied().unwrap_or(0),
            Values::Packed(packed) => packed.get(n),
        }
    }

    /// Sum of `count` values from `from` on, which must exist.
    #[inline]
    pub fn sum(&self, from: u32, count: u32) -> u64 {
        match &self.values {
            Values::Runs(runs) => self.sum_of_runs(runs, from, from + count),
            Values::Each(values) => {
                let values = values.get(from as usize..(from + count) as usize);
                let values = values.unwrap_or_default().iter();
                values.map(|value| u64::from(*value)).sum()
            }
            Values::Packed(packed) => packed.sum(from..from + count),
        }
    }

    fn sum_of_runs(&self, runs: &[(u32, u32)], from: u32, end: u32) -> u64 {
        let (mut sum, mut at, mut n) = (0, from, run(runs, from));
        while let Some((_, value)) = runs.get(n).filter(|_| at < end) {
            n += 1;
            let until = runs.get(n).map_or(self.len, |next| next.0).min(end);
            sum += u64::from(*value) * u64::from(until.saturating_sub(at));
            at = until;
        }
        sum
    }

    /// The first of each run of equal values, and the value; `None` where they are too many to be of
    /// use (see [`are_few`]).
    pub fn runs(&self) -> Option<Vec<(u32, u32)>> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        if let Values::Runs(runs) = &self.values {
            return are_few(runs.len(), self.len as usize).then(|| runs.clone());
        }
        for n in 0..self.len {
            let value = self.get(n);
            if runs.last().is_none_or(|run| run.1 != value) {
                runs.push((n, value));
                if !are_few(runs.len(), self.len as usize) {
                    return None;
                }
            }
        }
        Some(runs)
    }

    /// As few bytes as hold them.
    pub fn pack(&self) -> Packed {
        match &self.values {
            Values::Runs(runs) if runs.len() < 2 => {
                Packed::same(runs.first().map_or(0, |run| run.1), self.len)
            }
            Values::Runs(_) => {
                let mut each = Vec::with_capacity(self.len as usize);
                self.spread(&mut each);
                Packed::new(&each)
            }
            Values::Each(values) => Packed::new(values),
            Values::Packed(packed) => packed.clone(),
        }
    }
}

/// Which run value `n` is in.
fn run(runs: &[(u32, u32)], n: u32) -> usize {
    match runs.len() {
        1 => 0,
        _ => runs.partition_point(|run| run.0 <= n).saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values, and in which way they are added.
    fn added() -> impl Strategy<Value = Vec<(Vec<u32>, bool)>> {
        let alike = (0u32..3, 0usize..90).prop_map(|(value, count)| (vec![value; count], true));
        let mixed = (proptest::collection::vec(0u32..3, 0..40), Just(false));
        proptest::collection::vec(prop_oneof![alike, mixed], 0..6)
    }

    proptest! {
        #[test]
        fn a_column_gives_back_what_it_was_given(added in added(), last in 0u32..3) {
            let (mut column, mut values) = (Column::default(), Vec::new());
            for (some, is_run) in added {
                values.extend_from_slice(&some);
                match some.first().filter(|_| is_run) {
                    Some(value) => column.push_run(some.len() as u32, *value, 0),
                    None => column.append(some.iter().copied()),
                }
            }
            column.set_last(last);
            if let Some(value) = values.last_mut() {
                *value = last;
            }
            prop_assert_eq!(column.last(), values.last().copied());
            prop_assert_eq!(column.len() as usize, values.len());
            let sum: u32 = values.iter().skip(1).sum();
            prop_assert_eq!(column.sum(1.min(column.len()), column.len().saturating_sub(1)), sum.into());
            let packed = column.pack();
            for (n, value) in values.iter().enumerate() {
                prop_assert_eq!((column.get(n as u32), packed.get(n as u32)), (*value, *value));
            }
            prop_assert_eq!(packed.len(), column.len());
            let few = values.chunk_by(|a, b| a == b).map(|run| run[0]).collect::<Vec<_>>();
            if let Some(runs) = column.runs() {
                prop_assert_eq!(runs.iter().map(|run| run.1).collect::<Vec<_>>(), few);
                prop_assert!(runs.iter().all(|run| values[run.0 as usize] == run.1));
            } else {
                prop_assert!(!are_few(few.len(), values.len()));
            }
        }
    }
}
