//! Reads samples that are spread over a film. A single read covers samples that are close together.
//! The number and the size of reads are limited, and reads over a network are parallel.

use crate::title::joined_ranges::{JoinedRange, join_close_ranges};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use store::{Error, Object, RequestReason};

/// Maximum number of requests for a text track of a remote film. If the text is interleaved with
/// the video, its samples are spread over the whole file, and each cue may need its own request.
const REMOTE_READS_MAX: usize = 2048;
/// Maximum total number of bytes that these requests read, including the video data between the
/// samples.
const REMOTE_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of parallel requests.
const REMOTE_READS_AT_ONCE: usize = 16;
/// Maximum gap between two samples that one request reads from a remote film, in bytes. Reading the
/// bytes between the samples takes less time than another request. The gap is increased if there
/// would be too many requests.
const REMOTE_GAP_BYTES: u64 = 64 << 10;
const LOCAL_GAP_BYTES: u64 = 4 << 10;
/// Maximum length of a read that joins samples, in bytes. This limit bounds the memory use.
const SPAN_BYTES_MAX: u64 = 1 << 20;

/// A read that failed.
pub(crate) struct FailedRead {
    pub(crate) error: Error,
    /// The bytes that could not be read; `None` if the error does not concern a single read.
    pub(crate) range: Option<Range<u64>>,
}

/// Reads samples and returns the bytes of each sample. An empty range needs no read. Blocks.
pub(crate) fn read_samples(
    object: &Object,
    ranges: &[Range<u64>],
) -> Result<Vec<Vec<u8>>, FailedRead> {
    let (reads, at_once) = match object.is_remote() {
        true => (plan_remote_reads(ranges), REMOTE_READS_AT_ONCE),
        false => (Some(join_samples(ranges, LOCAL_GAP_BYTES)), 1),
    };
    let reads = reads.ok_or(FailedRead {
        error: Error::Refused(
            "the text of this remote film would need too many requests; store it as a file beside the film",
        ),
        range: None,
    })?;
    let mut found = perform_reads(object, &reads, at_once)?
        .into_iter()
        .flatten();
    let sample = |range: &Range<u64>| match range.is_empty() {
        true => Vec::new(),
        false => found.next().unwrap_or_default(),
    };
    Ok(ranges.iter().map(sample).collect())
}

/// Joins the non-empty ranges that are at most `gap_bytes` apart.
fn join_samples(ranges: &[Range<u64>], gap_bytes: u64) -> Vec<JoinedRange> {
    let wanted = ranges.iter().filter(|range| !range.is_empty()).cloned();
    join_close_ranges(wanted, gap_bytes, SPAN_BYTES_MAX)
}

/// Plans the reads of a remote film. Returns `None` if there would be too many reads or if they
/// would read too many bytes.
fn plan_remote_reads(ranges: &[Range<u64>]) -> Option<Vec<JoinedRange>> {
    let gaps = std::iter::successors(Some(REMOTE_GAP_BYTES), |gap| Some(gap * 4));
    let plans = gaps
        .take_while(|gap| *gap <= SPAN_BYTES_MAX)
        .map(|gap| join_samples(ranges, gap));
    let mut small = plans.filter(|reads| reads.len() <= REMOTE_READS_MAX);
    let bytes = |read: &JoinedRange| read.span.end - read.span.start;
    small
        .next()
        .filter(|reads| reads.iter().map(bytes).sum::<u64>() <= REMOTE_BYTES_MAX)
}

/// Performs the reads. Returns the samples of each read, in the order of the reads.
fn perform_reads(
    object: &Object,
    reads: &[JoinedRange],
    at_once: usize,
) -> Result<Vec<Vec<Vec<u8>>>, FailedRead> {
    let next = AtomicUsize::new(0);
    let read_some = || {
        let mut done = Vec::new();
        while let Some((n, read)) = take_next_read(&next, reads) {
            let samples =
                perform_read(object, read).inspect_err(|_| next.store(reads.len(), Relaxed))?;
            done.push((n, samples));
        }
        Ok(done)
    };
    let mut all = match at_once.min(reads.len()) {
        0 | 1 => read_some()?,
        threads => read_in_parallel(threads, read_some)?,
    };
    all.sort_unstable_by_key(|(n, _)| *n);
    Ok(all.into_iter().map(|(_, samples)| samples).collect())
}

