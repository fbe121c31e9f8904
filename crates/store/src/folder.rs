//! A library that is a local folder or a single local file.

use crate::{Error, Key, LocalFile, Meter, ObjectVersion};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder whose files are served, or a single served file. Links are followed only if their
/// targets are within the folder, unless [`Folder::with_outside_links`] allows other targets.
pub struct Folder {
    root: OwnedFd,
    path: PathBuf,
    only: Option<Key>,
    /// File name extensions of companions. A companion belongs to the single served file, and is in
    /// the same folder.
    companion_extensions: &'static [&'static str],
    /// Whether links may lead out of the folder.
    follow_links: bool,
    meter: Arc<Meter>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// A name that a [`Key`] can contain.
    pub name: String,
    /// The version of a file, or `None` for a folder.
    pub file: Option<ObjectVersion>,
}

/// The entries of a folder, and the links that lead out of the library.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// Files and folders, sorted by name.
    pub entries: Vec<FolderEntry>,
    /// Names of refused entries, sorted. An entry is refused, for example, if it is a link that
    /// leads out of the library or in a circle.
    pub links_out: Vec<String>,
}

/// Maximum number of entries read from one folder.
const ENTRIES_MAX: usize = 65_536;
const ENTRIES_TOO_MANY: &str = "the folder has over 65536 entries";

impl Folder {
    /// Opens the library at `path`, which is a folder or a single file.
    ///
    /// # Errors
    /// When `path` does not exist, cannot be opened, or is a file whose name cannot be served. A
    /// name can be served if it is a valid [`Key`].
    pub fn new(path: &Path) -> io::Result<Folder> {
        let path = path.canonicalize()?;
        let (path, only) = if path.is_dir() {
            (path, None)
        } else {
            let key = path.file_name().and_then(|name| name.to_str());
            let key = key.and_then(|name| Key::parse(name).ok());
            let key = key.ok_or_else(|| io::Error::other("a file name that cannot be served"))?;
            (path.parent().unwrap_or(&path).to_owned(), Some(key))
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, &path, flags, Mode::empty())?;
        let meter = Arc::default();
        Ok(Folder {
            root,
            path,
            only,
            companion_extensions: &[],
            follow_links: false,
            meter,
        })
    }

    /// Sets whether links may lead out of the folder.
    #[must_use]
    pub fn with_outside_links(self, follow_links: bool) -> Folder {
        Folder {
            follow_links,
            ..self
        }
    }

