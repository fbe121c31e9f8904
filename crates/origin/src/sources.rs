//! A title's files opened and indexed: films as they are, index MP4s and what they name, and
//! server manifests, which name either.
//!
//! Names lead one step: what an index MP4 names is read as media whatever it is, and what a server
//! manifest names is no server manifest; so there are no circles to follow.

use crate::error;
use crate::indexer::{self, Indexed};
use crate::kept::Kept;
use crate::stores::{Place, Stores};
use crate::title::FILES_MAX;
use media::bmff::dref::Location;
use media::index::{Index, MediaState, References, Track};
use media::ism::{self, Kind, Source};
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::{Identity, Key, Object, Reason};

/// Everything that a title is made of.
#[derive(Default)]
pub(crate) struct Sources {
    /// Where the media lies, and an index of each.
    pub(crate) media: Vec<(Place, Arc<Object>, Arc<Index>)>,
    /// Files that only name others, as they were when read.
    pub(crate) naming: Vec<(Place, Identity)>,
}

/// Files of a title that are read at the same time, over a network.
const FILES_AT_ONCE: usize = 8;

/// Whether a file of this name is a server manifest.
pub(crate) fn is_server_manifest(name: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("ism"))
}

impl Sources {
    /// Opens and indexes the files at `keys` of the library. Blocks.
    ///
    /// # Errors
    /// What cannot be read, followed or packaged, naming the file.
    pub(crate) fn open<'a>(
        stores: &Stores,
        kept: &Kept,
        keys: impl Iterator<Item = &'a Key>,
    ) -> Result<Sources, Error> {
        let mut opening = Opening {
            stores,
            kept,
            found: Sources::default(),
        };
        let (manifests, films): (Vec<_>, Vec<_>) = keys
            .map(Place::library)
            .partition(|place| is_server_manifest(place.key.name()));
        for place in manifests {
            opening.add_manifest(place)?;
        }
        let films: Vec<_> = films.into_iter().map(|place| (place, None)).collect();
        opening.add_all(&films, &|_, e| error::of_store(e))?;
        Ok(opening.found)
    }

    /// The state that a file was in when it was opened.
    pub(crate) fn identity(&self, place: &Place) -> Option<Identity> {
        let media = self.media.iter().find(|(known, ..)| known == place);
        let naming = self.naming.iter().find(|(known, _)| known == place);
        let media = media.map(|(_, object, _)| *object.identity());
        media.or_else(|| naming.map(|(_, identity)| *identity))
    }
}

/// Sources on their way.
struct Opening<'a> {
    stores: &'a Stores,
    kept: &'a Kept,
    found: Sources,
}

