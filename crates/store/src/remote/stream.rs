//! A range as a stream that mends itself: what breaks off is asked for again from there.

use super::call::{Answer, Ask, Body, Trouble};
use super::{Core, Seen, State};
use crate::http::Came;
use crate::pipes::Pipe;
use crate::{Error, Reason};
use bytes::Bytes;
use std::sync::Arc;

/// All bytes of a range, in order.
pub(super) struct Whole {
    core: Arc<Core>,
    /// What is still to be asked for, should the answer break off.
    ask: Ask,
    first: Option<Bytes>,
    body: Body,
    resumed: u32,
}

impl Core {
    /// A range of an object, once its answer has begun. With `ask.state`, only of that state.
    pub(super) async fn whole(
        self: &Arc<Core>,
        ask: Ask,
        reason: Reason,
    ) -> Result<(Arc<State>, Whole), Error> {
        let answer = self.answer(&ask, reason).await?;
        let Answer {
            seen,
            range,
            first,
            body,
        } = answer;
        let state = ask.state.clone();
        let state = state.unwrap_or_else(|| Arc::new(State::of(seen)));
        let ask = Ask {
            range,
            state: Some(state.clone()),
            ..ask
        };
        let whole = Whole {
            core: self.clone(),
            ask,
            first: Some(first),
            body,
            resumed: 0,
        };
        Ok((state, whole))
    }

    /// All bytes of a range in one piece.
    pub(super) async fn collect(
        self: &Arc<Core>,
        ask: Ask,
        reason: Reason,
    ) -> Result<(Arc<State>, Bytes), Error> {
        let (state, mut whole) = self.whole(ask, reason).await?;
        let len = whole.ask.range.end - whole.ask.range.start;
        let mut chunks = Vec::new();
        while let Some(bytes) = whole.next().await? {
            chunks.push(bytes);
        }
        let bytes = match <[Bytes; 1]>::try_from(chunks) {
            Ok([one]) => one,
            Err(chunks) => {
                let mut all = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
                chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
                all.into()
            }
        };
        Ok((state, bytes))
    }
}

impl Whole {
    /// The next bytes; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(first) = self.first() {
                return Ok(Some(first));
            }
            match self.body.next().await {
                Ok(bytes) => {
                    self.passed(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
                    return Ok(bytes);
                }
                Err(trouble) => self.resume(trouble).await?,
            }
        }
    }

    /// The next bytes, in `pipe` where they can be moved there; none at the end. What is in the pipe
    /// counts as passed: an answer that breaks off is continued behind it.
    pub(super) async fn next_piped(&mut self, pipe: &Pipe) -> Result<Option<Came>, Error> {
        loop {
            if let Some(first) = self.first() {
                return Ok(Some(Came::Bytes(first)));
            }
            match self.body.next_piped(pipe).await {
                Ok(came) => {
                    self.passed(came.as_ref().map_or(0, Came::len));
                    return Ok(came);
                }
                Err(trouble) => self.resume(trouble).await?,
            }
        }
    }

    /// What came with the answer's head.
    fn first(&mut self) -> Option<Bytes> {
        let first = self.first.take().filter(|first| !first.is_empty())?;
        self.passed(first.len() as u64);
        Some(first)
    }

    /// Asks for the rest, if it may be asked for.
    async fn resume(&mut self, trouble: Trouble) -> Result<(), Error> {
        let provable = self.ask.seen().is_some_and(Seen::is_provable);
        let may = trouble.again && provable && self.resumed < self.core.options.retries;
        if !may || !self.core.retries.spend() {
            return Err(trouble.error);
        }
        self.resumed += 1;
        let answer = self.core.answer(&self.ask, Reason::Retry).await?;
        (self.first, self.body) = (Some(answer.first), answer.body);
        Ok(())
    }

    fn passed(&mut self, bytes: u64) {
        self.ask.range.start += bytes;
    }
}
