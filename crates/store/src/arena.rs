//! Bytes of our own that the kernel can send without copying them.
//!
//! The kernel can be asked to send the very pages that bytes lie in (`vmsplice(2)`), if nobody writes to
//! those before they have left: so a buffer is written once, and its pages go back to the system
//! when it is dropped, and are never used for another one. Huge pages make that cheap: buffers lie
//! side by side in a few large pieces of memory, each from the begin of a page on, and a piece goes
//! with its last buffer. One that is kept for long may so hold a piece alone (its address space; the
//! pages of the others are gone): how many there may be is bounded. What is gone of a huge page is
//! free for others only once the kernel splits it, which it does when memory is short.
//!
//! A piece has one writer at a time. Two that began to write side by side, in one huge page, would
//! each have the kernel clear one, of which it then throws one away.

use crate::map::{Draft, Lot, Span};
use bytes::Bytes;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Length of a piece of memory: address space only, until it is written to.
const LOT_BYTES: usize = 64 << 20;

/// Pieces for each that buffers without any waste would need.
const SPREAD: u64 = 4;

/// Where buffers are made.
pub struct Arena {
    lots: Mutex<Lots>,
    most: usize,
}

#[derive(Default)]
struct Lots {
    /// Those that are filled, and that nobody writes to now; the last one was written to last.
    open: Vec<Arc<Lot>>,
    all: Vec<Weak<Lot>>,
}

/// A buffer; whoever has bytes of it holds it.
#[derive(Debug, Clone)]
pub struct Kept {
    span: Arc<Span>,
    bytes: Bytes,
}

struct Owner(Arc<Span>);

