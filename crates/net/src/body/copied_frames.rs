//! Copies bodies in small frames for connections that `hyper` serves (TLS, HTTP/2 and unusual
//! HTTP/1.1 requests).
//!
//! `hyper` holds only a few frames of each response, and requests a frame when it has room for one.
//! Frames are small and are filled only when `hyper` requests them, so that a response needs little
//! memory. Each copied frame is counted in the [`StreamMemory`] of its response until the frame's
//! bytes have been written to the connection.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use tokio::task::JoinHandle;

use super::completion::SendProgress;
use super::{Body, BodyError, BodyPart, BodySource, Chunk};
use crate::conn::{CopyParameters, InFlight};
use crate::send_memory::{SendPermit, SourceWait, StreamMemory};

/// Default frame length in bytes, for a body whose connection has no [`CopyParameters`].
const FRAME_BYTES: u64 = 64 << 10;
/// A buffer of at least this length is sent as a separate frame, without a copy. For a shorter
/// buffer, the copy costs less than another frame.
const UNCOPIED_BYTES_MIN: usize = 16 << 10;

/// A file read on a blocking thread.
type FileReadTask = JoinHandle<io::Result<Vec<u8>>>;

/// The state of copying a body's chunks into frames.
pub(super) struct CopyState {
    stream: Option<Arc<StreamMemory>>,
    frame_bytes: u64,
    /// Memory permit of the first frame, until that frame is filled.
    admitted: Option<SendPermit>,
    chunk: Option<Chunk>,
    /// A pending read from storage, and the memory permit of its frame.
    reading: Option<(FileReadTask, Option<SendPermit>)>,
    /// Present while the next bytes are not available yet.
    source_wait: Option<SourceWait>,
}

impl Default for CopyState {
    fn default() -> CopyState {
        CopyState {
            stream: None,
            frame_bytes: FRAME_BYTES,
            admitted: None,
            chunk: None,
            reading: None,
            source_wait: None,
        }
    }
}

/// Bytes of one frame. They are either a copy that `permit` counts, or memory that several
/// responses may share.
struct CountedBytes {
    bytes: Bytes,
    permit: Option<SendPermit>,
}

/// A frame for `hyper`. Copied bytes count against the memory budget until they have been sent.
#[derive(Debug)]
pub struct CopiedFrame {
    bytes: Bytes,
    permit: Option<SendPermit>,
    progress: Option<Arc<SendProgress>>,
    stream: Option<Arc<StreamMemory>>,
    /// Present in the last frame of a body, to keep the response in flight until the frame is sent.
    /// `hyper` drops an HTTP/2 body much earlier, when it takes this frame.
    _in_flight: Option<InFlight>,
}

impl Body {
    /// Reserves memory for the first frame, if the body needs copies. Returns false when
    /// `send-memory` is used up.
    pub(crate) fn reserve_first_frame(&mut self, copying: &CopyParameters) -> bool {
        let needs_copy = match &self.kind {
            BodySource::Done => false,
            BodySource::Once(chunk) => chunk.needs_copy(),
            BodySource::Stream { .. } => true,
        };
        if needs_copy {
            let mut state = CopyState::from_policy(copying);
            let wanted = self.known_len().unwrap_or(u64::MAX).min(state.frame_bytes);
            if let Some(stream) = &state.stream {
                state.admitted = stream.try_admit_response(wanted);
                if state.admitted.is_none() {
                    return false;
                }
            }
            self.copying = Some(Box::new(state));
        }
        true
    }

    fn copy_state(&mut self) -> &mut CopyState {
        let in_flight = self.in_flight.as_ref();
        self.copying.get_or_insert_with(|| {
            let copying = in_flight.and_then(InFlight::body_copy_parameters);
            Box::new(copying.map_or_else(CopyState::default, |copying| {
                CopyState::from_policy(&copying)
            }))
        })
    }

    fn poll_copy(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<CountedBytes, BodyError>>> {
        loop {
            let state = self.copy_state();
            if let Some((reading, permit)) = &mut state.reading {
                let read = ready!(Pin::new(reading).poll(cx)).map_err(io::Error::other);
                let permit = permit.take();
                state.reading = None;
                let bytes = read.and_then(|read| read)?;
                return Poll::Ready(Some(state.finish_frame(bytes, permit)));
            }
            if let Some(copy) = state.copy_next_frame()? {
                return Poll::Ready(Some(Ok(copy)));
            }
            if state.reading.is_none() {
                match ready!(self.poll_source(cx)) {
                    Some(chunk) => self.copy_state().chunk = Some(chunk?),
                    None => return Poll::Ready(None),
                }
            }
        }
    }

    /// Records whether the response waits for its source. A wait ends even if the client has closed
    /// its flow-control window, because `hyper` requests a frame before it waits for the window.
    fn track_source_wait(&mut self, is_waiting: bool) {
        let state = self.copy_state();
        if is_waiting {
            if state.source_wait.is_none() {
                state.source_wait = state.stream.as_ref().map(StreamMemory::wait_for_source);
            }
        } else if let Some(wait) = state.source_wait.take() {
            if let Some(in_flight) = &self.in_flight {
                in_flight.mark_source_ready();
            }
            drop(wait);
        }
    }

    fn is_fully_copied(&self) -> bool {
        let unsent = |state: &CopyState| state.chunk.as_ref().map_or(0, Chunk::len);
        self.is_done() && self.copying.as_deref().map_or(0, unsent) == 0
    }
}

impl CopyState {
    fn from_policy(copying: &CopyParameters) -> CopyState {
        CopyState {
            stream: Some(copying.memory.track_response(copying.now_ms)),
            frame_bytes: copying.frame_bytes,
            ..CopyState::default()
        }
    }

