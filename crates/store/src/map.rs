//! Files in memory without a copy: the one file that may say `unsafe`.
//!
//! The proof, once for all blocks below:
//!
//! - **The pointer** comes from `mmap` of `len > 0` bytes, and lives until `munmap` in `drop`;
//!   whoever holds a slice holds the [`Map`] through its `Bytes`.
//! - **Aliasing.** Nobody in this process writes through the mapping: it is `PROT_READ`. Another
//!   process may write to or cut the file. The slices are therefore handed to system calls only
//!   (`writev`), which copy in the kernel and answer `EFAULT` where the file has been cut; user
//!   code that looks at the bytes must use [`crate::Object::read`] instead. That is a rule of
//!   [`crate::Object::slices`], kept by its only caller, and it is why no `SIGBUS` can come.
//!   A memory file of ours ([`crate::Arena`]) nobody else can write or cut, and no byte of it is
//!   written once a slice of it exists: those slices may be looked at.
//! - **Threads.** The memory is only read, so `Map` may be sent and shared.
#![allow(unsafe_code)]

use bytes::Bytes;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

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
