//! Maps files and allocates memory for buffers. This is the only file of this crate with `unsafe`
//! code.
//!
//! Safety of mapped files. This applies to all `unsafe` blocks of [`FileMap`] and [`MemoryMapping`].
//!
//! - **The pointer** comes from `mmap` of `len > 0` bytes and is valid until `munmap` in `drop`.
//!   Each `Bytes` of the mapping holds the [`MemoryMapping`], so the mapping outlives the `Bytes`.
//! - **Aliasing.** This process never writes through the mapping, which is `PROT_READ`. Another
//!   process may write to the file or truncate it. The bytes are therefore passed to system calls
//!   only (`writev`). The kernel copies the bytes, and fails with `EFAULT` for bytes beyond the new
//!   end of a truncated file. Code that reads the bytes must use [`crate::Object::read`]. The
//!   response writer of `net`, the only user of [`crate::LocalFile::mapping`], follows this rule.
//!   `SIGBUS` therefore cannot occur.
//! - **Threads.** The memory is only read, so threads may send and share a `FileMap`.
//!
//! Safety of buffer memory. This applies to [`ArenaRegion`], [`ArenaSpanDraft`] and [`ArenaSpan`].
//!
//! - **The pointer** comes from `mmap` as above. Every [`ArenaSpan`] holds its [`ArenaRegion`].
//! - **Aliasing.** A region gives each of its bytes to one draft only, because `taken` only grows,
//!   in steps of whole pages. A draft writes only within its own span, through `&mut self`. The
//!   draft may also lend its unwritten part as a slice, for as long as the draft is borrowed. The
//!   kernel has filled this part with zeros. A span is readable only after its draft is finished.
//!   From then on, the span is not written to. The span is dropped with its last slice, and its
//!   pages are then returned to the system.
//! - **The kernel** may still hold pages of a span after the span was dropped (`vmsplice`).
//!   Returning the pages removes them from our address space, but does not change their content.
//!   The addresses of the pages are not used again while the region exists.
//! - **Threads.** A draft writes only to its own memory. Shared memory is only read.
#![allow(unsafe_code)]

use bytes::Bytes;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A whole file, mapped for reading.
#[derive(Debug)]
pub(crate) struct FileMap {
    pages: Arc<MemoryMapping>,
    all: Bytes,
}

#[derive(Debug)]
struct MemoryMapping {
    start: NonNull<u8>,
    len: usize,
}

unsafe impl Send for MemoryMapping {}
unsafe impl Sync for MemoryMapping {}

struct PagesOwner(Arc<MemoryMapping>);

impl AsRef<[u8]> for PagesOwner {
    fn as_ref(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
    }
}

