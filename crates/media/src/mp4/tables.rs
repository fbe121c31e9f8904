//! The boxes of a sample table (ISO/IEC 14496-12, 8.6 and 8.7), written from samples.

use crate::bytes::write_full_box;
use crate::index::{Sample, Samples};

/// Samples whose bytes follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// How many samples.
    pub samples: u32,
    /// Where its bytes begin.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Decode time of its first sample, in ticks.
    pub dts: u64,
}

/// The chunks of a track, in decode order: each as long as bytes follow each other, but about
/// `ticks` at most.
pub(super) fn chunks(samples: &Samples, ticks: u64) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for sample in samples.range(0..samples.len()) {
        match chunks.last_mut() {
            Some(last)
                if last.offset + last.bytes == sample.offset && sample.dts - last.dts < ticks =>
            {
                last.samples += 1;
                last.bytes += u64::from(sample.size);
            }
            _ => chunks.push(Chunk {
                samples: 1,
                offset: sample.offset,
                bytes: sample.size.into(),
                dts: sample.dts,
            }),
        }
    }
    chunks
}

/// Appends all boxes of an stbl but stsd.
pub(super) fn write(out: &mut Vec<u8>, samples: &Samples, chunks: &[Chunk], wide: bool) {
    let all = || samples.range(0..samples.len());
    let stts = runs(all().map(|sample| sample.duration));
    table(out, b"stts", 0, stts.len(), |out| {
        stts.iter()
            .for_each(|(count, ticks)| put(out, &[*count, *ticks]));
    });
    ctts(out, all());
    if !samples.all_sync() {
        let numbers: Vec<u32> = samples.sync_samples().map(|n| n + 1).collect();
        table(out, b"stss", 0, numbers.len(), |out| put(out, &numbers));
    }
    stsc(out, chunks);
    stsz(out, samples);
    if wide {
        table(out, b"co64", 0, chunks.len(), |out| {
            chunks
                .iter()
                .for_each(|chunk| out.extend(chunk.offset.to_be_bytes()));
        });
    } else {
        table(out, b"stco", 0, chunks.len(), |out| {
            chunks
                .iter()
                .for_each(|chunk| put(out, &[chunk.offset as u32]));
        });
    }
}

/// Composition offsets, where there are any; signed ones need version 1 (8.6.1.3).
fn ctts(out: &mut Vec<u8>, samples: impl Iterator<Item = Sample>) {
    let offsets = runs(samples.map(|sample| sample.cts));
    if offsets.iter().all(|(_, cts)| *cts == 0) {
        return;
    }
    let version = u8::from(offsets.iter().any(|(_, cts)| *cts < 0));
    table(out, b"ctts", version, offsets.len(), |out| {
        offsets
            .iter()
            .for_each(|(count, cts)| put(out, &[*count, *cts as u32]));
    });
}

/// Runs of chunks with the same number of samples. All have the one sample entry.
fn stsc(out: &mut Vec<u8>, chunks: &[Chunk]) {
    let counts = runs(chunks.iter().map(|chunk| chunk.samples));
    table(out, b"stsc", 0, counts.len(), |out| {
        let mut first = 1;
        for (count, samples) in counts {
            put(out, &[first, samples, 1]);
            first += count;
        }
    });
}

fn stsz(out: &mut Vec<u8>, samples: &Samples) {
    let len = samples.len();
    let shared = samples.shared_size(0..len).filter(|size| *size > 0);
    write_full_box(out, b"stsz", 0, 0, |out| {
        put(out, &[shared.unwrap_or(0), len]);
        if shared.is_none() {
            samples
                .range(0..len)
                .for_each(|sample| put(out, &[sample.size]));
        }
    });
}

/// Equal values that follow each other, and how many.
fn runs<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Vec<(u32, T)> {
    let mut runs: Vec<(u32, T)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((count, last)) if *last == value => *count += 1,
            _ => runs.push((1, value)),
        }
    }
    runs
}

fn table(
    out: &mut Vec<u8>,
    name: &[u8; 4],
    version: u8,
    count: usize,
    rows: impl FnOnce(&mut Vec<u8>),
) {
    write_full_box(out, name, version, 0, |out| {
        put(out, &[count as u32]);
        rows(out);
    });
}

pub(super) fn put(out: &mut Vec<u8>, words: &[u32]) {
    words
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
}
