//! Objects by name, in a local folder or an object store.
//!
//! A [`Store`] is a library: a [`Folder`], or a [`Remote`] (S3, GCS, Azure, any HTTP server that supports
//! ranges). A [`Key`] names an object in it, and cannot lead out of the library. [`Store::open`] returns an
//! [`Object`] of one [`ObjectVersion`]; its bytes are never mixed with those of another version.
//!
//! - A [`LocalFile`] is read, mapped, or sent by the kernel. Its functions block, except
//!   [`LocalFile::resident`] and [`LocalFile::changed`].
//! - A [`RemoteObject`] is read by ranges, from the memory cache `ranges` or over `http`. The
//!   library's own threads serve callers without a runtime. [`RemoteObject::parts`] is
//!   asynchronous; the functions of [`Store`] and [`Object::read`] block. If nothing is cached,
//!   [`RemoteObject::splice_range`] splices bytes into a [`Pipe`] without copying them.
//!
//! [`cache`] and, behind it, [`DiskTier`] store objects that were fetched from elsewhere. They do
//! not depend on libraries.
//!
//! This crate contains no HTTP server and no media formats. `cache` and `ranges` import nothing
//! from the other modules.

mod arena;
pub mod cache;
mod disk;
mod error;
mod file_map;
mod folder;
mod http;
mod key;
mod local;
mod object;
mod object_version;
mod page_residency;
mod pipe_pool;
pub mod planted;
mod range_join;
mod ranges;
mod remote;
mod storage_meter;
mod store;

pub use arena::{Arena, ArenaBytes};
pub use disk::tier::{DiskTier, DiskTierCounts, TierBody, TierHit, TierObject};
pub use disk::{DiskCache, DiskCounts};
pub use error::Error;
pub use folder::{Folder, FolderEntry, FolderListing};
pub use http::{StorageTimeouts, TransportOptions};
pub use key::{BadKey, Key};
pub use local::LocalFile;
#[cfg(debug_assertions)]
pub use local::change_checks;
pub use object::Object;
pub use object_version::ObjectVersion;
pub use pipe_pool::Pipe;
pub use remote::{
    CompletedRequest, EndpointRoute, FetchHolds, Options, RangeReader, Remote, RemoteObject,
    RequestObserver, SplicedData, SplicedRange, WeightedEndpoint,
};
pub use storage_meter::{Meter, Reason};
pub use store::Store;
pub use upstream::ConnectionCounts;
