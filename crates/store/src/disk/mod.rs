//! Small values kept on local disk: by what they are of, and by which state of it.
//!
//! Each value is a file of its own, which says in full what it is and ends in a checksum; so a
//! file that was cut, flipped or mixed up is not taken for a value, whenever the process or the
//! machine stopped. Files appear by renaming. The folder is bounded in bytes: what was not used
//! for longest goes first, and what other processes left half-written goes too. Several processes
//! may share a folder; each sweeps it when it thinks that it is full.
//!
//! [`tier`] keeps large ones, which the kernel sends from their files.

mod record;
#[cfg(test)]
mod tests;
pub mod tier;

use record::{Record, Unread};
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
    /// What this process thinks that all files take; right after each sweep.
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    broken: AtomicU64,
    written: AtomicU64,
    /// Tells its half-written files from others': a process's number does not, where containers
    /// share a folder, or one stopped in the middle.
    own: u64,
}

/// What was asked of a cache so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskCounts {
    /// Values that were there.
    pub hits: u64,
    /// Values that were not, or of another version.
    pub misses: u64,
    /// Files that were damaged, and have been removed; they count as misses too.
    pub broken: u64,
}

const SUFFIX: &str = "kept";
const PART: &str = "part";
/// Half-written files older than this are nobody's any more.
const PART_KEPT: Duration = Duration::from_secs(600);
/// A value's last use is written down no oftener than this.
const USED_EVERY: Duration = Duration::from_secs(60);
/// How full a sweep leaves the folder, in tenths.
const SWEPT_TENTHS: u64 = 9;

impl DiskCache {
    /// Opens a folder, and makes it where it is not there (for this user only).
    ///
    /// # Errors
    /// When it cannot be made or listed.
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
            own: RandomState::new().build_hasher().finish(),
        };
        cache.sweep()?;
        Ok(cache)
    }

    /// Bytes that all files take, as far as is known.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// What was asked so far.
    pub fn counts(&self) -> DiskCounts {
        DiskCounts {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            broken: self.broken.load(Relaxed),
        }
    }

    /// The value of `name` in this `version`, if it is there and whole. Blocks.
    pub fn get(&self, name: &str, version: &[u8]) -> Option<Vec<u8>> {
        let found = self.read(name, version);
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Relaxed);
        found
    }

    fn read(&self, name: &str, version: &[u8]) -> Option<Vec<u8>> {
        let path = self.path(name);
        let file = File::open(&path).ok()?;
        let meta = file.metadata().ok()?;
        if meta.len() > self.bytes_max {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).ok()? + 1);
        (&file).take(self.bytes_max).read_to_end(&mut bytes).ok()?;
        match Record::read(&bytes, name, version) {
            Ok(value) => {
                let now = SystemTime::now();
                let used = meta
                    .modified()
                    .ok()
                    .and_then(|then| now.duration_since(then).ok());
                if used.is_some_and(|ago| ago > USED_EVERY) {
                    // Only an order of leaving is lost.
                    let _ = file.set_modified(now);
                }
                Some(value.to_vec())
            }
            Err(Unread::Other) => None,
            Err(Unread::Broken) => {
                self.broken.fetch_add(1, Relaxed);
                self.remove(&path, meta.len());
                None
            }
        }
    }

    /// Keeps `value` in the place of any other version's. Blocks. What is larger than the whole
    /// cache is not kept.
    ///
    /// # Errors
    /// When it cannot be written: what was there before stays.
    pub fn put(&self, name: &str, version: &[u8], value: &[u8]) -> io::Result<()> {
        let record = Record {
            name,
            version,
            value,
        };
        let bytes = record.write();
        let len = bytes.len() as u64;
        if len > self.bytes_max {
            return Ok(());
        }
        let path = self.path(name);
        let number = self.written.fetch_add(1, Relaxed);
        let part = path.with_extension(format!("{:x}-{number}.{PART}", self.own));
        let before = fs::metadata(&path).map_or(0, |meta| meta.len());
        let written = write(&part, &bytes).and_then(|()| fs::rename(&part, &path));
        if let Err(error) = written {
            // It may never have been made.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        self.bytes.fetch_add(len, Relaxed);
        self.less(before);
        if self.bytes() > self.bytes_max {
            self.sweep()?;
        }
        Ok(())
    }

    /// Removes what is not to be kept: values that are not to be used, say.
    pub fn forget(&self, name: &str) {
        let path = self.path(name);
        let len = fs::metadata(&path).map_or(0, |meta| meta.len());
        self.remove(&path, len);
    }

    fn remove(&self, path: &Path, len: u64) {
        if fs::remove_file(path).is_ok() {
            self.less(len);
        }
    }

    fn less(&self, bytes: u64) {
        let less = |now: u64| Some(now.saturating_sub(bytes));
        // The closure always gives something.
        let _ = self.bytes.fetch_update(Relaxed, Relaxed, less);
    }

    fn path(&self, name: &str) -> PathBuf {
        let hash = record::hash(name.as_bytes());
        self.folder.join(format!("{hash:016x}.{SUFFIX}"))
    }

    /// Counts what is there, and removes what was not used for longest until there is room.
    fn sweep(&self) -> io::Result<()> {
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
                Some(PART) if now.duration_since(used).is_ok_and(|ago| ago > PART_KEPT) => {
                    // Another process may have been faster.
                    let _ = fs::remove_file(&path);
                }
                // Nothing of ours: left alone.
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

/// Without waiting for the disk: what a crash leaves of it is not taken for a value.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create_new(path)?.write_all(bytes)
}
