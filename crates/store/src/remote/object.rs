//! A remote object of one version.

use super::first_bytes::FirstBytes;
use super::range_request::RangeRequest;
use super::resuming_stream::ResumingStream;
use super::{HEAD_BYTES, PinnedVersion, RemoteCore, VersionedKey};
use crate::{Error, Key, ObjectVersion, RequestReason};
use bytes::Bytes;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object of a remote library, in the version that was opened. Bytes of another version are
/// never returned.
pub struct RemoteObject {
    core: Arc<RemoteCore>,
    key: Key,
    name: VersionedKey,
    state: Arc<PinnedVersion>,
    /// The version that the caller of `from_declared_version` declared. The method `version`
    /// returns the declared version until the first response.
    promised: ObjectVersion,
    changed: AtomicBool,
    /// The first bytes of the object. They are dropped when the index has been built.
    head: Mutex<FirstBytes>,
}

impl RemoteObject {
    /// Opens an object with one request, which also fetches the object's first `head_bytes` bytes.
    /// If `head_bytes` exceeds [`HEAD_BYTES`], waits only for the first of these bytes.
    pub(super) async fn open(
        core: Arc<RemoteCore>,
        key: Key,
        head_bytes: u64,
        reason: RequestReason,
    ) -> Result<Arc<RemoteObject>, Error> {
        if key.is_root() {
            return Err(Error::NotFound);
        }
        let request = RangeRequest {
            key: key.clone(),
            range: 0..head_bytes,
            state: None,
            original_reason: reason,
            is_spliced: false,
        };
        let (state, head) = match core.fetch_first_bytes(request, reason).await {
            // No range of an empty object can be satisfied, so the storage responds with 416.
            Err(Error::Changed) => {
                let seen = core.fetch_version(&key, RequestReason::Look).await?;
                if seen.comparable_version().len > 0 {
                    return Err(Error::Changed);
                }
                (
                    Arc::new(PinnedVersion::from_observed(seen)),
                    FirstBytes::default(),
                )
            }
            result => result?,
        };
        let promised = ObjectVersion::default();
        let identity = state
            .observed_version()
            .map_or(promised, |seen| *seen.comparable_version());
        Ok(Arc::new(RemoteObject {
            name: VersionedKey(Arc::new((key.clone(), identity))),
            promised,
            changed: AtomicBool::new(false),
            head: Mutex::new(head),
            core,
            key,
            state,
        }))
    }

    /// Creates an object with a declared length and entity tag, without a request. A tag of 0 means
    /// that no tag is declared. The first response determines the object's version.
    pub(super) fn from_declared_version(
        core: Arc<RemoteCore>,
        key: Key,
        declared: ObjectVersion,
    ) -> Arc<RemoteObject> {
        // Two objects with the same declaration may turn out to have different versions, so they
        // share no cached bytes.
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let promised = ObjectVersion {
            len: declared.len,
            tag: declared.tag,
            ..ObjectVersion::default()
        };
        let unique = ObjectVersion {
            inode: (u64::MAX, NUMBERS.fetch_add(1, Relaxed)),
            ..promised
        };
        Arc::new(RemoteObject {
            name: VersionedKey(Arc::new((key.clone(), unique))),
            promised,
            changed: AtomicBool::new(false),
            head: Mutex::default(),
            core,
            key,
            state: Arc::new(PinnedVersion::from_declared(promised)),
        })
    }

    /// The version that was opened. Before the first response for a declared object, the result is
    /// the declared version.
    pub fn version(&self) -> &ObjectVersion {
        self.state
            .observed_version()
            .map_or(&self.promised, |seen| seen.comparable_version())
    }

    /// Returns whether `now` may be the version of this object. `now` is the result of a later
    /// look-up.
    pub(crate) fn is_same_version(&self, now: &ObjectVersion) -> bool {
        match self.state.observed_version() {
            Some(seen) => seen.comparable_version() == now,
            None => self.state.check_declared(now).is_ok(),
        }
    }

    /// Returns whether a response showed that the object has changed.
    pub fn changed(&self) -> bool {
        self.changed.load(Relaxed)
    }

    pub(crate) fn free_first_bytes(&self) {
        *self.lock_first_bytes() = FirstBytes::default();
    }

