//! Common Encryption of titles: settings, content keys, and the protection of each rendition.
//!
//! [`LibraryDrm`] finds the [`DrmPolicy`] of a title by its path. For each title version, a
//! [`key_source`] provides a [`KeySet`](key_set::KeySet), and [`TitleDrm`] maps the keys to the
//! renditions. [`SourceKeyProvider`] provides the keys of films that are already encrypted.
//! `media::protection` defines the encryption of samples and the signaling.

pub(crate) mod content_key;
pub(crate) mod content_key_cipher;
pub(crate) mod document_decryptor;
mod key_cache;
mod key_client;
pub(crate) mod key_derivation;
mod key_document;
mod key_error;
mod key_metrics;
pub(crate) mod key_set;
pub(crate) mod key_source;
mod library_drm;
pub(crate) mod license_origins;
pub(crate) mod open_drm;
pub mod path_pattern;
pub mod rules;
pub mod settings;
pub(crate) mod source_cipher;
pub(crate) mod source_keys;
mod speke;
pub(crate) mod title_drm;
mod udrm;

pub(crate) use key_cache::KeyCache;
pub(crate) use key_client::KeyClient;
pub(crate) use key_metrics::KeyMetrics;
pub(crate) use key_source::KeySource;
pub(crate) use library_drm::{DrmPolicy, LibraryDrm};
pub(crate) use source_keys::SourceKeyProvider;
pub(crate) use title_drm::TitleDrm;
