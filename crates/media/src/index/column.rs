//! One column of a sample table while it is being collected.

use super::packed::Packed;

/// Values in order, which cost nothing as long as they are all the same.
#[derive(Debug, Default)]
pub(super) struct Column {
    len: u32,
    /// The one value, while there is only one.
    same: u32,
    /// All values, once there are several.
    values: Vec<u32>,
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
        if self.len == 0 {
            self.same = value;
        }
        self.len += count;
        if self.values.is_empty() && value == self.same {
            return;
        }
        if self.values.is_empty() {
            self.values.reserve(expected.max(self.len as usize));
            self.values.resize((self.len - count) as usize, self.same);
        }
        match count {
            1 => self.values.push(value),
            _ => self.values.resize(self.len as usize, value),
        }
    }

    /// Adds all of `values`.
    pub fn append(&mut self, values: Vec<u32>) {
        let Some(first) = values.first().copied() else {
            return;
        };
        let count = values.len() as u32;
        if values.iter().all(|value| *value == first) {
            return self.push_run(count, first, 0);
        }
        if self.len == 0 {
            self.same = first;
            self.values = values;
        } else {
            let own = self.len as usize;
            if self.values.is_empty() {
                self.values.resize(own, self.same);
            }
            self.values.extend_from_slice(&values);
        }
        self.len += count;
    }

    /// The last value.
    pub fn last(&self) -> Option<u32> {
        (self.len > 0).then(|| self.values.last().copied().unwrap_or(self.same))
    }

    /// Changes the last value.
    pub fn set_last(&mut self, value: u32) {
        if let Some(last) = self.values.last_mut() {
            *last = value;
        } else if self.len > 0 {
            self.len -= 1;
            self.push(value, 0);
        }
    }

    /// How many values.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Value `n`; 0 past the end.
    pub fn get(&self, n: u32) -> u32 {
        match self.values.is_empty() {
            true => self.same * u32::from(n < self.len),
            false => self.values.get(n as usize).copied().unwrap_or(0),
        }
    }

    /// Sum of `count` values from `from` on, which must exist.
    pub fn sum(&self, from: u32, count: u32) -> u64 {
        if self.values.is_empty() {
            return u64::from(self.same) * u64::from(count);
        }
        let values = self.values.get(from as usize..(from + count) as usize);
        values
            .unwrap_or_default()
            .iter()
            .map(|value| u64::from(*value))
            .sum()
    }

    /// All values, or the one value and how often.
    pub fn values(&self) -> Result<&[u32], (u32, u32)> {
        match self.values.is_empty() {
            true => Err((self.same, self.len)),
            false => Ok(&self.values),
        }
    }

    /// As few bytes as hold them.
    pub fn pack(&self) -> Packed {
        match self.values() {
            Ok(values) => Packed::new(values),
            Err((value, len)) => Packed::same(value, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values, and in which way they are added.
    fn added() -> impl Strategy<Value = Vec<(Vec<u32>, bool)>> {
        let alike = (0u32..3, 0usize..9).prop_map(|(value, count)| (vec![value; count], true));
        let mixed = (proptest::collection::vec(0u32..3, 0..9), Just(false));
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
                    None => column.append(some),
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
        }
    }
}
