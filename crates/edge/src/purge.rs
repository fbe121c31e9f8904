//! Forgetting what is kept, by URL, by prefix or by surrogate key.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use crate::Edge;
use crate::entry::Entry;
use crate::fetch::Landed;
use crate::key::Key;
use crate::object::Object;

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
        let target = key.primary();
        match self {
            What::Url(url) => target == url,
            What::Prefix(prefix) => target.starts_with(prefix.as_str()),
            What::Tag(tag) => object.is_some_and(|object| object.tags.iter().any(|t| **t == **tag)),
        }
    }
}

/// The key itself, or a variant of it.
fn within(key: &Key, of: &str) -> bool {
    let rest = key.as_str().strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
}

impl What {
    fn names_filed(&self, key: &str, tags: &str) -> bool {
        let key = Key::from(key);
        match self {
            What::Tag(tag) => tags.split(' ').any(|other| other == tag),
            _ => self.names(&key, None),
        }
    }
}

impl Edge {
    /// Something may have changed at the origin (RFC 9111 section 4.4): what is kept for this key
    /// is asked for again, and what is being fetched is not kept.
    pub fn invalidate(&self, key: &str) {
        self.flights.purge(|other, _| within(other, key));
        let mut keys = vec![Key::from(key)];
        if self.memory.get(key).is_none() && self.disk.has(key) {
            // Its variants, if there are some, are known by their keys alone.
            self.disk.purge(|other, _| within(&Key::from(other), key));
        }
        if let Some(Entry::Varies(varies)) = self.memory.get(key) {
            keys.extend(varies.variants());
        }
        for key in keys {
            match self.memory.get(&key) {
                Some(Entry::Object(object)) => {
                    self.forget(&object);
                    self.take(&key);
                }
                Some(Entry::Varies(_)) | None => self.take(&key),
                Some(Entry::Block(_) | Entry::Apart { .. }) => {}
            }
        }
    }

    /// Forgets (`soft`: asks the origin before it is used again, and may stand in if that fails).
    /// What is being fetched is delivered, but not kept. Returns how many objects and fetches
    /// were meant.
    pub fn purge(&self, what: &What, soft: bool) -> usize {
        // Fetches first: one that ends meanwhile looks again after it has kept its object.
        let flying = self.flights.purge(|key, landed| {
            match landed {
                Some(Landed::Object(object, _) | Landed::Confirmed(object)) => {
                    what.names(key, Some(object))
                }
                // Its answer may have been made before the purge, and bear the tag.
                None if matches!(what, What::Tag(_)) => true,
                _ => what.names(key, None),
            }
        });
        let meant = Mutex::new(Vec::new());
        self.memory.retain(|key, entry| {
            let object = match entry {
                Entry::Object(object) => object,
                // Parts are of use only while their object says that they are still so.
                Entry::Block(_) => return soft || !what.names(key, None),
                Entry::Varies(_) | Entry::Apart { .. } => return true,
            };
            if !what.names(key, Some(object)) {
                return true;
            }
            object.purged.store(true, Relaxed);
            let mut meant = meant.lock().unwrap_or_else(PoisonError::into_inner);
            meant.push(object.clone());
            soft
        });
        let meant = meant.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Disk last: what left memory meanwhile is on its way there. There it goes also softly.
        let filed = self.disk.purge(|key, tags| what.names_filed(key, tags));
        if !soft {
            meant.iter().for_each(|object| self.forget(object));
        }
        flying + meant.len() + filed
    }
}
