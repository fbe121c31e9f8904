//! One request for a range of an object, and the checks of its response.

use super::denial::{is_missing_bucket, remedy_for};
use super::endpoints::Endpoint;
use super::{ObservedVersion, PinnedVersion, RemoteCore, StorageRequest};
use crate::http::{CALL, StorageCall, TransportError, WatchedBody};
use crate::pipe_pool::Pipe;
use crate::{Error, Key, Reason};
use bytes::Bytes;
use object_store::{GetOptions, GetRange};
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;
use upstream::BodyData;

/// A range to fetch.
#[derive(Clone)]
pub(super) struct RangeRequest {
    pub(super) key: Key,
    /// Never empty.
    pub(super) range: Range<u64>,
    /// The required version; `None` when the object is being opened.
    pub(super) state: Option<Arc<PinnedVersion>>,
    /// The reason for which the caller needs the bytes.
    pub(super) of: Reason,
    /// Whether the bytes will be spliced: then only the head is read before they are taken.
    pub(super) piped: bool,
}

/// A response whose head has been checked.
pub(super) struct RangeResponse {
    pub(super) seen: ObservedVersion,
    /// The range of the response: as requested, or shorter at the end of the object.
    pub(super) range: Range<u64>,
    pub(super) first: Bytes,
    pub(super) body: ResponseBody,
}

/// The rest of a response: exactly as long as declared, or an error at its end.
pub(super) struct ResponseBody {
    /// Bypasses `object_store`, which reads the head only.
    answer: WatchedBody,
    left: u64,
    line: RequestGuard,
}

/// The reason why a request failed.
#[derive(Debug)]
pub(super) struct RequestFailure {
    pub(super) error: Error,
    /// Whether it may be repeated.
    pub(super) again: bool,
}

/// Counts a request, and records it when dropped.
pub(super) struct RequestGuard {
    core: Arc<RemoteCore>,
    call: Arc<StorageCall>,
    done: Option<StorageRequest>,
}

impl RangeRequest {
    /// The required version, as far as it is known.
    pub(super) fn seen(&self) -> Option<&ObservedVersion> {
        self.state.as_ref()?.seen()
    }
}

impl Endpoint {
    /// Requests a range and waits for the first bytes of the response.
    pub(super) async fn get(
        &self,
        core: &Arc<RemoteCore>,
        ask: &RangeRequest,
        reason: Reason,
    ) -> Result<RangeResponse, RequestFailure> {
        let mut options = GetOptions {
            range: Some(GetRange::Bounded(ask.range.clone())),
            ..GetOptions::default()
        };
        if let Some(seen) = ask.seen() {
            seen.add_preconditions(&mut options);
        }
        let path = self.path(&ask.key).map_err(RequestFailure::permanent)?;
        let mut line = core.start_request(
            self,
            &ask.key,
            reason,
            ask.of,
            "GET",
            StorageCall::for_range(ask.piped),
        );
        line.set_range(&ask.range);
        let asked = CALL.scope(line.call.clone(), self.store.get_opts(&path, options));
        let result = match asked.await {
            Ok(result) => result,
            Err(error) => {
                let trouble = self.classify_failure(&mut line, &error);
                return Err(match (trouble.error, &ask.state) {
                    (Error::Changed, Some(state)) => {
                        line.record_failure(RequestFailure::permanent(state.mismatch_error()))
                    }
                    (error, _) => RequestFailure { error, ..trouble },
                });
            }
        };
        let seen = ObservedVersion::new(result.meta.clone()).with_date(line.call.notes().date);
        let range = result.range.clone();
        if let Some(state) = &ask.state {
            let admitted = state.check_response(&seen);
            let whole = (range == ask.range).then_some(()).ok_or(Error::Changed);
            admitted
                .and(whole)
                .map_err(|error| line.record_failure(RequestFailure::permanent(error)))?;
        }
        let left = range.end - range.start;
        let answer = line.call.take_body();
        let answer =
            answer.ok_or_else(|| line.record_failure(RequestFailure::from_interruption()))?;
        if let Some(plain) = answer.is_unencrypted_http1() {
            self.set_unencrypted(plain);
        }
        let mut body = ResponseBody { answer, left, line };
        let first = match ask.piped {
            true => body.wait_for_data().await.map(|()| None),
            false => body.next().await,
        };
        let first = first.inspect_err(|_| self.record_outage())?;
        self.record_success();
        core.latency.record(body.line.call.began.elapsed());
        Ok(RangeResponse {
            seen,
            range,
            first: first.unwrap_or_default(),
            body,
        })
    }

