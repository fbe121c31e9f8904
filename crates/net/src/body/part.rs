//! The parts of a body: bytes in memory, byte ranges of a file, and bytes that wait in a pipe.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, ReadWriteFlags};

/// A part of a response body. The variants differ in how the kernel can send them.
#[derive(Debug, Clone)]
pub enum BodyPart {
    /// Bytes in memory. They are copied into the socket.
    Bytes(Bytes),
    /// Memory that is never written again, not even after it is freed. The kernel can send the
    /// memory's pages without a copy.
    Arena(Bytes),
    /// A byte range of the chunk's [`BodyFile`]. The kernel can send the range from the page cache.
    File(Range<u64>),
    /// The next bytes in a pipe. The kernel can move these bytes to the socket.
    Pipe(PipeBytes),
}

impl BodyPart {
    /// Returns the number of unsent bytes.
    pub fn len(&self) -> u64 {
        match self {
            BodyPart::Bytes(bytes) | BodyPart::Arena(bytes) => bytes.len() as u64,
            BodyPart::File(range) => range.end.saturating_sub(range.start),
            BodyPart::Pipe(pipe) => pipe.len as u64,
        }
    }

    /// Returns whether all bytes have been sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the first `count` unsent bytes. `count` must not exceed the length.
    pub(crate) fn advance(&mut self, count: u64) {
        // For bytes in memory and in pipes, `count` is at most their length. That length is a
        // `usize`, so the cast is exact.
        let in_memory = count as usize;
        match self {
            BodyPart::Bytes(bytes) | BodyPart::Arena(bytes) => bytes.advance(in_memory),
            BodyPart::File(range) => range.start += count,
            BodyPart::Pipe(pipe) => pipe.len -= in_memory,
        }
    }
}

/// The open file that the [`BodyPart::File`] ranges of a chunk refer to.
#[derive(Clone)]
pub struct BodyFile {
    descriptor: Arc<dyn AsFd + Send + Sync>,
    mapping: Option<Bytes>,
    len: u64,
    modified_ns: i64,
}

