//! Versions of remote objects, as responses and declarations describe them.

use crate::{Error, ObjectVersion};
use object_store::{GetOptions, ObjectMeta};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// If a response's `Date` is at least this much later than `Last-Modified`, no second change of the
/// object can have the same `Last-Modified` (RFC 9110 section 8.8.2.2). The clocks of one storage
/// may differ, but by less than this.
const STRONG_DATE_MARGIN: Duration = Duration::from_secs(60);

/// The version of an object according to a response.
#[derive(Debug, Clone)]
pub(crate) struct ObservedVersion {
    meta: ObjectMeta,
    identity: ObjectVersion,
    /// Whether `Last-Modified` is a strong validator.
    has_strong_date: bool,
}

/// The version that all responses must match: the opened one, or that of the first response to a declared
/// object.
#[derive(Debug)]
pub(crate) struct PinnedVersion {
    /// The length, and the tag if one was declared.
    declared: ObjectVersion,
    seen: OnceLock<ObservedVersion>,
}

impl PinnedVersion {
    /// Pins the version of an opened object.
    pub(super) fn from_observed(seen: ObservedVersion) -> PinnedVersion {
        PinnedVersion {
            declared: seen.identity,
            seen: OnceLock::from(seen),
        }
    }

    /// Pins a declared version.
    pub(super) fn from_declared(declared: ObjectVersion) -> PinnedVersion {
        PinnedVersion {
            declared,
            seen: OnceLock::new(),
        }
    }

    /// Length of the object in bytes.
    pub(super) fn len(&self) -> u64 {
        self.declared.len
    }

    /// The observed version, once there is one.
    pub(super) fn seen(&self) -> Option<&ObservedVersion> {
        self.seen.get()
    }

    /// Checks that a response is of this version. The first response to a declared object
    /// determines the version.
    ///
    /// # Errors
    /// [`Error::Changed`]; [`Error::OtherLength`] or [`Error::Replaced`] where the first response contradicts the
    /// declaration.
    pub(super) fn check_response(&self, seen: &ObservedVersion) -> Result<(), Error> {
        if self.seen.get().is_none() {
            self.check_declared(&seen.identity)?;
        }
        let first = self.seen.get_or_init(|| seen.clone());
        match first.identity == seen.identity {
            true => Ok(()),
            false => Err(Error::Changed),
        }
    }

    /// Checks a version against the declaration. Unknown fields match.
    ///
    /// # Errors
    /// [`Error::OtherLength`], [`Error::Replaced`].
    pub(super) fn check_declared(&self, now: &ObjectVersion) -> Result<(), Error> {
        let tags = [self.declared.tag, now.tag];
        match () {
            () if self.declared.len != now.len => Err(Error::OtherLength {
                then: self.declared.len,
            }),
            () if tags[0] != tags[1] && !tags.contains(&0) => Err(Error::Replaced),
            () => Ok(()),
        }
    }

    /// Returns the error for missing bytes: the object changed, or never had its declared length.
    pub(super) fn mismatch_error(&self) -> Error {
        match self.seen.get() {
            Some(_) => Error::Changed,
            None => Error::OtherLength {
                then: self.declared.len,
            },
        }
    }
}

impl ObservedVersion {
    pub(super) fn new(meta: ObjectMeta) -> ObservedVersion {
        // Only whole seconds count: listings report times more precisely than responses.
        let tag = meta.e_tag.as_deref().map_or(0, |tag| {
            let mut hasher = DefaultHasher::new();
            tag.trim_matches('"').hash(&mut hasher);
            hasher.finish()
        });
        let seconds = meta.last_modified.timestamp();
        let identity = ObjectVersion {
            len: meta.size,
            mtime_ns: seconds.saturating_mul(1_000_000_000),
            ctime_ns: 0,
            inode: (0, 0),
            tag,
        };
        ObservedVersion {
            meta,
            identity,
            has_strong_date: false,
        }
    }

    /// Adds the time at which the storage generated the response, if it declared one.
    pub(super) fn with_date(mut self, date: Option<SystemTime>) -> ObservedVersion {
        let modified = SystemTime::from(self.meta.last_modified);
        let age = date.and_then(|date| date.duration_since(modified).ok());
        self.has_strong_date = self.is_dated() && age.is_some_and(|age| age >= STRONG_DATE_MARGIN);
        self
    }

    /// Returns the fields of the version that can be compared.
    pub(super) fn identity(&self) -> &ObjectVersion {
        &self.identity
    }

    /// Adds preconditions so that the storage responds for this version only, as far as it can.
    pub(super) fn add_preconditions(&self, options: &mut GetOptions) {
        match self.strong_tag() {
            Some(tag) => options.if_match = Some(tag.to_owned()),
            None if self.is_dated() => {
                options.if_unmodified_since = Some(self.meta.last_modified);
            }
            None => {}
        }
    }

    /// Returns whether a second response can be proved to be of the same version, by a strong validator.
    /// Otherwise an interrupted response cannot be resumed.
    pub(super) fn is_provable(&self) -> bool {
        self.strong_tag().is_some() || self.has_strong_date
    }

    /// Returns the entity tag if it is strong (RFC 9110 section 8.8.1).
    fn strong_tag(&self) -> Option<&str> {
        self.meta
            .e_tag
            .as_deref()
            .filter(|tag| !tag.starts_with("W/"))
    }

    fn is_dated(&self) -> bool {
        self.meta.last_modified.timestamp() != 0
    }
}
