//! Writing of sample table boxes (ISO/IEC 14496-12, 8.6 and 8.7).

use crate::bytes::write_full_box;
use crate::index::{Sample, SampleTable};

/// A chunk: consecutive samples whose bytes are contiguous in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileChunk {
    /// Number of samples.
    pub sample_count: u32,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub byte_count: u64,
    /// Decode time of the first sample, in ticks.
    pub dts: u64,
}

/// Returns the chunks of a track in decode order. The bytes of each chunk are contiguous. A chunk
/// lasts at most about `ticks`.
pub(super) fn collect_chunks(samples: &SampleTable, ticks: u64) -> Vec<FileChunk> {
    let mut chunks: Vec<FileChunk> = Vec::new();
    for sample in samples.iter_range(0..samples.len()) {
        match chunks.last_mut() {
            Some(last)
                if last.offset + last.byte_count == sample.offset
                    && sample.dts - last.dts < ticks =>
            {
                last.sample_count += 1;
                last.byte_count += u64::from(sample.size);
            }
            _ => chunks.push(FileChunk {
                sample_count: 1,
                offset: sample.offset,
                byte_count: sample.size.into(),
                dts: sample.dts,
            }),
        }
    }
    chunks
}

/// Appends all boxes of an `stbl` except `stsd`.
pub(super) fn write_sample_table(
    out: &mut Vec<u8>,
    samples: &SampleTable,
    chunks: &[FileChunk],
    wide: bool,
) {
    let all = || samples.iter_range(0..samples.len());
    let stts = runs_of_equal(all().map(|sample| sample.duration));
    write_table(out, b"stts", 0, stts.len(), |out| {
        stts.iter()
            .for_each(|(count, ticks)| write_words(out, &[*count, *ticks]));
    });
    write_ctts(out, all());
    if !samples.is_all_sync() {
        let numbers: Vec<u32> = samples.sync_samples().map(|n| n + 1).collect();
        write_table(out, b"stss", 0, numbers.len(), |out| {
            write_words(out, &numbers)
        });
    }
    write_stsc(out, chunks);
    write_stsz(out, samples);
    if wide {
        write_table(out, b"co64", 0, chunks.len(), |out| {
            chunks
                .iter()
                .for_each(|chunk| out.extend(chunk.offset.to_be_bytes()));
        });
    } else {
        write_table(out, b"stco", 0, chunks.len(), |out| {
            chunks
                .iter()
                .for_each(|chunk| write_words(out, &[chunk.offset as u32]));
        });
    }
}

/// Writes composition offsets, unless all are 0. Negative offsets need version 1 (8.6.1.3).
fn write_ctts(out: &mut Vec<u8>, samples: impl Iterator<Item = Sample>) {
    let offsets = runs_of_equal(samples.map(|sample| sample.composition_offset));
    if offsets
        .iter()
        .all(|(_, composition_offset)| *composition_offset == 0)
    {
        return;
    }
    let version = u8::from(
        offsets
            .iter()
            .any(|(_, composition_offset)| *composition_offset < 0),
    );
    write_table(out, b"ctts", version, offsets.len(), |out| {
        offsets.iter().for_each(|(count, composition_offset)| {
            write_words(out, &[*count, *composition_offset as u32])
        });
    });
}

/// Writes the number of samples per chunk, as runs of chunks with equal numbers. All chunks use the
/// only sample entry.
fn write_stsc(out: &mut Vec<u8>, chunks: &[FileChunk]) {
    let counts = runs_of_equal(chunks.iter().map(|chunk| chunk.sample_count));
    write_table(out, b"stsc", 0, counts.len(), |out| {
        let mut first = 1;
        for (count, samples) in counts {
            write_words(out, &[first, samples, 1]);
            first += count;
        }
    });
}

fn write_stsz(out: &mut Vec<u8>, samples: &SampleTable) {
    let len = samples.len();
    let shared = samples.shared_size(0..len).filter(|size| *size > 0);
    write_full_box(out, b"stsz", 0, 0, |out| {
        write_words(out, &[shared.unwrap_or(0), len]);
        if shared.is_none() {
            samples
                .iter_range(0..len)
                .for_each(|sample| write_words(out, &[sample.size]));
        }
    });
}

/// Returns runs of equal values, each with its length and its value.
fn runs_of_equal<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Vec<(u32, T)> {
    let mut runs: Vec<(u32, T)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((count, last)) if *last == value => *count += 1,
            _ => runs.push((1, value)),
        }
    }
    runs
}

fn write_table(
    out: &mut Vec<u8>,
    name: &[u8; 4],
    version: u8,
    count: usize,
    rows: impl FnOnce(&mut Vec<u8>),
) {
    write_full_box(out, name, version, 0, |out| {
        write_words(out, &[count as u32]);
        rows(out);
    });
}

pub(super) fn write_words(out: &mut Vec<u8>, words: &[u32]) {
    words
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
}
