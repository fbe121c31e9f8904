//! A body that may still be growing: one writer appends, any number of readers follow.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;

/// The most bytes that a reader is given at a time, so that a slow one does not hold on to all.
const READ_BYTES_MAX: usize = 1 << 20;

/// A body's bytes so far.
#[derive(Debug, Default)]
pub struct Growing {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// In order, none empty, each with the place of its first byte. Those before `dropped` bytes
    /// are gone (see [`Growing::window`]).
    pieces: Vec<(u64, Bytes)>,
    dropped: u64,
    len: u64,
    end: Option<Result<(), Broken>>,
    /// A place for each reader: how far it has come, and how to wake it.
    readers: Vec<Option<Place>>,
    /// The writer, while it waits for readers.
    writer: Option<Waker>,
    /// Bytes kept behind the writer at most, once all is too much.
    window: Option<u64>,
}

#[derive(Debug)]
struct Place {
    at: u64,
    waker: Option<Waker>,
}

/// Why a body will not be whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub Arc<str>);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

impl Growing {
    /// A body that is whole.
    pub fn whole(pieces: Vec<Bytes>) -> Growing {
        let mut inner = Inner {
            end: Some(Ok(())),
            ..Inner::default()
        };
        inner.lay(pieces);
        Growing {
            inner: Mutex::new(inner),
        }
    }

    /// Appends, and wakes whoever waits.
    pub fn push(&self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        let mut inner = self.lock();
        let start = inner.len;
        inner.len += piece.len() as u64;
        inner.pieces.push((start, piece));
        inner.wake();
    }

    /// Nothing follows: it is whole, or broken. Only the first word counts.
    pub fn end(&self, how: Result<(), Broken>) {
        let mut inner = self.lock();
        inner.end.get_or_insert(how);
        inner.wake();
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.lock().len
    }

    /// Nothing has come yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All pieces, once it is whole.
    pub fn pieces(&self) -> Option<Vec<Bytes>> {
        let inner = self.lock();
        let whole = inner.end == Some(Ok(())) && inner.dropped == 0;
        let pieces = inner.pieces.iter().map(|(_, piece)| piece.clone());
        whole.then(|| pieces.collect())
    }

    /// Puts the same bytes into other pieces, once it is whole.
    pub fn repack(&self, pieces: Vec<Bytes>) {
        let mut inner = self.lock();
        // Readers find their place again by bytes.
        inner.lay(pieces);
    }

    /// From now on at most about `bytes` are kept behind the writer, which has to wait for its
    /// slowest reader ([`Growing::poll_room`]); no reader can join any more.
    pub fn window(&self, bytes: u64) {
        self.lock().window = Some(bytes);
    }

