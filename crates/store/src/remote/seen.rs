//! What the storage says an object is.

use crate::Identity;
use object_store::{GetOptions, ObjectMeta};
use std::hash::{DefaultHasher, Hash, Hasher};

/// An object's state, as an answer said.
#[derive(Debug, Clone)]
pub(crate) struct Seen(ObjectMeta);

impl Seen {
    pub(super) fn new(meta: ObjectMeta) -> Seen {
        Seen(meta)
    }

    /// Bytes of the whole object.
    pub(super) fn len(&self) -> u64 {
        self.0.size
    }

    /// What can be compared with other looks: listings tell times more finely than answers do, so
    /// only whole seconds count.
    pub(super) fn identity(&self) -> Identity {
        let tag = self.0.e_tag.as_deref().map_or(0, |tag| {
            let mut hasher = DefaultHasher::new();
            tag.trim_matches('"').hash(&mut hasher);
            hasher.finish()
        });
        Identity {
            len: self.0.size,
            mtime_ns: self
                .0
                .last_modified
                .timestamp()
                .saturating_mul(1_000_000_000),
            ctime_ns: 0,
            inode: (0, 0),
            tag,
        }
    }

    /// Holds a request to this state, as far as the storage can.
    pub(super) fn hold(&self, options: &mut GetOptions) {
        match self.strong() {
            Some(tag) => options.if_match = Some(tag.to_owned()),
            None if self.is_dated() => {
                options.if_unmodified_since = Some(self.0.last_modified);
            }
            None => {}
        }
    }

    /// Whether a second answer can be told to be of the same state: else the rest of a broken
    /// answer cannot be asked for.
    pub(super) fn is_provable(&self) -> bool {
        self.strong().is_some() || self.is_dated()
    }

    /// A tag that stands for the same bytes (RFC 9110 section 8.8.1).
    fn strong(&self) -> Option<&str> {
        self.0.e_tag.as_deref().filter(|tag| !tag.starts_with("W/"))
    }

    fn is_dated(&self) -> bool {
        self.0.last_modified.timestamp() != 0
    }
}
