//! A body that may still be growing, with one writer and any number of readers.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;

/// Maximum number of bytes that a reader gets at a time. The limit keeps a slow reader from holding
/// the whole body in memory.
const READ_BYTES_MAX: usize = 1 << 20;
/// Appended bytes are joined with the last block up to this size. Each block takes about 40 bytes
/// of memory in addition to its content. Without this rule, a body that arrives in single bytes
/// would take 40 times as much memory as the limits count. An append copies at most this many bytes.
const JOINED_BYTES_MAX: usize = 512;

/// The bytes of a body that have been appended so far.
#[derive(Debug, Default)]
pub struct GrowingBody {
    inner: Mutex<GrowingState>,
}

#[derive(Debug, Default)]
struct GrowingState {
    /// Non-empty blocks in order, each with the offset of its first byte. Bytes before `dropped`
    /// are freed (see [`GrowingBody::limit_window`]).
    pieces: Vec<(u64, Bytes)>,
    dropped: u64,
    len: u64,
    end: Option<Result<(), BodyFailure>>,
    /// The offset and the waker of each reader. The entry of a dropped reader is `None`.
    readers: Vec<Option<ReaderPosition>>,
    /// The waker of the writer, while the writer waits for readers.
    writer: Option<Waker>,
    /// Maximum distance between the slowest reader and the writer, in bytes. The maximum is set
    /// only if the body will not be stored.
    window: Option<u64>,
}

#[derive(Debug)]
struct ReaderPosition {
    at: u64,
    waker: Option<Waker>,
}

/// The reason why a body is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFailure(pub Arc<str>);

impl fmt::Display for BodyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BodyFailure {}

impl GrowingBody {
    /// Creates a complete body.
    pub fn from_complete_body(pieces: Vec<Bytes>) -> GrowingBody {
        let mut inner = GrowingState {
            end: Some(Ok(())),
            ..GrowingState::default()
        };
        inner.replace_pieces(pieces);
        GrowingBody {
            inner: Mutex::new(inner),
        }
    }

    /// Appends bytes and wakes the waiting readers.
    pub fn append_bytes(&self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        let mut inner = self.lock_state();
        let start = inner.len;
        inner.len += piece.len() as u64;
        match inner.pieces.last_mut() {
            Some((_, last)) if last.len() + piece.len() <= JOINED_BYTES_MAX => {
                *last = [&last[..], &piece[..]].concat().into();
            }
            _ => inner.pieces.push((start, piece)),
        }
        inner.wake_readers();
    }

    /// Marks the body as complete or as failed. Only the first call has an effect.
    pub fn end_body(&self, how: Result<(), BodyFailure>) {
        let mut inner = self.lock_state();
        inner.end.get_or_insert(how);
        inner.wake_readers();
    }

    /// The number of bytes that have been appended so far.
    pub fn len(&self) -> u64 {
        self.lock_state().len
    }

    /// Returns `true` if no bytes have been appended yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all blocks of the body, if the body is complete and no block has been freed.
    pub fn pieces_if_complete(&self) -> Option<Vec<Bytes>> {
        let inner = self.lock_state();
        let whole = inner.end == Some(Ok(())) && inner.dropped == 0;
        let pieces = inner.pieces.iter().map(|(_, piece)| piece.clone());
        whole.then(|| pieces.collect())
    }

    /// Replaces the blocks of a complete body by other blocks with the same bytes.
    pub fn replace_blocks(&self, pieces: Vec<Bytes>) {
        let mut inner = self.lock_state();
        // Readers are not affected, because each reader finds its position by its offset.
        inner.replace_pieces(pieces);
    }

    /// Limits the distance between the slowest reader and the writer to about `bytes`. The writer
    /// must then wait for the slowest reader ([`GrowingBody::poll_room`]). A new reader can start
    /// only at bytes that have not been freed.
    pub fn limit_window(&self, bytes: u64) {
        self.lock_state().window = Some(bytes);
    }

