//! Files in memory without a copy, and memory of our own: the one file that may say `unsafe`.
//!
//! The proof for files, once for all blocks of [`Map`] and [`Pages`]:
//!
//! - **The pointer** comes from `mmap` of `len > 0` bytes, and lives until `munmap` in `drop`;
//!   whoever holds a slice holds the [`Map`] through its `Bytes`.
//! - **Aliasing.** Nobody in this process writes through the mapping: it is `PROT_READ`. Another
//!   process may write to or cut the file. The slices are therefore handed to system calls only
//!   (`writev`), which copy in the kernel and answer `EFAULT` where the file has been cut; user
//!   code that looks at the bytes must use [`crate::Object::read`] instead. That is a rule of
//!   [`crate::Object::slices`], kept by its only caller, and it is why no `SIGBUS` can come.
//! - **Threads.** The memory is only read, so `Map` may be sent and shared.
//!
//! And for memory of our own, [`Lot`], [`Draft`] and [`Span`]:
//!
//! - **The pointer** comes from `mmap` as above; every [`Span`] holds its [`Lot`].
//! - **Aliasing.** A lot gives each of its bytes to one draft only, ever: `taken` only grows, in
//!   steps of whole pages. A draft writes within its own span, through `&mut self`, or lends what is not
//!   written yet as a slice, as long as it is borrowed itself: such memory is the kernel's zeros, and
//!   may be looked at. No slice of a span is made before the draft is done with it. From then on nobody
//!   writes, until the pages go back when the span is dropped, and with it the last slice. So spans may
//!   be looked at.
//! - **The kernel** may hold pages of a span for longer (`vmsplice`): giving them back takes them out
//!   of our memory and does not change them, and that address is never given to anybody else as long
//!   as the lot lives.
//! - **Threads.** What a draft writes is its own; what is shared is only read.
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
pub(crate) struct Map {
    pages: Arc<Pages>,
    all: Bytes,
}

#[derive(Debug)]
struct Pages {
    start: NonNull<u8>,
    len: usize,
}

unsafe impl Send for Pages {}
unsafe impl Sync for Pages {}

struct Owner(Arc<Pages>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
    }
}

impl Map {
    /// Maps the first `len` bytes of `file`.
    ///
    /// # Errors
    /// When the system will not: an empty file, no address space, too many mappings, a file
    /// system that cannot.
    pub(crate) fn new(file: &File, len: u64) -> io::Result<Map> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let start = unsafe { mmap(null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = Arc::new(Pages { start, len });
        let all = Bytes::from_owner(Owner(pages.clone()));
        Ok(Map { pages, all })
    }

    /// A part of the file. Never to be looked at in user space; see the top of this file.
    pub(crate) fn slice(&self, range: Range<usize>) -> Option<Bytes> {
        let inside = range.start <= range.end && range.end <= self.pages.len;
        inside.then(|| self.all.slice(range))
    }

    /// Where it begins in memory: a name for its bytes, not a way to them.
    pub(crate) fn address(&self) -> usize {
        self.pages.start.addr().get()
    }

    /// Brings a part of the file into memory, and waits for it.
    ///
    /// # Errors
    /// When the storage fails or the file has been cut; `InvalidInput` where the kernel (before
    /// 5.14) cannot.
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let page = rustix::param::page_size();
        let start = range.start.min(self.pages.len) / page * page;
        let len = range.end.min(self.pages.len).saturating_sub(start);
        if len == 0 {
            return Ok(());
        }
        unsafe {
            let at = self.pages.start.as_ptr().add(start).cast();
            // The first asks for all of it at once, the second waits for it page by page.
            madvise(at, len, Advice::WillNeed)?;
            Ok(madvise(at, len, Advice::LinuxPopulateRead)?)
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // Fails only for a range that was never mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Memory of our own that buffers are made in, one after the other, each from a page's begin on.
#[derive(Debug)]
pub(crate) struct Lot {
    pages: Pages,
    /// From where on it is free.
    taken: AtomicUsize,
}

/// A buffer that is being filled.
#[derive(Debug)]
pub(crate) struct Draft {
    span: Span,
    filled: usize,
}

/// A buffer that nobody writes any more.
#[derive(Debug)]
pub(crate) struct Span {
    lot: Arc<Lot>,
    start: usize,
    len: usize,
    /// What goes back, whole pages.
    whole: usize,
}

impl Lot {
    /// Address space for `len` bytes, which take memory once they are written. In huge pages, if the
    /// kernel has them to give: sending from those costs far less, as the kernel looks up and counts
    /// pages.
    ///
    /// # Errors
    /// When there is no address space.
    pub(crate) fn new(len: usize) -> io::Result<Lot> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let start = unsafe { mmap_anonymous(null_mut(), len, access, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = Pages { start, len };
        // Small ones will do.
        let _ = unsafe { madvise(pages.start.as_ptr().cast(), len, Advice::LinuxHugepage) };
        Ok(Lot {
            pages,
            taken: AtomicUsize::new(0),
        })
    }

    /// No more buffers are made in it. What has gone back stays so: the kernel, which likes to join small
    /// pages, would make huge ones of what is left with nothing in between.
    pub(crate) fn settle(&self) {
        let at = self.pages.start.as_ptr().cast();
        // It is only about memory that nobody uses.
        let _ = unsafe { madvise(at, self.pages.len, Advice::LinuxNoHugepage) };
    }

    /// Room for `len` bytes, if there is.
    pub(crate) fn draft(self: &Arc<Lot>, len: usize) -> Option<Draft> {
        let whole = len.checked_next_multiple_of(rustix::param::page_size())?;
        let taking = |taken: usize| {
            let end = taken.checked_add(whole)?;
            (end <= self.pages.len).then_some(end)
        };
        let start = self.taken.fetch_update(Relaxed, Relaxed, taking).ok()?;
        let lot = Arc::clone(self);
        let span = Span {
            lot,
            start,
            len,
            whole,
        };
        Some(Draft { span, filled: 0 })
    }
}

impl Draft {
    /// Appends as many of these bytes as there is room for.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.span.len - self.filled);
        let at = self.span.start + self.filled;
        // Within the span, which is ours alone, and thus no part of `bytes`.
        unsafe {
            let to = self.span.lot.pages.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
        self.filled += len;
    }

    /// What is not filled yet.
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        let at = self.span.start + self.filled;
        // Within the span, which is ours alone; nobody else gets at it while `self` is lent.
        unsafe {
            let rest = self.span.lot.pages.start.as_ptr().add(at);
            std::slice::from_raw_parts_mut(rest, self.span.len - self.filled)
        }
    }

    /// The first so many bytes of the rest, or all, were written.
    pub(crate) fn fill(&mut self, len: usize) {
        self.filled += len.min(self.span.len - self.filled);
    }

    /// What was appended.
    pub(crate) fn done(mut self) -> Span {
        self.span.len = self.filled;
        self.span
    }
}

impl Span {
    /// Where it begins in memory.
    pub(crate) fn address(&self) -> usize {
        self.lot.pages.start.addr().get() + self.start
    }
}

impl AsRef<[u8]> for Span {
    fn as_ref(&self) -> &[u8] {
        unsafe {
            let start = self.lot.pages.start.as_ptr().add(self.start);
            std::slice::from_raw_parts(start, self.len)
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if self.whole > 0 {
            // Fails only for a range that was never mapped; then it goes with the lot.
            let _ = unsafe {
                let at = self.lot.pages.start.as_ptr().add(self.start);
                madvise(at.cast(), self.whole, Advice::LinuxDontNeed)
            };
        }
    }
}
