//! Versions of remote objects, as responses and declarations describe them.

use crate::{Error, ObjectVersion};
use object_store::{GetOptions, ObjectMeta};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// `Last-Modified` is a strong validator if the response's `Date` is later by at least this time
/// (RFC 9110 section 8.8.2.2). No second change of the object can then have the same
/// `Last-Modified`. The servers of one storage may have different clocks, but the difference must
/// be less than this time.
const STRONG_DATE_MARGIN: Duration = Duration::from_secs(60);

/// The version of an object according to a response.
#[derive(Debug, Clone)]
pub(crate) struct ObservedVersion {
    meta: ObjectMeta,
    identity: ObjectVersion,
    /// Whether `Last-Modified` is a strong validator.
    has_strong_date: bool,
}

/// The version that all responses must match. It is the version that was opened. For a declared
/// object, it is the version of the first response.
#[derive(Debug)]
pub(crate) struct PinnedVersion {
    /// The length, and the entity tag if the declaration contains a tag.
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

    /// The observed version, or `None` before the first response.
    pub(super) fn observed_version(&self) -> Option<&ObservedVersion> {
        self.seen.get()
    }

    /// Checks that a response is of this version. The first response to a declared object
    /// determines the version.
    ///
    /// # Errors
    /// [`Error::OtherLength`] or [`Error::Replaced`] if the first response contradicts the
    /// declaration. [`Error::Changed`] if a later response has another version.
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

    /// Checks a version against the declaration. An unknown entity tag matches any tag.
    ///
    /// # Errors
    /// [`Error::OtherLength`] or [`Error::Replaced`].
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

    /// Returns the error for a range that the object does not contain. Either the object has
    /// changed, or it never had its declared length.
    pub(super) fn missing_range_error(&self) -> Error {
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
        let tag = meta.e_tag.as_deref().map_or(0, |tag| {
            let mut hasher = DefaultHasher::new();
            tag.trim_matches('"').hash(&mut hasher);
            hasher.finish()
        });
        // Uses whole seconds only, because listings report times more precisely than responses.
        let seconds = meta.last_modified.timestamp();
        let identity = ObjectVersion {
            len: meta.size,
            mtime_ns: seconds.saturating_mul(1_000_000_000),
            ctime_ns: 0,
            inode: (0, 0),
            tag,
            has_weak_tag: meta.e_tag.as_deref().is_some_and(is_weak_tag),
        };
        ObservedVersion {
            meta,
            identity,
            has_strong_date: false,
        }
    }

    /// Uses the response's `Date`, if there is one, to decide whether `Last-Modified` is a strong
    /// validator.
    pub(super) fn with_date(mut self, date: Option<SystemTime>) -> ObservedVersion {
        let modified = SystemTime::from(self.meta.last_modified);
        let age = date.and_then(|date| date.duration_since(modified).ok());
        self.has_strong_date =
            self.has_modification_time() && age.is_some_and(|age| age >= STRONG_DATE_MARGIN);
        self
    }

    /// Returns the fields of the version that can be compared.
    pub(super) fn comparable_version(&self) -> &ObjectVersion {
        &self.identity
    }

    /// Adds a precondition if the version has a strong entity tag or a modification time. The
    /// storage then sends the object only if the object still has this version.
    pub(super) fn add_preconditions(&self, options: &mut GetOptions) {
        match self.strong_tag() {
            Some(tag) => options.if_match = Some(tag.to_owned()),
            None if self.has_modification_time() => {
                options.if_unmodified_since = Some(self.meta.last_modified);
            }
            None => {}
        }
    }

    /// Returns whether a strong validator can prove that a second response has the same version.
    /// Without such a validator, an interrupted response cannot be resumed.
    pub(super) fn has_strong_validator(&self) -> bool {
        self.strong_tag().is_some() || self.has_strong_date
    }

    /// Returns the entity tag if it is strong (RFC 9110 section 8.8.1).
    fn strong_tag(&self) -> Option<&str> {
        self.meta.e_tag.as_deref().filter(|tag| !is_weak_tag(tag))
    }

    fn has_modification_time(&self) -> bool {
        self.meta.last_modified.timestamp() != 0
    }
}

/// Returns whether an entity tag is weak (RFC 9110 section 8.8.1).
fn is_weak_tag(tag: &str) -> bool {
    tag.starts_with("W/")
}
