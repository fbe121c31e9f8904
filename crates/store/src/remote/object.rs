//! One remote object, in the state that it was opened in.

use super::call::Ask;
use super::parts::{self, Parts};
use super::{Core, HEAD_BYTES, Name, Seen};
use crate::{Error, Identity, Key, Reason};
use bytes::Bytes;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// An object of a remote library, in the state that it was opened in: no byte of another state is
/// ever given for one of its own.
pub struct RemoteObject {
    core: Arc<Core>,
    key: Key,
    name: Name,
    seen: Arc<Seen>,
    identity: Identity,
    changed: AtomicBool,
    /// Its first bytes, until an index was built of them.
    head: Mutex<Bytes>,
}

impl RemoteObject {
    /// Opens an object with one request, which also brings its first bytes.
    pub(super) async fn open(core: Arc<Core>, key: Key) -> Result<Arc<RemoteObject>, Error> {
        if key.is_root() {
            return Err(Error::NotFound);
        }
        let ask = Ask {
            key: key.clone(),
            range: 0..HEAD_BYTES,
            expect: None,
            of: Reason::Index,
        };
        let (seen, head) = match core.collect(ask, Reason::Index).await {
            // No range of an empty object can be had.
            Err(Error::Changed) => {
                let seen = core.head(&key, Reason::Look).await?;
                if seen.len() > 0 {
                    return Err(Error::Changed);
                }
                (Arc::new(seen), Bytes::new())
            }
            result => result?,
        };
        Ok(Arc::new(RemoteObject {
            name: Core::name(&key, &seen),
            identity: seen.identity(),
            changed: AtomicBool::new(false),
            head: Mutex::new(head),
            core,
            key,
            seen,
        }))
    }

    /// What it was when it was opened.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether an answer said that it is not any more what it was.
    pub fn changed(&self) -> bool {
        self.changed.load(Relaxed)
    }

    pub(crate) fn settle(&self) {
        *self.head.lock().unwrap_or_else(PoisonError::into_inner) = Bytes::new();
    }

    pub(crate) fn read(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: Reason,
    ) -> Result<Bytes, Error> {
        self.check(&range)?;
        let head = self.head_part(&range);
        if head.len() as u64 == range.end - range.start {
            return Ok(head);
        }
        let rest = range.start + head.len() as u64..range.end;
        let (core, ask) = (self.core.clone(), self.ask(rest, reason));
        let read = self
            .core
            .run(async move { core.collect(ask, reason).await });
        let (_, bytes) = read.inspect_err(|error| self.notice(error))?;
        if head.is_empty() {
            return Ok(bytes);
        }
        Ok([head, bytes].concat().into())
    }

    /// The wanted ranges, as they come, of which as much as possible is asked for at once.
    /// `along` is read along if it lies near, since it is likely to be asked for soon.
    ///
    /// # Errors
    /// Before any byte is there: what is wrong with the object or the storage.
    pub async fn parts(
        self: &Arc<RemoteObject>,
        wanted: Vec<Range<u64>>,
        along: &[Range<u64>],
        reason: Reason,
    ) -> Result<Parts, Error> {
        wanted.iter().try_for_each(|range| self.check(range))?;
        let parts = parts::start(self, wanted, along, reason).await;
        parts.inspect_err(|error| self.notice(error))
    }

    /// Begins to fetch what is likely to be asked for next.
    pub fn read_ahead(self: &Arc<RemoteObject>, ranges: &[Range<u64>], along: &[Range<u64>]) {
        let mut all = ranges.iter().chain(along);
        if all.all(|range| self.check(range).is_ok()) {
            parts::ahead(self, ranges, along);
        }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    pub(super) fn ask(&self, range: Range<u64>, of: Reason) -> Ask {
        Ask {
            key: self.key.clone(),
            range,
            expect: Some(self.seen.clone()),
            of,
        }
    }

    /// Remembers what an error says about the object.
    pub(super) fn notice(&self, error: &Error) {
        if matches!(error, Error::Changed | Error::NotFound) {
            self.changed.store(true, Relaxed);
        }
    }

    /// What the first bytes hold of the begin of `range`.
    fn head_part(&self, range: &Range<u64>) -> Bytes {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let len = head.len() as u64;
        // Within the head's length, which is a usize.
        head.slice(range.start.min(len) as usize..range.end.min(len) as usize)
    }

    fn check(&self, range: &Range<u64>) -> Result<(), Error> {
        if range.start > range.end || range.end > self.identity.len {
            return Err(Error::Changed);
        }
        Ok(())
    }
}
