//! A range that passes straight through: out of the storage's socket into a pipe, from where whoever
//! wants it moves it into his, so that nobody copies it.
//!
//! Nobody else can have such bytes: so it is done where nothing is kept anyway, and for the first who
//! asks. What the pipe has no room for is read, so that no slow reader keeps a connection.

use super::object::RemoteObject;
use super::{Core, Name};
use crate::http;
use crate::pipes::Pipe;
use crate::ranges::Held;
use crate::{Error, Reason};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Less is copied: a pipe and calls to the kernel cost about as much.
const STRAIGHT_BYTES_MIN: u64 = 128 << 10;
/// More than a segment has passes through in windows instead.
const STRAIGHT_BYTES_MAX: u64 = 32 << 20;
/// What is moved at once before those who wait for it get their turn on the same thread.
const AHEAD_BYTES_MAX: u64 = 512 << 10;

/// Bytes of a range, as they come.
pub struct Straight {
    pipe: Arc<Pipe>,
    coming: UnboundedReceiver<Result<http::Came, Error>>,
    /// What was looked at already.
    next: Option<Result<http::Came, Error>>,
    left: u64,
    _held: Held,
}

/// What has come of a range.
pub enum Came {
    /// Bytes in memory.
    Bytes(Bytes),
    /// So many bytes, which are the next in the pipe.
    Piped(Arc<Pipe>, usize),
}

/// A range on its way, which who comes later does not ask for in the same way.
struct Under {
    core: Arc<Core>,
    what: (Name, Range<u64>),
}

/// See [`RemoteObject::straight`].
pub(super) async fn start(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    reason: Reason,
) -> Result<Option<Straight>, Error> {
    let (core, left) = (object.core(), range.end - range.start);
    let fits = (STRAIGHT_BYTES_MIN..=STRAIGHT_BYTES_MAX).contains(&left) && left <= core.room();
    let kept = core.options.memory_bytes > 0 || core.cache.has(object.name(), &range);
    if !fits || kept || !core.routes.are_plain(&object.name().0.0) {
        return Ok(None);
    }
    let Some(under) = Under::new(object, &range) else {
        return Ok(None);
    };
    let Some(pipe) = core.pipes.take().map(Arc::new) else {
        return Ok(None);
    };
    let (to, coming) = unbounded_channel();
    let (ours, into) = (object.clone(), pipe.clone());
    core.spawn(async move {
        if let Err(error) = pass(&ours, range, reason, (&into, &to), under).await {
            ours.notice(&error);
            // Nobody listens any more: nothing to be done about it.
            let _ = to.send(Err(error));
        }
    });
    let mut straight = Straight {
        pipe,
        coming,
        next: None,
        left,
        _held: core.cache.holding().hold(left),
    };
    straight.next = Some(Ok(straight.receive().await?));
    Ok(Some(straight))
}

async fn pass(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    reason: Reason,
    (pipe, to): (&Pipe, &UnboundedSender<Result<http::Came, Error>>),
    under: Under,
) -> Result<(), Error> {
    let (mut left, mut under) = (range.end - range.start, Some(under));
    let mut ask = object.ask(range, reason);
    ask.piped = true;
    let (_, mut whole) = object.core().whole(ask, reason).await?;
    let mut ahead = 0;
    while let Some(came) = whole.next_piped(pipe).await? {
        ahead += came.len();
        left = left.saturating_sub(came.len());
        if left == 0 {
            // Before anybody has the last of it, so that who then asks again begins anew.
            under.take();
        }
        if let http::Came::Piped(_) = came {
            object.core().meter.count_piped(came.len());
        }
        if to.send(Ok(came)).is_err() {
            // Who asked has left, and nobody else can have it.
            break;
        }
        if ahead >= AHEAD_BYTES_MAX {
            ahead = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

impl Straight {
    /// What has come since, waiting until there is something; none at the end. May be dropped while
    /// it waits, and asked again.
    ///
    /// # Errors
    /// What came before is right, and nothing comes after.
    pub async fn next(&mut self) -> Result<Option<Came>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let came = match self.next.take() {
            Some(came) => came?,
            None => self.receive().await?,
        };
        let came = match came {
            http::Came::Bytes(bytes) => Came::Bytes(bytes),
            http::Came::Piped(mut count) => {
                while let Ok(more) = self.coming.try_recv() {
                    match more {
                        Ok(http::Came::Piped(more)) => count += more,
                        other => {
                            self.next = Some(other);
                            break;
                        }
                    }
                }
                Came::Piped(self.pipe.clone(), count)
            }
        };
        self.left = self.left.checked_sub(came.len()).ok_or(Error::Changed)?;
        Ok(Some(came))
    }

    async fn receive(&mut self) -> Result<http::Came, Error> {
        let ended = || Err(Error::Broken("the storage's threads have ended".into()));
        self.coming.recv().await.unwrap_or_else(ended)
    }
}

impl Came {
    fn len(&self) -> u64 {
        match self {
            Came::Bytes(bytes) => bytes.len() as u64,
            Came::Piped(_, count) => *count as u64,
        }
    }
}

impl Under {
    /// `None`: the same is on its way already.
    fn new(object: &Arc<RemoteObject>, range: &Range<u64>) -> Option<Under> {
        let (core, what) = (object.core(), (object.name().clone(), range.clone()));
        let first = core.straight().insert(what.clone());
        first.then(|| Under {
            core: core.clone(),
            what,
        })
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.core.straight().remove(&self.what);
    }
}
