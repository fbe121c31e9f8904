//! Receivers of a response's header fields and body.

use super::{FailureKind, TransferProgress};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;

/// Receives a response's header fields and body.
pub trait ResponseSink {
    /// Returns whether the body's bytes are wanted. Otherwise they may never reach user memory.
    fn wants_bytes(&self) -> bool;

    /// Returns whether [`ResponseSink::on_field`] should be called for a response of this status.
    fn wants_fields(&self, status: u16) -> bool;

    /// Receives one header field.
    fn on_field(&mut self, name: &str, value: &[u8]);

    /// Receives body bytes.
    ///
    /// # Errors
    /// The body exceeds the limit; the request then fails.
    fn on_body(&mut self, bytes: &[u8]) -> Result<(), FailureKind>;

    /// Receives the number of body bytes that arrived, including those that were discarded without
    /// a call of [`ResponseSink::on_body`].
    fn on_progress(&mut self, _count: u64) {}
}

/// Discards everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscardSink;

impl ResponseSink for DiscardSink {
    fn wants_bytes(&self) -> bool {
        false
    }

    fn wants_fields(&self, _: u16) -> bool {
        false
    }

    fn on_field(&mut self, _: &str, _: &[u8]) {}

    fn on_body(&mut self, _: &[u8]) -> Result<(), FailureKind> {
        Ok(())
    }
}

/// Stores the body up to a limit, and hashes it if requested.
#[derive(Debug, Default)]
pub struct MemorySink {
    /// Limit of the stored body; 0 stores none.
    pub max: usize,
    /// The hash, if requested.
    pub digest: Option<super::BodyDigest>,
    /// The header fields received.
    pub headers: HeaderMap,
    /// The body received.
    pub body: Vec<u8>,
    /// Body bytes passed to the sink.
    pub count: u64,
    /// Receives the progress, if requested.
    pub progress: Option<Arc<TransferProgress>>,
}

impl ResponseSink for MemorySink {
    fn wants_bytes(&self) -> bool {
        self.max > 0 || self.digest.is_some()
    }

    fn wants_fields(&self, status: u16) -> bool {
        self.max > 0 || (300..400).contains(&status)
    }

    fn on_field(&mut self, name: &str, value: &[u8]) {
        let parsed = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_bytes(value),
        );
        if let (Ok(name), Ok(value)) = parsed {
            self.headers.append(name, value);
        }
    }

    fn on_body(&mut self, bytes: &[u8]) -> Result<(), FailureKind> {
        self.count += bytes.len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        if self.max > 0 {
            if self.body.len() + bytes.len() > self.max {
                return Err(FailureKind::TooLong);
            }
            self.body.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn on_progress(&mut self, count: u64) {
        if let Some(progress) = self.progress.as_ref().filter(|_| count > 0) {
            progress.add_bytes(count);
        }
    }
}
