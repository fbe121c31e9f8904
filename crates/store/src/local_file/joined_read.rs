//! Reads several ranges of a local file into one buffer. Ranges that are close together are read
//! with one system call.

use super::{JOINED_GAP_BYTES_MAX, LocalFile, READ_AMPLIFICATION_MAX};
use crate::range_join::sum_range_lens;
use crate::{Error, RequestReason};
use rustix::io::Errno;
use std::io::IoSliceMut;
use std::ops::Range;

/// Maximum number of ranges per system call. Each range takes up to two buffers, and the kernel
/// accepts at most 1024 buffers.
const RANGES_PER_READ_MAX: usize = 500;

impl LocalFile {
    /// Reads `ranges` directly into `out`, where the bytes of each range follow the bytes of the
    /// previous range. Ranges that are close together are read with one system call. Blocks.
    ///
    /// # Errors
    /// Same as [`LocalFile::read`], and [`Error::Refused`] if `out` is shorter than all ranges
    /// together.
    pub fn read_ranges_into(
        &self,
        ranges: &[Range<u64>],
        mut out: &mut [u8],
        reason: RequestReason,
    ) -> Result<(), Error> {
        for range in ranges {
            self.check_range(range)?;
        }
        let gap_bytes_max = joined_gap_max(ranges);
        let mut rest = ranges;
        while !rest.is_empty() {
            let (run, after) = rest.split_at(count_ranges_read_together(rest, gap_bytes_max));
            let room = out.split_at_mut_checked(sum_range_lens(run) as usize);
            let (room, room_after) =
                room.ok_or(Error::Refused("a read into a buffer that is too short"))?;
            self.read_joined_ranges(run, room, reason)?;
            (rest, out) = (after, room_after);
        }
        Ok(())
    }

    /// Reads ascending ranges with one system call. The bytes of the gaps between the ranges are
    /// discarded.
    fn read_joined_ranges(
        &self,
        run: &[Range<u64>],
        mut out: &mut [u8],
        reason: RequestReason,
    ) -> Result<(), Error> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let extent_len = last.end - first.start;
        if extent_len == 0 {
            return Ok(());
        }
        self.meter.count_request(reason, extent_len);
        let mut spare = vec![0; (extent_len - sum_range_lens(run)) as usize];
        let (mut gaps, mut at) = (&mut spare[..], first.start);
        let mut buffers = Vec::with_capacity(2 * run.len());
        for range in run {
            buffers.push(take_io_slice(&mut gaps, range.start - at));
            buffers.push(take_io_slice(&mut out, range.end - range.start));
            at = range.end;
        }
        self.read_buffers(first.start, &mut buffers)
    }

    fn read_buffers(
        &self,
        mut start: u64,
        mut buffers: &mut [IoSliceMut<'_>],
    ) -> Result<(), Error> {
        // Removes empty buffers at the start.
        IoSliceMut::advance_slices(&mut buffers, 0);
        while !buffers.is_empty() {
            match rustix::io::preadv(&self.file, buffers, start) {
                Ok(0) => return Err(Error::Changed),
                Ok(count) => {
                    start += count as u64;
                    IoSliceMut::advance_slices(&mut buffers, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Takes the first `len` bytes of `rest`, or all bytes if `rest` is shorter.
fn take_io_slice<'b>(rest: &mut &'b mut [u8], len: u64) -> IoSliceMut<'b> {
    let all = std::mem::take(rest);
    let (buffer, after) = all.split_at_mut(all.len().min(len as usize));
    *rest = after;
    IoSliceMut::new(buffer)
}

/// Returns the maximum length of a gap that is read together with the ranges around it. Returns 0
/// if reading all gaps of up to [`JOINED_GAP_BYTES_MAX`] would exceed the limit
/// [`READ_AMPLIFICATION_MAX`].
fn joined_gap_max(ranges: &[Range<u64>]) -> u64 {
    let gaps = ranges.windows(2).filter_map(|pair| match pair {
        [one, next] => next.start.checked_sub(one.end),
        _ => None,
    });
    let gaps = gaps.filter(|gap| *gap <= JOINED_GAP_BYTES_MAX);
    let gaps = gaps.fold(0, u64::saturating_add);
    match gaps <= sum_range_lens(ranges).saturating_mul(READ_AMPLIFICATION_MAX - 1) {
        true => JOINED_GAP_BYTES_MAX,
        false => 0,
    }
}

/// Returns the number of ranges, counted from the first range, that are read with one system call.
/// The number is at least 1.
fn count_ranges_read_together(ranges: &[Range<u64>], gap_bytes_max: u64) -> usize {
    let is_near = |pair: &[Range<u64>]| match pair {
        [one, next] => (one.end..=one.end.saturating_add(gap_bytes_max)).contains(&next.start),
        _ => false,
    };
    let near = ranges.windows(2).take_while(|pair| is_near(pair)).count();
    (near + 1).min(RANGES_PER_READ_MAX)
}
