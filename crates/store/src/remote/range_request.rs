//! One request for a range of an object, and the checks of its response.

use super::endpoints::Endpoint;
use super::request_failure::RequestFailure;
use super::request_guard::RequestGuard;
use super::{ObservedVersion, PinnedVersion, RemoteCore};
use crate::http::{CALL, StorageCall, TransportError, WatchedBody};
use crate::pipe_pool::Pipe;
use crate::{Error, Key, Reason};
use bytes::Bytes;
use object_store::{GetOptions, GetRange};
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
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
            answer.ok_or_else(|| line.record_failure(RequestFailure::from_short_body()))?;
        if let Some(plain) = answer.is_unencrypted_http1() {
            self.record_unencrypted(plain);
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
                return Err(self.line.record_failure(RequestFailure::from_short_body()));
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
