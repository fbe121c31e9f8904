//! Small values on the local disk, by name and version.
//!
//! Each value is a file that describes itself completely and ends in a checksum. A truncated,
//! damaged or misplaced file is therefore never used, at whatever moment the process or the machine
//! stopped. A file is written under another name and then renamed. The folder is bounded in bytes.
//! A sweep removes abandoned partial files of all processes, and then the least recently used
//! values until there is room. Several processes may share a folder. Each process sweeps it when
//! its own estimate of the size exceeds the bound.
//!
//! [`tier`] stores large objects, which the kernel sends from their files.

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

/// Values on disk, by name and version.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    bytes_max: u64,
    /// This process's estimate of the bytes of all files; exact after each sweep.
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    broken: AtomicU64,
    written: AtomicU64,
    /// Distinguishes our partial files from those of others. A process number is not enough,
    /// because processes in containers that share a folder may have the same number.
    unique_part: u64,
}

/// Counts of requests to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskCounts {
    /// Values that were found.
    pub hits: u64,
    /// Values that were missing or of another version.
    pub misses: u64,
    /// Damaged files, which were removed. They count as misses, too.
    pub broken: u64,
}

const SUFFIX: &str = "kept";
const PART: &str = "part";
/// The age from which a partial file counts as abandoned.
const PART_AGE_MAX: Duration = Duration::from_secs(600);
/// A value's last use is recorded at most this often.
const USED_EVERY: Duration = Duration::from_secs(60);
/// Fill level after a sweep, in tenths.
const SWEPT_TENTHS: u64 = 9;

impl DiskCache {
    /// Opens a folder. Creates it, readable for this user only, if it does not exist.
    ///
    /// # Errors
    /// When it cannot be created or listed.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<DiskCache> {
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

    /// The estimated bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The counts so far.
    pub fn counts(&self) -> DiskCounts {
        DiskCounts {
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
        match CacheRecord::read(&bytes, name, version) {
            Ok(value) => {
                let now = SystemTime::now();
                let used = meta
                    .modified()
                    .ok()
                    .and_then(|then| now.duration_since(then).ok());
                if used.is_some_and(|ago| ago > USED_EVERY) {
                    // Ignores the error: only the order of eviction is lost.
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

    /// Stores `value` in place of any other version. Blocks. A value larger than the whole cache is not stored.
    ///
    /// # Errors
    /// When it cannot be written; the previous value then stays.
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
            // The file may not exist.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        self.bytes.fetch_add(len, Relaxed);
        self.subtract_bytes(before);
        if self.bytes() > self.bytes_max {
            self.evict_files()?;
        }
        Ok(())
    }

    /// Removes a value.
    pub fn forget(&self, name: &str) {
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
        // The closure always returns a value.
        let _ = self.bytes.fetch_update(Relaxed, Relaxed, less);
    }

    fn path_of(&self, name: &str) -> PathBuf {
        let hash = record::checksum_bytes(name.as_bytes());
        self.folder.join(format!("{hash:016x}.{SUFFIX}"))
    }

    /// Counts the files, and removes the least recently used ones until there is room.
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
                    // Another process may have removed it.
                    let _ = fs::remove_file(&path);
                }
                // Leaves foreign files alone.
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

/// Writes a file without `fsync`. If the machine crashes before the bytes are on disk, the checksum detects it.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create_new(path)?.write_all(bytes)
}
