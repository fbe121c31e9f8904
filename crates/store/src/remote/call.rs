//! One request for a range of an object, and what its answer must be like.

use super::endpoints::Endpoint;
use super::{Core, Done, Seen, State};
use crate::http::{CALL, Call, Came, Failed, Watched};
use crate::pipes::Pipe;
use crate::{Error, Key, Reason};
use bytes::Bytes;
use object_store::{GetOptions, GetRange};
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// What is wanted.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) key: Key,
    /// Not empty.
    pub(super) range: Range<u64>,
    /// The state that the object must be in; none when it is opened.
    pub(super) state: Option<Arc<State>>,
    /// What the bytes are for.
    pub(super) of: Reason,
    /// Whether they are to be moved into a pipe: then no more of them is read than must be.
    pub(super) piped: bool,
}

/// An answer that begins as it should.
pub(super) struct Answer {
    pub(super) seen: Seen,
    /// What it promises: as asked, or less where the object ends.
    pub(super) range: Range<u64>,
    pub(super) first: Bytes,
    pub(super) body: Body,
}

/// The rest of an answer: exactly as long as promised, or an error at its end.
pub(super) struct Body {
    /// Past `object_store`, which looks at nothing but heads.
    answer: Watched,
    left: u64,
    line: Line,
}

/// Why a request got no right answer.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) error: Error,
    /// Whether it may be sent again.
    pub(super) again: bool,
}

/// A request's place in counters and records, written when it is dropped.
pub(super) struct Line {
    core: Arc<Core>,
    call: Arc<Call>,
    done: Option<Done>,
}

impl Ask {
    /// The state that the object must be in, as far as it is known.
    pub(super) fn seen(&self) -> Option<&Seen> {
        self.state.as_ref()?.seen()
    }
}

impl Endpoint {
    /// Asks for a range and waits until the first bytes of the answer are there.
    pub(super) async fn get(
        &self,
        core: &Arc<Core>,
        ask: &Ask,
        reason: Reason,
    ) -> Result<Answer, Trouble> {
        let mut options = GetOptions {
            range: Some(GetRange::Bounded(ask.range.clone())),
            ..GetOptions::default()
        };
        if let Some(seen) = ask.seen() {
            seen.hold(&mut options);
        }
        let path = self.path(&ask.key).map_err(Trouble::last)?;
        let mut line = core.line(self, &ask.key, reason, ask.of, "GET", Call::part(ask.piped));
        line.range(&ask.range);
        let asked = CALL.scope(line.call.clone(), self.store.get_opts(&path, options));
        let result = match asked.await {
            Ok(result) => result,
            Err(error) => {
                let trouble = self.trouble(&mut line, &error);
                return Err(match (trouble.error, &ask.state) {
                    (Error::Changed, Some(state)) => line.fail(Trouble::last(state.unlike())),
                    (error, _) => Trouble { error, ..trouble },
                });
            }
        };
        let seen = Seen::new(result.meta.clone());
        let range = result.range.clone();
        if let Some(state) = &ask.state {
            let admitted = state.admit(&seen);
            let whole = (range == ask.range).then_some(()).ok_or(Error::Changed);
            admitted
                .and(whole)
                .map_err(|error| line.fail(Trouble::last(error)))?;
        }
        let left = range.end - range.start;
        let answer = line.call.take_body();
        let answer = answer.ok_or_else(|| line.fail(Trouble::cut()))?;
        if let Some(plain) = answer.is_plain() {
            self.came_plain(plain);
        }
        let mut body = Body { answer, left, line };
        let first = match ask.piped {
            true => body.begun().await.map(|()| None),
            false => body.next().await,
        };
        let first = first.inspect_err(|_| self.failed())?;
        self.succeeded();
        core.latency.add(body.line.call.began.elapsed());
        Ok(Answer {
            seen,
            range,
            first: first.unwrap_or_default(),
            body,
        })
    }

    /// What an object is now, without its bytes.
    pub(super) async fn head(
        &self,
        core: &Arc<Core>,
        key: &Key,
        reason: Reason,
    ) -> Result<Seen, Trouble> {
        let path = self.path(key).map_err(Trouble::last)?;
        let mut line = core.line(self, key, reason, reason, "HEAD", Call::other());
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let asked = CALL.scope(line.call.clone(), self.store.get_opts(&path, options));
        match asked.await {
            Ok(result) => {
                self.succeeded();
                line.whole();
                Ok(Seen::new(result.meta))
            }
            Err(error) => Err(self.trouble(&mut line, &error)),
        }
    }

