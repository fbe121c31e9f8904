//! One request for a range of an object, and the checks of its response.

use super::endpoints::Endpoint;
use super::request_failure::RequestFailure;
use super::request_guard::RequestGuard;
use super::{ObservedVersion, PinnedVersion, RemoteCore};
use crate::http::{CALL, StorageRequestContext, TransportError, WatchedBody};
use crate::pipe_pool::Pipe;
use crate::{Error, Key, RequestReason};
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
    /// The required version, or `None` while the object is being opened.
    pub(super) state: Option<Arc<PinnedVersion>>,
    /// The reason for which the caller needs the bytes.
    pub(super) original_reason: RequestReason,
    /// Whether the body will be spliced. If so, only the response's head is read until the caller
    /// takes the body's bytes.
    pub(super) is_spliced: bool,
}

/// A response whose head has been checked.
pub(super) struct RangeResponse {
    pub(super) seen: ObservedVersion,
    /// The range of the response. It is the requested range, or a shorter range if the object ends
    /// earlier.
    pub(super) range: Range<u64>,
    pub(super) first: Bytes,
    pub(super) body: ResponseBody,
    /// The endpoint that sends the response.
    pub(super) endpoint: Arc<Endpoint>,
}

/// The rest of a response. It has exactly the declared length, or it ends with an error.
pub(super) struct ResponseBody {
    /// These bytes do not pass through `object_store`, which reads only the head.
    watched_body: WatchedBody,
    left: u64,
    guard: RequestGuard,
}

impl RangeRequest {
    /// The required version, if a response has already determined it.
    pub(super) fn required_version(&self) -> Option<&ObservedVersion> {
        self.state.as_ref()?.observed_version()
    }
}

impl Endpoint {
    /// Requests a range and waits for the first bytes of the response.
    pub(super) async fn send_range_request(
        self: &Arc<Endpoint>,
        core: &Arc<RemoteCore>,
        request: &RangeRequest,
        reason: RequestReason,
    ) -> Result<RangeResponse, RequestFailure> {
        let mut options = GetOptions {
            range: Some(GetRange::Bounded(request.range.clone())),
            ..GetOptions::default()
        };
        if let Some(seen) = request.required_version() {
            seen.add_preconditions(&mut options);
        }
        let path = self
            .object_path(&request.key)
            .map_err(RequestFailure::from_permanent_error)?;
        let mut guard = core.open_request_guard(
            self,
            &request.key,
            reason,
            request.original_reason,
            "GET",
            StorageRequestContext::new_range_call(request.is_spliced),
        );
        guard.set_range(&request.range);
        let exchange = CALL.scope(guard.call.clone(), self.store.get_opts(&path, options));
        let result = match exchange.await {
            Ok(result) => result,
            Err(error) => {
                let failure = self.classify_failure(&mut guard, &error);
                return Err(match (failure.error, &request.state) {
                    (Error::Changed, Some(state)) => guard.record_failure(
                        RequestFailure::from_permanent_error(state.missing_range_error()),
                    ),
                    (error, _) => RequestFailure { error, ..failure },
                });
            }
        };
        let seen = ObservedVersion::new(result.meta.clone()).with_date(guard.call.notes().date);
        let range = result.range.clone();
        if let Some(state) = &request.state {
            let version_check = state.check_response(&seen);
            let range_check = (range == request.range).then_some(()).ok_or(Error::Changed);
            version_check.and(range_check).map_err(|error| {
                guard.record_failure(RequestFailure::from_permanent_error(error))
            })?;
        }
        let left = range.end - range.start;
        let watched_body = guard.call.take_body();
        let watched_body =
            watched_body.ok_or_else(|| guard.record_failure(RequestFailure::from_short_body()))?;
        if let Some(plain) = watched_body.is_unencrypted_http1() {
            self.record_unencrypted(plain);
        }
        let mut body = ResponseBody {
            watched_body,
            left,
            guard,
        };
        let first = match request.is_spliced {
            true => body.wait_for_data().await.map(|()| None),
            false => body.next_bytes().await,
        };
        let first = first.inspect_err(|_| self.count_failure())?;
        self.record_success();
        core.latency
            .record_latency(body.guard.call.started.elapsed());
        Ok(RangeResponse {
            seen,
            range,
            first: first.unwrap_or_default(),
            body,
            endpoint: self.clone(),
        })
    }

    /// Requests an object's version without its bytes.
    pub(super) async fn send_head_request(
        &self,
        core: &Arc<RemoteCore>,
        key: &Key,
        reason: RequestReason,
    ) -> Result<ObservedVersion, RequestFailure> {
        let path = self
            .object_path(key)
            .map_err(RequestFailure::from_permanent_error)?;
        let mut guard = core.open_request_guard(
            self,
            key,
            reason,
            reason,
            "HEAD",
            StorageRequestContext::new_metadata_call(),
        );
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let exchange = CALL.scope(guard.call.clone(), self.store.get_opts(&path, options));
        match exchange.await {
            Ok(result) => {
                self.record_success();
                guard.mark_complete();
                Ok(ObservedVersion::new(result.meta))
            }
            Err(error) => Err(self.classify_failure(&mut guard, &error)),
        }
    }
}

impl ResponseBody {
    /// Returns the next bytes, or `None` at the declared end.
    pub(super) async fn next_bytes(&mut self) -> Result<Option<Bytes>, RequestFailure> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            let bytes = poll_fn(|cx| self.watched_body.poll_data(cx)).await;
            let bytes = self
                .count_received(bytes, |bytes| bytes.len() as u64)
                .await?;
            // Skips empty HTTP/2 frames.
            if bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()) {
                return Ok(bytes);
            }
        }
    }

    /// Returns the next bytes, or `None` at the declared end. The bytes are spliced into `pipe` if
    /// possible.
    pub(super) async fn next_spliced(
        &mut self,
        pipe: &Pipe,
    ) -> Result<Option<BodyData>, RequestFailure> {
        if self.left == 0 {
            return Ok(None);
        }
        let received = poll_fn(|cx| self.watched_body.poll_splice(cx, pipe)).await;
        self.count_received(received, BodyData::len).await
    }

    /// Waits until a byte of the body can be read.
    async fn wait_for_data(&mut self) -> Result<(), RequestFailure> {
        let readable = poll_fn(|cx| self.watched_body.poll_readable(cx)).await;
        readable.map_err(|failed| {
            self.guard
                .record_failure(RequestFailure::from_transport(&failed))
        })
    }

    /// Checks received bytes against the declared length.
    async fn count_received<T>(
        &mut self,
        received: Option<Result<T, TransportError>>,
        len: impl Fn(&T) -> u64,
    ) -> Result<Option<T>, RequestFailure> {
        let received = match received {
            Some(Ok(received)) => received,
            Some(Err(failed)) => {
                return Err(self
                    .guard
                    .record_failure(RequestFailure::from_transport(&failed)));
            }
            None => {
                return Err(self.guard.record_failure(RequestFailure::from_short_body()));
            }
        };
        let len = len(&received);
        if len > self.left {
            let what = "the storage sends more bytes than requested";
            return Err(self
                .guard
                .record_failure(RequestFailure::from_permanent_error(Error::Broken(
                    what.into(),
                ))));
        }
        self.left -= len;
        self.guard.record_bytes(len);
        if self.left == 0 {
            self.guard.mark_complete();
            // Reads to the body's end, so that the connection can be reused.
            let _ = poll_fn(|cx| self.watched_body.poll_data(cx)).await;
        }
        Ok(Some(received))
    }
}
