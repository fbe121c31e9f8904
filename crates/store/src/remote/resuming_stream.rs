//! A range as a stream that resumes after an interrupted response.

use super::endpoints::Endpoint;
use super::range_request::{RangeRequest, RangeResponse, ResponseBody};
use super::request_failure::RequestFailure;
use super::retry::can_fail_over;
use super::{ObservedVersion, PinnedVersion, RemoteCore};
use crate::pipe_pool::Pipe;
use crate::{Error, RequestReason};
use bytes::Bytes;
use std::sync::Arc;
use upstream::BodyData;

/// If a response is interrupted after at least this many bytes, the resumption does not count as a
/// retry.
const PROGRESS_BYTES_MIN: u64 = 64 << 10;
/// Maximum number of resumptions of one body, even if each response made progress.
const RESUMPTIONS_MAX: u32 = 32;

/// The bytes of a range, in order.
pub(super) struct ResumingStream {
    core: Arc<RemoteCore>,
    /// The part of the range that has not been received.
    unreceived: RangeRequest,
    first: Option<Bytes>,
    body: ResponseBody,
    /// The endpoint that sends the body.
    endpoint: Arc<Endpoint>,
    resumed: u32,
    /// Consecutive resumptions after responses of less than [`PROGRESS_BYTES_MIN`] bytes.
    resumptions_without_progress: u32,
    /// Start offset of the response that is being received.
    response_start: u64,
}

impl RemoteCore {
    /// Requests a range of an object. If `request.state` is set, the response must be of that
    /// version.
    pub(super) async fn open_stream(
        self: &Arc<RemoteCore>,
        request: RangeRequest,
        reason: RequestReason,
    ) -> Result<(Arc<PinnedVersion>, ResumingStream), Error> {
        let response = self.fetch_range(&request, reason, None).await?;
        let RangeResponse {
            seen,
            range,
            first,
            body,
            endpoint,
        } = response;
        let state = request.state.clone();
        let state = state.unwrap_or_else(|| Arc::new(PinnedVersion::from_observed(seen)));
        let request = RangeRequest {
            range,
            state: Some(state.clone()),
            ..request
        };
        let stream = ResumingStream {
            core: self.clone(),
            first: Some(first),
            body,
            endpoint,
            resumed: 0,
            resumptions_without_progress: 0,
            response_start: request.range.start,
            unreceived: request,
        };
        Ok((state, stream))
    }

    /// Reads a range into one buffer.
    pub(super) async fn read_range(
        self: &Arc<RemoteCore>,
        unreceived: RangeRequest,
        reason: RequestReason,
    ) -> Result<(Arc<PinnedVersion>, Bytes), Error> {
        let (state, mut stream) = self.open_stream(unreceived, reason).await?;
        let len = stream.unreceived.range.end - stream.unreceived.range.start;
        let mut chunks = Vec::new();
        while let Some(bytes) = stream.next_bytes().await? {
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

impl ResumingStream {
    /// Returns the next bytes, or `None` at the end of the range.
    pub(super) async fn next_bytes(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(first) = self.take_first() {
                return Ok(Some(first));
            }
            match self.body.next_bytes().await {
                Ok(bytes) => {
                    self.count_received(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
                    return Ok(bytes);
                }
                Err(failure) => self.resume_after(failure).await?,
            }
        }
    }

    /// Returns the next bytes, or `None` at the end of the range. The bytes are spliced into `pipe`
    /// if possible. Spliced bytes count as received, so a resumed response continues after them.
    pub(super) async fn next_spliced(&mut self, pipe: &Pipe) -> Result<Option<BodyData>, Error> {
        loop {
            if let Some(first) = self.take_first() {
                return Ok(Some(BodyData::Bytes(first)));
            }
            match self.body.next_spliced(pipe).await {
                Ok(received) => {
                    self.count_received(received.as_ref().map_or(0, BodyData::len));
                    return Ok(received);
                }
                Err(failure) => self.resume_after(failure).await?,
            }
        }
    }

    /// Takes the first bytes of the response's body, if these bytes have not been taken yet.
    fn take_first(&mut self) -> Option<Bytes> {
        let first = self.first.take().filter(|first| !first.is_empty())?;
        self.count_received(first.len() as u64);
        Some(first)
    }

    /// Requests the rest of the range, if a strong validator can prove that another response has
    /// the same version.
    async fn resume_after(&mut self, failure: RequestFailure) -> Result<(), Error> {
        let provable = self
            .unreceived
            .required_version()
            .is_some_and(ObservedVersion::has_strong_validator);
        let endpoints = self.core.routes.ordered_endpoints(&self.unreceived.key);
        let fails_over = can_fail_over(&failure, &endpoints, std::slice::from_ref(&self.endpoint));
        if !failure.is_retryable || !provable || !self.may_resume(fails_over) {
            return Err(failure.error);
        }
        self.resumed += 1;
        self.response_start = self.unreceived.range.start;
        let avoided = fails_over.then(|| self.endpoint.clone());
        let fetch = self
            .core
            .fetch_range(&self.unreceived, RequestReason::Retry, avoided);
        let response = fetch.await?;
        (self.first, self.body) = (Some(response.first), response.body);
        self.endpoint = response.endpoint;
        Ok(())
    }

    /// Returns whether the body may be resumed once more. If the interrupted response made no
    /// progress, the resumption counts as a retry. The number of such resumptions is limited. Each
    /// such resumption uses the retry budget, unless it `fails_over` to another endpoint.
    fn may_resume(&mut self, fails_over: bool) -> bool {
        if self.resumed >= RESUMPTIONS_MAX {
            return false;
        }
        if self.unreceived.range.start - self.response_start >= PROGRESS_BYTES_MIN {
            self.resumptions_without_progress = 0;
            return true;
        }
        self.resumptions_without_progress += 1;
        self.resumptions_without_progress <= self.core.options.retries
            && (fails_over || self.core.retries.try_spend())
    }

    fn count_received(&mut self, bytes: u64) {
        self.unreceived.range.start += bytes;
    }
}
