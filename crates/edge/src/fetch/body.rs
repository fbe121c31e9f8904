//! Reception of a response body for all clients that read it.

use std::future::poll_fn;

use store::cache::FetchLeader;
use store::planted_bugs::is_bug_planted;
use upstream::UpstreamResponse;

use super::FetchOutcome;
use crate::Edge;
use crate::cache_key::CacheKey;
use crate::object_body::SharedObjectBody;

/// Approximate limit on the bytes in memory of a body that will not be stored.
const UNSTORED_WINDOW_BYTES: u64 = 2 << 20;

impl Edge {
    /// Receives a body for all clients that read it. Returns whether the body is complete, has the
    /// expected length, and may be stored.
    ///
    /// A body is delivered but not stored if it exceeds the limit on an object's size. The same
    /// applies if the total size of all bodies in flight exceeds `in_flight_bytes_max`. From then
    /// on, no further request joins the fetch, and the fetch receives no faster than the slowest
    /// reader reads. If `expected` is set, the body is a block, which is shorter than this window.
    /// The fetch does not wait for readers of a block, because it would fail if no client had opened
    /// a reader yet.
    pub(super) async fn receive_body(
        &self,
        lead: &mut FetchLeader<CacheKey, FetchOutcome>,
        content: &SharedObjectBody,
        mut response: UpstreamResponse,
        expected: Option<u64>,
    ) -> bool {
        let body = &content.growing;
        let mut byte_count = Some(self.in_flight_bytes.start_body_byte_count());
        let exact = response.has_exclusive_memory();
        loop {
            match response.next_data().await {
                Ok(Some(piece)) => {
                    if let Some(byte_count) = &mut byte_count {
                        byte_count.add_bytes(piece.len() as u64);
                    }
                    body.append_bytes(piece);
                }
                Ok(None) => break,
                Err(_) if is_bug_planted("short-body-stored") => break,
                Err(failed) => {
                    content.end_with_error(&failed.reason);
                    return false;
                }
            }
            let len = body.len();
            if expected.is_some_and(|expected| len > expected) {
                content.end_with_error("the origin sent more bytes than requested");
                return false;
            }
            let is_large = len > self.memory.object_bytes_max();
            if byte_count.is_some()
                && (is_large || self.in_flight_bytes.total_bytes() > self.in_flight_bytes_max())
            {
                byte_count = None;
                lead.refuse_new_followers();
                if expected.is_none() {
                    body.limit_window(UNSTORED_WINDOW_BYTES);
                }
            }
            if !poll_fn(|cx| body.poll_room(cx)).await {
                content.end_with_error("all clients disconnected, and the body will not be stored");
                return false;
            }
        }
        if expected.is_some_and(|expected| body.len() < expected) {
            content.end_with_error("the origin sent fewer bytes than requested");
            return false;
        }
        if byte_count.is_some() {
            content.mark_complete(exact);
        } else {
            body.end_body(Ok(()));
        }
        byte_count.is_some()
    }

    /// Returns the limit on the total bytes of all bodies that are being fetched. The limit is a
    /// quarter of the memory tier.
    fn in_flight_bytes_max(&self) -> u64 {
        self.settings.memory_bytes / 4
    }
}
