//! Splices a range from the storage's socket into a pipe, and from there into the client's socket, without
//! a copy in user space.
//!
//! Spliced bytes cannot be shared. Ranges are therefore spliced only where nothing is cached, and only for the
//! first client. Bytes that do not fit the pipe are read, so that a slow client does not occupy a connection.

use super::object::RemoteObject;
use super::{ObjectName, RemoteCore};
use crate::pipe_pool::Pipe;
use crate::ranges::MemoryLease;
use crate::{Error, Reason};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use upstream::BodyData;

/// Shorter ranges are copied: a pipe and its system calls cost about as much.
const STRAIGHT_BYTES_MIN: u64 = 128 << 10;
/// Longer ranges than segments are streamed in windows.
const STRAIGHT_BYTES_MAX: u64 = 32 << 20;
/// Bytes that are moved before the readers run on the same thread.
const AHEAD_BYTES_MAX: u64 = 512 << 10;

/// The bytes of a range, in order.
pub struct SplicedRange {
    pipe: Arc<Pipe>,
    coming: UnboundedReceiver<Result<BodyData, Error>>,
    /// An item that was received and not returned.
    next: Option<Result<BodyData, Error>>,
    left: u64,
    _held: MemoryLease,
}

/// A part of a range.
pub enum SplicedData {
    /// Bytes in memory.
    Bytes(Bytes),
    /// The next bytes in the pipe.
    Piped(Arc<Pipe>, usize),
}

/// Marks a range as being spliced, so that other clients do not splice it, too.
struct SpliceClaim {
    core: Arc<RemoteCore>,
    what: (ObjectName, Range<u64>),
}

impl RemoteObject {
    /// Splices a range from the storage's socket to the client's. Returns `None` if the bytes
    /// should be cached, are already being received, or are better copied; then use
    /// [`RemoteObject::parts`].
    ///
    /// # Errors
    /// Before the first byte: an error of the object or the storage.
    pub async fn straight(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: Reason,
    ) -> Result<Option<SplicedRange>, Error> {
        self.check_range(&range)?;
        let begun = start_splice(self, range, reason).await;
        begun.inspect_err(|error| self.record_error(error))
    }
}

async fn start_splice(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    reason: Reason,
) -> Result<Option<SplicedRange>, Error> {
    let (core, left) = (object.core(), range.end - range.start);
    let fits = (STRAIGHT_BYTES_MIN..=STRAIGHT_BYTES_MAX).contains(&left) && left <= core.room();
    let kept = core.options.memory_bytes > 0 || core.cache.has_any(object.name(), &range);
    if !fits || kept || !core.routes.are_unencrypted(&object.name().0.0) {
        return Ok(None);
    }
    let Some(under) = SpliceClaim::new(object, &range) else {
        return Ok(None);
    };
    let Some(pipe) = core.pipes.take_pipe().map(Arc::new) else {
        return Ok(None);
    };
    let (to, coming) = unbounded_channel();
    let (ours, into) = (object.clone(), pipe.clone());
    core.spawn(async move {
        if let Err(error) = splice_into(&ours, range, reason, (&into, &to), under).await {
            ours.record_error(&error);
            // Ignores the error: the client has disconnected.
            let _ = to.send(Err(error));
        }
    });
    let mut straight = SplicedRange {
        pipe,
        coming,
        next: None,
        left,
        _held: core.cache.memory_budget().reserve(left),
    };
    straight.next = Some(Ok(straight.receive_part().await?));
    Ok(Some(straight))
}

async fn splice_into(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    reason: Reason,
    (pipe, to): (&Pipe, &UnboundedSender<Result<BodyData, Error>>),
    under: SpliceClaim,
) -> Result<(), Error> {
    let (mut left, mut under) = (range.end - range.start, Some(under));
    let mut ask = object.range_request(range, reason);
    ask.piped = true;
    let (_, mut whole) = object.core().open_stream(ask, reason).await?;
    let mut ahead = 0;
    while let Some(came) = whole.next_spliced(pipe).await? {
        ahead += came.len();
        left = left.saturating_sub(came.len());
        if left == 0 {
            // Releases the claim before the last byte is published, so that a later request can
            // splice the range.
            under.take();
        }
        if let BodyData::Spliced(_) = came {
            object.core().meter.count_piped(came.len());
        }
        if to.send(Ok(came)).is_err() {
            // The client has disconnected, and no other reader can use the bytes.
            break;
        }
        if ahead >= AHEAD_BYTES_MAX {
            ahead = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

impl SplicedRange {
    /// Returns the bytes received so far, or waits for some; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// Bytes returned before are correct, and none follow.
    pub async fn next(&mut self) -> Result<Option<SplicedData>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let came = match self.next.take() {
            Some(came) => came?,
            None => self.receive_part().await?,
        };
        let came = match came {
            BodyData::Bytes(bytes) => SplicedData::Bytes(bytes),
            BodyData::Spliced(mut count) => {
                while let Ok(more) = self.coming.try_recv() {
                    match more {
                        Ok(BodyData::Spliced(more)) => count += more,
                        other => {
                            self.next = Some(other);
                            break;
                        }
                    }
                }
                SplicedData::Piped(self.pipe.clone(), count)
            }
        };
        self.left = self.left.checked_sub(came.len()).ok_or(Error::Changed)?;
        Ok(Some(came))
    }

    async fn receive_part(&mut self) -> Result<BodyData, Error> {
        let ended = || Err(Error::Broken("the storage threads have exited".into()));
        self.coming.recv().await.unwrap_or_else(ended)
    }
}

impl SplicedData {
    fn len(&self) -> u64 {
        match self {
            SplicedData::Bytes(bytes) => bytes.len() as u64,
            SplicedData::Piped(_, count) => *count as u64,
        }
    }
}

impl SpliceClaim {
    /// Returns `None` if the range is already being spliced.
    fn new(object: &Arc<RemoteObject>, range: &Range<u64>) -> Option<SpliceClaim> {
        let (core, what) = (object.core(), (object.name().clone(), range.clone()));
        let first = core.straight().insert(what.clone());
        first.then(|| SpliceClaim {
            core: core.clone(),
            what,
        })
    }
}

impl Drop for SpliceClaim {
    fn drop(&mut self) {
        self.core.straight().remove(&self.what);
    }
}
