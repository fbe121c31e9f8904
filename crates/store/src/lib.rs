//! Reads objects by name from a local folder or an object store.
//!
//! A [`Store`] is a media library. It is either a local [`Folder`] or a [`Remote`] library (S3,
//! GCS, Azure, or any HTTP server that supports range requests). A [`Key`] names an object in the
//! library, and cannot lead out of the library. [`Store::open`] returns an [`Object`] of one
//! [`ObjectVersion`]. The bytes of two versions are never mixed.
//!
//! - A [`LocalFile`] is read, mapped, or sent by the kernel. The functions that read its bytes are
//!   blocking. [`LocalFile::is_range_resident`] and [`LocalFile::changed`] do not block.
//! - A [`RemoteObject`] is read in ranges, from the memory cache (module `range_cache`) or from the
//!   storage (module `http`). The library's own threads send the requests of callers that have no
//!   Tokio runtime. [`RemoteObject::open_range_reader`] is asynchronous. The functions of [`Store`] block, and
//!   so does [`Object::read`]. If the memory cache is disabled, [`RemoteObject::splice_range`]
//!   splices bytes into a [`Pipe`] instead of copying them.
//!
//! [`cache`] stores objects that were fetched from other servers. [`DiskTier`] is a second tier
//! behind this cache. The cache and the tier do not depend on media libraries.
//!
//! This crate contains no HTTP server and no code for media formats. The modules `cache` and
//! `range_cache` import nothing from the other modules.

mod arena;
pub mod cache;
mod disk;
mod error;
mod folder;
mod http;
mod key;
mod local_file;
mod mapped_memory;
mod object;
mod object_version;
mod page_residency;
mod pipe_pool;
pub mod planted_bugs;
mod range_cache;
mod range_join;
mod remote;
mod storage_meter;
mod store;

pub use arena::{Arena, ArenaBytes};
pub use disk::tier::{DiskTier, DiskTierCounts, ObjectToStore, TierBodySource, TierHit};
pub use disk::{DiskCache, DiskLookupCounts};
pub use error::Error;
pub use folder::{Folder, FolderEntry, FolderListing};
pub use http::{StorageTimeouts, TransportOptions};
pub use key::{BadKey, Key};
pub use local_file::LocalFile;
#[cfg(debug_assertions)]
pub use local_file::change_check_count;
pub use object::Object;
pub use object_version::ObjectVersion;
pub use pipe_pool::Pipe;
pub use remote::{
    CompletedRequest, KeyRoute, Options, RangeReader, Remote, RemoteObject, RequestObserver,
    SplicedData, SplicedRange, ThreadHoldFactory, WeightedEndpoint,
};
pub use storage_meter::{Meter, RequestReason};
pub use store::Store;
pub use upstream::ConnectionCounts;
