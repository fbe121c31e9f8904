//! Splices a range from the storage's socket into a pipe, and from there into the client's socket,
//! without a copy in user space.
//!
//! Several clients cannot share spliced bytes. A range is therefore spliced only if the memory
//! cache is disabled and no other client is receiving the range. Bytes that do not fit in the pipe
//! are read into memory, so that a slow client does not occupy a connection.

use super::object::RemoteObject;
use super::{RemoteCore, VersionedKey};
use crate::pipe_pool::Pipe;
use crate::range_cache::MemoryLease;
use crate::{Error, RequestReason};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use upstream::BodyData;

/// Minimum length of a spliced range in bytes. Shorter ranges are copied, because a pipe and its
/// system calls would cost about as much as the copy.
const SPLICED_BYTES_MIN: u64 = 128 << 10;
/// Maximum length of a spliced range in bytes. Longer ranges are streamed in windows. Segments are
/// shorter than this limit.
const SPLICED_BYTES_MAX: u64 = 32 << 20;
/// Bytes that a fetch splices before it yields to the readers on the same thread.
const AHEAD_BYTES_MAX: u64 = 512 << 10;

/// The bytes of a range, in order.
pub struct SplicedRange {
    pipe: Arc<Pipe>,
    receiver: UnboundedReceiver<Result<BodyData, Error>>,
    /// An item that was received from the channel but not returned yet.
    next: Option<Result<BodyData, Error>>,
    left: u64,
    _held: MemoryLease,
}

/// A part of a range.
pub enum SplicedData {
    /// Bytes in memory.
    Bytes(Bytes),
    /// The pipe, and the number of bytes to take from it next.
    Piped(Arc<Pipe>, usize),
}

/// Marks a range as being spliced, so that the range is not spliced for other clients at the same
/// time.
struct SpliceClaim {
    core: Arc<RemoteCore>,
    range_name: (VersionedKey, Range<u64>),
}

impl RemoteObject {
    /// Splices a range from the storage's socket to the client's socket. Returns `None` if the
    /// bytes should be cached, are already being received, or should be copied. The caller must
    /// then use [`RemoteObject::open_range_reader`].
    ///
    /// # Errors
    /// An error of the object or the storage that occurs before the first byte.
    pub async fn splice_range(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: RequestReason,
    ) -> Result<Option<SplicedRange>, Error> {
        self.check_range(&range)?;
        let begun = start_splice(self, range, reason).await;
        begun.inspect_err(|error| self.mark_if_changed(error))
    }
}

async fn start_splice(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    reason: RequestReason,
) -> Result<Option<SplicedRange>, Error> {
    let (core, left) = (object.core(), range.end - range.start);
    let fits =
        (SPLICED_BYTES_MIN..=SPLICED_BYTES_MAX).contains(&left) && left <= core.unreserved_bytes();
    let is_cached = core.options.memory_bytes > 0
        || core.cache.has_part_of_range(object.versioned_key(), &range);
    if !fits || is_cached || !core.routes.is_best_unencrypted(&object.versioned_key().0.0) {
        return Ok(None);
    }
    let Some(claim) = SpliceClaim::new(object, &range) else {
        return Ok(None);
    };
    let Some(pipe) = core.pipes.take_pipe().map(Arc::new) else {
        return Ok(None);
    };
    let (sender, receiver) = unbounded_channel();
    let (shared_object, shared_pipe) = (object.clone(), pipe.clone());
    core.spawn_fetch(async move {
        if let Err(error) = splice_into(
            &shared_object,
            range,
            reason,
            (&shared_pipe, &sender),
            claim,
        )
        .await
        {
            shared_object.mark_if_changed(&error);
            // Ignores the error, which means that the client has disconnected.
            let _ = sender.send(Err(error));
        }
    });
    let mut spliced = SplicedRange {
        pipe,
        receiver,
        next: None,
        left,
        _held: core.cache.reserved_memory().count_reserved(left),
    };
    spliced.next = Some(Ok(spliced.receive_part().await?));
    Ok(Some(spliced))
}

async fn splice_into(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    reason: RequestReason,
    (pipe, sender): (&Pipe, &UnboundedSender<Result<BodyData, Error>>),
    claim: SpliceClaim,
) -> Result<(), Error> {
    let (mut left, mut claim) = (range.end - range.start, Some(claim));
    let mut request = object.range_request(range, reason);
    request.is_spliced = true;
    let (_, mut stream) = object.core().open_stream(request, reason).await?;
    let mut ahead = 0;
    while let Some(received) = stream.next_spliced(pipe).await? {
        ahead += received.len();
        left = left.saturating_sub(received.len());
        if left == 0 {
            // Releases the claim before the last byte is published, so that a later request can
            // splice the range.
            claim.take();
        }
        if let BodyData::Spliced(_) = received {
            object.core().meter.count_piped(received.len());
        }
        if sender.send(Ok(received)).is_err() {
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
    /// Returns bytes that have already been received, or waits for the next bytes. Returns `None`
    /// at the end of the range. Cancel safe.
    ///
    /// # Errors
    /// When the storage or the connection fails. Bytes that were returned before the error are
    /// correct. No bytes follow the error.
    pub async fn next_data(&mut self) -> Result<Option<SplicedData>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let data = match self.next.take() {
            Some(data) => data?,
            None => self.receive_part().await?,
        };
        let data = match data {
            BodyData::Bytes(bytes) => SplicedData::Bytes(bytes),
            BodyData::Spliced(mut count) => {
                while let Ok(more) = self.receiver.try_recv() {
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
        self.left = self.left.checked_sub(data.len()).ok_or(Error::Changed)?;
        Ok(Some(data))
    }

    async fn receive_part(&mut self) -> Result<BodyData, Error> {
        let ended = || Err(Error::Broken("the storage threads have exited".into()));
        self.receiver.recv().await.unwrap_or_else(ended)
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
        let (core, range_name) = (
            object.core(),
            (object.versioned_key().clone(), range.clone()),
        );
        let first = core.lock_spliced_ranges().insert(range_name.clone());
        first.then(|| SpliceClaim {
            core: core.clone(),
            range_name,
        })
    }
}

impl Drop for SpliceClaim {
    fn drop(&mut self) {
        self.core.lock_spliced_ranges().remove(&self.range_name);
    }
}