    /// Requests an object's version without its bytes.
    pub(super) async fn head(
        &self,
        core: &Arc<RemoteCore>,
        key: &Key,
        reason: Reason,
    ) -> Result<ObservedVersion, RequestFailure> {
        let path = self.path(key).map_err(RequestFailure::permanent)?;
        let mut line = core.start_request(
            self,
            key,
            reason,
            reason,
            "HEAD",
            StorageCall::for_metadata(),
        );
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let asked = CALL.scope(line.call.clone(), self.store.get_opts(&path, options));
        match asked.await {
            Ok(result) => {
                self.record_success();
                line.complete();
                Ok(ObservedVersion::new(result.meta))
            }
            Err(error) => Err(self.classify_failure(&mut line, &error)),
        }
    }

    /// Classifies an error of `object_store` by the facts recorded below it, because its own text
    /// quotes URLs and responses.
    pub(super) fn classify_failure(
        &self,
        line: &mut RequestGuard,
        error: &object_store::Error,
    ) -> RequestFailure {
        use object_store::Error as E;
        let notes = line.call.notes();
        let describe_status = |status: u16| match &notes.code {
            Some(code) => format!("{status} {code}"),
            None => status.to_string(),
        };
        let trouble = match (&notes.error, notes.status) {
            (Some(failed), _) => RequestFailure::from_transport(failed),
            (None, Some(status)) if notes.credentials => RequestFailure {
                error: Error::Denied(format!(
                    "credentials for the storage are unavailable: status {}; check the role and the token",
                    describe_status(status)
                )),
                again: matches!(status, 429 | 500..=599),
            },
            (None, Some(status @ 404)) if notes.code.as_deref().is_some_and(is_missing_bucket) => {
                RequestFailure::permanent(Error::Denied(format!(
                    "the storage has no such bucket: status {}; check the name of the bucket and the region",
                    describe_status(status)
                )))
            }
            (None, Some(404 | 410)) => RequestFailure::permanent(Error::NotFound),
            (None, Some(412)) => RequestFailure::permanent(Error::Changed),
            (None, Some(status @ (401 | 403))) => {
                RequestFailure::permanent(Error::Denied(format!(
                    "the storage denies access: status {}; {}",
                    describe_status(status),
                    remedy_for(notes.code.as_deref())
                )))
            }
            (None, Some(416)) => RequestFailure::permanent(Error::Changed),
            (None, Some(200)) if notes.ranged => RequestFailure::permanent(Error::Broken(
                "the storage ignores Range: it responds with 200 and the whole file; use a server that supports range requests"
                    .into(),
            )),
            (None, Some(206)) => RequestFailure::permanent(Error::Broken(
                "the storage responds with another range than requested, or without Content-Range"
                    .into(),
            )),
            (None, Some(status @ (429 | 500..=599))) => RequestFailure {
                error: Error::Broken(format!(
                    "the storage responds with status {}",
                    describe_status(status)
                )),
                again: true,
            },
            (None, Some(status)) => RequestFailure::permanent(Error::Broken(format!(
                "unexpected status from the storage: {}",
                describe_status(status)
            ))),
            (None, None) => RequestFailure::permanent(match error {
                E::NotFound { .. } => Error::NotFound,
                E::NotSupported { .. } | E::NotImplemented { .. } => Error::Unlisted,
                _ => Error::Denied("credentials for the storage are missing or unavailable".into()),
            }),
        };
        match trouble.again {
            true => self.record_outage(),
            false if notes.status.is_some() => self.record_success(),
            false => {}
        }
        if matches!(trouble.error, Error::Denied(_) | Error::Broken(_)) {
            tracing::debug!(endpoint = &*self.name, error = %trouble.error, "storage");
        }
        line.record_failure(trouble)
    }
}

