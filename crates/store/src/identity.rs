//! Which state of an object.

use rustix::fs::Stat;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What tells one state of an object from another, as far as the storage can. What it does not
/// tell is 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Length in bytes.
    pub len: u64,
    /// When its bytes were last changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When anything about it was last changed, in nanoseconds since 1970; no program can set it.
    pub ctime_ns: i64,
    /// Which file it is: device and inode.
    pub inode: (u64, u64),
    /// Hash of the entity tag; 0 for files and where the storage has none. The same in every
    /// process.
    pub tag: u64,
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity {
            len: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: nanos(stat.st_mtime, stat.st_mtime_nsec as i64),
            ctime_ns: nanos(stat.st_ctime, stat.st_ctime_nsec as i64),
            inode: (stat.st_dev, stat.st_ino),
            tag: 0,
        }
    }

    /// When the bytes were last changed; never before 1970.
    pub fn modified(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(u64::try_from(self.mtime_ns).unwrap_or(0))
    }
}

fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}
