//! A title: its open files, their indexes, and how it is cut.

use crate::error;
use crate::expand;
use crate::kept::Kept;
use crate::manifest::Texts;
use crate::route::Set;
use crate::seal::{Seal, Secret};
use crate::sources::{self, Sources};
use crate::stores::{Place, Stores};
use http::StatusCode;
use media::presentation::{Presentation, Rules};
use net::Error;
use net::conditional::Modified;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::{Entry, Identity, Key, Object, Store};

/// How long segments are wished to be.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// For HLS, in milliseconds.
    pub hls_ms: u32,
    /// For DASH, in milliseconds.
    pub dash_ms: u32,
}

/// What all titles of a library are made alike by.
pub(crate) struct Making {
    pub(crate) lengths: Lengths,
    /// What segments are encrypted with, if they are.
    pub(crate) secret: Option<Secret>,
}

/// One state of a title. Nothing in it changes; when its files do, another one takes its place.
pub(crate) struct Title {
    pub(crate) key: Key,
    /// In the order of [`Presentation::files`].
    pub(crate) files: Vec<File>,
    /// Cut for HLS.
    pub(crate) hls: Arc<Presentation>,
    /// Cut for DASH; the same one if wished alike.
    pub(crate) dash: Arc<Presentation>,
    /// How its segments are encrypted. There is then no DASH, which has no such encryption.
    pub(crate) seal: Option<Seal>,
    /// When the youngest file was changed.
    pub(crate) modified: Option<Modified>,
    /// Playlists and MPDs made so far.
    pub(crate) texts: Texts,
    /// Its one file as a progressive MP4, where it is made from an index MP4.
    pub(crate) progressive: expand::Made,
    found: Found,
    /// Server manifests and index MP4s that led to the files, as they were.
    naming: Vec<(Place, Identity)>,
}

/// One file of a title.
pub(crate) struct File {
    pub(crate) place: Place,
    pub(crate) object: Arc<Object>,
}

/// What a title's path leads to: its files, by name, and which state they are in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Found(Vec<(Key, Identity)>);

/// Files that a folder title is made of, by the end of their names.
pub(crate) const SUFFIXES: [&str; 11] = [
    "mp4", "m4v", "m4a", "mov", "cmfv", "cmfa", "ismv", "isma", "mp4a", "f4v", "3gp",
];

/// Most files of one title.
pub(crate) const FILES_MAX: usize = 64;
/// Memory that a segment costs in manifests, all kinds and codings together, in bytes: estimated
/// high, since they are made later than the title is weighed.
const SEGMENT_TEXT_BYTES: usize = 600;
/// Memory that a file costs beside its tables: the descriptor, the mapping's page tables.
const FILE_BYTES: usize = 32 << 10;

impl Found {
    /// Looks where a title's files are. Blocks.
    pub(crate) fn look(store: &Store, title: &Key) -> Result<Found, Error> {
        let entries = match folder_first(store, title) {
            Some(entries) => entries,
            None => match store.look(title).map_err(|e| error::of_store(&e))? {
                Some(identity) => return Ok(Found(vec![(title.clone(), identity)])),
                None => store.list(title).map_err(|e| error::of_store(&e))?,
            },
        };
        let media = entries.into_iter().filter(|entry| is_media(&entry.name));
        let files: Vec<_> = media
            .filter_map(|entry| Some((title.join(&entry.name).ok()?, entry.file?)))
            .take(FILES_MAX + 1)
            .collect();
        match files.len() {
            0 => Err(error::not_found("the folder holds no film")),
            n if n > FILES_MAX => Err(error::too_many_files(title)),
            _ => Ok(Found(files)),
        }
    }

    /// The one file's or all files' keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Tells states apart.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }
}

/// What is in a remote folder, without a look whether it is a file, which would be two requests
/// more. `None`: its name is a film's, or there is no such folder.
fn folder_first(store: &Store, title: &Key) -> Option<Vec<Entry>> {
    let name = title.name();
    if !store.is_remote() || is_media(name) || sources::is_server_manifest(name) {
        return None;
    }
    store.list(title).ok().filter(|entries| !entries.is_empty())
}

/// Finds, opens and indexes a title's files. Blocks.
fn open(stores: &Stores, kept: &Kept, title: &Key) -> Result<(Found, Sources), Error> {
    let name = title.name();
    // Over a network, to open is to look; so a film's own name is not looked at before.
    if stores.films().is_remote() && (is_media(name) || sources::is_server_manifest(name)) {
        match Sources::open(stores, kept, [title].into_iter()) {
            Err(error) if error.status == StatusCode::NOT_FOUND => {}
            sources => {
                let sources = sources?;
                let identity = sources.identity(&Place::library(title));
                let identity = identity.ok_or_else(|| Error::internal("a title without a file"))?;
                return Ok((Found(vec![(title.clone(), identity)]), sources));
            }
        }
    }
    let found = Found::look(stores.films(), title)?;
    let sources = Sources::open(stores, kept, found.keys())?;
    Ok((found, sources))
}

