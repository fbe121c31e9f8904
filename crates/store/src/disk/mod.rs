//! Stores small values on the local disk, by name and version.
//!
//! Each value is stored in its own file with its name, its version and a checksum. The name and the
//! checksum reveal a truncated, damaged or misplaced file. Such a file is never used, even after a
//! crash of the process or the machine. A file is written under a temporary name and then renamed.
//! The total size of the files is limited. A sweep removes abandoned partial files, including the
//! partial files of other processes. If the total size exceeds the limit, the sweep also removes
//! the least recently used values. Several processes may share a folder. Each process sweeps the
//! folder when its own estimate of the total size exceeds the limit.
//!
//! [`tier`] stores large objects, which the kernel sends directly from their files.

mod record;
#[cfg(test)]
mod tests;
pub mod tier;

use record::{CacheRecord, RecordError};
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// A disk cache of values, by name and version.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    bytes_max: u64,
    /// This process's estimate of the total size of all files. Each sweep sets the estimate to the
    /// exact size.
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    broken: AtomicU64,
    written: AtomicU64,
    /// A random number in the name of each partial file. This number distinguishes the files of
    /// this process from the files of other processes. A process ID is not enough, because
    /// processes in different containers may have the same ID.
    unique_part: u64,
}

/// Numbers of lookups since the cache was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskLookupCounts {
    /// Lookups that found the value.
    pub hits: u64,
    /// Lookups that found no usable value of the requested version.
    pub misses: u64,
    /// Damaged files that a lookup found and removed. Such a lookup also counts as a miss.
    pub broken: u64,
}

const SUFFIX: &str = "kept";
const PART: &str = "part";
/// Age above which a partial file is considered abandoned.
const PART_AGE_MAX: Duration = Duration::from_secs(600);
/// Minimum interval between two updates of a value's last use.
const USED_EVERY: Duration = Duration::from_secs(60);
/// If a sweep must remove values, it reduces the total size to this many tenths of the limit.
const SWEPT_TENTHS: u64 = 9;

impl DiskCache {
    /// Opens the cache in `folder`. If the folder does not exist, creates it with access for this
    /// user only.
    ///
    /// # Errors
    /// If the folder cannot be created or listed.
    pub fn open_disk_cache(folder: &Path, bytes_max: u64) -> io::Result<DiskCache> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let cache = DiskCache {
            folder: folder.to_owned(),
            bytes_max,
            bytes: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            written: AtomicU64::new(0),
            unique_part: RandomState::new().build_hasher().finish(),
        };
        cache.evict_files()?;
        Ok(cache)
    }

    /// The estimated total size of all files, in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns the numbers of lookups so far.
    pub fn counts(&self) -> DiskLookupCounts {
        DiskLookupCounts {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            broken: self.broken.load(Relaxed),
        }
    }

    /// Returns the value of `name` in this `version`, if it is stored and intact. Blocks.
    pub fn get(&self, name: &str, version: &[u8]) -> Option<Vec<u8>> {
        let found = self.read_value(name, version);
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Relaxed);
        found
    }

    fn read_value(&self, name: &str, version: &[u8]) -> Option<Vec<u8>> {
        let path = self.path_of(name);
        let file = File::open(&path).ok()?;
        let meta = file.metadata().ok()?;
        if meta.len() > self.bytes_max {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).ok()? + 1);
        (&file).take(self.bytes_max).read_to_end(&mut bytes).ok()?;
        match CacheRecord::decode_value(&bytes, name, version) {
            Ok(value) => {
                let now = SystemTime::now();
                let used = meta
                    .modified()
                    .ok()
                    .and_then(|then| now.duration_since(then).ok());
                if used.is_some_and(|ago| ago > USED_EVERY) {
                    // Ignores the error, because the last use affects only the order of eviction.
                    let _ = file.set_modified(now);
                }
                Some(value.to_vec())
            }
            Err(RecordError::Other) => None,
            Err(RecordError::Broken) => {
                self.broken.fetch_add(1, Relaxed);
                self.remove_file(&path, meta.len());
                None
            }
        }
    }

    /// Stores `value`, and replaces any other version of `name`. A value larger than the whole
    /// cache is not stored. Blocks.
    ///
    /// # Errors
    /// If the value cannot be written. The cache then still contains the previous value. An error
    /// is also returned if a sweep is needed and cannot list the folder.
    pub fn put(&self, name: &str, version: &[u8], value: &[u8]) -> io::Result<()> {
        let record = CacheRecord {
            name,
            version,
            value,
        };
        let bytes = record.encode();
        let len = bytes.len() as u64;
        if len > self.bytes_max {
            return Ok(());
        }
        let path = self.path_of(name);
        let number = self.written.fetch_add(1, Relaxed);
        let part = path.with_extension(format!("{:x}-{number}.{PART}", self.unique_part));
        let before = fs::metadata(&path).map_or(0, |meta| meta.len());
        let written = write_file(&part, &bytes).and_then(|()| fs::rename(&part, &path));
        if let Err(error) = written {
            // Ignores the error, because the file may not exist.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        self.bytes.fetch_add(len, Relaxed);
        self.subtract_bytes(before);
        if self.stored_bytes() > self.bytes_max {
            self.evict_files()?;
        }
        Ok(())
    }

    /// Removes a value.
    pub fn remove_value(&self, name: &str) {
        let path = self.path_of(name);
        let len = fs::metadata(&path).map_or(0, |meta| meta.len());
        self.remove_file(&path, len);
    }

    fn remove_file(&self, path: &Path, len: u64) {
        if fs::remove_file(path).is_ok() {
            self.subtract_bytes(len);
        }
    }

    fn subtract_bytes(&self, bytes: u64) {
        let less = |now: u64| Some(now.saturating_sub(bytes));
        // Ignores the result, because the closure always returns a value and the update cannot
        // fail.
        let _ = self.bytes.fetch_update(Relaxed, Relaxed, less);
    }

    fn path_of(&self, name: &str) -> PathBuf {
        let hash = record::compute_checksum(name.as_bytes());
        self.folder.join(format!("{hash:016x}.{SUFFIX}"))
    }

    /// Determines the total size of the files. Removes abandoned partial files and, if the size is
    /// over the limit, the least recently used values.
    fn evict_files(&self) -> io::Result<()> {
        let now = SystemTime::now();
        let mut files = Vec::new();
        let mut bytes = 0;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (path, Ok(meta)) = (entry.path(), entry.metadata()) else {
                continue;
            };
            let suffix = path.extension().and_then(|suffix| suffix.to_str());
            let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match suffix {
                Some(SUFFIX) if meta.is_file() => {
                    bytes += meta.len();
                    files.push((used, meta.len(), path));
                }
                Some(PART) if now.duration_since(used).is_ok_and(|ago| ago > PART_AGE_MAX) => {
                    // Ignores the error, because another process may have removed the file.
                    let _ = fs::remove_file(&path);
                }
                // Does not touch files of other programs.
                _ => {}
            }
        }
        if bytes > self.bytes_max {
            files.sort();
            let room = self.bytes_max / 10 * SWEPT_TENTHS;
            for (_, len, path) in files {
                if bytes <= room {
                    break;
                }
                if fs::remove_file(&path).is_ok() {
                    bytes -= len;
                }
            }
        }
        self.bytes.store(bytes, Relaxed);
        Ok(())
    }
}

/// Writes a file without `fsync`. If the machine crashes before all bytes are on disk, the checksum
/// reveals the damage.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create_new(path)?.write_all(bytes)
}
