//! Objects by name: the library's files, read or mapped.
//!
//! A [`Folder`] is a library. A [`Key`] names something in it, and cannot be spelled so that it
//! leaves the library. [`Folder::open`] gives an [`Object`]: bytes with an [`Identity`], which
//! knows whether the file was changed under us.
//!
//! Everything here blocks, except [`Object::slices`], [`Object::resident`] and
//! [`Object::changed`]: call the rest from a thread that may wait.
//!
//! [`cache`] keeps what was fetched from elsewhere; it knows nothing of folders.
//!
//! What is *not* here: no HTTP, no media; outside of the cache, no async.

mod arena;
pub mod cache;
mod disk;
mod error;
mod folder;
mod key;
mod map;
mod meter;
mod object;
mod residence;

pub use arena::{Arena, Kept};
pub use disk::{DiskCache, DiskCounts};
pub use error::Error;
pub use folder::{Entry, Folder};
pub use key::{BadKey, Key};
pub use meter::{Meter, Reason};
pub use object::{Identity, Object};