/// Whether a file of this name is taken for a part of a film.
pub(crate) fn is_media(name: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| {
        SUFFIXES
            .iter()
            .any(|known| suffix.eq_ignore_ascii_case(known))
    })
}

/// A path's last name, without the suffix if it is a film's.
pub(crate) fn name_of(key: &Key) -> &str {
    let name = key.name();
    if is_media(name) || sources::is_server_manifest(name) {
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    } else {
        name
    }
}

impl Title {
    /// Opens, indexes and cuts a title. Blocks.
    pub(crate) fn build(
        stores: &Stores,
        kept: &Kept,
        key: &Key,
        making: &Making,
    ) -> Result<Title, Error> {
        let seal = making.secret.as_ref().map(|secret| secret.seal(key));
        let seal = seal.transpose()?;
        let version = seal.as_ref().map_or(0, Seal::version);
        let (found, sources) = open(stores, kept, key)?;
        let naming = sources.naming;
        let (mut files, mut indexes) = (Vec::new(), Vec::new());
        for (place, object, index) in sources.media {
            files.push(File { place, object });
            indexes.push(index);
        }
        let cut = |segment_ms| {
            let presentation = Presentation::new(indexes.clone(), &Rules { segment_ms });
            let mut presentation = presentation.map_err(|e| error::of_media(key.as_str(), &e))?;
            presentation.version ^= version;
            Ok::<_, Error>(Arc::new(presentation))
        };
        let lengths = making.lengths;
        let hls = cut(lengths.hls_ms)?;
        // Where it is encrypted, numbers of segments are used once: in HLS.
        let dash = if lengths.dash_ms == lengths.hls_ms || seal.is_some() {
            hls.clone()
        } else {
            cut(lengths.dash_ms)?
        };
        let named = naming.iter().map(|(_, identity)| identity.modified());
        let modified = files
            .iter()
            .map(|file| file.object.identity().modified())
            .chain(named)
            .max();
        Ok(Title {
            key: key.clone(),
            files,
            hls,
            dash,
            seal,
            modified: modified.and_then(Modified::at),
            texts: Texts::default(),
            progressive: expand::Made::new(),
            found,
            naming,
        })
    }

    /// Whether the files are the same as when this was built. Blocks.
    pub(crate) fn is_current(&self, stores: &Stores) -> bool {
        let now = |place: &Place| stores.look(place).ok().flatten();
        let found = |place: &Place| {
            self.found
                .0
                .iter()
                .any(|(key, _)| *place == Place::library(key))
        };
        let media = |file: &File| {
            let is = |now| file.object.is(&now);
            found(&file.place) || now(&file.place).is_some_and(is)
        };
        let naming = |(place, then): &(Place, Identity)| found(place) || now(place) == Some(*then);
        Found::look(stores.films(), &self.key).is_ok_and(|now| now == self.found)
            && self.files.iter().all(media)
            && self.naming.iter().all(naming)
            && !self.overwritten()
    }

    /// Whether any open file was changed in place: an `fstat` for each.
    pub(crate) fn overwritten(&self) -> bool {
        self.files.iter().any(|file| file.object.changed())
    }

    /// The set that HLS is of.
    pub(crate) fn hls_set(&self) -> Set {
        Set {
            segment_ms: self.hls.segment_ms,
            version: self.hls.version,
        }
    }

    /// The presentation whose segments are of this set.
    pub(crate) fn presentation(&self, set: Set) -> Option<&Arc<Presentation>> {
        let is =
            |p: &&Arc<Presentation>| p.segment_ms == set.segment_ms && p.version == set.version;
        [&self.hls, &self.dash].into_iter().find(is)
    }

    /// The file of a rendition.
    pub(crate) fn object(&self, file: usize) -> Result<&Arc<Object>, Error> {
        let file = self.files.get(file).map(|file| &file.object);
        file.ok_or_else(|| Error::internal("a rendition without a file"))
    }

    /// What people may call it: the path's last name without its suffix.
    pub(crate) fn name(&self) -> &str {
        name_of(&self.key)
    }

    /// `file`, `folder`, or `index` where other files are named by what the title's path leads to.
    pub(crate) fn kind(&self) -> &'static str {
        let own = Place::library(&self.key);
        match () {
            () if self.naming.iter().any(|(place, _)| *place == own) => "index",
            () if self.files.first().is_some_and(|file| file.place == own) => "file",
            () => "folder",
        }
    }

    /// Memory, estimated once.
    pub(crate) fn bytes(&self) -> usize {
        let indexes = self
            .hls
            .files
            .iter()
            .map(|index| index.heap_bytes() + FILE_BYTES);
        let segments = |p: &Presentation| p.renditions.iter().map(|r| r.segments()).sum::<usize>();
        let segments = segments(&self.hls) + segments(&self.dash);
        // What an index MP4 expands to begins with its tables again.
        let naming = self
            .naming
            .iter()
            .map(|(_, identity)| identity.len as usize);
        indexes.sum::<usize>() + segments * SEGMENT_TEXT_BYTES + naming.sum::<usize>()
    }
}
