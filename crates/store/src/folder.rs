//! A library: a local folder, or one file of it.

use crate::{Error, Key, LocalFile, Meter, ObjectVersion};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder whose files are served, or a single file. Links are followed only within the folder, unless
/// [`Folder::with_links`] allows others.
pub struct Folder {
    root: OwnedFd,
    path: PathBuf,
    only: Option<Key>,
    /// Whether links may lead out of the folder.
    follow_links: bool,
    meter: Arc<Meter>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// A name that a [`Key`] can contain.
    pub name: String,
    /// A file's version; `None` for a folder.
    pub file: Option<ObjectVersion>,
}

/// Most entries read from one folder.
const ENTRIES_MAX: usize = 65_536;
const ENTRIES_TOO_MANY: &str = "the folder has over 65536 entries";

impl Folder {
    /// Opens `path`: a folder, or a file that will be the only one.
    ///
    /// # Errors
    /// When it does not exist, must not be read, or is a file whose name cannot be served (not UTF-8, or
    /// starting with a dot).
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
            follow_links: false,
            meter,
        })
    }

    /// Sets whether links may lead out of the folder.
    #[must_use]
    pub fn with_links(self, follow_links: bool) -> Folder {
        Folder {
            follow_links,
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

    /// Looks up `key`: a file's version, or `None` for a folder. Blocks.
    ///
    /// # Errors
    /// [`Error`]; anything that is neither a file nor a folder is [`Error::NotFound`].
    pub fn look(&self, key: &Key) -> Result<Option<ObjectVersion>, Error> {
        entry_kind(&self.stat_key(key)?)
    }

    /// Opens a file. Blocks.
    ///
    /// # Errors
    /// [`Error`]; a folder is [`Error::NotFound`].
    pub fn open(&self, key: &Key) -> Result<Arc<LocalFile>, Error> {
        // Opens without waiting: a named pipe would otherwise wait forever for a writer.
        let fd = self.open_beneath(key, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        match entry_kind(&rustix::fs::fstat(&fd)?)? {
            Some(identity) => {
                let file = LocalFile::new(File::from(fd), identity, self.meter.clone());
                Ok(Arc::new(file))
            }
            None => Err(Error::NotFound),
        }
    }

    /// Lists a folder by name, without entries that are hidden, cannot be a key or lead out of the library.
    /// Links to a folder above are left out, because they have no end. Blocks.
    ///
    /// # Errors
    /// [`Error`]; also when there are over 65 536 entries.
    pub fn list(&self, key: &Key) -> Result<Vec<FolderEntry>, Error> {
        if let (Some(only), true) = (&self.only, key.is_root()) {
            let file = self.look(only)?;
            let name = only.as_str().to_owned();
            return Ok(vec![FolderEntry { name, file }]);
        }
        let fd = self.open_beneath(key, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let above = self.ancestor_inodes(key)?;
        let mut entries = Vec::new();
        for (n, found) in Dir::read_from(&fd)?.enumerate() {
            if n >= ENTRIES_MAX {
                return Err(Error::Refused(ENTRIES_TOO_MANY));
            }
            let found = found?;
            entries.extend(
                found
                    .file_name()
                    .to_str()
                    .ok()
                    .and_then(|name| self.entry_at(key, name, &above)),
            );
        }
        entries.sort_by(|a: &FolderEntry, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn entry_at(&self, folder: &Key, name: &str, above: &[(u64, u64)]) -> Option<FolderEntry> {
        let key = folder.join(name).ok()?;
        let stat = self.stat_key(&key).ok()?;
        let file = entry_kind(&stat).ok()?;
        let leads_back = file.is_none() && above.contains(&(stat.st_dev, stat.st_ino));
        let name = name.to_owned();
        (!leads_back).then_some(FolderEntry { name, file })
    }

    /// Returns device and inode of a folder and of all folders above it.
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
        if self
            .only
            .as_ref()
            .is_some_and(|only| only != key && !key.is_root())
        {
            return Err(Error::NotFound);
        }
        let name = if key.is_root() { "." } else { key.as_str() };
        match self.resolve_links(name.as_ref(), flags) {
            // Links with absolute targets are refused by the kernel even if they stay inside.
            Err(Errno::XDEV) => self.beneath_by_name(key, flags),
            // No openat2 (before 5.6, or a seccomp filter that does not know it).
            Err(Errno::NOSYS) => self.beneath_by_name(key, flags),
            result => Ok(result?),
        }
    }

    /// Resolves links by name first, then opens their target if it is inside.
    fn beneath_by_name(&self, key: &Key, flags: OFlags) -> Result<OwnedFd, Error> {
        let target = self.path.join(key.as_str()).canonicalize()?;
        let inside = match target.strip_prefix(&self.path) {
            // Only without openat2: it follows these links itself.
            Err(_) if self.follow_links => target.as_path(),
            inside => inside.map_err(|_| Error::from(Errno::XDEV))?,
        };
        match self.resolve_links(inside, flags) {
            Err(Errno::NOSYS) => {
                let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                Ok(rustix::fs::openat(CWD, &target, flags, Mode::empty())?)
            }
            result => Ok(result?),
        }
    }

    fn resolve_links(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let how = match self.follow_links {
            // A key contains no `..`, so only links lead out.
            true => ResolveFlags::NO_MAGICLINKS,
            false => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        };
        let flags = flags | OFlags::CLOEXEC;
        // EAGAIN: something was renamed during the walk, and the kernel cannot guarantee that `..`
        // stays inside.
        for _ in 0..8 {
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), how) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
        Err(Errno::AGAIN)
    }
}

fn entry_kind(stat: &Stat) -> Result<Option<ObjectVersion>, Error> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(ObjectVersion::of(stat))),
        FileType::Directory => Ok(None),
        _ => Err(Error::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn temporary_library() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("films");
        fs::create_dir_all(root.join("tos/deep")).unwrap();
        fs::write(dir.path().join("secret.txt"), "secret").unwrap();
        fs::write(root.join("a.mp4"), "a").unwrap();
        fs::write(root.join(".hidden"), "h").unwrap();
        fs::write(root.join("tos/b.mp4"), "bb").unwrap();
        fs::create_dir(root.join("folder.mp4")).unwrap();
        dir
    }

    fn parse_key(path: &str) -> Key {
        Key::parse(path).unwrap()
    }

    fn error_text(folder: &Folder, path: &str) -> Result<String, Error> {
        let object = folder.open(&parse_key(path))?;
        let bytes = object.read(0..object.len(), Reason::Plain)?;
        Ok(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn files_are_opened_and_listed() {
        let dir = temporary_library();
        let folder = Folder::new(&dir.path().join("films")).unwrap();
        assert_eq!(error_text(&folder, "a.mp4").unwrap(), "a");
        assert_eq!(error_text(&folder, "tos/b.mp4").unwrap(), "bb");
        let listed = folder.list(&Key::ROOT).unwrap();
        let names: Vec<_> = listed
            .iter()
            .map(|e| (e.name.as_str(), e.file.is_some()))
            .collect();
        assert_eq!(
            names,
            [("a.mp4", true), ("folder.mp4", false), ("tos", false)]
        );
        for missing in ["b.mp4", "tos", "folder.mp4", "a.mp4/x"] {
            assert!(
                matches!(folder.open(&parse_key(missing)), Err(Error::NotFound)),
                "{missing}"
            );
        }
        assert!(matches!(
            folder.list(&parse_key("a.mp4")),
            Err(Error::NotFound)
        ));
        assert_eq!(folder.look(&parse_key("tos")).unwrap(), None);
        assert_eq!(folder.look(&parse_key("a.mp4")).unwrap().unwrap().len, 1);
    }

    #[test]
    fn links_stay_inside() {
        let dir = temporary_library();
        let root = dir.path().join("films");
        symlink("tos/b.mp4", root.join("inside.mp4")).unwrap();
        symlink(root.join("tos"), root.join("absolute")).unwrap();
        symlink("../secret.txt", root.join("outside.txt")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("gone", root.join("dangling")).unwrap();
        let folder = Folder::new(&root).unwrap();
        assert_eq!(error_text(&folder, "inside.mp4").unwrap(), "bb");
        assert_eq!(error_text(&folder, "absolute/b.mp4").unwrap(), "bb");
        for out in ["outside.txt", "etc/hostname", "etc"] {
            let error = error_text(&folder, out).unwrap_err();
            assert!(matches!(error, Error::Refused(_)), "{out}: {error}");
        }
        assert!(matches!(
            error_text(&folder, "loop"),
            Err(Error::Refused(_))
        ));
        assert!(matches!(
            error_text(&folder, "dangling"),
            Err(Error::NotFound)
        ));
        let listed = folder.list(&Key::ROOT).unwrap();
        assert!(
            listed
                .iter()
                .all(|entry| !["outside.txt", "etc", "loop"].contains(&&*entry.name))
        );
    }

    #[test]
    fn links_that_leave_the_library_are_followed_if_allowed() {
        let dir = temporary_library();
        let root = dir.path().join("films");
        let disk = dir.path().join("disk2");
        fs::create_dir_all(disk.join("series")).unwrap();
        fs::write(disk.join("series/e1.mp4"), "one").unwrap();
        // A cycle outside of the library: it must not be listed without end.
        symlink("..", disk.join("series/up")).unwrap();
        symlink(&disk, root.join("disk2")).unwrap();
        symlink("../secret.txt", root.join("one.mp4")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let folder = Folder::new(&root).unwrap();
        assert!(matches!(
            error_text(&folder, "disk2/series/e1.mp4"),
            Err(Error::Refused(_))
        ));
        let folder = folder.with_links(true);
        assert_eq!(error_text(&folder, "disk2/series/e1.mp4").unwrap(), "one");
        assert_eq!(error_text(&folder, "one.mp4").unwrap(), "secret");
        for refused in ["magic/etc/hostname", "loop"] {
            let error = error_text(&folder, refused).unwrap_err();
            assert!(matches!(error, Error::Refused(_)), "{refused}: {error}");
        }
        let names = |path: &str| -> Vec<String> {
            let listed = folder.list(&Key::parse(path).unwrap()).unwrap();
            listed.into_iter().map(|entry| entry.name).collect()
        };
        assert_eq!(
            names(""),
            ["a.mp4", "disk2", "folder.mp4", "one.mp4", "tos"]
        );
        assert_eq!(names("disk2/series"), ["e1.mp4"]);
        assert!(Key::parse("disk2/../../secret.txt").is_err());
    }

    #[test]
    fn links_to_a_folder_above_are_not_listed() {
        let dir = temporary_library();
        let root = dir.path().join("films");
        symlink(".", root.join("here")).unwrap();
        symlink("..", root.join("tos/up")).unwrap();
        symlink("../deep", root.join("tos/deep/again")).unwrap();
        symlink("tos/deep", root.join("aside")).unwrap();
        let folder = Folder::new(&root).unwrap();
        let names = |path: &str| -> Vec<String> {
            let key = Key::parse(path).unwrap();
            let listed = folder.list(&key).unwrap();
            listed.into_iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names(""), ["a.mp4", "aside", "folder.mp4", "tos"]);
        assert_eq!(names("tos"), ["b.mp4", "deep"]);
        assert!(names("tos/deep").is_empty());
    }

    #[test]
    fn special_files_are_not_found() {
        let dir = temporary_library();
        let root = dir.path().join("films");
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let folder = Folder::new(&root).unwrap();
        assert!(matches!(
            folder.open(&parse_key("socket")),
            Err(Error::NotFound)
        ));
        assert!(matches!(
            folder.open(&parse_key("pipe")),
            Err(Error::NotFound)
        ));
        assert_eq!(folder.list(&Key::ROOT).unwrap().len(), 3);
    }

    #[test]
    fn a_single_file_is_a_library_of_one() {
        let dir = temporary_library();
        let folder = Folder::new(&dir.path().join("films/a.mp4")).unwrap();
        assert_eq!(error_text(&folder, "a.mp4").unwrap(), "a");
        assert_eq!(folder.list(&Key::ROOT).unwrap().len(), 1);
        for other in ["tos/b.mp4", "tos", "folder.mp4"] {
            assert!(matches!(
                folder.look(&parse_key(other)),
                Err(Error::NotFound)
            ));
        }
        assert!(Folder::new(&dir.path().join("films/.hidden")).is_err());
        assert!(Folder::new(&dir.path().join("nothing")).is_err());
    }
}
