//! Where an answer goes.

use super::Fault;
use http::{HeaderMap, HeaderName, HeaderValue};

/// What takes an answer's fields and body.
pub trait Sink {
    /// Whether anyone looks at the body's bytes. Else they may never reach user memory.
    fn wants_bytes(&self) -> bool;

    /// Whether [`Sink::field`] is called for an answer of this status.
    fn wants_fields(&self, status: u16) -> bool;

    /// One field of the head.
    fn field(&mut self, name: &str, value: &[u8]);

    /// More of the body.
    ///
    /// # Errors
    /// When it will take no more; the request then fails.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Fault>;
}

/// Nowhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Sink for Discard {
    fn wants_bytes(&self) -> bool {
        false
    }

    fn wants_fields(&self, _: u16) -> bool {
        false
    }

    fn field(&mut self, _: &str, _: &[u8]) {}

    fn bytes(&mut self, _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }
}

/// Memory, up to a bound; a hash where one is wanted.
#[derive(Debug, Default)]
pub struct Keep {
    /// Longest body that is kept; 0: none is.
    pub max: usize,
    /// The hash so far.
    pub digest: Option<super::Digest>,
    /// The fields of the head.
    pub headers: HeaderMap,
    /// The body so far.
    pub body: Vec<u8>,
    /// Bytes of the body that were looked at.
    pub count: u64,
}

impl Sink for Keep {
    fn wants_bytes(&self) -> bool {
        self.max > 0 || self.digest.is_some()
    }

    fn wants_fields(&self, status: u16) -> bool {
        self.max > 0 || (300..400).contains(&status)
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        let parsed = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_bytes(value),
        );
        if let (Ok(name), Ok(value)) = parsed {
            self.headers.append(name, value);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.count += bytes.len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        if self.max > 0 {
            if self.body.len() + bytes.len() > self.max {
                return Err(Fault::TooLong);
            }
            self.body.extend_from_slice(bytes);
        }
        Ok(())
    }
}