    pub(crate) fn read(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: RequestReason,
    ) -> Result<Bytes, Error> {
        self.check_range(&range)?;
        self.wait_for_first_bytes(&range)?;
        let head = self.lock_first_bytes().slice(&range);
        if head.len() as u64 == range.end - range.start {
            return Ok(head);
        }
        let rest = range.start + head.len() as u64..range.end;
        let (core, request) = (self.core.clone(), self.range_request(rest, reason));
        let read = self
            .core
            .run_blocking(async move { core.read_range(request, reason).await });
        let (_, bytes) = read.inspect_err(|error| self.mark_if_changed(error))?;
        if head.is_empty() {
            return Ok(bytes);
        }
        Ok([head, bytes].concat().into())
    }

    /// Reads a range with at most one request. Passes each part and the part's offset to `take`,
    /// until `take` returns `Break`. Blocks. Only the part that is being received is held in
    /// memory. While the first bytes of the object are still being received, `take` may also get
    /// bytes after the range.
    ///
    /// # Errors
    /// Same as [`Object::read`](crate::Object::read). Parts that were passed to `take` before the
    /// error are correct.
    pub fn stream_range(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: RequestReason,
        mut take: impl FnMut(u64, &Bytes) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.check_range(&range)?;
        let (head, continuation) = self.take_beginning(&range);
        let mut at = range.start + head.len() as u64;
        let enough = !head.is_empty() && take(range.start, &head).is_break();
        if enough || (continuation.is_none() && at == range.end) {
            return Ok(());
        }
        let outcome = self.core.handle.block_on(async {
            let mut continuation = continuation;
            loop {
                let mut stream = match continuation.take() {
                    Some(stream) => stream,
                    None if at >= range.end => return Ok(()),
                    None => {
                        let request = self.range_request(at..range.end, reason);
                        self.core.open_stream(request, reason).await?.1
                    }
                };
                while let Some(piece) = stream.next_bytes().await? {
                    if take(at, &piece).is_break() {
                        return Ok(());
                    }
                    at += piece.len() as u64;
                }
            }
        });
        outcome.inspect_err(|error| self.mark_if_changed(error))
    }

    /// Returns the bytes at the start of a range that have already been received. Also returns the
    /// response that continues the range, if this response is still being received.
    fn take_beginning(&self, range: &Range<u64>) -> (Bytes, Option<ResumingStream>) {
        let mut head = self.lock_first_bytes();
        match head.is_receiving_rest_of(range) {
            true => head.split(range.start),
            false => (head.slice(range), None),
        }
    }

    /// If the response with the object's first bytes is still being received, waits until this
    /// response has delivered the whole range or ends.
    fn wait_for_first_bytes(&self, range: &Range<u64>) -> Result<(), Error> {
        let mut head = self.lock_first_bytes();
        if head.is_receiving_rest_of(range) {
            let (coming, end) = (std::mem::take(&mut *head), range.end);
            let filled = self
                .core
                .run_blocking(async move { coming.receive_until(end).await });
            *head = filled.inspect_err(|error| self.mark_if_changed(error))?;
        }
        Ok(())
    }

    pub(super) fn core(&self) -> &Arc<RemoteCore> {
        &self.core
    }

    pub(super) fn versioned_key(&self) -> &VersionedKey {
        &self.name
    }

    pub(super) fn range_request(
        &self,
        range: Range<u64>,
        original_reason: RequestReason,
    ) -> RangeRequest {
        RangeRequest {
            key: self.key.clone(),
            range,
            state: Some(self.state.clone()),
            original_reason,
            is_spliced: false,
        }
    }

    /// Marks the object as changed if the error shows a change.
    pub(super) fn mark_if_changed(&self, error: &Error) {
        if matches!(
            error,
            Error::Changed | Error::NotFound | Error::OtherLength { .. } | Error::Replaced
        ) {
            self.changed.store(true, Relaxed);
            self.core.cache.remove_object(&self.name);
        }
    }

    fn lock_first_bytes(&self) -> MutexGuard<'_, FirstBytes> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the object contains the range.
    pub(super) fn check_range(&self, range: &Range<u64>) -> Result<(), Error> {
        if range.start > range.end || range.end > self.state.len() {
            return Err(Error::Changed);
        }
        Ok(())
    }
}

impl RemoteCore {
    /// Fetches the first bytes and the version of an object.
    async fn fetch_first_bytes(
        self: &Arc<RemoteCore>,
        request: RangeRequest,
        reason: RequestReason,
    ) -> Result<(Arc<PinnedVersion>, FirstBytes), Error> {
        if request.range.end <= HEAD_BYTES {
            let (state, received) = self.read_range(request, reason).await?;
            return Ok((state, FirstBytes::from_complete_bytes(received)));
        }
        let (state, stream) = self.open_stream(request, reason).await?;
        Ok((state, FirstBytes::receive_start(stream).await?))
    }
}
