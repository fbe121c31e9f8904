//! A library, wherever it lies.

use crate::{Entry, Error, Folder, Identity, Key, Meter, Object, Options, Reason, Remote, remote};
use std::path::Path;
use std::sync::Arc;

/// A library: local or remote. Its functions block.
pub enum Store {
    /// A local folder, or one file.
    Folder(Folder),
    /// What an object store holds.
    Remote(Remote),
}

impl Store {
    /// Opens what `source` names: a path, `file://`, `s3://`, `gs://`, `az://`, `http://` or
    /// `https://`.
    ///
    /// # Errors
    /// What is wrong with it, for whoever wrote it: no such folder, a URL that says too little,
    /// settings of the storage that do not go together.
    pub fn new(source: &str, options: Options) -> Result<Store, String> {
        if Remote::is_remote(source) {
            return Ok(Store::Remote(Remote::new(source, options)?));
        }
        let path = match url::Url::parse(source) {
            Ok(url) if url.scheme() == "file" => url
                .to_file_path()
                .map_err(|()| format!("{source}: a file URL names a path on this machine"))?,
            _ => Path::new(source).to_owned(),
        };
        let folder = Folder::new(&path).map_err(|error| format!("{source}: {error}"))?;
        Ok(Store::Folder(folder))
    }

    /// Whether reading it takes a network, so that it is looked at as seldom as can be.
    pub fn is_remote(&self) -> bool {
        matches!(self, Store::Remote(_))
    }

    /// The remote one, if it is.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Store::Folder(_) => None,
            Store::Remote(remote) => Some(remote),
        }
    }

    /// Where it is: a path, or a URL without credentials.
    pub fn place(&self) -> String {
        match self {
            Store::Folder(folder) => folder.path().display().to_string(),
            Store::Remote(remote) => remote.place().to_owned(),
        }
    }

    /// What has been asked of it.
    pub fn meter(&self) -> &Arc<Meter> {
        match self {
            Store::Folder(folder) => folder.meter(),
            Store::Remote(remote) => remote.meter(),
        }
    }

    /// What `key` names now: an object's identity, or `None` for a folder.
    ///
    /// # Errors
    /// [`Error`]; what is neither is [`Error::NotFound`].
    pub fn look(&self, key: &Key) -> Result<Option<Identity>, Error> {
        match self {
            Store::Folder(folder) => folder.look(key),
            Store::Remote(remote) => remote.look(key),
        }
    }

    /// Opens an object, to build an index of it.
    ///
    /// # Errors
    /// [`Error`]; a folder is [`Error::NotFound`].
    pub fn open(&self, key: &Key) -> Result<Object, Error> {
        self.open_for(key, Reason::Index)
    }

    /// Opens an object for another reason; over a network its first bytes come along.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_for(&self, key: &Key, reason: Reason) -> Result<Object, Error> {
        self.open_with(key, remote::HEAD_BYTES, reason)
    }

    /// Opens an object all of which is wanted: over a network, one request brings it, up to 8 MiB.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_whole(&self, key: &Key) -> Result<Object, Error> {
        self.open_with(key, remote::WHOLE_BYTES, Reason::Index)
    }

    fn open_with(&self, key: &Key, head_bytes: u64, reason: Reason) -> Result<Object, Error> {
        match self {
            Store::Folder(folder) => folder.open(key).map(Object::Local),
            Store::Remote(remote) => remote.open(key, head_bytes, reason).map(Object::Remote),
        }
    }

    /// An object that is said to have this length, and this tag if it is not 0: over a network
    /// nobody looks at it before its bytes are wanted, and those are then of one state.
    ///
    /// # Errors
    /// As [`Store::open`]; over a network none yet, and [`Error::OtherLength`] or
    /// [`Error::Replaced`] when it is read.
    pub fn promise(&self, key: &Key, said: Identity) -> Result<Object, Error> {
        match self {
            Store::Folder(_) => self.open(key),
            Store::Remote(remote) => Ok(Object::Remote(remote.promise(key, said))),
        }
    }

    /// What is in a folder, by name, without what is hidden or cannot be named.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Unlisted`] where the storage cannot say; also when there are over
    /// 65 536 entries.
    pub fn list(&self, key: &Key) -> Result<Vec<Entry>, Error> {
        match self {
            Store::Folder(folder) => folder.list(key),
            Store::Remote(remote) => remote.list(key),
        }
    }

    /// Some `most` of a folder's entries, without a look at the rest; in order by name among
    /// themselves.
    ///
    /// # Errors
    /// As [`Store::list`], but for their number.
    pub fn list_first(&self, key: &Key, most: usize) -> Result<Vec<Entry>, Error> {
        match self {
            Store::Folder(folder) => folder.list(key).map(|mut entries| {
                entries.truncate(most);
                entries
            }),
            Store::Remote(remote) => remote.list_first(key, most),
        }
    }
}
