//! The unencrypted and protected bytes of each sample of one fragment.

use std::ops::Range;

/// A run of unencrypted bytes followed by a run of protected bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subsample {
    /// Unencrypted bytes.
    pub clear: u16,
    /// Protected bytes.
    pub protected: u32,
}

impl Subsample {
    /// Returns the number of bytes in both runs.
    pub(super) fn len(self) -> u64 {
        u64::from(self.clear) + u64::from(self.protected)
    }
}

/// The subsamples of consecutive samples. Each sample takes two bytes of memory, plus eight bytes
/// per subsample.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubsampleMap {
    counts: Vec<u16>,
    subsamples: Vec<Subsample>,
}

impl SubsampleMap {
    /// Adds the next sample.
    pub(super) fn push_sample(&mut self, subsamples: &[Subsample]) {
        self.counts.push(subsamples.len() as u16);
        self.subsamples.extend_from_slice(subsamples);
    }

    /// Number of samples.
    pub fn sample_count(&self) -> usize {
        self.counts.len()
    }

    /// Approximate heap memory, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.counts.len() * 2 + self.subsamples.len() * size_of::<Subsample>()
    }

    /// Returns the subsamples of a range of samples. Number 0 is the first sample of this map.
    pub fn slice(&self, range: Range<usize>) -> SubsampleMap {
        let count = |counts: &[u16]| counts.iter().map(|n| usize::from(*n)).sum::<usize>();
        let counts = self.counts.get(range.clone()).unwrap_or_default();
        let start = count(self.counts.get(..range.start).unwrap_or_default());
        let subsamples = self.subsamples.get(start..start + count(counts));
        SubsampleMap {
            counts: counts.to_vec(),
            subsamples: subsamples.unwrap_or_default().to_vec(),
        }
    }

    /// Iterates over the samples. Each item is the list of one sample's subsamples.
    pub fn samples(&self) -> impl Iterator<Item = &[Subsample]> {
        let mut rest = &self.subsamples[..];
        self.counts.iter().map(move |count| {
            let (sample, after) = rest.split_at(usize::from(*count).min(rest.len()));
            rest = after;
            sample
        })
    }
}

/// Collects the subsamples of one sample. Adjacent unencrypted runs are joined.
pub(super) struct SubsampleCollector<'a> {
    out: &'a mut Vec<Subsample>,
    clear: usize,
    /// Whether only whole cipher blocks are protected. The remaining bytes of a protected run then
    /// stay unencrypted.
    whole_blocks: bool,
}

/// Size of a cipher block, in bytes.
pub(super) const BLOCK_BYTES: usize = 16;

impl<'a> SubsampleCollector<'a> {
    pub(super) fn new(out: &'a mut Vec<Subsample>, whole_blocks: bool) -> SubsampleCollector<'a> {
        out.clear();
        SubsampleCollector {
            out,
            clear: 0,
            whole_blocks,
        }
    }

    /// Adds unencrypted bytes.
    pub(super) fn add_clear(&mut self, bytes: usize) {
        self.clear += bytes;
    }

    /// Adds protected bytes.
    pub(super) fn add_protected(&mut self, bytes: usize) {
        let rest = if self.whole_blocks {
            bytes % BLOCK_BYTES
        } else {
            0
        };
        if bytes > rest {
            self.flush(bytes - rest);
        }
        self.clear += rest;
    }

    /// Ends the sample.
    pub(super) fn finish(mut self) {
        if self.clear > 0 {
            self.flush(0);
        }
    }

    /// Writes a subsample with the collected unencrypted bytes and `protected` protected bytes. A
    /// long unencrypted run takes several subsamples, because the length field of the run has 16
    /// bits.
    fn flush(&mut self, protected: usize) {
        while self.clear > usize::from(u16::MAX) {
            self.clear -= usize::from(u16::MAX);
            self.out.push(Subsample {
                clear: u16::MAX,
                protected: 0,
            });
        }
        self.out.push(Subsample {
            clear: self.clear as u16,
            protected: protected as u32,
        });
        self.clear = 0;
    }
}
