//! Where bytes come from: the library, and what else its server manifests and index MP4s may name.

use crate::reference::{self, Prefix, Target};
use crate::title::is_media;
use std::sync::Arc;
use store::{Error, Identity, Key, Object, Reason, Store};

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

/// Opens a file of one store, as [`Stores::open`] does.
pub(crate) fn open(store: &Store, key: &Key, reason: Reason) -> Result<Object, Error> {
    match is_named_like_an_index(key.name()) {
        true => store.open_whole(key),
        false => store.open_for(key, reason),
    }
}

/// As `headwater index` names index MP4s, or as Unified's documentation does (`film-dref.mp4`). It
/// is but a guess at how much to read at once.
fn is_named_like_an_index(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let named = stem.ends_with(INDEX_STEM_END) || stem.to_ascii_lowercase().contains("dref");
    named && is_media(name)
}

/// What the names of index MP4s end in, before `.mp4`.
pub(crate) const INDEX_STEM_END: &str = "-index";

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

    /// Opens a file; one that is likely to be an index MP4, which is read to its end, with few
    /// requests. Blocks.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn open(&self, place: &Place) -> Result<Object, Error> {
        open(self.store(place)?, &place.key, Reason::Index)
    }

    /// Opens a server manifest. Blocks.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn open_manifest(&self, place: &Place) -> Result<Object, Error> {
        self.store(place)?.open_for(&place.key, Reason::Manifest)
    }

    /// A file that is said to be in this state, which nobody looks at before it is read.
    ///
    /// # Errors
    /// As [`Store::promise`].
    pub(crate) fn promise(&self, place: &Place, said: Identity) -> Result<Object, Error> {
        self.store(place)?.promise(&place.key, said)
    }

    /// Whether a file is had over a network.
    pub(crate) fn is_remote(&self, place: &Place) -> bool {
        self.store(place).is_ok_and(Store::is_remote)
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

#[cfg(test)]
mod tests {
    use super::is_named_like_an_index as like;

    #[test]
    fn names_of_index_mp4s() {
        assert!(like("film-index.mp4") && like("tos-Dref.mp4") && like("dref_video.mp4"));
        for other in ["film.mp4", "film-index.ism", "index.mp4", "film-index", ""] {
            assert!(!like(other), "{other}");
        }
    }
}
