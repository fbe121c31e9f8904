//! The stores from which media is read. These are the library and the stores to which server
//! manifests and index MP4s may refer.

use crate::title::file_names::is_likely_index_mp4;
use crate::title::references::{self, AllowedUrlPrefix, ReferenceTarget};
use std::sync::Arc;
use store::{Error, Key, Object, ObjectVersion, RequestReason, Store};

/// The library and the stores of allowed URL prefixes.
pub(crate) struct MediaStores {
    /// The first store is the library.
    stores: Vec<Arc<Store>>,
    /// URL prefixes of the stores after the library, in the same order.
    prefixes: Vec<AllowedUrlPrefix>,
}

/// Location of a file: a store and a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileLocation {
    /// Index of the store; 0 is the library.
    store_index: usize,
    /// Key within the store.
    pub(crate) key: Key,
}

impl FileLocation {
    /// Returns a location in the library.
    pub(crate) fn locate_in_library(key: &Key) -> FileLocation {
        FileLocation {
            store_index: 0,
            key: key.clone(),
        }
    }

    /// Returns the path in the library; `None` for files of other stores.
    pub(crate) fn library_key(&self) -> Option<&Key> {
        (self.store_index == 0).then_some(&self.key)
    }
}

/// Opens a file of one store, as [`MediaStores::open_file`] does.
pub(crate) fn open_in_store(
    store: &Store,
    key: &Key,
    reason: RequestReason,
) -> Result<Object, Error> {
    match is_likely_index_mp4(key.name()) {
        true => store.open_whole(key),
        false => store.open_for(key, reason),
    }
}

impl MediaStores {
    /// Creates the set of stores from the library and from the allowed URL prefixes with their
    /// stores.
    pub(crate) fn new(
        library: Arc<Store>,
        elsewhere: Vec<(AllowedUrlPrefix, Arc<Store>)>,
    ) -> MediaStores {
        let (prefixes, others): (Vec<_>, Vec<_>) = elsewhere.into_iter().unzip();
        let stores = std::iter::once(library).chain(others).collect();
        MediaStores { stores, prefixes }
    }

    /// Returns the library.
    pub(crate) fn library(&self) -> &Arc<Store> {
        // The constructor always stores the library as the first store.
        &self.stores[0]
    }

    /// Returns all stores: the library and the stores that the setting `media-from` allows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Store> {
        self.stores.iter().map(|store| &**store)
    }

    /// Resolves a reference in the file at `holder`.
    ///
    /// # Errors
    /// The reason why the reference is not followed.
    pub(crate) fn resolve_reference(
        &self,
        holder: &FileLocation,
        name: &str,
    ) -> Result<FileLocation, references::ReferenceError> {
        let (store, key) = match references::resolve_reference(&holder.key, name, &self.prefixes)? {
            ReferenceTarget::SameStore(key) => (holder.store_index, key),
            ReferenceTarget::BelowPrefix(n, key) => (n + 1, key),
        };
        Ok(FileLocation {
            store_index: store,
            key,
        })
    }

    /// Opens a file. A file that is probably an index MP4 is read completely, with few requests.
    /// Blocks.
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub(crate) fn open_file(&self, place: &FileLocation) -> Result<Object, Error> {
        open_in_store(self.store_of_file(place)?, &place.key, RequestReason::Index)
    }

    /// Opens a server manifest. Blocks.
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub(crate) fn open_server_manifest(&self, place: &FileLocation) -> Result<Object, Error> {
        self.store_of_file(place)?
            .open_for(&place.key, RequestReason::Manifest)
    }

    /// Opens a file in a declared version without a look-up. The first read verifies the version.
    ///
    /// # Errors
    /// The errors of [`Store::open_declared_version`].
    pub(crate) fn open_declared_version(
        &self,
        place: &FileLocation,
        version: ObjectVersion,
    ) -> Result<Object, Error> {
        self.store_of_file(place)?
            .open_declared_version(&place.key, version)
    }

    /// Returns whether a file is read over a network.
    pub(crate) fn is_remote_file(&self, place: &FileLocation) -> bool {
        self.store_of_file(place).is_ok_and(Store::is_remote)
    }

    /// Returns the current version of a file. Blocks.
    ///
    /// # Errors
    /// The errors of [`Store::look_up`].
    pub(crate) fn stat(&self, place: &FileLocation) -> Result<Option<ObjectVersion>, Error> {
        self.store_of_file(place)?.look_up(&place.key)
    }

    /// Returns a name of the file that is unique across libraries and processes.
    pub(crate) fn global_file_name(&self, place: &FileLocation) -> String {
        let store = self.store_of_file(place).map(Store::location);
        format!("{}/{}", store.unwrap_or_default(), place.key)
    }

    fn store_of_file(&self, place: &FileLocation) -> Result<&Store, Error> {
        let store = self.stores.get(place.store_index);
        store.map(|store| &**store).ok_or(Error::NotFound)
    }
}
