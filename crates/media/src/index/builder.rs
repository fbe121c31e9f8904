//! Collects samples one by one and packs them into tables.

use super::packed::Packed;
use super::{Sample, Samples};
use std::collections::HashMap;

/// Values one by one, which cost nothing as long as they are all the same.
#[derive(Debug, Default)]
pub(super) struct Column {
    len: u32,
    /// The one value, while there is only one.
    same: u32,
    /// All values, once there are several.
    values: Vec<u32>,
}

impl Column {
    fn push(&mut self, value: u32, expected: usize) {
        if self.values.is_empty() {
            if self.len == 0 {
                self.same = value;
            }
            if value != self.same {
                self.values.reserve(expected.max(self.len as usize + 1));
                self.values.resize(self.len as usize, self.same);
            }
        }
        if !self.values.is_empty() || value != self.same {
            self.values.push(value);
        }
        self.len += 1;
    }

    fn last(&self) -> Option<u32> {
        (self.len > 0).then(|| self.values.last().copied().unwrap_or(self.same))
    }

    fn set_last(&mut self, value: u32) {
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

/// Longer chunks are split: the place of a sample is found by adding up sizes from its chunk's
/// first, and a file of one track may be one chunk.
const CHUNK_SAMPLES_MAX: u32 = 128;

/// Collects samples in decode order and packs them.
#[derive(Debug, Default)]
pub struct SamplesBuilder {
    durations: Column,
    sizes: Column,
    cts: Column,
    cts_values: Vec<i32>,
    /// A map, not a search: a hostile file may give every sample an offset of its own.
    cts_known: HashMap<i32, u32>,
    /// Sync samples, once there is a sample that is none.
    sync: Option<Vec<u32>>,
    chunk_firsts: Vec<u32>,
    chunk_offsets: Vec<u64>,
    end: u64,
    next_offset: u64,
    expected: usize,
}

impl SamplesBuilder {
    /// How many samples so far.
    pub fn len(&self) -> u32 {
        self.sizes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of durations so far, in ticks.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Says that `more` samples are coming, so that tables need not be moved as they grow.
    pub fn reserve(&mut self, more: usize) {
        self.expected = self.len() as usize + more;
    }

    /// Adds the next sample in decode order; its `dts` is not looked at: it is the sum of the
    /// durations before. A sample that starts where the last one ended shares its chunk.
    pub fn push(&mut self, sample: Sample) {
        let n = self.len();
        let first = self.chunk_firsts.last();
        let is_full = first.is_none_or(|first| n - first >= CHUNK_SAMPLES_MAX);
        if is_full || sample.offset != self.next_offset {
            self.chunk_firsts.push(n);
            self.chunk_offsets.push(sample.offset);
        }
        self.next_offset = sample.offset.saturating_add(u64::from(sample.size));
        let cts = self.cts_number(sample.cts);
        self.cts.push(cts, self.expected);
        self.durations.push(sample.duration, self.expected);
        self.sizes.push(sample.size, self.expected);
        match &mut self.sync {
            Some(sync) if sample.sync => sync.push(n),
            None if !sample.sync => self.sync = Some((0..n).collect()),
            _ => {}
        }
        self.end += u64::from(sample.duration);
    }

    /// The number of a composition offset among the distinct ones.
    fn cts_number(&mut self, cts: i32) -> u32 {
        // Most tracks have a handful, which a look finds faster than a hash.
        let few = self.cts_values.iter().take(8);
        if let Some(known) = few.enumerate().find(|(_, value)| **value == cts) {
            return known.0 as u32;
        }
        let fresh = self.cts_values.len() as u32;
        let number = *self.cts_known.entry(cts).or_insert(fresh);
        if number == fresh {
            self.cts_values.push(cts);
        }
        number
    }

    /// Duration of the last sample.
    pub fn last_duration(&self) -> Option<u32> {
        self.durations.last()
    }

    /// Changes the duration of the last sample, to close a gap or an overlap before the next.
    pub fn set_last_duration(&mut self, duration: u32) {
        if let Some(last) = self.durations.last() {
            self.end = self.end - u64::from(last) + u64::from(duration);
            self.durations.set_last(duration);
        }
    }

    /// Takes every sample as a sync sample, whatever was said.
    pub fn set_all_sync(&mut self) {
        self.sync = None;
    }

    /// Packs what was pushed.
    pub fn finish(self) -> Samples {
        Samples::new(
            (&self.durations, self.end),
            &self.sizes,
            (&self.cts, self.cts_values),
            self.sync,
            (&self.chunk_firsts, &self.chunk_offsets),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_column_gives_back_what_it_was_given(
            values in proptest::collection::vec(0u32..3, 0..20), last in 0u32..3
        ) {
            let mut values = values;
            let mut column = Column::default();
            values.iter().for_each(|value| column.push(*value, 0));
            column.set_last(last);
            if let Some(value) = values.last_mut() {
                *value = last;
            }
            prop_assert_eq!(column.last(), values.last().copied());
            let packed = column.pack();
            let back: Vec<u32> = (0..packed.len()).map(|n| packed.get(n)).collect();
            prop_assert_eq!(back, values);
        }
    }
}