    /// Completes with `true` when the writer may append more bytes, and with `false` when there are
    /// no readers left. A new reader may still join after `false`. If [`GrowingBody::limit_window`]
    /// was not called, the result is always `true`.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut inner = self.lock_state();
        let Some(window) = inner.window else {
            return Poll::Ready(true);
        };
        let Some(slowest) = inner.slowest_reader() else {
            return Poll::Ready(false);
        };
        inner.free_before(slowest);
        // The slowest reader may wait for bytes that have not been appended yet.
        if inner.len.saturating_sub(slowest) < window {
            return Poll::Ready(true);
        }
        inner.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Starts reading a range, whose end may be beyond the end of the body. Returns `None` if the
    /// first bytes of the range have been freed.
    pub fn open_reader(self: &Arc<GrowingBody>, range: Range<u64>) -> Option<GrowingReader> {
        let mut inner = self.lock_state();
        if inner.window.is_some() && inner.dropped > range.start {
            return None;
        }
        let place = ReaderPosition {
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
        Some(GrowingReader {
            body: Arc::clone(self),
            slot,
            at: range.start,
            end: range.end,
        })
    }

    fn lock_state(&self) -> MutexGuard<'_, GrowingState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GrowingState {
    fn replace_pieces(&mut self, pieces: Vec<Bytes>) {
        (self.pieces, self.len) = (Vec::with_capacity(pieces.len()), 0);
        for piece in pieces {
            let start = self.len;
            self.len += piece.len() as u64;
            self.pieces.push((start, piece));
        }
    }

    fn wake_readers(&mut self) {
        for place in self.readers.iter_mut().flatten() {
            if let Some(waker) = place.waker.take() {
                waker.wake();
            }
        }
    }

    fn slowest_reader(&self) -> Option<u64> {
        self.readers.iter().flatten().map(|place| place.at).min()
    }

    /// Frees the blocks that end at or before this offset.
    fn free_before(&mut self, before: u64) {
        let count = self.count_blocks_before(before);
        if let Some((start, piece)) = count.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            self.dropped = start + piece.len() as u64;
        }
        self.pieces.drain(..count);
    }

    /// The number of blocks that end at or before this offset. Uses binary search, because many
    /// readers call this function often.
    fn count_blocks_before(&self, byte: u64) -> usize {
        self.pieces
            .partition_point(|(start, piece)| start + piece.len() as u64 <= byte)
    }

    /// Returns the available bytes from `from` to `to`, at most `READ_BYTES_MAX` bytes.
    fn available_blocks(&self, from: u64, to: u64) -> Vec<Bytes> {
        let (mut found, mut room) = (Vec::new(), READ_BYTES_MAX);
        for (start, piece) in self
            .pieces
            .get(self.count_blocks_before(from)..)
            .unwrap_or(&[])
        {
            if *start >= to || room == 0 {
                break;
            }
            // The offsets are within the block, so they fit in a usize.
            let first = from.saturating_sub(*start) as usize;
            let last = (to - start).min(piece.len() as u64) as usize;
            let last = last.min(first.saturating_add(room));
            room -= last - first;
            found.push(piece.slice(first..last));
        }
        found
    }
}

/// A reader of a growing body. Each item of the stream consists of one or more received blocks. The
/// stream ends at the end of the body or of the requested range.
#[derive(Debug)]
pub struct GrowingReader {
    body: Arc<GrowingBody>,
    slot: usize,
    at: u64,
    end: u64,
}

