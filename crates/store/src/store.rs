//! Libraries, local or remote.

use crate::{
    Error, Folder, FolderEntry, FolderListing, Key, Meter, Object, ObjectVersion, Options, Remote,
    RequestReason, remote,
};
use std::path::Path;
use std::sync::Arc;

/// A local or remote library. Its functions block.
pub enum Store {
    /// A local folder, or a single file.
    Folder(Folder),
    /// Objects of an object store.
    Remote(Remote),
}

impl Store {
    /// Opens the library at `source`, which is a path or a URL (`file://`, `s3://`, `gs://`,
    /// `az://`, `http://` or `https://`).
    ///
    /// # Errors
    /// A message for the operator, for example if the folder does not exist, the URL is incomplete,
    /// or the storage settings contradict each other.
    pub fn new(source: &str, options: Options) -> Result<Store, String> {
        if Remote::is_remote_url(source) {
            return Ok(Store::Remote(Remote::new(source, options)?));
        }
        let path = match url::Url::parse(source) {
            Ok(url) if url.scheme() == "file" => url
                .to_file_path()
                .map_err(|()| format!("{source}: a file URL names a path on this machine"))?,
            _ => Path::new(source).to_owned(),
        };
        let folder = Folder::new(&path).map_err(|error| {
            format!("{source}: {error}; give a folder, a film, or an s3, gs, az, http or https URL")
        })?;
        Ok(Store::Folder(
            folder.with_outside_links(options.follow_links),
        ))
    }

    /// If the library is a single file, also serves the companions of this file; see
    /// [`Folder::with_companions`]. For a remote library, this setting has no effect.
    #[must_use]
    pub fn with_companions(self, companion_extensions: &'static [&'static str]) -> Store {
        match self {
            Store::Folder(folder) => Store::Folder(folder.with_companions(companion_extensions)),
            remote @ Store::Remote(_) => remote,
        }
    }

    /// Returns whether reads use a network. If so, callers should avoid look-ups, because each
    /// look-up sends a request.
    pub fn is_remote(&self) -> bool {
        matches!(self, Store::Remote(_))
    }

    /// The remote library, or `None` if the library is local.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Store::Folder(_) => None,
            Store::Remote(remote) => Some(remote),
        }
    }

    /// The path, or the URL without credentials.
    pub fn location(&self) -> String {
        match self {
            Store::Folder(folder) => folder.path().display().to_string(),
            Store::Remote(remote) => remote.location().to_owned(),
        }
    }

    /// Counts of the requests to this library.
    pub fn meter(&self) -> &Arc<Meter> {
        match self {
            Store::Folder(folder) => folder.meter(),
            Store::Remote(remote) => remote.meter(),
        }
    }

    /// Looks up `key`. Returns an object's version, or `None` for a folder.
    ///
    /// # Errors
    /// Any [`Error`]. The error is [`Error::NotFound`] if `key` is neither an object nor a folder.
    pub fn look_up(&self, key: &Key) -> Result<Option<ObjectVersion>, Error> {
        match self {
            Store::Folder(folder) => folder.look_up(key),
            Store::Remote(remote) => remote.look_up(key),
        }
    }

    /// Opens an object, to build an index of it.
    ///
    /// # Errors
    /// Any [`Error`]. For a folder, the error is [`Error::NotFound`].
    pub fn open(&self, key: &Key) -> Result<Object, Error> {
        self.open_for(key, RequestReason::Index)
    }

    /// Opens an object. The meter counts the request to the storage under `reason`. Over a network,
    /// one request opens the object and fetches the object's first bytes.
    ///
    /// # Errors
    /// Same as [`Store::open`].
    pub fn open_for(&self, key: &Key, reason: RequestReason) -> Result<Object, Error> {
        self.open_with_first_bytes(key, remote::HEAD_BYTES, reason)
    }

    /// Opens an object that will be read as a whole. Over a network, the request that opens the
    /// object fetches up to 8 MiB.
    ///
    /// # Errors
    /// Same as [`Store::open`].
    pub fn open_whole(&self, key: &Key) -> Result<Object, Error> {
        self.open_with_first_bytes(key, remote::WHOLE_BYTES, RequestReason::Index)
    }

    fn open_with_first_bytes(
        &self,
        key: &Key,
        head_bytes: u64,
        reason: RequestReason,
    ) -> Result<Object, Error> {
        match self {
            Store::Folder(folder) => folder.open(key).map(Object::Local),
            Store::Remote(remote) => remote.open(key, head_bytes, reason).map(Object::Remote),
        }
    }

    /// Returns an object with a declared length and entity tag, without a look-up. A tag of 0 means
    /// that no tag is declared. Over a network, the first read checks the declaration, and all
    /// reads return bytes of one version. A local library opens the file and ignores the
    /// declaration.
    ///
    /// # Errors
    /// Same as [`Store::open`]. Over a network, the first read may fail with [`Error::OtherLength`]
    /// or [`Error::Replaced`].
    pub fn open_declared_version(
        &self,
        key: &Key,
        declared: ObjectVersion,
    ) -> Result<Object, Error> {
        match self {
            Store::Folder(_) => self.open(key),
            Store::Remote(remote) => {
                Ok(Object::Remote(remote.open_declared_version(key, declared)))
            }
        }
    }

    /// Lists a folder, sorted by name. Leaves out entries that are hidden or have a name that a key
    /// cannot contain.
    ///
    /// # Errors
    /// Any [`Error`]. The error is [`Error::Unlisted`] if the storage cannot list folders. A folder
    /// with more than 65 536 entries is also an error.
    pub fn list_folder(&self, key: &Key) -> Result<Vec<FolderEntry>, Error> {
        match self {
            Store::Folder(folder) => folder.list_folder(key),
            Store::Remote(remote) => remote.list_folder(key),
        }
    }

    /// Lists the entries of a folder whose names start with `prefix`. A remote library takes one
    /// request per 1000 entries. Blocks.
    ///
    /// # Errors
    /// The errors of [`Store::list_folder`].
    pub fn list_prefixed(&self, key: &Key, prefix: &str) -> Result<Vec<FolderEntry>, Error> {
        match self {
            Store::Folder(folder) => folder.list_prefixed(key, prefix),
            Store::Remote(remote) => remote.list_prefixed(key, prefix),
        }
    }

    /// Lists a folder as [`Store::list_folder`] does, and also returns the links that lead out of a
    /// local library.
    ///
    /// # Errors
    /// The errors of [`Store::list_folder`].
    pub fn list_with_outside_links(&self, key: &Key) -> Result<FolderListing, Error> {
        match self {
            Store::Folder(folder) => folder.list_with_outside_links(key, ""),
            Store::Remote(remote) => remote.list_folder(key).map(|entries| FolderListing {
                entries,
                links_out: Vec::new(),
            }),
        }
    }

    /// Lists up to `entries_max` entries of a folder, sorted by name. A remote library does not
    /// request the other entries.
    ///
    /// # Errors
    /// Same as [`Store::list_folder`], but the number of entries of a remote folder is not limited.
    pub fn list_at_most(&self, key: &Key, entries_max: usize) -> Result<Vec<FolderEntry>, Error> {
        match self {
            Store::Folder(folder) => folder.list_folder(key).map(|mut entries| {
                entries.truncate(entries_max);
                entries
            }),
            Store::Remote(remote) => remote.list_at_most(key, entries_max),
        }
    }
}
