//! Names of the files that contain objects.

use twox_hash::XxHash3_64;

pub(super) const SUFFIX: &str = "object";

pub(super) fn hash_key(key: &str) -> u64 {
    XxHash3_64::oneshot(key.as_bytes())
}

pub(super) fn file_name(hash: u64) -> String {
    format!("{hash:016x}.{SUFFIX}")
}
