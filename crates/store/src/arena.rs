//! An allocator for buffers that the kernel can send without copying them.
//!
//! `vmsplice(2)` sends the pages of a buffer without copying them, so the pages must not be written
//! to until they have been sent. A buffer is therefore written only once. When a buffer is dropped,
//! its pages return to the system. The addresses of these pages are not used again while the region
//! of the buffer exists.
//!
//! Huge pages make sending cheaper, because the kernel looks up and counts fewer pages. Buffers are
//! therefore placed side by side in a few large regions of memory. Each buffer starts at a page
//! boundary. A region that gets no more buffers is unmapped when its last buffer is dropped, so a
//! long-lived buffer may keep a region mapped. The buffer then holds the address space of the
//! region, but not the pages of the other buffers. The number of regions is limited. The freed
//! parts of a huge page become available only when the kernel splits the huge page. The kernel does
//! so when memory is short.
//!
//! A region has one writer at a time. If two writers wrote to the same new huge page, the kernel
//! would clear one page for each writer and then discard one of the two pages.

use crate::mapped_memory::{ArenaRegion, ArenaSpan, ArenaSpanDraft};
use bytes::Bytes;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Length of a region, in bytes. A region takes only address space until it is written to.
const REGION_BYTES: usize = 64 << 20;

/// The maximum number of regions is this many times the number that the buffers would fill
/// completely, plus one region per processor.
const SPREAD: u64 = 4;

/// Allocates buffers for `vmsplice`.
pub struct Arena {
    regions: Mutex<ArenaRegions>,
    regions_max: usize,
}

#[derive(Default)]
struct ArenaRegions {
    /// Partly filled regions without a writer. The last element is the region that was written to
    /// most recently.
    open: Vec<Arc<ArenaRegion>>,
    all: Vec<Weak<ArenaRegion>>,
}

/// A buffer in the arena. Clones share the buffer.
#[derive(Debug, Clone)]
pub struct ArenaBytes {
    bytes: Bytes,
}

struct ArenaSpanOwner(ArenaSpan);

impl Arena {
    /// Creates an arena for buffers with a total size of `bytes`. The arena may use four times as
    /// many regions as these buffers need. The arena may also use one more region per processor,
    /// because each processor may be writing to a region.
    pub fn new(bytes: u64) -> Arena {
        let regions_max = SPREAD * bytes.div_ceil(REGION_BYTES as u64).max(1);
        let writers = std::thread::available_parallelism().map_or(1, usize::from);
        Arena {
            regions: Mutex::default(),
            regions_max: usize::try_from(regions_max).map_or(usize::MAX, |regions_max| {
                regions_max.saturating_add(writers)
            }),
        }
    }

    /// Copies `parts` into one buffer.
    ///
    /// # Errors
    /// `StorageFull` if buffers hold the maximum number of regions, `FileTooLarge` if the parts are
    /// longer than 64 MiB together, or an error of the operating system.
    pub fn copy_into_arena<'a>(
        &self,
        parts: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> io::Result<ArenaBytes> {
        let len = parts.clone().map(<[u8]>::len).sum();
        self.fill_draft(len, |draft| {
            parts.for_each(|part| draft.append_fitting(part))
        })
        .map(|(draft, ())| ArenaBytes::new(draft))
    }

    /// Lets `write` fill a buffer of `len` bytes. `write` returns the number of bytes that it has
    /// written, and the buffer is cut to this length.
    ///
    /// # Errors
    /// The outer error is an error of [`Arena::copy_into_arena`]. The inner error is the error that
    /// `write` returned.
    pub fn fill_with<E>(
        &self,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> io::Result<Result<ArenaBytes, E>> {
        let (mut draft, written) = self.fill_draft(len, |draft| write(draft.unfilled_part()))?;
        Ok(written.map(|len| {
            draft.mark_filled(len);
            ArenaBytes::new(draft)
        }))
    }

    /// Reserves `len` bytes in a region, and lets `write` fill these bytes as the only writer of
    /// the region.
    fn fill_draft<T>(
        &self,
        len: usize,
        write: impl FnOnce(&mut ArenaSpanDraft) -> T,
    ) -> io::Result<(ArenaSpanDraft, T)> {
        if len > REGION_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let (region, mut draft) = self.lock_regions().reserve_draft(len, self.regions_max)?;
        let written = write(&mut draft);
        // If `write` panics, the region is not returned to the open regions. The region then gets
        // no more buffers, and is unmapped with its last buffer.
        self.lock_regions().open.push(region);
        Ok((draft, written))
    }

    fn lock_regions(&self) -> MutexGuard<'_, ArenaRegions> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArenaRegions {
    /// Takes a region for one writer, and reserves `len` bytes in this region.
    fn reserve_draft(
        &mut self,
        len: usize,
        regions_max: usize,
    ) -> io::Result<(Arc<ArenaRegion>, ArenaSpanDraft)> {
        while let Some(region) = self.open.pop() {
            if let Some(draft) = region.reserve_span(len) {
                return Ok((region, draft));
            }
            // This region has no room and is dropped here. The region counts toward the limit only
            // as long as buffers hold it.
            region.disable_huge_pages();
        }
        let region = self.add_region(regions_max)?;
        let draft = region.reserve_span(len).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok((region, draft))
    }

    fn add_region(&mut self, regions_max: usize) -> io::Result<Arc<ArenaRegion>> {
        self.all.retain(|region| region.strong_count() > 0);
        if self.all.len() >= regions_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let region = Arc::new(ArenaRegion::new(REGION_BYTES)?);
        self.all.push(Arc::downgrade(&region));
        Ok(region)
    }
}

impl ArenaBytes {
    fn new(draft: ArenaSpanDraft) -> ArenaBytes {
        let bytes = Bytes::from_owner(ArenaSpanOwner(draft.into_arena_span()));
        ArenaBytes { bytes }
    }

