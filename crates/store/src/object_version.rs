//! The version of an object.

use rustix::fs::Stat;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Distinguishes versions of an object, as far as the storage allows. Unknown fields are 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectVersion {
    /// Length in bytes.
    pub len: u64,
    /// Last modification of the bytes, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of the file or its metadata, in nanoseconds since 1970. Programs cannot set this
    /// time.
    pub ctime_ns: i64,
    /// Device and inode of a file.
    pub inode: (u64, u64),
    /// Hash of the entity tag. The hash is the same in every process. It is 0 for files and for
    /// objects without an entity tag.
    pub tag: u64,
    /// Whether the entity tag is weak (RFC 9110 section 8.8.1). Versions with different bytes may
    /// have the same weak tag.
    pub has_weak_tag: bool,
}

impl ObjectVersion {
    pub(crate) fn from_stat(stat: &Stat) -> ObjectVersion {
        ObjectVersion {
            len: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: to_nanos(stat.st_mtime, stat.st_mtime_nsec as i64),
            ctime_ns: to_nanos(stat.st_ctime, stat.st_ctime_nsec as i64),
            inode: (stat.st_dev, stat.st_ino),
            tag: 0,
            has_weak_tag: false,
        }
    }

    /// Time of the last modification. `None` if the storage does not report it, or if it is not
    /// after the start of 1970.
    pub fn modified(&self) -> Option<SystemTime> {
        let since_1970 = u64::try_from(self.mtime_ns).ok().filter(|ns| *ns > 0)?;
        Some(UNIX_EPOCH + Duration::from_nanos(since_1970))
    }
}

fn to_nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}
