//! Objects by name: a local folder's files, or what an object store holds.
//!
//! A [`Store`] is a library: a [`Folder`], or a [`Remote`] (S3, GCS, Azure, any HTTP server with
//! ranges). A [`Key`] names something in it, and cannot be spelled so that it leaves the library.
//! [`Store::open`] gives an [`Object`]: bytes with an [`Identity`], which are never mixed with
//! those of another state of the object.
//!
//! - A [`LocalFile`] is read, mapped, or sent by the kernel. Everything about it blocks, except
//!   [`LocalFile::slices`], [`LocalFile::resident`] and [`LocalFile::changed`].
//! - A [`RemoteObject`] is read by ranges: from `ranges` in memory, or over `http`, on threads of its own.
//!   [`RemoteObject::parts`] is asynchronous; what [`Store`] and [`Object::read`] do blocks. Where nothing
//!   is kept, [`RemoteObject::straight`] brings bytes in a [`Pipe`], uncopied.
//!
//! [`cache`] keeps what was fetched from elsewhere, a [`DiskTier`] behind it; they know nothing of
//! libraries.
//!
//! What is *not* here: no HTTP server, no media. `cache` and `ranges` import nothing from their
//! neighbours.

mod arena;
pub mod cache;
mod disk;
mod error;
mod folder;
mod http;
mod identity;
mod key;
mod local;
mod map;
mod meter;
mod object;
mod pipes;
mod ranges;
mod remote;
mod residence;
mod store;

pub use arena::{Arena, Kept};
pub use disk::tier::{DiskTier, DiskTierCounts, Found, ShelvedBody, Shelving};
pub use disk::{DiskCache, DiskCounts};
pub use error::Error;
pub use folder::{Entry, Folder};
pub use http::{Connections, Timeouts, Transport};
pub use identity::Identity;
pub use key::{BadKey, Key};
pub use local::LocalFile;
pub use meter::{Meter, Reason};
pub use object::Object;
pub use pipes::Pipe;
pub use remote::{
    Came, Done, Holder, Options, Parts, Remote, RemoteObject, Straight, Via, Watch, Weighted,
};
pub use store::Store;
