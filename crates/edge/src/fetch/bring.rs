//! Bringing a body to all who read it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use net::upstream::Answer;
use store::cache::Lead;

use super::Landed;
use crate::Edge;
use crate::content::Content;
use crate::key::Key;

/// Kept behind the writer of a body that will not be kept.
const WINDOW_BYTES: u64 = 2 << 20;

/// The bytes of all bodies that are being fetched and may be kept.
#[derive(Debug, Clone, Default)]
pub struct Flying(Arc<AtomicU64>);

/// One body's share of them.
struct Share {
    of: Flying,
    bytes: u64,
}

impl Flying {
    /// All of them.
    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn share(&self) -> Share {
        Share {
            of: self.clone(),
            bytes: 0,
        }
    }
}

impl Share {
    fn grow(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.of.0.fetch_add(bytes, Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Relaxed);
    }
}

impl Edge {
    /// Brings a body to all who read it. True: it is whole, just as long as was expected, and all of
    /// it is here to be kept.
    ///
    /// What is longer than an object may be, or would make all that is being fetched too much, is
    /// not kept: then nobody joins any more, and the origin waits for the slowest reader.
    pub(super) async fn bring(
        &self,
        lead: &mut Lead<Key, Landed>,
        content: &Content,
        mut answer: Answer,
        expected: Option<u64>,
    ) -> bool {
        let body = &content.growing;
        let mut share = Some(self.flying.share());
        let exact = answer.is_exact();
        loop {
            match answer.piece().await {
                Ok(Some(piece)) => {
                    if let Some(share) = &mut share {
                        share.grow(piece.len() as u64);
                    }
                    body.push(piece);
                }
                Ok(None) => break,
                Err(failed) => {
                    content.cut(&failed.why);
                    return false;
                }
            }
            let len = body.len();
            if expected.is_some_and(|expected| len > expected) {
                content.cut("the origin sends more than it was asked for");
                return false;
            }
            let long = len > self.memory.object_bytes_max();
            if share.is_some() && (long || self.flying.bytes() > self.flying_bytes_max()) {
                share = None;
                lead.close();
                body.window(WINDOW_BYTES);
            }
            if !poll_fn(|cx| body.poll_room(cx)).await {
                content.cut("nobody reads it any more, and it will not be kept");
                return false;
            }
        }
        if expected.is_some_and(|expected| body.len() < expected) {
            content.cut("the origin sends less than it was asked for");
            return false;
        }
        if share.is_some() {
            content.finish(exact);
        } else {
            body.end(Ok(()));
        }
        share.is_some()
    }

    /// What all that is being fetched may take: as much as a quarter of what is kept.
    fn flying_bytes_max(&self) -> u64 {
        self.settings.memory_bytes / 4
    }
}
