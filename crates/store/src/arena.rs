//! Bytes of our own that the kernel can send without copying them.
//!
//! A memory file (`memfd_create(2)`) can be sent like any file, and be read like a buffer, since
//! nobody else can write or cut it. A descriptor and a mapping for each buffer would be many, so
//! buffers lie side by side in a few large memory files, each from the begin of a page on. The
//! pages of a buffer go back to the system when it is dropped; its file goes with its last buffer.
//! A buffer that is kept for long may so hold a file alone: how many there may be is bounded.

use crate::map::Map;
use bytes::Bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Length of a memory file: address space only, until it is written to.
const SLAB_BYTES: usize = 64 << 20;

/// Memory files for each that buffers without any waste would need.
const SPREAD: u64 = 4;

/// Where buffers are made.
pub struct Arena {
    files: Mutex<Files>,
    most: usize,
}

#[derive(Default)]
struct Files {
    /// The one that is filled, and from where on it is free.
    latest: Option<(Arc<Slab>, usize)>,
    all: Vec<Weak<Slab>>,
}

/// A memory file, mapped.
#[derive(Debug)]
struct Slab {
    file: File,
    map: Map,
}

/// A buffer in a memory file.
#[derive(Debug, Clone)]
pub struct Kept {
    region: Arc<Region>,
    bytes: Bytes,
}

/// The part of a memory file that a buffer is; whoever has bytes of it holds it.
#[derive(Debug)]
struct Region {
    slab: Arc<Slab>,
    range: Range<usize>,
    view: Bytes,
}

struct Owner(Arc<Region>);

impl Arena {
    /// For buffers of so many bytes altogether; a few more memory files than those need.
    pub fn new(bytes: u64) -> Arena {
        let most = SPREAD * bytes.div_ceil(SLAB_BYTES as u64).max(1);
        Arena {
            files: Mutex::default(),
            most: usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// Copies `parts` into one buffer, one after the other.
    ///
    /// # Errors
    /// When there is no memory or no descriptor left, or old buffers hold as many memory files as
    /// there may be; `FileTooLarge` for over 64 MiB.
    pub fn keep<'a>(&self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> io::Result<Kept> {
        let (slab, start) = self.place(parts.clone().map(<[u8]>::len).sum())?;
        let mut end = start;
        for part in parts {
            slab.file.write_all_at(part, end as u64)?;
            end += part.len();
        }
        let view = slab.map.slice(start..end).unwrap_or_default();
        let range = start..end;
        let region = Arc::new(Region { slab, range, view });
        let bytes = Bytes::from_owner(Owner(region.clone()));
        Ok(Kept { region, bytes })
    }

    fn place(&self, len: usize) -> io::Result<(Arc<Slab>, usize)> {
        if len > SLAB_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(_, start): &(_, usize)| start + len <= SLAB_BYTES;
        let (slab, start) = match files.latest.take().filter(fits) {
            Some(latest) => latest,
            None => (files.another(self.most)?, 0),
        };
        let next = (start + len).next_multiple_of(rustix::param::page_size());
        files.latest = Some((slab.clone(), next));
        Ok((slab, start))
    }
}

impl Files {
    fn another(&mut self, most: usize) -> io::Result<Arc<Slab>> {
        self.all.retain(|slab| slab.strong_count() > 0);
        if self.all.len() >= most {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let slab = Arc::new(Slab::new()?);
        self.all.push(Arc::downgrade(&slab));
        Ok(slab)
    }
}

impl Slab {
    fn new() -> io::Result<Slab> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("headwater", flags)?);
        file.set_len(SLAB_BYTES as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let map = Map::new(&file, SLAB_BYTES as u64)?;
        Ok(Slab { file, map })
    }
}

impl Kept {
    /// All of it. Unlike slices of files, it may be looked at.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where the memory file is mapped, and the length of the mapping.
    pub fn mapping(&self) -> (usize, usize) {
        (self.region.slab.map.address(), SLAB_BYTES)
    }
}

impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.region.slab.file.as_fd()
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0.view
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let len = self
            .range
            .len()
            .next_multiple_of(rustix::param::page_size());
        if len > 0 {
            // What does not go back now goes with the file.
            let _ = fallocate(&self.slab.file, flags, self.range.start as u64, len as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(arena: &Arena, parts: &[&[u8]]) -> Kept {
        arena.keep(parts.iter().copied()).unwrap()
    }

    fn blocks(kept: &Kept) -> i64 {
        rustix::fs::fstat(kept).unwrap().st_blocks
    }

    #[test]
    fn parts_come_back_joined_side_by_side() {
        let arena = Arena::new(0);
        let one = keep(&arena, &[b"one", b"", b"more"]);
        let none = keep(&arena, &[]);
        let two = keep(&arena, &[&[7; 10_000]]);
        assert_eq!(one.bytes(), &b"onemore"[..]);
        assert!(none.bytes().is_empty());
        assert_eq!(two.bytes(), &[7; 10_000][..]);
        assert_eq!(one.mapping(), two.mapping());
        let place = two.bytes().as_ptr().addr() - two.mapping().0;
        let mut read = [0; 10_000];
        let slab = &two.region.slab;
        slab.file.read_exact_at(&mut read, place as u64).unwrap();
        assert_eq!(read, [7; 10_000]);
    }

    #[test]
    fn bytes_outlive_their_buffer_and_no_pages_do() {
        let arena = Arena::new(0);
        let (small, large) = (keep(&arena, &[b"x"]), keep(&arena, &[&[1; 1 << 20]]));
        let full = blocks(&small);
        let bytes = large.bytes().clone();
        drop(large);
        assert_eq!(blocks(&small), full);
        assert!(bytes.iter().all(|&byte| byte == 1));
        drop(bytes);
        assert!(blocks(&small) < full / 2, "pages go back");
        assert_eq!(small.bytes(), &b"x"[..]);
    }

    #[test]
    fn a_full_memory_file_is_followed_by_another() {
        let arena = Arena::new(0);
        let half = vec![1; SLAB_BYTES / 2 + 1];
        let (one, two) = (keep(&arena, &[&half]), keep(&arena, &[&half]));
        assert_ne!(one.mapping(), two.mapping());
        assert!(one.bytes() == &half && two.bytes() == &half);
        let long = vec![1; SLAB_BYTES + 1];
        assert!(arena.keep([&long[..]].into_iter()).is_err());
    }

    #[test]
    fn old_buffers_hold_no_more_files_than_there_may_be() {
        let arena = Arena::new(SLAB_BYTES as u64);
        let rest = vec![1; SLAB_BYTES - rustix::param::page_size()];
        let mut old = Vec::new();
        while let Ok(kept) = arena.keep([&b"x"[..]].into_iter()) {
            old.push(kept);
            assert!(old.len() <= SPREAD as usize);
            // What fills the file is gone at once, and holds nothing.
            arena.keep([&rest[..]].into_iter()).unwrap();
        }
        assert_eq!(old.len(), SPREAD as usize);
        old.pop();
        assert!(arena.keep([&b"x"[..]].into_iter()).is_ok());
    }

    #[test]
    fn nobody_cuts_it() {
        let kept = keep(&Arena::new(0), &[b"x"]);
        assert!(kept.region.slab.file.set_len(0).is_err());
    }
}
