//! What the memory tier holds for a key.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::header::HeaderName;
use store::cache::Weigh;

use crate::content::Content;
use crate::key::Key;
use crate::object::Object;

/// What an entry takes besides its text and body, about.
const ENTRY_BYTES: u64 = 1024;
/// What an object's head takes once more, prepared for hits, besides its text.
const PREPARED_BYTES: u64 = 768;
/// Variants of one URL that are kept; the oldest makes room.
const VARIANTS_MAX: usize = 64;

/// What the memory tier holds for a key.
#[derive(Debug, Clone)]
pub enum Entry {
    /// This.
    Object(Arc<Object>),
    /// A part of an object's body.
    Block(Arc<Content>),
    /// Look again, with the values of these headers.
    Varies(Arc<Varies>),
    /// What came last was not to be shared: until then, do not make others wait for each other.
    Apart {
        until: Instant,
        /// Nor ask whether another answer may be kept: that would cost too much.
        wholly: bool,
    },
}

/// Which headers a URL's answers vary by, and the variants that are kept.
#[derive(Debug)]
pub struct Varies {
    pub names: Vec<HeaderName>,
    kept: Mutex<VecDeque<Key>>,
}

impl Varies {
    pub fn new(names: Vec<HeaderName>) -> Varies {
        Varies {
            names,
            kept: Mutex::default(),
        }
    }

    /// Those that are kept.
    pub fn variants(&self) -> Vec<Key> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().cloned().collect()
    }

    /// Notes a variant; returns one that must go for it.
    pub fn keep(&self, variant: &Key) -> Option<Key> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other != variant);
        kept.push_back(variant.clone());
        if kept.len() > VARIANTS_MAX {
            kept.pop_front()
        } else {
            None
        }
    }
}

impl Weigh for Entry {
    fn bytes(&self) -> u64 {
        match self {
            Entry::Object(object) => {
                let heads = ENTRY_BYTES + PREPARED_BYTES + object.head_bytes();
                heads + object.content.memory_bytes()
            }
            Entry::Block(content) => ENTRY_BYTES + content.memory_bytes(),
            Entry::Varies(_) => ENTRY_BYTES + (VARIANTS_MAX * 200) as u64,
            Entry::Apart { .. } => ENTRY_BYTES,
        }
    }
}

impl Weigh for Key {
    fn bytes(&self) -> u64 {
        self.as_str().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header;

    #[test]
    fn variants_are_bounded_and_the_oldest_goes() {
        let varies = Varies::new(vec![header::ORIGIN]);
        let key = |n: usize| Key::from(format!("/a\norigin:{n}").as_str());
        for n in 0..VARIANTS_MAX {
            assert_eq!(varies.keep(&key(n)), None);
        }
        assert_eq!(varies.keep(&key(0)), None, "known already, and young again");
        assert_eq!(varies.keep(&key(999)), Some(key(1)));
    }
}