impl Arena {
    /// For buffers of so many bytes altogether; a few more pieces of memory than those need, and one
    /// for each processor that may be writing.
    pub fn new(bytes: u64) -> Arena {
        let most = SPREAD * bytes.div_ceil(LOT_BYTES as u64).max(1);
        let writers = std::thread::available_parallelism().map_or(1, usize::from);
        Arena {
            lots: Mutex::default(),
            most: usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(writers)),
        }
    }

    /// Copies `parts` into one buffer, one after the other.
    ///
    /// # Errors
    /// When there is no memory left, or old buffers hold as many pieces as there may be;
    /// `FileTooLarge` for over 64 MiB.
    pub fn keep<'a>(&self, parts: impl Iterator<Item = &'a [u8]> + Clone) -> io::Result<Kept> {
        let len = parts.clone().map(<[u8]>::len).sum();
        self.fill(len, |draft| parts.for_each(|part| draft.push(part)))
            .map(|(draft, ())| Kept::new(draft))
    }

    /// Lets `write` make a buffer of up to `len` bytes in its place; it says how many it wrote.
    ///
    /// # Errors
    /// As [`Arena::keep`]; inside, what `write` fails with.
    pub fn make<E>(
        &self,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> io::Result<Result<Kept, E>> {
        let (mut draft, written) = self.fill(len, |draft| write(draft.rest()))?;
        Ok(written.map(|len| {
            draft.fill(len);
            Kept::new(draft)
        }))
    }

    /// Room for `len` bytes, that `write` has written to while nobody else wrote to that piece.
    fn fill<T>(&self, len: usize, write: impl FnOnce(&mut Draft) -> T) -> io::Result<(Draft, T)> {
        if len > LOT_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let (lot, mut draft) = self.lots().draft(len, self.most)?;
        let written = write(&mut draft);
        // One whose writer panicked is not filled further, and goes with its last buffer.
        self.lots().open.push(lot);
        Ok((draft, written))
    }

    fn lots(&self) -> MutexGuard<'_, Lots> {
        self.lots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lots {
    /// A piece, for one writer, and room in it.
    fn draft(&mut self, len: usize, most: usize) -> io::Result<(Arc<Lot>, Draft)> {
        while let Some(lot) = self.open.pop() {
            if let Some(draft) = lot.draft(len) {
                return Ok((lot, draft));
            }
            // What is full counts as long as buffers hold it, and no longer.
            lot.settle();
        }
        let lot = self.another(most)?;
        let draft = lot.draft(len).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok((lot, draft))
    }

    fn another(&mut self, most: usize) -> io::Result<Arc<Lot>> {
        self.all.retain(|lot| lot.strong_count() > 0);
        if self.all.len() >= most {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let lot = Arc::new(Lot::new(LOT_BYTES)?);
        self.all.push(Arc::downgrade(&lot));
        Ok(lot)
    }
}

impl Kept {
    fn new(draft: Draft) -> Kept {
        let span = Arc::new(draft.done());
        let bytes = Bytes::from_owner(Owner(span.clone()));
        Kept { span, bytes }
    }

    /// All of it.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where it begins in memory, and its length.
    pub fn place(&self) -> (usize, usize) {
        (self.span.address(), self.bytes.len())
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(arena: &Arena, parts: &[&[u8]]) -> Kept {
        arena.keep(parts.iter().copied()).unwrap()
    }

    /// Pages of this range of memory that are there.
    fn pages(address: usize, len: usize) -> usize {
        use std::os::unix::fs::FileExt;
        let map = std::fs::File::open("/proc/self/pagemap").unwrap();
        let page = rustix::param::page_size();
        let mut entries = vec![0; len.div_ceil(page) * 8];
        map.read_exact_at(&mut entries, (address / page * 8) as u64)
            .unwrap();
        // The highest bit of each says so.
        entries
            .chunks(8)
            .filter(|entry| entry[7] & 0x80 != 0)
            .count()
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
        let page = rustix::param::page_size();
        assert_eq!(one.place().0 + page, two.place().0);
        assert_eq!(two.place(), (two.bytes().as_ptr().addr(), 10_000));
    }

    #[test]
    fn what_is_made_in_place_is_as_long_as_it_was_written() {
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
            arena.make(len, write).unwrap().unwrap()
        };
        let (one, two) = (made(10_000, 9_000), made(5, 5));
        assert_eq!(one.bytes(), &[7; 9_000][..]);
        assert_eq!(two.bytes(), &[7; 5][..]);
        assert_eq!(one.place().1, 9_000);
        let failed = arena.make(10_000, |_| Err("why"));
        assert_eq!(failed.unwrap().unwrap_err(), "why");
    }

    #[test]
    fn bytes_outlive_their_buffer_and_no_pages_do() {
        let arena = Arena::new(0);
        let small = keep(&arena, &[b"x"]);
        let large = vec![1; 8 << 20];
        let large = keep(&arena, &[&large]);
        let (address, len) = large.place();
        let full = pages(address, len);
        assert_eq!(full, (8 << 20) / rustix::param::page_size());
        let bytes = large.bytes().clone();
        drop(large);
        assert!(bytes.iter().all(|&byte| byte == 1));
        assert_eq!(pages(address, len), full);
        drop(bytes);
        assert_eq!(pages(address, len), 0, "pages go back");
        assert_eq!(small.bytes(), &b"x"[..]);
    }

    #[test]
    fn a_full_piece_is_followed_by_another() {
        let arena = Arena::new(0);
        let half = vec![1; LOT_BYTES / 2 + 1];
        let (one, two) = (keep(&arena, &[&half]), keep(&arena, &[&half]));
        assert!(one.bytes() == &half && two.bytes() == &half);
        let long = vec![1; LOT_BYTES + 1];
        assert!(arena.keep([&long[..]].into_iter()).is_err());
    }

    #[test]
    fn who_writes_at_the_same_time_writes_to_pieces_of_their_own() {
        let arena = Arena::new(0);
        let (mut inner, mut after) = (None, None);
        let outer = arena.make(1, |_| {
            inner = Some(keep(&arena, &[b"x"]));
            after = Some(keep(&arena, &[b"y"]));
            Ok::<_, ()>(1)
        });
        let (outer, inner, after) = (outer.unwrap().unwrap(), inner.unwrap(), after.unwrap());
        let page = rustix::param::page_size();
        let apart = outer.place().0.abs_diff(inner.place().0);
        assert!(apart >= LOT_BYTES, "{apart}");
        assert_eq!(after.place().0, inner.place().0 + page);
        // The one that was written to last goes on.
        assert_eq!(keep(&arena, &[b"z"]).place().0, outer.place().0 + page);
    }

    #[test]
    fn old_buffers_hold_no_more_pieces_than_there_may_be() {
        let arena = Arena::new(LOT_BYTES as u64);
        let rest = vec![1; LOT_BYTES - rustix::param::page_size()];
        let mut old = Vec::new();
        while let Ok(kept) = arena.keep([&b"x"[..]].into_iter()) {
            old.push(kept);
            assert!(old.len() <= arena.most);
            // What fills the piece is gone at once, and holds nothing.
            arena.keep([&rest[..]].into_iter()).unwrap();
        }
        assert_eq!(old.len(), arena.most);
        old.pop();
        assert!(arena.keep([&b"x"[..]].into_iter()).is_ok());
    }
}
