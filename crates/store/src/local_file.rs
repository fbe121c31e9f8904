//! An open local file, and a check whether the file has changed.

use crate::mapped_memory::FileMap;
use crate::page_residency::PageResidency;
use crate::range_join::{join_ranges, sum_range_lens};
use crate::{Error, Meter, ObjectVersion, RequestReason};
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

/// An open file.
///
/// If another file replaces the opened file by a rename, the opened file stays readable to its end.
/// [`LocalFile::changed`] reports a file that was overwritten or truncated in place.
pub struct LocalFile {
    file: File,
    identity: ObjectVersion,
    map: OnceLock<Option<FileMap>>,
    residency: PageResidency,
    meter: Arc<Meter>,
}

/// Gaps of up to this length, in bytes, are read together with the ranges around them. Copying such
/// a gap costs about as much as another system call.
const JOINED_GAP_BYTES_MAX: u64 = 8 << 10;
/// Limit on the bytes read for several ranges, as a multiple of the ranges' total length. If joined
/// reads would exceed this limit, the gaps between the ranges are not read. In
/// [`LocalFile::read_ranges`], gaps that are read stay in memory as long as the returned bytes.
const READ_AMPLIFICATION_MAX: u64 = 2;

/// Distance in bytes between two probes of [`LocalFile::is_range_resident`]. Probing each page is not
/// necessary, because the kernel evicts pages in runs that are longer than this distance.
const PROBE_STRIDE: u64 = 64 * 1024;
/// Bytes per read if pages cannot be loaded through a mapping of the file.
const WARM_BYTES: usize = 256 * 1024;

/// Number of calls of [`LocalFile::changed`] in this process.
#[cfg(debug_assertions)]
static CHANGE_CHECKS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Returns how many times this process has checked an open file for changes. Each check takes one
/// `fstat`.
///
/// Only debug builds count the checks, for tests. Release builds do not have the cost of the
/// counter.
#[cfg(debug_assertions)]
pub fn change_check_count() -> u64 {
    CHANGE_CHECKS.load(std::sync::atomic::Ordering::Relaxed)
}

impl std::fmt::Debug for LocalFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalFile({} bytes)", self.len())
    }
}

impl AsFd for LocalFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl LocalFile {
    pub(crate) fn new(file: File, identity: ObjectVersion, meter: Arc<Meter>) -> LocalFile {
        let map = OnceLock::new();
        LocalFile {
            file,
            identity,
            map,
            residency: PageResidency::default(),
            meter,
        }
    }

    /// The version at the time of opening.
    pub fn version(&self) -> &ObjectVersion {
        &self.identity
    }

    /// Length in bytes at the time of opening.
    pub fn len(&self) -> u64 {
        self.identity.len
    }

    /// Returns whether the file was empty when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the file was written to or resized since it was opened. Costs one `fstat`.
    pub fn changed(&self) -> bool {
        #[cfg(debug_assertions)]
        CHANGE_CHECKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match rustix::fs::fstat(&self.file) {
            Ok(stat) => {
                let now = ObjectVersion::from_stat(&stat);
                // Ignores ctime, because a new link, another owner or a rename changes ctime but
                // not the bytes.
                now.len != self.identity.len || now.mtime_ns != self.identity.mtime_ns
            }
            Err(_) => true,
        }
    }