    /// Also serves the companions of a single file, such as `film.en.srt` for `film.mp4`. The name
    /// of a companion starts with the file's name without the extension, and ends in one of
    /// `companion_extensions`. For a folder, this setting has no effect.
    #[must_use]
    pub fn with_companions(self, companion_extensions: &'static [&'static str]) -> Folder {
        Folder {
            companion_extensions,
            ..self
        }
    }

    /// Counts of the reads from this library.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up `key`. Returns a file's version, or `None` for a folder. Blocks.
    ///
    /// # Errors
    /// Any [`Error`]. The error is [`Error::NotFound`] if `key` is neither a file nor a folder.
    pub fn look_up(&self, key: &Key) -> Result<Option<ObjectVersion>, Error> {
        file_version(&self.stat_key(key)?)
    }

    /// Opens a file. Blocks.
    ///
    /// # Errors
    /// Any [`Error`]. For a folder, the error is [`Error::NotFound`].
    pub fn open(&self, key: &Key) -> Result<Arc<LocalFile>, Error> {
        // `NONBLOCK` is set because opening a named pipe would otherwise wait for a writer.
        let fd = self.open_beneath(key, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        match file_version(&rustix::fs::fstat(&fd)?)? {
            Some(identity) => {
                let file = LocalFile::new(File::from(fd), identity, self.meter.clone());
                Ok(Arc::new(file))
            }
            None => Err(Error::NotFound),
        }
    }

    /// Lists a folder, sorted by name. Leaves out entries that are hidden, have a name that a key
    /// cannot contain, or lead out of the library. Also leaves out links to an ancestor folder,
    /// because following such links would never end. Blocks.
    ///
    /// # Errors
    /// Any [`Error`]. A folder with more than 65 536 entries is also an error.
    pub fn list_folder(&self, key: &Key) -> Result<Vec<FolderEntry>, Error> {
        self.list_prefixed(key, "")
    }

    /// Lists as [`Folder::list_folder`] does, but only the entries whose names start with `prefix`.
    /// Other entries are not looked up. Blocks.
    ///
    /// # Errors
    /// The errors of [`Folder::list_folder`].
    pub fn list_prefixed(&self, key: &Key, prefix: &str) -> Result<Vec<FolderEntry>, Error> {
        Ok(self.list_with_outside_links(key, prefix)?.entries)
    }

    /// Lists as [`Folder::list_prefixed`] does, and also returns the links that lead out of the
    /// library. Blocks.
    ///
    /// # Errors
    /// The errors of [`Folder::list_folder`].
    pub fn list_with_outside_links(&self, key: &Key, prefix: &str) -> Result<FolderListing, Error> {
        if let (Some(only), true) = (&self.only, key.is_root()) {
            return Ok(FolderListing {
                entries: self.list_single_file(only, prefix)?,
                links_out: Vec::new(),
            });
        }
        let fd = self.open_beneath(key, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let above = self.ancestor_inodes(key)?;
        let mut listing = FolderListing::default();
        for (n, found) in Dir::read_from(&fd)?.enumerate() {
            if n >= ENTRIES_MAX {
                return Err(Error::Refused(ENTRIES_TOO_MANY));
            }
            let found = found?;
            let name = found.file_name().to_str().ok();
            let Some(name) = name.filter(|name| name.starts_with(prefix)) else {
                continue;
            };
            match self.read_folder_entry(key, name, &above) {
                Ok(entry) => listing.entries.extend(entry),
                Err(Error::Refused(_)) => listing.links_out.push(name.to_owned()),
                // The entry disappeared, or is neither a file nor a folder.
                Err(_) => {}
            }
        }
        listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
        listing.links_out.sort();
        Ok(listing)
    }

    /// Lists a single file and its companions. If the folder cannot be read, the file has no
    /// companions.
    fn list_single_file(&self, only: &Key, prefix: &str) -> Result<Vec<FolderEntry>, Error> {
        let (name, file) = (only.as_str().to_owned(), self.look_up(only)?);
        let mut entries = vec![FolderEntry { name, file }];
        let companions = self.companion_names(only).unwrap_or_default();
        let companion =
            |name: &String| self.read_folder_entry(&Key::ROOT, name, &[]).ok().flatten();
        entries.extend(companions.iter().filter_map(companion));
        entries.retain(|entry| entry.name.starts_with(prefix));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn companion_names(&self, only: &Key) -> Result<Vec<String>, Error> {
        if self.companion_extensions.is_empty() {
            return Ok(Vec::new());
        }
        let fd = self.open_beneath(&Key::ROOT, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let found = Dir::read_from(&fd)?.take(ENTRIES_MAX).flatten();
        let names = found.filter_map(|found| Some(found.file_name().to_str().ok()?.to_owned()));
        Ok(names.filter(|name| self.is_companion(only, name)).collect())
    }

    fn is_companion(&self, only: &Key, name: &str) -> bool {
        let stem = only.as_str();
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        let rest = name.strip_prefix(stem).filter(|rest| rest.starts_with('.'));
        let extension = rest.and_then(|rest| rest.rsplit_once('.'));
        extension.is_some_and(|(_, extension)| {
            let mut extensions = self.companion_extensions.iter();
            extensions.any(|known| extension.eq_ignore_ascii_case(known))
        })
    }

    /// Returns whether `key` belongs to the library. A library of a single file contains only the
    /// file, the file's companions and the root.
    fn is_servable_key(&self, key: &Key) -> bool {
        let contains = |only| key == only || key.is_root() || self.is_companion(only, key.as_str());
        self.only.as_ref().is_none_or(contains)
    }

    /// Looks up an entry of `folder`. Returns `None` if a key cannot contain the name, or if the
    /// entry is a link to one of the folders in `above`.
    ///
    /// # Errors
    /// [`Error::Refused`] for a link that leads out of the library.
    fn read_folder_entry(
        &self,
        folder: &Key,
        name: &str,
        above: &[(u64, u64)],
    ) -> Result<Option<FolderEntry>, Error> {
        let Ok(key) = folder.child(name) else {
            return Ok(None);
        };
        let stat = self.stat_key(&key)?;
        let file = file_version(&stat)?;
        let leads_back = file.is_none() && above.contains(&(stat.st_dev, stat.st_ino));
        let name = name.to_owned();
        Ok((!leads_back).then_some(FolderEntry { name, file }))
    }

    /// Returns the device and inode numbers of a folder and of all its ancestor folders.
    fn ancestor_inodes(&self, folder: &Key) -> Result<Vec<(u64, u64)>, Error> {
        let keys = std::iter::successors(Some(folder.clone()), Key::parent);
        let stats = keys.map(|key| self.stat_key(&key));
        stats
            .map(|stat| stat.map(|stat| (stat.st_dev, stat.st_ino)))
            .collect()
    }

    fn stat_key(&self, key: &Key) -> Result<Stat, Error> {
        let fd = self.open_beneath(key, OFlags::PATH)?;
        Ok(rustix::fs::fstat(fd)?)
    }

    fn open_beneath(&self, key: &Key, flags: OFlags) -> Result<OwnedFd, Error> {
        if !self.is_servable_key(key) {
            return Err(Error::NotFound);
        }
        let name = if key.is_root() { "." } else { key.as_str() };
        match self.open_with_openat2(name.as_ref(), flags) {
            // The kernel refuses links with absolute targets, even if the targets are within the
            // folder.
            Err(Errno::XDEV) => self.open_resolved_target(key, flags),
            // The kernel has no `openat2` (before Linux 5.6), or a seccomp filter blocks this call.
            Err(Errno::NOSYS) => self.open_resolved_target(key, flags),
            result => Ok(result?),
        }
    }

    /// Resolves all links in user space first. Then opens the target if it is within the folder, or
    /// if links may lead out of the folder.
    fn open_resolved_target(&self, key: &Key, flags: OFlags) -> Result<OwnedFd, Error> {
        let target = self.path.join(key.as_str()).canonicalize()?;
        let inside = match target.strip_prefix(&self.path) {
            // This case occurs only without `openat2`, because `openat2` itself follows links that
            // lead out of the folder.
            Err(_) if self.follow_links => target.as_path(),
            inside => inside.map_err(|_| Error::from(Errno::XDEV))?,
        };
        match self.open_with_openat2(inside, flags) {
            Err(Errno::NOSYS) => {
                let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                Ok(rustix::fs::openat(CWD, &target, flags, Mode::empty())?)
            }
            result => Ok(result?),
        }
    }

    fn open_with_openat2(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let how = match self.follow_links {
            // A key contains no `..`, so only links can lead out of the folder.
            true => ResolveFlags::NO_MAGICLINKS,
            false => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        };
        let flags = flags | OFlags::CLOEXEC;
        // `EAGAIN` means that a file or folder was renamed while the kernel resolved the path. The
        // kernel then cannot guarantee that `..` stays within the folder.
        for _ in 0..8 {
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), how) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
        Err(Errno::AGAIN)
    }
}

fn file_version(stat: &Stat) -> Result<Option<ObjectVersion>, Error> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(ObjectVersion::from_stat(stat))),
        FileType::Directory => Ok(None),
        _ => Err(Error::NotFound),
    }
}

#[cfg(test)]
mod tests;
