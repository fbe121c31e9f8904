//! What the storage says an object is.

use crate::{Error, Identity};
use object_store::{GetOptions, ObjectMeta};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

/// An object's state, as an answer said.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    meta: ObjectMeta,
    identity: Identity,
}

/// The state that all answers must be of: that in which an object was opened, or, of one that
/// nobody looked at yet, that of the first answer.
#[derive(Debug)]
pub(crate) struct State {
    /// Its length, and its tag where that was said.
    said: Identity,
    seen: OnceLock<Seen>,
}

impl State {
    /// Of an object that was opened.
    pub(super) fn of(seen: Seen) -> State {
        State {
            said: seen.identity,
            seen: OnceLock::from(seen),
        }
    }

    /// Of an object of which this is said.
    pub(super) fn promised(said: Identity) -> State {
        State {
            said,
            seen: OnceLock::new(),
        }
    }

    /// Bytes of the whole object.
    pub(super) fn len(&self) -> u64 {
        self.said.len
    }

    /// What it is, once that is known.
    pub(super) fn seen(&self) -> Option<&Seen> {
        self.seen.get()
    }

    /// Whether an answer is of this state. The first one says which it is.
    ///
    /// # Errors
    /// [`Error::Changed`]; [`Error::OtherLength`] or [`Error::Replaced`] where the first shows that
    /// it is not what was said.
    pub(super) fn admit(&self, seen: &Seen) -> Result<(), Error> {
        if self.seen.get().is_none() {
            self.may_be(&seen.identity)?;
        }
        let first = self.seen.get_or_init(|| seen.clone());
        match first.identity == seen.identity {
            true => Ok(()),
            false => Err(Error::Changed),
        }
    }

    /// Whether what was said of the object fits this. What is not known fits.
    ///
    /// # Errors
    /// [`Error::OtherLength`], [`Error::Replaced`].
    pub(super) fn may_be(&self, now: &Identity) -> Result<(), Error> {
        let tags = [self.said.tag, now.tag];
        match () {
            () if self.said.len != now.len => Err(Error::OtherLength {
                then: self.said.len,
            }),
            () if tags[0] != tags[1] && !tags.contains(&0) => Err(Error::Replaced),
            () => Ok(()),
        }
    }

    /// That there are no such bytes: it changed, or never was as long as was said.
    pub(super) fn unlike(&self) -> Error {
        match self.seen.get() {
            Some(_) => Error::Changed,
            None => Error::OtherLength {
                then: self.said.len,
            },
        }
    }
}

impl Seen {
    pub(super) fn new(meta: ObjectMeta) -> Seen {
        // Listings tell times more finely than answers do, so only whole seconds count.
        let tag = meta.e_tag.as_deref().map_or(0, |tag| {
            let mut hasher = DefaultHasher::new();
            tag.trim_matches('"').hash(&mut hasher);
            hasher.finish()
        });
        let seconds = meta.last_modified.timestamp();
        let identity = Identity {
            len: meta.size,
            mtime_ns: seconds.saturating_mul(1_000_000_000),
            ctime_ns: 0,
            inode: (0, 0),
            tag,
        };
        Seen { meta, identity }
    }

    /// What can be compared with other looks.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Holds a request to this state, as far as the storage can.
    pub(super) fn hold(&self, options: &mut GetOptions) {
        match self.strong() {
            Some(tag) => options.if_match = Some(tag.to_owned()),
            None if self.is_dated() => {
                options.if_unmodified_since = Some(self.meta.last_modified);
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
        self.meta
            .e_tag
            .as_deref()
            .filter(|tag| !tag.starts_with("W/"))
    }

    fn is_dated(&self) -> bool {
        self.meta.last_modified.timestamp() != 0
    }
}