impl Opening<'_> {
    fn add_manifest(&mut self, place: Place) -> Result<(), Error> {
        let object = self.stores.open_manifest(&place);
        let object = object.map_err(|e| error::of_store(&e))?;
        let of_media = |e| error::of_media(place.key.as_str(), &e);
        let most = object.len().min(ism::TEXT_BYTES_MAX as u64 + 1);
        let text = object.read(0..most, Reason::Manifest);
        let tracks = ism::read(&text.map_err(|e| error::of_store(&e))?).map_err(of_media)?;
        self.found.naming.push((place.clone(), *object.identity()));
        let mut files: Vec<(Place, Vec<Source>)> = Vec::new();
        for track in tracks {
            let named = follow(self.stores, &place, &track.src)?;
            match files.iter_mut().find(|(known, _)| *known == named) {
                Some((_, tracks)) => tracks.push(track),
                None => files.push((named, vec![track])),
            }
        }
        let shown = |(_, tracks): &(Place, Vec<Source>)| {
            tracks.iter().any(|track| track.kind != Kind::Text)
        };
        let files = files.into_iter().filter(shown);
        let files: Vec<_> = files.map(|(named, tracks)| (named, Some(tracks))).collect();
        self.add_all(&files, &|named, e| {
            error::of_named(&place.key, &named.key, e)
        })
    }

    /// Adds films, or what index MP4s name; of each what its list wants, if there is one. Over a
    /// network several are read at the same time. `wrong`: what it means that one cannot be had.
    fn add_all(
        &mut self,
        files: &[(Place, Option<Vec<Source>>)],
        wrong: &(dyn Fn(&Place, &store::Error) -> Error + Sync),
    ) -> Result<(), Error> {
        let remote = files.iter().any(|(place, _)| self.stores.is_remote(place));
        for files in files.chunks(if remote { FILES_AT_ONCE } else { 1 }) {
            let new: Vec<_> = files.iter().filter(|(place, _)| !self.has(place)).collect();
            let (stores, kept) = (self.stores, self.kept);
            let look = |place: &Place| {
                let object = stores.open(place).map_err(|e| wrong(place, &e))?;
                let indexed = kept.index(stores, place, &object)?;
                Ok((Arc::new(object), indexed))
            };
            let looked = match &new[..] {
                [(place, _)] => vec![look(place)],
                new => at_once(new.iter().map(|(place, _)| place), look),
            };
            for ((place, wanted), looked) in new.into_iter().zip(looked) {
                let (object, indexed) = looked?;
                self.add(place.clone(), object, indexed, wanted.as_deref())?;
            }
        }
        Ok(())
    }

    /// Adds a film, or what an index MP4 names; of it what `wanted` lists, if it does.
    fn add(
        &mut self,
        place: Place,
        object: Arc<Object>,
        indexed: Indexed,
        wanted: Option<&[Source]>,
    ) -> Result<(), Error> {
        match indexed {
            // A film of its own file, and one that an index MP4 named meanwhile.
            _ if self.has(&place) => Ok(()),
            Indexed::Film(index) => self.push(place, object, index, wanted),
            Indexed::References(references) => {
                self.found.naming.push((place.clone(), *object.identity()));
                self.add_named(&place, &object, references, wanted)
            }
        }
    }

    fn add_named(
        &mut self,
        holder: &Place,
        own: &Arc<Object>,
        mut references: References,
        wanted: Option<&[Source]>,
    ) -> Result<(), Error> {
        for (n, location) in references.places().to_vec().iter().enumerate() {
            let (place, object) = match location {
                Location::Here => (holder.clone(), own.clone()),
                Location::Named(name) => {
                    let place = follow(self.stores, holder, name)?;
                    if self.has(&place) {
                        continue;
                    }
                    // What it says of its media is proved by the first segment read of it.
                    let object = match references.media_len() {
                        Some(len) => self.stores.promise(
                            &place,
                            Identity {
                                len,
                                tag: references.media_tag().unwrap_or(0),
                                ..Identity::default()
                            },
                        ),
                        None => self.stores.open(&place),
                    };
                    let of_named = |e| error::of_named(&holder.key, &place.key, &e);
                    (place.clone(), Arc::new(object.map_err(of_named)?))
                }
            };
            let index = references.index(n, object.len());
            let mut index = index.map_err(|e| error::of_media(holder.key.as_str(), &e))?;
            if references.media_len().is_none() {
                let probed = indexer::told_apart(&object);
                index.fingerprint ^= probed.map_err(|e| error::of_store(&e))?;
            }
            // Over a network each look at the media would be a request.
            if let Some(MediaState::Bytes(hash)) = index.media_state
                && !object.is_remote()
                && indexer::probe(&object).map_err(|e| error::of_store(&e))? != hash
            {
                let what = "its media was replaced since it was indexed: index it again";
                let error = media::Error::unsupported(what);
                return Err(error::of_media(holder.key.as_str(), &error));
            }
            self.push(place, object, index, wanted)?;
        }
        Ok(())
    }

    /// Whether a medium is there already: a folder may hold a film and an index MP4 of it.
    fn has(&self, place: &Place) -> bool {
        self.found.media.iter().any(|(known, ..)| known == place)
    }

    fn push(
        &mut self,
        place: Place,
        object: Arc<Object>,
        mut index: Index,
        wanted: Option<&[Source]>,
    ) -> Result<(), Error> {
        if self.found.media.len() >= FILES_MAX {
            return Err(error::too_many_files(&place.key));
        }
        if let Some(wanted) = wanted {
            choose(&mut index, wanted);
        }
        self.found.media.push((place, object, Arc::new(index)));
        Ok(())
    }
}

/// Looks at files at the same time, a thread each.
fn at_once<'a, T: Send>(
    places: impl Iterator<Item = &'a Place>,
    look: impl Fn(&Place) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let look = &look;
    std::thread::scope(|scope| {
        let threads: Vec<_> = places
            .map(|place| scope.spawn(move || look(place)))
            .collect();
        let ended = |_| Err(Error::internal("a thread that indexes has failed"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(ended))
            .collect()
    })
}

/// Where a name leads, or why it is not followed.
fn follow(stores: &Stores, holder: &Place, name: &str) -> Result<Place, Error> {
    let place = stores.resolve(holder, name);
    place.map_err(|bad| error::of_reference(&holder.key, name, &bad))
}

/// Leaves those tracks of a file that a server manifest names: by number where the numbers fit,
/// else by kind. Gives them the languages that it says, where the file says none.
fn choose(index: &mut Index, wanted: &[Source]) {
    let before = index.tracks.len();
    let kind = |track: &Track| match track.codec.video() {
        Some(_) => Kind::Video,
        None => Kind::Audio,
    };
    let numbered = |track: &Track| {
        let mut wanted = wanted.iter();
        wanted.find(|source| source.kind == kind(track) && source.track == Some(track.id))
    };
    let of_kind = |track: &Track| wanted.iter().find(|source| source.kind == kind(track));
    let by_number = index.tracks.iter().any(|track| numbered(track).is_some());
    let by_kind = index.tracks.iter().any(|track| of_kind(track).is_some());
    let find = |track: &Track| match by_number {
        true => numbered(track),
        false => of_kind(track),
    };
    let mut said = Vec::new();
    if by_kind {
        index.tracks.retain(|track| find(track).is_some());
        for track in &mut index.tracks {
            let language = find(track).and_then(|source| source.language.as_ref());
            if let Some(language) = language.filter(|_| track.language == "und") {
                track.language.clone_from(language);
                said.push((track.id, language));
            }
        }
    }
    if index.tracks.len() < before || !said.is_empty() {
        // Other renditions: their segments must have other names.
        let mut hasher = DefaultHasher::new();
        let left: Vec<u32> = index.tracks.iter().map(|track| track.id).collect();
        (left, said).hash(&mut hasher);
        index.fingerprint ^= hasher.finish();
    }
}