impl BodyFile {
    /// Creates a reference to a file of `len` bytes that was last modified `modified_ns`
    /// nanoseconds after the Unix epoch. The file counts as unchanged while both values are the
    /// same.
    ///
    /// `mapping` is the mapping of the whole file, if the file is mapped. Only the kernel may read
    /// the mapping. If the file has been truncated, a read of the mapping in user space would end
    /// the process.
    pub fn new(
        descriptor: Arc<dyn AsFd + Send + Sync>,
        mapping: Option<Bytes>,
        len: u64,
        modified_ns: i64,
    ) -> BodyFile {
        BodyFile {
            descriptor,
            mapping,
            len,
            modified_ns,
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Returns the mapped bytes of `range`. Only the kernel may read these bytes (see
    /// [`BodyFile::new`]).
    pub(crate) fn mapped_bytes(&self, range: &Range<u64>) -> Option<&[u8]> {
        let start = usize::try_from(range.start).ok()?;
        let end = usize::try_from(range.end).ok()?;
        self.mapping.as_ref()?.get(start..end)
    }

    /// Returns whether the file was overwritten, truncated or extended since it was opened.
    pub(crate) fn has_changed(&self) -> bool {
        rustix::fs::fstat(self.descriptor()).map_or(true, |stat| {
            let modified_ns = stat.st_mtime.saturating_mul(1_000_000_000);
            let modified_ns = modified_ns.saturating_add(stat.st_mtime_nsec as i64);
            u64::try_from(stat.st_size) != Ok(self.len) || modified_ns != self.modified_ns
        })
    }

    /// Reads up to `len` bytes at `offset` from the page cache and appends them to `buffer`.
    /// Returns the number of bytes read, which is less than `len` if the page cache does not
    /// contain the rest.
    ///
    /// # Errors
    /// `WouldBlock` if the first byte is not in the page cache, if the file system does not support
    /// non-blocking reads, or if a signal interrupts the read. `UnexpectedEof` if the file was
    /// truncated.
    pub(crate) fn read_from_page_cache(
        &self,
        offset: u64,
        len: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let before = buffer.len();
        buffer.resize(before + len, 0);
        let result = self.read_nowait(offset, buffer.get_mut(before..).unwrap_or_default());
        buffer.truncate(before + *result.as_ref().unwrap_or(&0));
        result
    }

    fn read_nowait(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut slices = [io::IoSliceMut::new(buffer)];
        match rustix::io::preadv2(
            self.descriptor(),
            &mut slices,
            offset,
            ReadWriteFlags::NOWAIT,
        ) {
            Ok(0) => Err(file_truncated_error()),
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads `len` bytes at `offset`. Blocks until storage has returned the bytes.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file was truncated, or the error of the storage.
    pub(crate) fn read_range(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = offset + bytes.len() as u64;
            match rustix::io::pread(self.descriptor(), spare_capacity(&mut bytes), at) {
                Ok(0) => return Err(file_truncated_error()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(len);
        Ok(bytes)
    }
}

impl fmt::Debug for BodyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BodyFile({} bytes)", self.len)
    }
}

/// Bytes in a pipe. They can be read only once, in the order in which they were written.
#[derive(Clone)]
pub struct PipeBytes {
    read_end: Arc<dyn AsFd + Send + Sync>,
    len: usize,
}

impl PipeBytes {
    /// Refers to the next `len` bytes in the pipe, which follow the bytes of earlier `PipeBytes`.
    pub fn new(read_end: Arc<dyn AsFd + Send + Sync>, len: usize) -> PipeBytes {
        PipeBytes { read_end, len }
    }

    /// Returns the number of unread bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn read_end(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }

    /// Reads the next `len` bytes into memory.
    ///
    /// # Errors
    /// An error if the pipe contains fewer than `len` bytes.
    pub(crate) fn read_bytes(&self, len: usize) -> io::Result<Vec<u8>> {
        let (mut bytes, mut done) = (vec![0; len], 0);
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::read(self.read_end(), rest)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(bytes)
    }
}

impl fmt::Debug for PipeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PipeBytes({} bytes)", self.len)
    }
}

pub(crate) fn file_truncated_error() -> io::Error {
    let what = "the file was truncated while it was sent";
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

    use super::*;

    fn body_file(bytes: &[u8]) -> (std::fs::File, BodyFile) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        let modified_ns = stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec as i64;
        let same = Arc::new(file.try_clone().unwrap());
        let len = bytes.len() as u64;
        (file, BodyFile::new(same, None, len, modified_ns))
    }

    #[test]
    fn ranges_are_read_and_truncation_is_an_error() {
        let bytes: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
        let (file, body_file) = body_file(&bytes);
        assert_eq!(body_file.read_range(5, 90_000).unwrap(), &bytes[5..90_005]);
        let mut cached = vec![1, 2];
        if let Ok(count) = body_file.read_from_page_cache(7, 1000, &mut cached) {
            assert_eq!(cached[2..], bytes[7..7 + count]);
        }
        assert!(!body_file.has_changed());
        file.set_len(50_000).unwrap();
        assert!(body_file.has_changed());
        let error = body_file.read_range(0, 90_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(
            body_file
                .read_from_page_cache(60_000, 10, &mut cached)
                .is_err()
        );
    }

    #[test]
    fn pipe_bytes_are_read_in_order_and_missing_ones_are_an_error() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        fcntl_setpipe_size(&write, 1 << 20).unwrap();
        std::fs::File::from(write).write_all(&bytes).unwrap();
        let mut part = BodyPart::Pipe(PipeBytes::new(Arc::new(read), bytes.len() + 1));
        let mut all = Vec::new();
        for len in [7, 100_000, 99_993] {
            let BodyPart::Pipe(pipe) = &part else {
                unreachable!()
            };
            all.extend(pipe.read_bytes(len).unwrap());
            part.advance(len as u64);
        }
        assert!(all == bytes);
        let BodyPart::Pipe(pipe) = &part else {
            unreachable!()
        };
        assert_eq!(pipe.len(), 1);
        assert!(pipe.read_bytes(1).is_err());
    }
}
