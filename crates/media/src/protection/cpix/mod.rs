//! Key documents in the Content Protection Information Exchange Format (DASH-IF CPIX 2.3 and 2.4).

mod document;
mod key_decryption;
mod request;
mod signaling;
#[cfg(test)]
mod tests;
mod usage;

pub use document::{
    CPIX_BYTES_MAX, KeyDocument, KeyDocumentEntry, decrypt_key_document, list_content_keys,
    parse_key_document,
};
pub use key_decryption::{DocumentKeys, KeyDocumentDecryptor};
pub use request::{CpixRequest, CpixVersion, RequestedKey};
