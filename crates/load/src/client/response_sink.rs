//! Receivers of a response's header fields and body.

use super::{FailureKind, TransferProgress};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;

/// Receives a response's header fields and body.
pub trait ResponseSink {
    /// Returns whether the sink needs the bytes of the body. If not, the kernel may discard the
    /// bytes.
    fn wants_bytes(&self) -> bool;

    /// Returns whether [`ResponseSink::on_field`] should be called for a response of this status.
    fn wants_fields(&self, status: u16) -> bool;

    /// Receives the status of the response. The body can still be incomplete or fail.
    fn on_status(&mut self, _status: u16) {}

    /// Receives one header field.
    fn on_field(&mut self, name: &str, value: &[u8]);

    /// Receives body bytes.
    ///
    /// # Errors
    /// The body exceeds the limit of the sink, so the request fails.
    fn on_body(&mut self, bytes: &[u8]) -> Result<(), FailureKind>;

    /// Receives the number of body bytes that arrived since the last call. This includes bytes that
    /// were discarded without a call of [`ResponseSink::on_body`].
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

/// Stores the response body up to a limit, and computes its hash if requested.
#[derive(Debug, Default)]
pub struct MemorySink {
    /// Maximum length of the stored body, in bytes. With 0, no body is stored.
    pub max: usize,
    /// Hash of the received body, if requested.
    pub digest: Option<super::BodyDigest>,
    /// The status received; 0 if no response head was received.
    pub status: u16,
    /// The header fields received.
    pub headers: HeaderMap,
    /// The body received.
    pub body: Vec<u8>,
    /// Number of body bytes received, including discarded bytes.
    pub count: u64,
    /// Receives the progress of the body, if requested.
    pub progress: Option<Arc<TransferProgress>>,
}

impl ResponseSink for MemorySink {
    fn wants_bytes(&self) -> bool {
        self.max > 0 || self.digest.is_some()
    }

    fn wants_fields(&self, status: u16) -> bool {
        self.max > 0 || (300..400).contains(&status)
    }

    fn on_status(&mut self, status: u16) {
        self.status = status;
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
        if let Some(digest) = &mut self.digest {
            digest.hash_bytes(bytes);
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
        self.count += count;
        if let Some(progress) = self.progress.as_ref().filter(|_| count > 0) {
            progress.add_bytes(count);
        }
    }
}
