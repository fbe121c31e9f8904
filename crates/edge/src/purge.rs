//! Forgetting what is kept, by URL, by prefix or by surrogate key.

use std::sync::atomic::Ordering::Relaxed;

use crate::Edge;
use crate::fetch::Landed;
use crate::key::Key;
use crate::object::{Entry, Object};

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// This target, with all its variants.
    Url(String),
    /// All targets that begin so.
    Prefix(String),
    /// All whose `Surrogate-Key` names this.
    Tag(String),
}

impl What {
    fn names(&self, key: &Key, object: Option<&Object>) -> bool {
        let target = key.as_str().split('\n').next().unwrap_or_default();
        match self {
            What::Url(url) => target == url,
            What::Prefix(prefix) => target.starts_with(prefix.as_str()),
            What::Tag(tag) => object.is_some_and(|object| object.tags.iter().any(|t| **t == **tag)),
        }
    }
}

impl Edge {
    /// Forgets (`soft`: asks the origin before it is used again, and may stand in if that fails).
    /// What is being fetched is delivered, but not kept. Returns how many objects and fetches
    /// were meant.
    pub fn purge(&self, what: &What, soft: bool) -> usize {
        // Fetches first: one that ends meanwhile looks again after it has kept its object.
        let flying = self.flights.purge(|key, landed| {
            let object = match landed {
                Some(Landed::Object(object, _) | Landed::Confirmed(object)) => Some(&**object),
                _ => None,
            };
            what.names(key, object)
        });
        let count = std::sync::atomic::AtomicUsize::new(flying);
        self.memory.retain(|key, entry| {
            let Entry::Object(object) = entry else {
                return true;
            };
            let meant = what.names(key, Some(object));
            if meant {
                count.fetch_add(1, Relaxed);
                object.purged.store(true, Relaxed);
            }
            soft || !meant
        });
        count.into_inner()
    }
}