    /// Ready when there is room for more; false when nobody reads any more, so that there is no
    /// use in fetching (whoever fetches says so by [`Growing::end`], since a reader may still come).
    /// Without a window there always is room.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut inner = self.lock();
        let Some(window) = inner.window else {
            return Poll::Ready(true);
        };
        let Some(slowest) = inner.slowest() else {
            return Poll::Ready(false);
        };
        inner.forget(slowest);
        if inner.len - slowest < window {
            return Poll::Ready(true);
        }
        inner.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Reads these bytes as they come; the end may lie beyond what will come. `None` when the
    /// first of them are gone already.
    pub fn read(self: &Arc<Growing>, range: Range<u64>) -> Option<Reader> {
        let mut inner = self.lock();
        if inner.window.is_some() && inner.dropped > range.start {
            return None;
        }
        let place = Place {
            at: range.start,
            waker: None,
        };
        let free = inner.readers.iter().position(Option::is_none);
        let slot = free.unwrap_or(inner.readers.len());
        match free {
            Some(free) => inner.readers[free] = Some(place),
            None => inner.readers.push(Some(place)),
        }
        drop(inner);
        Some(Reader {
            body: Arc::clone(self),
            slot,
            at: range.start,
            end: range.end,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn lay(&mut self, pieces: Vec<Bytes>) {
        (self.pieces, self.len) = (Vec::with_capacity(pieces.len()), 0);
        for piece in pieces {
            let start = self.len;
            self.len += piece.len() as u64;
            self.pieces.push((start, piece));
        }
    }

    fn wake(&mut self) {
        for place in self.readers.iter_mut().flatten() {
            if let Some(waker) = place.waker.take() {
                waker.wake();
            }
        }
    }

    fn slowest(&self) -> Option<u64> {
        self.readers.iter().flatten().map(|place| place.at).min()
    }

    /// Lets go of pieces before this byte.
    fn forget(&mut self, before: u64) {
        let count = self.past(before);
        if let Some((start, piece)) = count.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            self.dropped = start + piece.len() as u64;
        }
        self.pieces.drain(..count);
    }

    /// How many pieces end at or before this byte: found in the logarithm of their number, since
    /// many readers look again and again.
    fn past(&self, byte: u64) -> usize {
        self.pieces
            .partition_point(|(start, piece)| start + piece.len() as u64 <= byte)
    }

    /// The bytes there are from `from` on, up to `to` and what is read at a time.
    fn available(&self, from: u64, to: u64) -> Vec<Bytes> {
        let (mut found, mut room) = (Vec::new(), READ_BYTES_MAX);
        for (start, piece) in self.pieces.get(self.past(from)..).unwrap_or(&[]) {
            if *start >= to || room == 0 {
                break;
            }
            // All lie within the piece, whose length is a usize.
            let first = from.saturating_sub(*start) as usize;
            let last = (to - start).min(piece.len() as u64) as usize;
            let last = last.min(first.saturating_add(room));
            room -= last - first;
            found.push(piece.slice(first..last));
        }
        found
    }
}

/// One reader: gives what has come since, many pieces at a time, and ends with the body or its
/// range.
#[derive(Debug)]
pub struct Reader {
    body: Arc<Growing>,
    slot: usize,
    at: u64,
    end: u64,
}

impl Stream for Reader {
    type Item = Result<Vec<Bytes>, Broken>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.at >= self.end {
            return Poll::Ready(None);
        }
        let body = Arc::clone(&self.body);
        let mut inner = body.lock();
        let found = inner.available(self.at, self.end);
        if !found.is_empty() {
            self.at += found.iter().map(|piece| piece.len() as u64).sum::<u64>();
            if let Some(place) = inner.readers.get_mut(self.slot).and_then(Option::as_mut) {
                place.at = self.at;
            }
            if let Some(writer) = inner.writer.take() {
                writer.wake();
            }
            return Poll::Ready(Some(Ok(found)));
        }
        match &inner.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(broken)) => Poll::Ready(Some(Err(broken.clone()))),
            None => {
                if let Some(place) = inner.readers.get_mut(self.slot).and_then(Option::as_mut) {
                    place.waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.body.lock();
        if let Some(slot) = inner.readers.get_mut(self.slot) {
            *slot = None;
        }
        if let Some(writer) = inner.writer.take() {
            writer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(reader: &mut Reader) -> Poll<Option<Result<Vec<u8>, Broken>>> {
        let mut cx = Context::from_waker(Waker::noop());
        let joined = |pieces: Vec<Bytes>| pieces.concat();
        let polled = Pin::new(reader).poll_next(&mut cx);
        polled.map(|item| item.map(|result| result.map(joined)))
    }

    fn ready(bytes: &[u8]) -> Poll<Option<Result<Vec<u8>, Broken>>> {
        Poll::Ready(Some(Ok(bytes.to_vec())))
    }

    #[test]
    fn readers_follow_and_see_the_same_end() {
        let body = Arc::new(Growing::default());
        let mut early = body.read(0..u64::MAX).unwrap();
        assert_eq!(next(&mut early), Poll::Pending);
        body.push(Bytes::from_static(b"abc"));
        body.push(Bytes::from_static(b"def"));
        let mut late = body.read(2..5).unwrap();
        assert_eq!(next(&mut early), ready(b"abcdef"));
        assert_eq!(next(&mut late), ready(b"cde"));
        assert_eq!(next(&mut late), Poll::Ready(None));
        assert_eq!(next(&mut early), Poll::Pending);
        assert_eq!(body.pieces(), None);
        body.end(Ok(()));
        assert_eq!(next(&mut early), Poll::Ready(None));
        assert_eq!(body.pieces().unwrap().concat(), b"abcdef");
    }

    #[test]
    fn a_broken_body_gives_what_came_and_then_the_reason() {
        let body = Arc::new(Growing::default());
        body.push(Bytes::from_static(b"abc"));
        body.end(Err(Broken("reset".into())));
        body.end(Ok(()));
        let mut reader = body.read(1..9).unwrap();
        assert_eq!(next(&mut reader), ready(b"bc"));
        assert_eq!(
            next(&mut reader),
            Poll::Ready(Some(Err(Broken("reset".into()))))
        );
        assert_eq!(body.pieces(), None);
    }

    #[test]
    fn a_window_waits_for_the_slowest_and_forgets_what_all_have() {
        let mut cx = Context::from_waker(Waker::noop());
        let body = Arc::new(Growing::default());
        body.push(Bytes::from_static(b"abcd"));
        let mut slow = body.read(0..9).unwrap();
        let mut fast = body.read(0..9).unwrap();
        body.window(4);
        assert_eq!(next(&mut fast), ready(b"abcd"));
        assert_eq!(body.poll_room(&mut cx), Poll::Pending);
        assert_eq!(next(&mut slow), ready(b"abcd"));
        assert_eq!(body.poll_room(&mut cx), Poll::Ready(true));
        assert!(body.read(0..9).is_none(), "the first bytes are gone");
        body.push(Bytes::from_static(b"efghi"));
        assert_eq!(next(&mut fast), ready(b"efghi"));
        assert_eq!(body.poll_room(&mut cx), Poll::Pending);
        drop(slow);
        assert_eq!(body.poll_room(&mut cx), Poll::Ready(true));
        drop(fast);
        assert_eq!(body.poll_room(&mut cx), Poll::Ready(false));
    }
}
