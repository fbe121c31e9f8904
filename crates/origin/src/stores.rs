//! Where bytes come from: the library, and what else its server manifests and index MP4s may name.

use crate::reference::{self, Prefix, Target};
use std::sync::Arc;
use store::{Error, Identity, Key, Object, Store};

/// The library, and stores behind allowed addresses.
pub(crate) struct Stores {
    /// The library is the first.
    stores: Vec<Arc<Store>>,
    /// What leads to each of the others.
    prefixes: Vec<Prefix>,
}

/// Something in one of the stores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// Which store; 0 is the library.
    store: usize,
    /// Its name there.
    pub(crate) key: Key,
}

impl Place {
    /// Something in the library.
    pub(crate) fn library(key: &Key) -> Place {
        Place {
            store: 0,
            key: key.clone(),
        }
    }
}

impl Stores {
    /// A library, and what absolute URLs may name beside it.
    pub(crate) fn new(library: Arc<Store>, elsewhere: Vec<(Prefix, Arc<Store>)>) -> Stores {
        let (prefixes, others): (Vec<_>, Vec<_>) = elsewhere.into_iter().unzip();
        let stores = std::iter::once(library).chain(others).collect();
        Stores { stores, prefixes }
    }

    /// The library.
    pub(crate) fn films(&self) -> &Arc<Store> {
        // There is always one.
        &self.stores[0]
    }

    /// What `name` means in the file at `holder`.
    ///
    /// # Errors
    /// Why it is not followed.
    pub(crate) fn resolve(&self, holder: &Place, name: &str) -> Result<Place, reference::Bad> {
        let (store, key) = match reference::resolve(&holder.key, name, &self.prefixes)? {
            Target::Here(key) => (holder.store, key),
            Target::Below(n, key) => (n + 1, key),
        };
        Ok(Place { store, key })
    }

    /// Opens a file. Blocks.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn open(&self, place: &Place) -> Result<Object, Error> {
        self.store(place)?.open(&place.key)
    }

    /// What is at a place now. Blocks.
    ///
    /// # Errors
    /// As [`Store::look`].
    pub(crate) fn look(&self, place: &Place) -> Result<Option<Identity>, Error> {
        self.store(place)?.look(&place.key)
    }

    /// What to call a place beyond this process: no two libraries share it.
    pub(crate) fn name(&self, place: &Place) -> String {
        let store = self.store(place).map(Store::place);
        format!("{}/{}", store.unwrap_or_default(), place.key)
    }

    fn store(&self, place: &Place) -> Result<&Store, Error> {
        let store = self.stores.get(place.store);
        store.map(|store| &**store).ok_or(Error::NotFound)
    }
}