    /// The bytes of the buffer.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    #[cfg(test)]
    fn address_and_len(&self) -> (usize, usize) {
        (self.bytes.as_ptr().addr(), self.bytes.len())
    }
}

impl AsRef<[u8]> for ArenaSpanOwner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep_parts(arena: &Arena, parts: &[&[u8]]) -> ArenaBytes {
        arena.copy_into_arena(parts.iter().copied()).unwrap()
    }

    /// Returns the number of resident pages in a range of memory.
    fn resident_pages(address: usize, len: usize) -> usize {
        use std::os::unix::fs::FileExt;
        let map = std::fs::File::open("/proc/self/pagemap").unwrap();
        let page = rustix::param::page_size();
        let mut entries = vec![0; len.div_ceil(page) * 8];
        map.read_exact_at(&mut entries, (address / page * 8) as u64)
            .unwrap();
        // The highest bit of each entry is set for a resident page.
        entries
            .chunks(8)
            .filter(|entry| entry[7] & 0x80 != 0)
            .count()
    }

    #[test]
    fn parts_are_joined_and_buffers_are_adjacent() {
        let arena = Arena::new(0);
        let one = keep_parts(&arena, &[b"one", b"", b"more"]);
        let none = keep_parts(&arena, &[]);
        let two = keep_parts(&arena, &[&[7; 10_000]]);
        assert_eq!(one.bytes(), &b"onemore"[..]);
        assert!(none.bytes().is_empty());
        assert_eq!(two.bytes(), &[7; 10_000][..]);
        let page = rustix::param::page_size();
        assert_eq!(one.address_and_len().0 + page, two.address_and_len().0);
        assert_eq!(two.address_and_len(), (two.bytes().as_ptr().addr(), 10_000));
    }

    #[test]
    fn a_buffer_made_in_place_has_the_written_length() {
        let arena = Arena::new(0);
        let made = |len, written: usize| {
            let write = |room: &mut [u8]| {
                assert_eq!(
                    (room.len(), room.iter().any(|&byte| byte != 0)),
                    (len, false)
                );
                room[..written].fill(7);
                Ok::<_, ()>(written)
            };
            arena.fill_with(len, write).unwrap().unwrap()
        };
        let (one, two) = (made(10_000, 9_000), made(5, 5));
        assert_eq!(one.bytes(), &[7; 9_000][..]);
        assert_eq!(two.bytes(), &[7; 5][..]);
        assert_eq!(one.address_and_len().1, 9_000);
        let failed = arena.fill_with(10_000, |_| Err("why"));
        assert_eq!(failed.unwrap().unwrap_err(), "why");
    }

    #[test]
    fn slices_outlive_their_buffer_but_freed_pages_do_not() {
        let arena = Arena::new(0);
        let small = keep_parts(&arena, &[b"x"]);
        let large = vec![1; 8 << 20];
        let large = keep_parts(&arena, &[&large]);
        let (address, len) = large.address_and_len();
        let full = resident_pages(address, len);
        assert_eq!(full, (8 << 20) / rustix::param::page_size());
        let bytes = large.bytes().clone();
        drop(large);
        assert!(bytes.iter().all(|&byte| byte == 1));
        assert_eq!(resident_pages(address, len), full);
        drop(bytes);
        assert_eq!(
            resident_pages(address, len),
            0,
            "the pages return to the system"
        );
        assert_eq!(small.bytes(), &b"x"[..]);
    }

    #[test]
    fn a_full_lot_is_followed_by_another() {
        let arena = Arena::new(0);
        let half = vec![1; REGION_BYTES / 2 + 1];
        let (one, two) = (keep_parts(&arena, &[&half]), keep_parts(&arena, &[&half]));
        assert!(one.bytes() == &half && two.bytes() == &half);
        let long = vec![1; REGION_BYTES + 1];
        assert!(arena.copy_into_arena([&long[..]].into_iter()).is_err());
    }

    #[test]
    fn concurrent_writers_use_different_regions() {
        let arena = Arena::new(0);
        let (mut inner, mut after) = (None, None);
        let outer = arena.fill_with(1, |_| {
            inner = Some(keep_parts(&arena, &[b"x"]));
            after = Some(keep_parts(&arena, &[b"y"]));
            Ok::<_, ()>(1)
        });
        let (outer, inner, after) = (outer.unwrap().unwrap(), inner.unwrap(), after.unwrap());
        let page = rustix::param::page_size();
        let apart = outer
            .address_and_len()
            .0
            .abs_diff(inner.address_and_len().0);
        assert!(apart >= REGION_BYTES, "{apart}");
        assert_eq!(after.address_and_len().0, inner.address_and_len().0 + page);
        // The next buffer is placed in the region that was written to last.
        assert_eq!(
            keep_parts(&arena, &[b"z"]).address_and_len().0,
            outer.address_and_len().0 + page
        );
    }

    #[test]
    fn old_buffers_hold_no_more_lots_than_allowed() {
        let arena = Arena::new(REGION_BYTES as u64);
        let rest = vec![1; REGION_BYTES - rustix::param::page_size()];
        let mut old = Vec::new();
        while let Ok(kept) = arena.copy_into_arena([&b"x"[..]].into_iter()) {
            old.push(kept);
            assert!(old.len() <= arena.regions_max);
            // This buffer fills the rest of the region and is dropped immediately.
            arena.copy_into_arena([&rest[..]].into_iter()).unwrap();
        }
        assert_eq!(old.len(), arena.regions_max);
        old.pop();
        assert!(arena.copy_into_arena([&b"x"[..]].into_iter()).is_ok());
    }
}
