//! Opens and indexes the files of a title, which are films, index MP4s and server manifests. An
//! index MP4 names media files. A server manifest names films or index MP4s.
//!
//! The target of an index MP4 is always read as media, and the target of a server manifest is never
//! read as a server manifest. References can therefore not form a cycle.

use crate::error;
use crate::title::caption_channels::find_captions;
use crate::title::file_names::{FILES_MAX, is_server_manifest};
use crate::title::index_cache::IndexCache;
use crate::title::indexer::{self, MediaOrReferences};
use crate::title::left_out::LeftOutPart;
use crate::title::stores::{FileLocation, MediaStores};
use media::bmff::dref::DataReference;
use media::index::{ExternalReferences, Index, MediaVersion, Track};
use media::ism::{self, SmilTrack, SmilTrackKind};
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::{Key, Object, ObjectVersion, RequestReason};

/// The media files of a title, and the files that name them.
#[derive(Default)]
pub(crate) struct TitleSources {
    /// Location, open file and index of each media file.
    pub(crate) media: Vec<(FileLocation, Arc<Object>, Arc<Index>)>,
    /// Files that only name other files, each with the version that was read.
    pub(crate) naming_files: Vec<(FileLocation, ObjectVersion)>,
    /// Text files that cannot be read.
    pub(crate) left_out: Vec<LeftOutPart>,
}

/// Maximum number of remote files of a title that are indexed in parallel.
const FILES_AT_ONCE: usize = 8;

impl TitleSources {
    /// Opens and indexes the files at `keys` of the library. Blocks.
    ///
    /// # Errors
    /// If a file cannot be read or packaged, or if a reference cannot be followed. The error names
    /// the file.
    pub(crate) fn open_sources<'a>(
        stores: &MediaStores,
        index_cache: &IndexCache,
        keys: impl Iterator<Item = &'a Key>,
    ) -> Result<TitleSources, Error> {
        let mut opening = SourceOpener {
            stores,
            index_cache,
            sources: TitleSources::default(),
        };
        let (manifests, films): (Vec<_>, Vec<_>) = keys
            .map(FileLocation::locate_in_library)
            .partition(|place| is_server_manifest(place.key.name()));
        for place in manifests {
            opening.add_server_manifest(place)?;
        }
        let films: Vec<_> = films.into_iter().map(|place| (place, None)).collect();
        opening.add_media_files(&films, &|_, e| error::from_store(e))?;
        Ok(opening.sources)
    }

    /// Returns the paths of all files of the title that are in the library.
    pub(crate) fn library_keys(&self) -> impl Iterator<Item = &Key> {
        let media = self.media.iter().map(|(place, ..)| place);
        let naming = self.naming_files.iter().map(|(place, _)| place);
        media.chain(naming).filter_map(FileLocation::library_key)
    }

    /// Returns the version that a file had when it was opened.
    pub(crate) fn opened_version_of(&self, place: &FileLocation) -> Option<ObjectVersion> {
        let media = self.media.iter().find(|(known, ..)| known == place);
        let naming = self.naming_files.iter().find(|(known, _)| known == place);
        let media = media.map(|(_, object, _)| *object.version());
        media.or_else(|| naming.map(|(_, identity)| *identity))
    }
}

/// Opens the sources of a title, and collects the opened sources.
struct SourceOpener<'a> {
    stores: &'a MediaStores,
    index_cache: &'a IndexCache,
    sources: TitleSources,
}

