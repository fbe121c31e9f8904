//! Keeping what was fetched, by the key under which it is found again.

use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use store::cache::Lead;

use super::{Ask, Landed};
use crate::Edge;
use crate::config::Settings;
use crate::entry::{Entry, Varies};
use crate::key::Key;
use crate::object::Object;

impl Edge {
    /// An object is about to land: those who want another variant of it are to see that it varies,
    /// and those who want this one are to find its fetch.
    pub(super) fn announce(&self, lead: &mut Lead<Key, Landed>, ask: &Ask, object: &Object) {
        if !object.vary.is_empty() && !lead.purged() {
            lead.also(&self.place(&ask.key, object, &ask.request));
        }
    }

    /// Keeps a whole object.
    ///
    /// What was purged meanwhile is not kept: a purge marks fetches first, and then looks at what is
    /// kept, so that here, after keeping, the mark is seen if that look came too early.
    pub(super) fn insert(&self, lead: &Lead<Key, Landed>, ask: &Ask, object: &Arc<Object>) {
        if lead.purged() {
            return;
        }
        let key = self.place(&ask.key, object, &ask.request);
        self.put(key.clone(), Entry::Object(object.clone()));
        if lead.purged() {
            self.take(&key);
        }
    }

    /// For a while nobody waits for anybody else's answer to this; nor looks whether another one may
    /// be kept, if that can only be known by asking for too much.
    pub(crate) fn apart(&self, key: &Key, wholly: bool) {
        let until = Instant::now() + Settings::APART;
        self.put(key.clone(), Entry::Apart { until, wholly });
    }

    /// The key that an object is kept by: its own, or its variant's.
    pub(super) fn place(&self, key: &Key, object: &Object, request: &HeaderMap) -> Key {
        if object.vary.is_empty() {
            return key.clone();
        }
        let mut names: Vec<_> = object.vary.iter().map(|(name, _)| name.clone()).collect();
        let varies = match self.memory.get(key.as_str()) {
            Some(Entry::Varies(varies)) if names.iter().all(|n| varies.names.contains(n)) => varies,
            // It varies by more than was known: variants kept so far are not found any more, and
            // make room in time.
            old => {
                if let Some(Entry::Varies(old)) = old {
                    names.extend(old.names.iter().cloned());
                    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
                    names.dedup();
                }
                let varies = Arc::new(Varies::new(names));
                self.put(key.clone(), Entry::Varies(varies.clone()));
                varies
            }
        };
        let variant = key.variant(&varies.names, request);
        if let Some(oldest) = varies.keep(&variant) {
            self.take(&oldest);
        }
        variant
    }
}
