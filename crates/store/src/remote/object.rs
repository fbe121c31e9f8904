//! One remote object, in the state that it was opened in.

use super::call::Ask;
use super::head::Head;
use super::parts::{self, Parts};
use super::straight::{self, Straight};
use super::stream::Whole;
use super::{Core, HEAD_BYTES, Name, State};
use crate::{Error, Identity, Key, Reason};
use bytes::Bytes;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object of a remote library, in the state that it was opened in: no byte of another state is
/// ever given for one of its own.
pub struct RemoteObject {
    core: Arc<Core>,
    key: Key,
    name: Name,
    state: Arc<State>,
    /// Until its state is known: what was said of it.
    promised: Identity,
    changed: AtomicBool,
    /// Its first bytes, until an index was built of them.
    head: Mutex<Head>,
}

impl RemoteObject {
    /// Opens an object with one request, which also brings its first bytes. Where they are more than
    /// [`HEAD_BYTES`], only the begin of them is waited for.
    pub(super) async fn open(
        core: Arc<Core>,
        key: Key,
        head_bytes: u64,
        reason: Reason,
    ) -> Result<Arc<RemoteObject>, Error> {
        if key.is_root() {
            return Err(Error::NotFound);
        }
        let ask = Ask {
            key: key.clone(),
            range: 0..head_bytes,
            state: None,
            of: reason,
            piped: false,
        };
        let (state, head) = match core.first(ask, reason).await {
            // No range of an empty object can be had.
            Err(Error::Changed) => {
                let seen = core.head(&key, Reason::Look).await?;
                if seen.identity().len > 0 {
                    return Err(Error::Changed);
                }
                (Arc::new(State::of(seen)), Head::default())
            }
            result => result?,
        };
        let promised = Identity::default();
        let identity = state.seen().map_or(promised, |seen| *seen.identity());
        Ok(Arc::new(RemoteObject {
            name: Name(Arc::new((key.clone(), identity))),
            promised,
            changed: AtomicBool::new(false),
            head: Mutex::new(head),
            core,
            key,
            state,
        }))
    }

    /// An object that nobody looks at before bytes of it are wanted, of which length and perhaps tag
    /// are said: the first answer says which state it is in.
    pub(super) fn promised(core: Arc<Core>, key: Key, said: Identity) -> Arc<RemoteObject> {
        // Two of them may turn out to be of different states: they share no bytes.
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let promised = Identity {
            len: said.len,
            tag: said.tag,
            ..Identity::default()
        };
        let own = Identity {
            inode: (u64::MAX, NUMBERS.fetch_add(1, Relaxed)),
            ..promised
        };
        Arc::new(RemoteObject {
            name: Name(Arc::new((key.clone(), own))),
            promised,
            changed: AtomicBool::new(false),
            head: Mutex::default(),
            core,
            key,
            state: Arc::new(State::promised(promised)),
        })
    }

    /// What it was when it was opened. Of one that is only promised, and was not read yet, just
    /// the length is known.
    pub fn identity(&self) -> &Identity {
        self.state
            .seen()
            .map_or(&self.promised, |seen| seen.identity())
    }

    /// Whether it is what another look said, as far as is known.
    pub(crate) fn is(&self, now: &Identity) -> bool {
        match self.state.seen() {
            Some(seen) => seen.identity() == now,
            None => self.state.may_be(now).is_ok(),
        }
    }

    /// Whether an answer said that it is not any more what it was.
    pub fn changed(&self) -> bool {
        self.changed.load(Relaxed)
    }

    pub(crate) fn settle(&self) {
        *self.head() = Head::default();
    }

    pub(crate) fn read(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: Reason,
    ) -> Result<Bytes, Error> {
        self.check(&range)?;
        self.wait(&range)?;
        let head = self.head().part(&range);
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

    /// Reads a range in one request, or none where the first bytes hold it, and hands each piece and
    /// where it begins to `take`, until that has enough. Blocks; no more is held than is on its way.
    /// Where the first bytes are still coming, those beyond the range are handed over, too.
    ///
    /// # Errors
    /// As [`Object::read`](crate::Object::read); what was handed over is right.
    pub fn pour(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: Reason,
        mut take: impl FnMut(u64, &Bytes) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.check(&range)?;
        let (head, coming) = self.beginning(&range);
        let mut at = range.start + head.len() as u64;
        let enough = !head.is_empty() && take(range.start, &head).is_break();
        if enough || (coming.is_none() && at == range.end) {
            return Ok(());
        }
        let poured = self.core.handle.block_on(async {
            let mut coming = coming;
            loop {
                let mut whole = match coming.take() {
                    Some(whole) => whole,
                    None if at >= range.end => return Ok(()),
                    None => {
                        let ask = self.ask(at..range.end, reason);
                        self.core.whole(ask, reason).await?.1
                    }
                };
                while let Some(piece) = whole.next().await? {
                    if take(at, &piece).is_break() {
                        return Ok(());
                    }
                    at += piece.len() as u64;
                }
            }
        });
        poured.inspect_err(|error| self.notice(error))
    }

    /// What has come of a range, and the answer that goes on with it and beyond, if one does.
    fn beginning(&self, range: &Range<u64>) -> (Bytes, Option<Whole>) {
        let mut head = self.head();
        match head.goes_on(range) {
            true => head.split(range.start),
            false => (head.part(range), None),
        }
    }

    /// Waits for what is on its way of a range.
    fn wait(&self, range: &Range<u64>) -> Result<(), Error> {
        let mut head = self.head();
        if head.goes_on(range) {
            let (coming, end) = (std::mem::take(&mut *head), range.end);
            let filled = self.core.run(async move { coming.fill(end).await });
            *head = filled.inspect_err(|error| self.notice(error))?;
        }
        Ok(())
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

    /// A range that passes straight through, from the storage's socket to another one, once it has
    /// begun. `None`: its bytes are to be kept, on their way already, or better copied: see
    /// [`RemoteObject::parts`].
    ///
    /// # Errors
    /// Before any byte is there: what is wrong with the object or the storage.
    pub async fn straight(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        reason: Reason,
    ) -> Result<Option<Straight>, Error> {
        self.check(&range)?;
        let begun = straight::start(self, range, reason).await;
        begun.inspect_err(|error| self.notice(error))
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
            state: Some(self.state.clone()),
            of,
            piped: false,
        }
    }

    /// Remembers what an error says about the object.
    pub(super) fn notice(&self, error: &Error) {
        if matches!(
            error,
            Error::Changed | Error::NotFound | Error::OtherLength { .. } | Error::Replaced
        ) {
            self.changed.store(true, Relaxed);
            self.core.cache.forget(&self.name);
        }
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, range: &Range<u64>) -> Result<(), Error> {
        if range.start > range.end || range.end > self.state.len() {
            return Err(Error::Changed);
        }
        Ok(())
    }
}

impl Core {
    /// The first bytes of an object, and the state that it is in.
    async fn first(
        self: &Arc<Core>,
        ask: Ask,
        reason: Reason,
    ) -> Result<(Arc<State>, Head), Error> {
        if ask.range.end <= HEAD_BYTES {
            let (state, came) = self.collect(ask, reason).await?;
            return Ok((state, Head::whole(came)));
        }
        let (state, coming) = self.whole(ask, reason).await?;
        Ok((state, Head::begun(coming).await?))
    }
}
