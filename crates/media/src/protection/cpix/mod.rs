//! Key documents: the Content Protection Information Exchange Format (DASH-IF CPIX 2.3 and 2.4).

mod document;
mod request;
mod signaling;
#[cfg(test)]
mod tests;
mod usage;

pub use document::{CPIX_BYTES_MAX, KeyDocument, KeyDocumentEntry, parse_key_document};
pub use request::{RequestedKey, write_key_request};