    /// Returns the bytes of the next frame. Returns `None` when no bytes of the chunk are left, or
    /// when a read from storage was started.
    fn copy_next_frame(&mut self) -> Result<Option<CountedBytes>, BodyError> {
        let admitted = self.admitted.take();
        let Some(chunk) = self.chunk.as_mut().filter(|chunk| !chunk.is_empty()) else {
            self.admitted = admitted;
            return Ok(None);
        };
        if let Some(bytes) = chunk.unsent_parts().first().and_then(as_uncopied) {
            let bytes = bytes.clone();
            chunk.advance(bytes.len() as u64);
            return Ok(Some(CountedBytes {
                bytes,
                permit: None,
            }));
        }
        let wanted = chunk.len().min(self.frame_bytes);
        let reserve = || Some(self.stream.as_ref()?.reserve_frame_up_to(wanted));
        let permit = admitted.or_else(reserve);
        let room = permit
            .as_ref()
            .map_or(wanted, |permit| permit.bytes().min(wanted));
        // `room` is at most the length of a frame, so the cast is exact.
        match fill_frame(chunk, room as usize)? {
            FrameFillOutcome::Copied(bytes) => self.finish_frame(bytes, permit).map(Some),
            FrameFillOutcome::Reading(reading) => {
                self.reading = Some((reading, permit));
                Ok(None)
            }
        }
    }

    /// Returns a frame with `bytes`, which are the next bytes of the chunk. Returns an error if the
    /// chunk's file has changed.
    fn finish_frame(
        &mut self,
        bytes: Vec<u8>,
        mut permit: Option<SendPermit>,
    ) -> Result<CountedBytes, BodyError> {
        if let Some(chunk) = &mut self.chunk {
            if chunk.file().is_some_and(super::BodyFile::has_changed) {
                return Err(BodyError::new("the file changed while it was sent"));
            }
            chunk.advance(bytes.len() as u64);
        }
        if let Some(permit) = &mut permit {
            permit.shrink_to(bytes.len() as u64);
        }
        Ok(CountedBytes {
            bytes: bytes.into(),
            permit,
        })
    }
}

enum FrameFillOutcome {
    Copied(Vec<u8>),
    /// The first bytes are not in the page cache. A blocking thread reads them from storage.
    Reading(FileReadTask),
}

fn as_uncopied(part: &BodyPart) -> Option<&Bytes> {
    match part {
        BodyPart::Bytes(bytes) | BodyPart::Arena(bytes) => {
            (bytes.len() >= UNCOPIED_BYTES_MIN).then_some(bytes)
        }
        BodyPart::File(_) | BodyPart::Pipe(_) => None,
    }
}

/// Copies up to `room` bytes of the next parts. If the first bytes are not in the page cache,
/// starts a read from storage instead of waiting.
fn fill_frame(chunk: &Chunk, room: usize) -> io::Result<FrameFillOutcome> {
    let mut buffer = Vec::with_capacity(room);
    for part in chunk.unsent_parts() {
        let len = usize::try_from(part.len()).unwrap_or(usize::MAX);
        let wanted = len.min(room - buffer.len());
        if wanted == 0 || (as_uncopied(part).is_some() && !buffer.is_empty()) {
            break;
        }
        let before = buffer.len();
        match part {
            BodyPart::Bytes(bytes) | BodyPart::Arena(bytes) => {
                buffer.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
            }
            BodyPart::Pipe(pipe) => buffer.extend(pipe.read_bytes(wanted)?),
            BodyPart::File(range) => {
                // A chunk with file ranges always has a file, so this error does not occur.
                let file = chunk.file().ok_or(ErrorKind::NotFound)?;
                match file.read_from_page_cache(range.start, wanted, &mut buffer) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if buffer.is_empty() {
                            let (file, offset) = (file.clone(), range.start);
                            let read = move || file.read_range(offset, wanted);
                            return Ok(FrameFillOutcome::Reading(tokio::task::spawn_blocking(
                                read,
                            )));
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        if buffer.len() < before + len {
            break;
        }
    }
    Ok(FrameFillOutcome::Copied(buffer))
}

impl http_body::Body for Body {
    type Data = CopiedFrame;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<CopiedFrame>, BodyError>>> {
        let polled = self.poll_copy(cx);
        self.track_source_wait(polled.is_pending());
        let stream = self.copy_state().stream.clone();
        let next = ready!(polled);
        Poll::Ready(next.map(|result| match result {
            Ok(CountedBytes { bytes, permit }) => {
                let last = self.is_fully_copied();
                Ok(Frame::data(CopiedFrame {
                    bytes,
                    permit,
                    progress: self.progress.clone(),
                    stream,
                    _in_flight: self.in_flight.take_if(|_| last),
                }))
            }
            Err(cut) => Err(self.note_failure(cut)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_fully_copied()
    }

    fn size_hint(&self) -> SizeHint {
        let chunk = self.copying.as_ref().and_then(|state| state.chunk.as_ref());
        let copied = chunk.map_or(0, Chunk::len);
        self.known_len()
            .map_or_else(SizeHint::default, |len| SizeHint::with_exact(len + copied))
    }
}

impl Buf for CopiedFrame {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(permit) = &self.permit {
            permit.count_sent_for_rate(count as u64);
        }
        if let Some(progress) = &self.progress {
            progress.note_sent(count as u64);
        }
        if let Some(stream) = &self.stream {
            stream.note_progress();
        }
        if self.bytes.is_empty() {
            self.bytes = Bytes::new();
            self.permit = None;
        }
    }
}