impl FileMap {
    /// Maps the first `len` bytes of `file`.
    ///
    /// # Errors
    /// If the file is empty, if there is no address space, if there are too many mappings, or if
    /// the file system does not support mappings.
    pub(crate) fn new(file: &File, len: u64) -> io::Result<FileMap> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let start = unsafe { mmap(null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = Arc::new(MemoryMapping { start, len });
        let all = Bytes::from_owner(PagesOwner(pages.clone()));
        Ok(FileMap { pages, all })
    }

    /// The whole file. Code in user space must not read these bytes; see the top of this file.
    pub(crate) fn mapped_bytes(&self) -> Bytes {
        self.all.clone()
    }

    /// Loads a part of the file into memory, and waits until this part is loaded.
    ///
    /// # Errors
    /// If the storage fails or the file was truncated. `InvalidInput` if the kernel is older than
    /// Linux 5.14, which introduced `MADV_POPULATE_READ`.
    pub(crate) fn load_pages(&self, range: Range<usize>) -> io::Result<()> {
        let page = rustix::param::page_size();
        let start = range.start.min(self.pages.len) / page * page;
        let len = range.end.min(self.pages.len).saturating_sub(start);
        if len == 0 {
            return Ok(());
        }
        unsafe {
            let at = self.pages.start.as_ptr().add(start).cast();
            // The first call starts to read the whole range. The second call waits for the pages of
            // the range one by one.
            madvise(at, len, Advice::WillNeed)?;
            Ok(madvise(at, len, Advice::LinuxPopulateRead)?)
        }
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // Ignores the error, because the call fails only for a range that was never mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A region of memory in which buffers are allocated one after the other. Each buffer starts at a
/// page boundary.
#[derive(Debug)]
pub(crate) struct ArenaRegion {
    pages: MemoryMapping,
    /// The offset of the free part.
    taken: AtomicUsize,
}

/// A buffer that is being filled.
#[derive(Debug)]
pub(crate) struct ArenaSpanDraft {
    span: ArenaSpan,
    filled: usize,
}

/// A finished buffer, which is never written to again.
#[derive(Debug)]
pub(crate) struct ArenaSpan {
    region: Arc<ArenaRegion>,
    start: usize,
    len: usize,
    /// Reserved length in bytes, a multiple of the page size. The reserved pages are returned to
    /// the system when the span is dropped.
    pages_len: usize,
}

impl ArenaRegion {
    /// Reserves address space for `len` bytes. Memory is allocated only when the bytes are written.
    /// Uses huge pages if available. Sending from huge pages costs far less, because the kernel
    /// looks up and counts fewer pages.
    ///
    /// # Errors
    /// If there is not enough address space.
    pub(crate) fn new(len: usize) -> io::Result<ArenaRegion> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let start = unsafe { mmap_anonymous(null_mut(), len, access, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = MemoryMapping { start, len };
        // Ignores the error, because the region also works without huge pages.
        let _ = unsafe { madvise(pages.start.as_ptr().cast(), len, Advice::LinuxHugepage) };
        Ok(ArenaRegion {
            pages,
            taken: AtomicUsize::new(0),
        })
    }

    /// Prevents the kernel from merging the remaining small pages into huge pages. A merge would
    /// allocate memory again for the pages that were returned to the system. Must be called when
    /// the region gets no more buffers.
    pub(crate) fn disable_huge_pages(&self) {
        let at = self.pages.start.as_ptr().cast();
        // Ignores the error, because an error affects only the memory use.
        let _ = unsafe { madvise(at, self.pages.len, Advice::LinuxNoHugepage) };
    }

    /// Reserves `len` bytes, if there is room.
    pub(crate) fn reserve_span(self: &Arc<ArenaRegion>, len: usize) -> Option<ArenaSpanDraft> {
        let pages_len = len.checked_next_multiple_of(rustix::param::page_size())?;
        let taking = |taken: usize| {
            let end = taken.checked_add(pages_len)?;
            (end <= self.pages.len).then_some(end)
        };
        let start = self.taken.fetch_update(Relaxed, Relaxed, taking).ok()?;
        let region = Arc::clone(self);
        let span = ArenaSpan {
            region,
            start,
            len,
            pages_len,
        };
        Some(ArenaSpanDraft { span, filled: 0 })
    }
}

impl ArenaSpanDraft {
    /// Appends as many of these bytes as fit.
    pub(crate) fn append_fitting(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.span.len - self.filled);
        let at = self.span.start + self.filled;
        // The target is within the span, which belongs to this draft only. The target therefore
        // does not overlap `bytes`.
        unsafe {
            let to = self.span.region.pages.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
        self.filled += len;
    }

    /// Returns the part that is not filled yet.
    pub(crate) fn unfilled_part(&mut self) -> &mut [u8] {
        let at = self.span.start + self.filled;
        // The slice is within the span, which belongs to this draft only. The slice borrows `self`.
        unsafe {
            let rest = self.span.region.pages.start.as_ptr().add(at);
            std::slice::from_raw_parts_mut(rest, self.span.len - self.filled)
        }
    }

    /// Records that the first `len` bytes of the unfilled part were written.
    pub(crate) fn mark_filled(&mut self, len: usize) {
        self.filled += len.min(self.span.len - self.filled);
    }

    /// Finishes the buffer.
    pub(crate) fn into_arena_span(mut self) -> ArenaSpan {
        self.span.len = self.filled;
        self.span
    }
}

impl AsRef<[u8]> for ArenaSpan {
    fn as_ref(&self) -> &[u8] {
        unsafe {
            let start = self.region.pages.start.as_ptr().add(self.start);
            std::slice::from_raw_parts(start, self.len)
        }
    }
}

impl Drop for ArenaSpan {
    fn drop(&mut self) {
        if self.pages_len > 0 {
            // Ignores the error, because the call fails only for a range that was never mapped.
            // After a failure, the pages are freed when the region is unmapped.
            let _ = unsafe {
                let at = self.region.pages.start.as_ptr().add(self.start);
                madvise(at.cast(), self.pages_len, Advice::LinuxDontNeed)
            };
        }
    }
}