    /// What an error of `object_store` means, from what was noted below it: its own text quotes
    /// URLs and answers.
    pub(super) fn trouble(&self, line: &mut Line, error: &object_store::Error) -> Trouble {
        use object_store::Error as E;
        let notes = line.call.notes();
        let said = |status: u16| match &notes.code {
            Some(code) => format!("{status} {code}"),
            None => status.to_string(),
        };
        let trouble = match (&notes.failed, notes.status) {
            (Some(failed), _) => Trouble::of(failed),
            (None, Some(status)) if notes.credentials => Trouble {
                error: Error::Denied(format!(
                    "credentials for the storage cannot be had ({}): look at the role and the token",
                    said(status)
                )),
                again: matches!(status, 429 | 500..=599),
            },
            (None, Some(404 | 410)) => Trouble::last(Error::NotFound),
            (None, Some(412)) => Trouble::last(Error::Changed),
            (None, Some(status @ (401 | 403))) => Trouble::last(Error::Denied(format!(
                "the storage refuses us ({}): look at the credentials and at what they allow",
                said(status)
            ))),
            (None, Some(416)) => Trouble::last(Error::Changed),
            (None, Some(200)) if notes.ranged => Trouble::last(Error::Broken(
                "the storage ignores Range: it answers 200 with the whole file".into(),
            )),
            (None, Some(206)) => Trouble::last(Error::Broken(
                "the storage answers another range than asked for, or does not say which".into(),
            )),
            (None, Some(status @ (429 | 500..=599))) => Trouble {
                error: Error::Broken(format!("the storage answers {}", said(status))),
                again: true,
            },
            (None, Some(status)) => Trouble::last(Error::Broken(format!(
                "the storage answers {}, which cannot be used",
                said(status)
            ))),
            (None, None) => Trouble::last(match error {
                E::NotFound { .. } => Error::NotFound,
                E::NotSupported { .. } | E::NotImplemented { .. } => Error::Unlisted,
                _ => Error::Denied(
                    "there are no credentials for the storage, or they cannot be had".into(),
                ),
            }),
        };
        match trouble.again {
            true => self.failed(),
            false if notes.status.is_some() => self.succeeded(),
            false => {}
        }
        if matches!(trouble.error, Error::Denied(_) | Error::Broken(_)) {
            tracing::debug!(endpoint = &*self.name, error = %trouble.error, "storage");
        }
        line.fail(trouble)
    }
}

impl Body {
    /// The next bytes; none when all that was promised has come.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Trouble> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            let bytes = poll_fn(|cx| self.answer.poll_data(cx)).await;
            let bytes = self.passed(bytes, |bytes| bytes.len() as u64).await?;
            // HTTP/2 has frames without any.
            if bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()) {
                return Ok(bytes);
            }
        }
    }

    /// The next bytes, in `pipe` where they can be moved there; none when all have come.
    pub(super) async fn next_piped(&mut self, pipe: &Pipe) -> Result<Option<Came>, Trouble> {
        if self.left == 0 {
            return Ok(None);
        }
        let came = poll_fn(|cx| self.answer.poll_piped(cx, pipe)).await;
        self.passed(came, Came::len).await
    }

    /// Waits until there is a byte.
    async fn begun(&mut self) -> Result<(), Trouble> {
        let begun = poll_fn(|cx| self.answer.poll_begun(cx)).await;
        begun.map_err(|failed| self.line.fail(Trouble::of(&failed)))
    }

    /// What came, if it is something, and no more than was promised.
    async fn passed<T>(
        &mut self,
        came: Option<Result<T, Failed>>,
        len: impl Fn(&T) -> u64,
    ) -> Result<Option<T>, Trouble> {
        let came = match came {
            Some(Ok(came)) => came,
            Some(Err(failed)) => return Err(self.line.fail(Trouble::of(&failed))),
            None => return Err(self.line.fail(Trouble::cut())),
        };
        let len = len(&came);
        if len > self.left {
            let what = "the storage sends more than it was asked for";
            return Err(self.line.fail(Trouble::last(Error::Broken(what.into()))));
        }
        self.left -= len;
        self.line.came(len);
        if self.left == 0 {
            self.line.whole();
            // To the body's end, so that the connection can be used again.
            let _ = poll_fn(|cx| self.answer.poll_data(cx)).await;
        }
        Ok(Some(came))
    }
}

impl Trouble {
    pub(super) fn last(error: Error) -> Trouble {
        Trouble {
            error,
            again: false,
        }
    }

    fn cut() -> Trouble {
        Trouble::of(&Failed::Cut("it ended too soon".into()))
    }

    fn of(failed: &Failed) -> Trouble {
        let text = failed.to_string();
        Trouble {
            error: match failed.is_slow() {
                true => Error::Slow(text),
                false => Error::Broken(text),
            },
            again: failed.may_pass(),
        }
    }
}

impl Core {
    /// A request begins.
    pub(super) fn line(
        self: &Arc<Core>,
        endpoint: &Endpoint,
        key: &Key,
        reason: Reason,
        of: Reason,
        method: &'static str,
        call: Call,
    ) -> Line {
        self.meter.count(reason, 0);
        self.meter.count_wait(reason);
        let call = Arc::new(call);
        Line {
            core: self.clone(),
            done: Some(Done {
                began: SystemTime::now(),
                reason,
                of,
                method,
                key: key.as_str().to_owned(),
                endpoint: endpoint.name.clone(),
                range: None,
                status: None,
                bytes: 0,
                connection: None,
                first_byte: None,
                total: Default::default(),
                complete: false,
                error: None,
            }),
            call,
        }
    }
}

impl Line {
    pub(super) fn call(&self) -> Arc<Call> {
        self.call.clone()
    }

    fn range(&mut self, range: &Range<u64>) {
        self.edit(|done| done.range = Some(range.clone()));
    }

    fn came(&mut self, bytes: u64) {
        if let Some(done) = &mut self.done {
            done.bytes += bytes;
            self.core.meter.count_bytes(done.reason, bytes);
        }
    }

    pub(super) fn whole(&mut self) {
        self.edit(|done| done.complete = true);
    }

    fn fail(&mut self, trouble: Trouble) -> Trouble {
        self.edit(|done| done.error = Some(trouble.error.to_string()));
        trouble
    }

    fn edit(&mut self, edit: impl FnOnce(&mut Done)) {
        if let Some(done) = &mut self.done {
            edit(done);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let (Some(watch), Some(mut done)) = (&self.core.options.watch, self.done.take()) else {
            return;
        };
        let notes = self.call.notes();
        done.status = notes.status;
        done.connection = notes.connection;
        done.first_byte = notes.answered.map(|at| at - self.call.began);
        done.total = self.call.began.elapsed();
        watch.tell(done);
    }
}