fn take_next_read<'a>(
    next: &AtomicUsize,
    reads: &'a [JoinedRange],
) -> Option<(usize, &'a JoinedRange)> {
    let n = next.fetch_add(1, Relaxed);
    Some((n, reads.get(n)?))
}

/// The position of a read among all reads, and the samples of the read.
type NumberedReadResult = (usize, Vec<Vec<u8>>);

fn read_in_parallel(
    threads: usize,
    read_some: impl Fn() -> Result<Vec<NumberedReadResult>, FailedRead> + Sync,
) -> Result<Vec<NumberedReadResult>, FailedRead> {
    let read_some = &read_some;
    std::thread::scope(|scope| {
        let spawn = |_| scope.spawn(trace::bind_trace_blocking(read_some));
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        let mut all = Vec::new();
        for thread in threads {
            let panicked = |_| {
                let error = Error::Broken("a thread that reads text panicked".to_owned());
                Err(FailedRead { error, range: None })
            };
            all.extend(thread.join().unwrap_or_else(panicked)?);
        }
        Ok(all)
    })
}

fn perform_read(object: &Object, read: &JoinedRange) -> Result<Vec<Vec<u8>>, FailedRead> {
    let bytes = object.read(read.span.clone(), RequestReason::Text);
    let bytes = bytes.map_err(|error| FailedRead {
        error,
        range: Some(read.span.clone()),
    })?;
    Ok(read.split_members(&bytes).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `count` ranges of 100 bytes, with a distance of `gap` bytes between them.
    fn spread(count: u64, gap: u64) -> Vec<Range<u64>> {
        let starts = (0..count).map(|n| n * (gap + 100));
        starts.map(|start| start..start + 100).collect()
    }

    #[test]
    fn reads_of_a_remote_film_are_bounded_in_number_bytes_and_length() {
        let count = |ranges: &[Range<u64>]| plan_remote_reads(ranges).map(|reads| reads.len());
        // The 1,500 cues are spread over more than 4 GB of a film. Each cue takes one request, and
        // the video data between the cues is not read.
        assert_eq!(count(&spread(1500, 3 << 20)), Some(1500));
        assert_eq!(count(&spread(2049, 3 << 20)), None);
        // 3,000 samples would need too many single requests, so some requests also read the bytes
        // between samples.
        let joined = plan_remote_reads(&spread(3000, 80 << 10)).unwrap();
        assert!(joined.len() <= REMOTE_READS_MAX, "{}", joined.len());
        let longest = joined.iter().map(|read| read.span.end - read.span.start);
        assert!(longest.max().unwrap() <= SPAN_BYTES_MAX);
        // Joined reads of these 9,000 samples would contain almost the whole film, which is too
        // much data.
        assert_eq!(count(&spread(9000, 80 << 10)), None);
        // A sample that is longer than the maximum length of a joined read is read alone.
        assert_eq!(count(&[0..5 << 20, (5 << 20)..(5 << 20) + 9]), Some(2));
    }

    #[test]
    fn samples_that_are_known_to_be_empty_are_not_read() {
        let ranges = [5..9, 9 << 20..9 << 20, 10 << 20..(10 << 20) + 1];
        let spans = plan_remote_reads(&ranges).unwrap().into_iter();
        let spans: Vec<_> = spans.map(|read| read.span).collect();
        assert_eq!(spans, [5..9, 10 << 20..(10 << 20) + 1]);
    }

    #[test]
    fn samples_of_a_file_are_returned_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("film.mp4"), b"0123456789").unwrap();
        let source = folder.path().to_str().unwrap();
        let store = store::Store::new(source, store::Options::default()).unwrap();
        let object = store.open(&store::Key::parse("film.mp4").unwrap()).unwrap();
        let ranges = [7..9, 3..3, 0..2, 1..4];
        let samples = read_samples(&object, &ranges).ok().unwrap();
        assert_eq!(samples, [&b"78"[..], b"", b"01", b"123"]);
        let failed = read_samples(&object, &[0..2, 9..99]).err().unwrap();
        assert_eq!(failed.range, Some(0..99));
    }
}