impl SourceOpener<'_> {
    fn add_server_manifest(&mut self, place: FileLocation) -> Result<(), Error> {
        let object = self.stores.open_server_manifest(&place);
        let object = object.map_err(|e| error::from_store(&e))?;
        let of_media = |e| error::from_media(place.key.as_str(), &e);
        let bytes_max = object.len().min(ism::SERVER_MANIFEST_BYTES_MAX as u64 + 1);
        let text = object.read(0..bytes_max, RequestReason::Manifest);
        let tracks = ism::parse_server_manifest(&text.map_err(|e| error::from_store(&e))?)
            .map_err(of_media)?;
        self.sources
            .naming_files
            .push((place.clone(), *object.version()));
        let mut files: Vec<(FileLocation, Vec<SmilTrack>)> = Vec::new();
        for track in tracks {
            let named = resolve_reference(self.stores, &place, &track.src)?;
            match files.iter_mut().find(|(known, _)| *known == named) {
                Some((_, tracks)) => tracks.push(track),
                None => files.push((named, vec![track])),
            }
        }
        let shown = |(_, tracks): &(FileLocation, Vec<SmilTrack>)| {
            tracks.iter().any(|track| track.kind != SmilTrackKind::Text)
        };
        let (media, text): (Vec<_>, Vec<_>) = files.into_iter().partition(shown);
        let wrong = |named: &FileLocation, e: &store::Error| {
            error::from_referenced_file_error(&place.key, &named.key, e)
        };
        let listed = |files: Vec<(FileLocation, Vec<SmilTrack>)>| {
            let files = files.into_iter();
            let files = files.map(|(named, tracks)| (named, Some(tracks)));
            files.collect::<Vec<_>>()
        };
        self.add_media_files(&listed(media), &wrong)?;
        // An error in a text file is not an error of the title, because the film plays without this
        // text.
        for file in listed(text) {
            let place = file.0.clone();
            // A missing text file keeps its status, which distinguishes it from a storage failure.
            let wrong_text = |named: &FileLocation, e: &store::Error| match e {
                store::Error::NotFound => error::from_store(e),
                e => wrong(named, e),
            };
            if let Err(error) = self.add_media_files(&[file], &wrong_text) {
                let part = LeftOutPart::from_manifest_text_error(&place, &error);
                self.sources.left_out.push(part);
            }
        }
        Ok(())
    }

    /// Adds films and the media that index MP4s name. If a list of tracks is given for a file, adds
    /// only these tracks. Remote files are read in parallel. `wrong` converts the error of a file
    /// that cannot be opened.
    fn add_media_files(
        &mut self,
        files: &[(FileLocation, Option<Vec<SmilTrack>>)],
        wrong: &(dyn Fn(&FileLocation, &store::Error) -> Error + Sync),
    ) -> Result<(), Error> {
        let remote = files
            .iter()
            .any(|(place, _)| self.stores.is_remote_file(place));
        for files in files.chunks(if remote { FILES_AT_ONCE } else { 1 }) {
            let new: Vec<_> = files
                .iter()
                .filter(|(place, _)| !self.has_media_file(place))
                .collect();
            let (stores, index_cache) = (self.stores, self.index_cache);
            let open_and_index = |place: &FileLocation| {
                let object = stores.open_file(place).map_err(|e| wrong(place, &e))?;
                let indexed = index_cache.load_or_build(stores, place, &object)?;
                Ok((Arc::new(object), indexed))
            };
            let opened = match &new[..] {
                [(place, _)] => vec![open_and_index(place)],
                new => index_in_parallel(new.iter().map(|(place, _)| place), open_and_index),
            };
            for ((place, listed_tracks), opened) in new.into_iter().zip(opened) {
                let (object, indexed) = opened?;
                self.add_media_file(place.clone(), object, indexed, listed_tracks.as_deref())?;
            }
        }
        Ok(())
    }

    /// Adds a film, or the media that an index MP4 names. If `listed_tracks` is given, adds only
    /// these tracks.
    fn add_media_file(
        &mut self,
        place: FileLocation,
        object: Arc<Object>,
        indexed: MediaOrReferences,
        listed_tracks: Option<&[SmilTrack]>,
    ) -> Result<(), Error> {
        match indexed {
            // The film was added before, either directly or through an index MP4.
            _ if self.has_media_file(&place) => Ok(()),
            MediaOrReferences::Media(index) => self.push_media(place, object, index, listed_tracks),
            MediaOrReferences::References(references) => {
                self.sources
                    .naming_files
                    .push((place.clone(), *object.version()));
                self.add_index_mp4_media(&place, &object, references, listed_tracks)
            }
        }
    }

    fn add_index_mp4_media(
        &mut self,
        holder: &FileLocation,
        own: &Arc<Object>,
        mut references: ExternalReferences,
        listed_tracks: Option<&[SmilTrack]>,
    ) -> Result<(), Error> {
        for (n, location) in references.data_references().to_vec().iter().enumerate() {
            let (place, object) = match location {
                DataReference::SameFile => (holder.clone(), own.clone()),
                DataReference::External(name) => {
                    let place = resolve_reference(self.stores, holder, name)?;
                    if self.has_media_file(&place) {
                        continue;
                    }
                    // The first read of a segment verifies the declared version, so no look-up is
                    // needed here.
                    let object = match references.recorded_media_len() {
                        Some(len) => self.stores.open_declared_version(
                            &place,
                            ObjectVersion {
                                len,
                                tag: references.recorded_entity_tag_hash().unwrap_or(0),
                                ..ObjectVersion::default()
                            },
                        ),
                        None => self.stores.open_file(&place),
                    };
                    let of_named =
                        |e| error::from_referenced_file_error(&holder.key, &place.key, &e);
                    (place.clone(), Arc::new(object.map_err(of_named)?))
                }
            };
            let index = references.build_index(n, object.len());
            let mut index = index.map_err(|e| error::from_media(holder.key.as_str(), &e))?;
            if references.recorded_media_len().is_none() {
                let probed = indexer::tag_or_probe_hash(&object);
                index.fingerprint ^= probed.map_err(|e| error::from_store(&e))?;
            }
            // Probes only local media, because the probe of a remote file would cost a request.
            if let Some(MediaVersion::ContentHash(hash)) = index.media_version
                && !object.is_remote()
                && indexer::hash_probed_bytes(&object).map_err(|e| error::from_store(&e))? != hash
            {
                let what = "the media was replaced after it was indexed; index it again";
                let error = media::Error::unsupported(what);
                return Err(error::from_media(holder.key.as_str(), &error));
            }
            // Searches the video for captions. The search is needed only if another program or an
            // earlier version wrote the index MP4, because newer index MP4s contain the caption
            // channels.
            if index.caption_channels.is_none() && !object.is_remote() {
                index.caption_channels = find_captions(&object, &index);
            }
            self.push_media(place, object, index, listed_tracks)?;
        }
        Ok(())
    }

    /// Returns whether a media file was added already. A folder may contain a film and also an
    /// index MP4 of this film.
    fn has_media_file(&self, place: &FileLocation) -> bool {
        self.sources.media.iter().any(|(known, ..)| known == place)
    }

    fn push_media(
        &mut self,
        place: FileLocation,
        object: Arc<Object>,
        mut index: Index,
        listed_tracks: Option<&[SmilTrack]>,
    ) -> Result<(), Error> {
        if self.sources.media.len() >= FILES_MAX {
            return Err(error::too_many_title_files(&place.key));
        }
        if let Some(listed_tracks) = listed_tracks {
            select_manifest_tracks(&mut index, listed_tracks);
        }
        self.sources.media.push((place, object, Arc::new(index)));
        Ok(())
    }
}