impl Stream for GrowingReader {
    type Item = Result<Vec<Bytes>, BodyFailure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.at >= self.end {
            return Poll::Ready(None);
        }
        let body = Arc::clone(&self.body);
        let mut inner = body.lock_state();
        let found = inner.available_blocks(self.at, self.end);
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

impl Drop for GrowingReader {
    fn drop(&mut self) {
        let mut inner = self.body.lock_state();
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

    fn poll_next(reader: &mut GrowingReader) -> Poll<Option<Result<Vec<u8>, BodyFailure>>> {
        let mut cx = Context::from_waker(Waker::noop());
        let joined = |pieces: Vec<Bytes>| pieces.concat();
        let polled = Pin::new(reader).poll_next(&mut cx);
        polled.map(|item| item.map(|result| result.map(joined)))
    }

    fn ready_with(bytes: &[u8]) -> Poll<Option<Result<Vec<u8>, BodyFailure>>> {
        Poll::Ready(Some(Ok(bytes.to_vec())))
    }

    #[test]
    fn readers_follow_the_writer_and_see_the_same_end() {
        let body = Arc::new(GrowingBody::default());
        let mut early = body.open_reader(0..u64::MAX).unwrap();
        assert_eq!(poll_next(&mut early), Poll::Pending);
        body.append_bytes(Bytes::from_static(b"abc"));
        body.append_bytes(Bytes::from_static(b"def"));
        let mut late = body.open_reader(2..5).unwrap();
        assert_eq!(poll_next(&mut early), ready_with(b"abcdef"));
        assert_eq!(poll_next(&mut late), ready_with(b"cde"));
        assert_eq!(poll_next(&mut late), Poll::Ready(None));
        assert_eq!(poll_next(&mut early), Poll::Pending);
        assert_eq!(body.pieces_if_complete(), None);
        body.end_body(Ok(()));
        assert_eq!(poll_next(&mut early), Poll::Ready(None));
        assert_eq!(body.pieces_if_complete().unwrap().concat(), b"abcdef");
    }

    #[test]
    fn small_appends_share_a_block() {
        let body = Arc::new(GrowingBody::default());
        let mut reader = body.open_reader(0..u64::MAX).unwrap();
        let bytes: Vec<u8> = (0..2000_u32).map(|n| n as u8).collect();
        for (n, byte) in bytes.iter().enumerate() {
            body.append_bytes(Bytes::copy_from_slice(&[*byte]));
            if n % 3 == 0 {
                let read = &bytes[n.saturating_sub(2)..=n];
                assert_eq!(poll_next(&mut reader), ready_with(read));
            }
        }
        body.append_bytes(Bytes::from(vec![7; 5000]));
        body.end_body(Ok(()));
        let blocks = body.pieces_if_complete().unwrap();
        assert_eq!(blocks.len(), 5);
        assert_eq!(blocks[..4].concat(), bytes);
    }

    #[test]
    fn a_broken_body_returns_its_bytes_and_then_the_reason() {
        let body = Arc::new(GrowingBody::default());
        body.append_bytes(Bytes::from_static(b"abc"));
        body.end_body(Err(BodyFailure("reset".into())));
        body.end_body(Ok(()));
        let mut reader = body.open_reader(1..9).unwrap();
        assert_eq!(poll_next(&mut reader), ready_with(b"bc"));
        assert_eq!(
            poll_next(&mut reader),
            Poll::Ready(Some(Err(BodyFailure("reset".into()))))
        );
        assert_eq!(body.pieces_if_complete(), None);
    }

    #[test]
    fn a_window_waits_for_the_slowest_reader_and_frees_what_all_have_read() {
        let mut cx = Context::from_waker(Waker::noop());
        let body = Arc::new(GrowingBody::default());
        body.append_bytes(Bytes::from_static(b"abcd"));
        let mut slow = body.open_reader(0..9).unwrap();
        let mut fast = body.open_reader(0..9).unwrap();
        body.limit_window(4);
        assert_eq!(poll_next(&mut fast), ready_with(b"abcd"));
        assert_eq!(body.poll_room(&mut cx), Poll::Pending);
        assert_eq!(poll_next(&mut slow), ready_with(b"abcd"));
        assert_eq!(body.poll_room(&mut cx), Poll::Ready(true));
        assert!(body.open_reader(0..9).is_none(), "the first bytes are gone");
        body.append_bytes(Bytes::from_static(b"efghi"));
        assert_eq!(poll_next(&mut fast), ready_with(b"efghi"));
        assert_eq!(body.poll_room(&mut cx), Poll::Pending);
        drop(slow);
        assert_eq!(body.poll_room(&mut cx), Poll::Ready(true));
        drop(fast);
        assert_eq!(body.poll_room(&mut cx), Poll::Ready(false));
    }

    #[test]
    fn a_window_lets_the_writer_reach_a_reader_that_starts_later() {
        let mut cx = Context::from_waker(Waker::noop());
        let body = Arc::new(GrowingBody::default());
        body.append_bytes(Bytes::from_static(b"abcd"));
        let mut late = body.open_reader(6..8).unwrap();
        body.limit_window(4);
        assert_eq!(body.poll_room(&mut cx), Poll::Ready(true));
        body.append_bytes(Bytes::from_static(b"efgh"));
        assert_eq!(poll_next(&mut late), ready_with(b"gh"));
    }
}