impl ResponseBody {
    /// Returns the next bytes; `None` at the declared end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, RequestFailure> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            let bytes = poll_fn(|cx| self.answer.poll_data(cx)).await;
            let bytes = self
                .count_received(bytes, |bytes| bytes.len() as u64)
                .await?;
            // HTTP/2 has empty frames.
            if bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()) {
                return Ok(bytes);
            }
        }
    }

    /// Returns the next bytes, spliced into `pipe` if possible; `None` at the declared end.
    pub(super) async fn next_spliced(
        &mut self,
        pipe: &Pipe,
    ) -> Result<Option<BodyData>, RequestFailure> {
        if self.left == 0 {
            return Ok(None);
        }
        let came = poll_fn(|cx| self.answer.poll_splice(cx, pipe)).await;
        self.count_received(came, BodyData::len).await
    }

    /// Waits until a byte can be read.
    async fn wait_for_data(&mut self) -> Result<(), RequestFailure> {
        let begun = poll_fn(|cx| self.answer.poll_readable(cx)).await;
        begun.map_err(|failed| {
            self.line
                .record_failure(RequestFailure::from_transport(&failed))
        })
    }

    /// Checks received bytes against the declared length.
    async fn count_received<T>(
        &mut self,
        came: Option<Result<T, TransportError>>,
        len: impl Fn(&T) -> u64,
    ) -> Result<Option<T>, RequestFailure> {
        let came = match came {
            Some(Ok(came)) => came,
            Some(Err(failed)) => {
                return Err(self
                    .line
                    .record_failure(RequestFailure::from_transport(&failed)));
            }
            None => {
                return Err(self
                    .line
                    .record_failure(RequestFailure::from_interruption()));
            }
        };
        let len = len(&came);
        if len > self.left {
            let what = "the storage sends more bytes than requested";
            return Err(self
                .line
                .record_failure(RequestFailure::permanent(Error::Broken(what.into()))));
        }
        self.left -= len;
        self.line.record_bytes(len);
        if self.left == 0 {
            self.line.complete();
            // Reads to the body's end, so that the connection can be reused.
            let _ = poll_fn(|cx| self.answer.poll_data(cx)).await;
        }
        Ok(Some(came))
    }
}

impl RequestFailure {
    pub(super) fn permanent(error: Error) -> RequestFailure {
        RequestFailure {
            error,
            again: false,
        }
    }

    fn from_interruption() -> RequestFailure {
        RequestFailure::from_transport(&TransportError::Interrupted(
            "the body is shorter than declared".into(),
        ))
    }

    fn from_transport(failed: &TransportError) -> RequestFailure {
        let text = failed.to_string();
        RequestFailure {
            error: match failed.is_timeout() {
                true => Error::Slow(text),
                false => Error::Broken(text),
            },
            again: failed.is_transient(),
        }
    }
}

impl RemoteCore {
    /// Counts a new request.
    pub(super) fn start_request(
        self: &Arc<RemoteCore>,
        endpoint: &Endpoint,
        key: &Key,
        reason: Reason,
        of: Reason,
        method: &'static str,
        call: StorageCall,
    ) -> RequestGuard {
        self.meter.count(reason, 0);
        self.meter.count_wait(reason);
        let call = Arc::new(call);
        RequestGuard {
            core: self.clone(),
            done: Some(StorageRequest {
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

impl RequestGuard {
    pub(super) fn call(&self) -> Arc<StorageCall> {
        self.call.clone()
    }

    fn set_range(&mut self, range: &Range<u64>) {
        self.edit_record(|done| done.range = Some(range.clone()));
    }

    fn record_bytes(&mut self, bytes: u64) {
        if let Some(done) = &mut self.done {
            done.bytes += bytes;
            self.core.meter.count_bytes(done.reason, bytes);
        }
    }

    pub(super) fn complete(&mut self) {
        self.edit_record(|done| done.complete = true);
    }

    fn record_failure(&mut self, trouble: RequestFailure) -> RequestFailure {
        self.edit_record(|done| done.error = Some(trouble.error.to_string()));
        trouble
    }

    fn edit_record(&mut self, edit: impl FnOnce(&mut StorageRequest)) {
        if let Some(done) = &mut self.done {
            edit(done);
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let (Some(watch), Some(mut done)) = (&self.core.options.watch, self.done.take()) else {
            return;
        };
        let notes = self.call.notes();
        done.status = notes.status;
        done.connection = notes.connection;
        done.first_byte = notes.answered.map(|at| at - self.call.began);
        done.total = self.call.began.elapsed();
        watch.notify(done);
    }
}