    /// Reads `range`. Blocks.
    ///
    /// # Errors
    /// [`Error::Changed`] when the file ends before `range` does. [`Error::Io`] when the storage
    /// fails.
    pub fn read(&self, range: Range<u64>, reason: RequestReason) -> Result<Bytes, Error> {
        let len = self.check_range(&range)?;
        self.meter.count_request(reason, len as u64);
        let mut buffer = Vec::with_capacity(len);
        while buffer.len() < len {
            let at = range.start + buffer.len() as u64;
            match rustix::io::pread(&self.file, spare_capacity(&mut buffer), at) {
                Ok(0) => return Err(Error::Changed),
                Ok(_) => {}
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buffer.truncate(len);
        Ok(Bytes::from(buffer))
    }

    /// Reads several ranges. Ranges that are close together are read with one system call. Returns
    /// the bytes of each range, in the given order. Blocks.
    ///
    /// # Errors
    /// Same as [`LocalFile::read`].
    pub fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        reason: RequestReason,
    ) -> Result<Vec<Bytes>, Error> {
        for range in ranges {
            self.check_range(range)?;
        }
        let mut extents = join_ranges(ranges.to_vec(), JOINED_GAP_BYTES_MAX);
        let len_max = sum_range_lens(ranges).saturating_mul(READ_AMPLIFICATION_MAX);
        if sum_range_lens(&extents) > len_max {
            extents = join_ranges(ranges.to_vec(), 0);
        }
        let read = |extent: &Range<u64>| Ok((extent.start, self.read(extent.clone(), reason)?));
        let blocks: Vec<_> = extents.iter().map(read).collect::<Result<_, Error>>()?;
        let slice = |range: &Range<u64>| {
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            let after = blocks.partition_point(|(start, _)| *start <= range.start);
            let block = after.checked_sub(1).and_then(|index| blocks.get(index));
            let (start, bytes) = block.ok_or(Error::Changed)?;
            // The offsets are within the block, so they fit in a usize.
            Ok(bytes.slice((range.start - start) as usize..(range.end - start) as usize))
        };
        ranges.iter().map(slice).collect()
    }

    /// Checks that all `ranges` are within the file, and counts them as one request. The caller
    /// then reads the ranges with [`LocalFile::read_into`], in any number of calls.
    ///
    /// # Errors
    /// [`Error::Changed`] when a range extends beyond the end of the file.
    pub fn check_and_count_request(
        &self,
        ranges: impl IntoIterator<Item = Range<u64>>,
        reason: RequestReason,
    ) -> Result<(), Error> {
        let mut bytes = 0u64;
        for range in ranges {
            bytes = bytes.saturating_add(self.check_range(&range)? as u64);
        }
        self.meter.count_request(reason, bytes);
        Ok(())
    }

    /// Reads from `start` until `buffer` is full. Blocks. Counts no request, because the caller has
    /// already called [`LocalFile::check_and_count_request`].
    ///
    /// # Errors
    /// Same as [`LocalFile::read`].
    pub fn read_into(&self, mut start: u64, mut buffer: &mut [u8]) -> Result<(), Error> {
        while !buffer.is_empty() {
            match rustix::io::pread(&self.file, &mut *buffer, start) {
                Ok(0) => return Err(Error::Changed),
                Ok(count) => {
                    start += count as u64;
                    buffer = buffer.get_mut(count..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The whole file, mapped into memory, or `None` if the file cannot be mapped.
    ///
    /// The mapped bytes may only be passed to system calls (`writev`). Code that reads bytes itself
    /// must use [`read`] instead. If the file is truncated, a system call returns `EFAULT`, but an
    /// access in user space would end the process.
    ///
    /// [`read`]: LocalFile::read
    pub fn mapping(&self) -> Option<Bytes> {
        self.file_map().map(FileMap::mapped_bytes)
    }

    /// Returns whether `range` is probably in memory. Blocks of the file that were found in memory
    /// less than a second ago are not probed again.
    pub fn is_range_resident(&self, range: &Range<u64>) -> bool {
        self.residency
            .is_resident(self.len(), range, |part| self.probe_pages(part))
    }

    fn probe_pages(&self, range: &Range<u64>) -> bool {
        let last = range.end.saturating_sub(1);
        let stride = PROBE_STRIDE as usize;
        (range.start..last)
            .step_by(stride)
            .all(|at| self.is_byte_resident(at))
            && self.is_byte_resident(last)
    }

    /// Loads `range` into memory. Blocks.
    ///
    /// # Errors
    /// Same as [`LocalFile::read`].
    pub fn warm(&self, range: Range<u64>, reason: RequestReason) -> Result<(), Error> {
        self.check_range(&range)?;
        self.meter.count_storage_wait(reason);
        let populated = self
            .file_map()
            .map(|map| map.load_pages(range.start as usize..range.end as usize));
        match populated {
            Some(Ok(())) => Ok(()),
            _ => self.read_to_warm_pages(range),
        }
    }

    fn read_to_warm_pages(&self, range: Range<u64>) -> Result<(), Error> {
        let mut buffer = vec![0; WARM_BYTES.min((range.end - range.start) as usize)];
        let mut at = range.start;
        while at < range.end {
            match rustix::io::pread(&self.file, &mut buffer[..], at) {
                Ok(0) => return Err(Error::Changed),
                Ok(n) => at += n as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn file_map(&self) -> Option<&FileMap> {
        self.map
            .get_or_init(|| FileMap::new(&self.file, self.len()).ok())
            .as_ref()
    }

    fn is_byte_resident(&self, at: u64) -> bool {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(&self.file, &mut buffers, at, ReadWriteFlags::NOWAIT) == Ok(1)
    }

    fn check_range(&self, range: &Range<u64>) -> Result<usize, Error> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::Changed);
        }
        usize::try_from(range.end - range.start)
            .map_err(|_| Error::Refused("a range over the address space"))
    }
}

mod joined_read;
#[cfg(test)]
mod tests;