/// Opens and indexes files in parallel, with one thread per file.
fn index_in_parallel<'a, T: Send>(
    places: impl Iterator<Item = &'a FileLocation>,
    open_and_index: impl Fn(&FileLocation) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let open_and_index = &open_and_index;
    std::thread::scope(|scope| {
        let threads: Vec<_> = places
            .map(|place| scope.spawn(trace::bind_trace_blocking(move || open_and_index(place))))
            .collect();
        let ended = |_| Err(Error::new_internal_error("an indexing thread panicked"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(ended))
            .collect()
    })
}

/// Resolves a reference, or reports why it is not followed.
fn resolve_reference(
    stores: &MediaStores,
    holder: &FileLocation,
    name: &str,
) -> Result<FileLocation, Error> {
    let place = stores.resolve_reference(holder, name);
    place.map_err(|bad| error::from_reference_error(&holder.key, name, &bad))
}

/// Keeps only the tracks that a server manifest lists. Tracks are matched by track number if any
/// number matches, otherwise by kind. If the file declares no language for a track, sets the
/// language that the manifest declares.
fn select_manifest_tracks(index: &mut Index, listed_tracks: &[SmilTrack]) {
    let before = index.tracks.len();
    let set_languages = retain_listed_tracks(&mut index.tracks, listed_tracks);
    // The fingerprint need not cover the languages of text tracks, because text has a separate
    // version that depends on these languages.
    retain_listed_tracks(&mut index.text_tracks, listed_tracks);
    if index.tracks.len() < before || !set_languages.is_empty() {
        // A different selection of tracks gives different renditions, so the segments need
        // different names.
        let mut hasher = DefaultHasher::new();
        let left: Vec<u32> = index.tracks.iter().map(|track| track.id).collect();
        (left, set_languages).hash(&mut hasher);
        index.fingerprint ^= hasher.finish();
    }
}

/// Removes the tracks that the list does not contain. If no listed track has the same kind as one
/// of `tracks`, all tracks stay. Adds the roles that the list declares. Sets the declared languages
/// for tracks without a language, and returns these languages.
fn retain_listed_tracks<'a>(
    tracks: &mut Vec<Track>,
    listed_tracks: &'a [SmilTrack],
) -> Vec<(u32, &'a String)> {
    let kind = |track: &Track| match (track.codec.video(), track.codec.text()) {
        (Some(_), _) => SmilTrackKind::Video,
        (_, Some(_)) => SmilTrackKind::Text,
        _ => SmilTrackKind::Audio,
    };
    let numbered = |track: &Track| {
        let mut listed_tracks = listed_tracks.iter();
        listed_tracks.find(|source| source.kind == kind(track) && source.track_id == Some(track.id))
    };
    let of_kind = |track: &Track| {
        listed_tracks
            .iter()
            .find(|source| source.kind == kind(track))
    };
    let by_number = tracks.iter().any(|track| numbered(track).is_some());
    let by_kind = tracks.iter().any(|track| of_kind(track).is_some());
    let find = |track: &Track| match by_number {
        true => numbered(track),
        false => of_kind(track),
    };
    let mut set_languages = Vec::new();
    if by_kind {
        tracks.retain(|track| find(track).is_some());
        for track in tracks {
            let role = find(track).and_then(|source| source.text_role);
            let role = role.filter(|role| !track.roles.contains(role));
            track.roles.extend(role);
            let language = find(track).and_then(|source| source.language.as_ref());
            if let Some(language) = language.filter(|_| track.language == "und") {
                track.language.clone_from(language);
                set_languages.push((track.id, language));
            }
        }
    }
    set_languages
}
