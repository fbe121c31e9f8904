//! Common Encryption of CMAF tracks (ISO/IEC 23001-7). The caller provides the keys and the
//! ciphers.
//!
//! 1. [`ProtectionParameters`] is the public part of a track's protection: scheme, key id and IV. These
//!    values are written to the init segment.
//! 2. [`SubsampleParser`] finds the bytes of each sample that stay unencrypted. The result is a
//!    [`SubsampleMap`], which decides the length of a segment's head.
//! 3. [`encrypt_samples`] encrypts the samples in place with a [`Aes128Cipher`] of the caller.
//! 4. A source that is already encrypted has a [`SourceProtection`]. The samples of this source are
//!    served unchanged, or decrypted with a [`SampleDecipher`] of the caller and then encrypted
//!    again.
//! 5. [`TrackSignaling`] contains the playlist lines and MPD elements that signal the protection.

mod avc_slice_header;
mod base64_text;
mod cbc_chains;
pub mod cpix;
mod hevc_parameter_sets;
mod hevc_reference_pictures;
mod hevc_slice_header;
mod nal_subsamples;
mod precomputed_subsamples;
mod sample_auxiliary;
mod sample_decryptor;
mod sample_encryption;
mod sample_entry;
mod scheme;
mod senc_table;
mod signaling;
mod slice_header_len;
pub(crate) mod source_protection;
mod subsample_map;
mod systems;
#[cfg(test)]
mod tests;
mod usage_rules;

pub use base64_text::decode_base64;
pub use nal_subsamples::SubsampleParser;
pub use precomputed_subsamples::{PrecomputedSubsamplesBuilder, StoredSubsamples};
pub(crate) use sample_auxiliary::SampleAuxiliary;
pub use sample_decryptor::SampleDecipher;
pub use sample_encryption::{Aes128Cipher, BlockCipher, encrypt_samples};
pub(crate) use sample_entry::write_protected_entry;
pub use scheme::{KeyId, ProtectionParameters, ProtectionScheme, format_key_id, parse_key_id};
pub(crate) use senc_table::SencTable;
pub use signaling::{HdcpLevel, PsshPlaces, TitleSignaling, TrackSignaling};
pub use source_protection::{ProtectedEntry, SourceProtection};
pub use subsample_map::{Subsample, SubsampleMap};
pub use systems::{ContentSystem, SystemSignaling, to_guid, write_system_pssh};
pub use usage_rules::{MediaFilter, RuleTrackProperties, UsageRule, VideoFilterLimits};
