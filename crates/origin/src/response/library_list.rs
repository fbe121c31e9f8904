//! The list of titles, for the page.

mod ignored_files;
mod remote_listing;

use crate::library_status::describe_failure;
use crate::response::encoded_variants::EncodedVariants;
use crate::response::responder::ClientRequest;
use crate::title::catalog::Catalog;
use crate::title::file_names;
use crate::title::file_names::is_server_manifest;
use crate::title::natural_order::{compare_names, compare_paths};
use crate::title::several_films::are_several_films;
use crate::title::title_files::TitleFiles;
use crate::title::title_version::Title;
use futures_util::stream::{self, StreamExt};
use http::Response;
use http::header::HeaderValue;
use ignored_files::IgnoredFiles;
use media::presentation::{Presentation, Rendition};
use net::{Body, Error};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Key, Store};
use tokio::sync::Mutex;

/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 8;
/// Maximum number of listed titles.
const TITLES_MAX: usize = 5000;
/// Folders examined in parallel.
const FOLDERS_AT_ONCE: usize = 8;
/// Time for which a list is reused; longer on a network, where building it costs requests.
const LIST_MAX_AGE: Duration = Duration::from_secs(2);
const LIST_MAX_AGE_REMOTE: Duration = Duration::from_secs(30);
/// Times for which a list waits for one title and for all of them: a key server or a disk may hang. Titles that are
/// late are listed by name, and are complete in a later list.
const TITLE_WAIT: Duration = Duration::from_secs(3);
const LIST_WAIT: Duration = Duration::from_secs(10);

/// The list, with the title cards of the previous scan, so that the next one is cheap.
pub(crate) struct CachedLibraryList {
    catalog: Arc<Catalog>,
    state: Mutex<ListState>,
}

#[derive(Default)]
struct ListState {
    list: Option<(Instant, Arc<EncodedVariants>)>,
    cards: TitleCards,
    /// Logged when they change.
    ignored: IgnoredFiles,
}

#[derive(Serialize)]
struct LibraryDocument<'a> {
    titles: Vec<&'a TitleCard>,
    /// Whether the library has more titles than are listed.
    truncated: bool,
    source: LibrarySource,
    ignored: &'a IgnoredFiles,
}

/// Kind of the library, for the page's texts.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum LibrarySource {
    /// A local folder.
    Folder,
    /// An object store.
    Storage,
    /// An HTTP server, which cannot be listed.
    Unlisted,
}

/// Counts the titles of a remote library by its listing, and reports whether there are more. Blocks.
///
/// # Errors
/// If the root cannot be listed.
pub(crate) fn list_remote_titles(store: &Store) -> Result<(usize, bool), store::Error> {
    let (titles, truncated) = remote_listing::list_titles(store)?;
    Ok((titles.len(), truncated))
}

/// Summary of a title.
#[derive(Serialize)]
struct TitleCard {
    path: String,
    name: String,
    /// `file`, `folder` or `index`.
    kind: &'static str,
    /// `None` for a remote title that was not requested yet, and for one that is not indexed in time.
    duration_ms: Option<i64>,
    bytes: u64,
    video: Vec<VideoSummary>,
    audio: Vec<AudioSummary>,
    /// The reason why the title cannot be played, if any.
    error: Option<String>,
    /// Whether the files are several films instead of one.
    #[serde(skip)]
    several: bool,
    /// Whether the next list may know more, although the files are the same.
    #[serde(skip)]
    is_temporary: bool,
}

#[derive(Serialize)]
struct VideoSummary {
    width: u32,
    height: u32,
    codecs: String,
    bitrate: u64,
}

#[derive(Serialize)]
struct AudioSummary {
    language: String,
    codecs: String,
    channels: String,
}

impl CachedLibraryList {
    pub(crate) fn new(catalog: Arc<Catalog>) -> CachedLibraryList {
        CachedLibraryList {
            catalog,
            state: Mutex::default(),
        }
    }

    /// Responds with the list.
    pub(crate) async fn respond(
        &self,
        request: &ClientRequest<'_>,
    ) -> Result<Response<Body>, Error> {
        // One scan at a time. Concurrent requests get its result.
        let mut state = self.state.lock().await;
        let reuse_time = match self.catalog.film_store().is_remote() {
            true => LIST_MAX_AGE_REMOTE,
            false => LIST_MAX_AGE,
        };
        let text = match &state.list {
            Some((made, text)) if made.elapsed() < reuse_time => text.clone(),
            _ => {
                let text = self.build_list(&mut state).await?;
                state.list = Some((Instant::now(), text.clone()));
                text
            }
        };
        drop(state);
        Ok(text.respond(request).await)
    }

    async fn build_list(&self, state: &mut ListState) -> Result<Arc<EncodedVariants>, Error> {
        let store = self.catalog.film_store().clone();
        if store.is_remote() {
            let walk = tokio::task::spawn_blocking(move || remote_listing::list_titles(&store));
            let listed = walk.await.map_err(|e| crate::error::from_task(&e))?;
            let (found, truncated) = match listed {
                Ok(listed) => listed,
                Err(store::Error::Unlisted) => {
                    let none = IgnoredFiles::default();
                    return write_list(Vec::new(), false, LibrarySource::Unlisted, &none);
                }
                Err(error) => {
                    let context = describe_failure(&error);
                    return Err(Error {
                        context,
                        ..crate::error::from_store(&error)
                    });
                }
            };
            let cards = found
                .into_iter()
                .map(|found| self.card_without_requests(found));
            let cards: Vec<_> = cards.collect();
            let none = IgnoredFiles::default();
            let titles = cards.iter().collect();
            return write_list(titles, truncated, LibrarySource::Storage, &none);
        }
        let walk = tokio::task::spawn_blocking(move || find_films(&store));
        let (places, ignored) = walk.await.map_err(|e| crate::error::from_task(&e))?;
        if ignored != state.ignored {
            ignored.log(&self.catalog.film_store().location());
            state.ignored = ignored;
        }
        let (mut cards, mut listed) = (HashMap::new(), Vec::new());
        let known = KnownCards {
            cards: &state.cards,
            deadline: Instant::now() + LIST_WAIT,
        };
        let found = stream::iter(places).map(|place| self.titles_in_folder(place, &known));
        let mut found = found.buffered(FOLDERS_AT_ONCE);
        while let Some((keys, looked)) = found.next().await {
            listed.extend(keys);
            cards.extend(looked);
        }
        drop(found);
        let truncated = listed.len() > TITLES_MAX;
        listed.truncate(TITLES_MAX);
        state.cards = cards;
        let titles = listed.iter().filter_map(|key| state.cards.get(key));
        let cards = titles.map(|(_, card)| &**card).collect();
        write_list(cards, truncated, LibrarySource::Folder, &state.ignored)
    }

    /// Returns the card of a remote title without sending requests: from the catalog, otherwise
    /// from its name and the listing.
    fn card_without_requests(&self, found: remote_listing::ListedTitle) -> TitleCard {
        match self.catalog.peek_title(&found.key) {
            Some(Ok(title)) => TitleCard::from_title(&title),
            Some(Err(error)) => TitleCard::from_error(&found.key, &error),
            None => TitleCard::from_listing(found),
        }
    }

    /// Returns the titles of a folder: the folder itself if its files form one film, otherwise each
    /// file; and the cards examined on the way.
    async fn titles_in_folder(
        &self,
        place: LibraryFolder,
        known: &KnownCards<'_>,
    ) -> (Vec<Key>, TitleCards) {
        let mut cards = TitleCards::new();
        if place.files.len() > 1
            && let Some(found) = place.version_hash
        {
            let card = self.find_or_build_card(&place.folder, found, known).await;
            // A folder is not taken apart because its keys or its storage fail for a while.
            let one_film = card.is_temporary || (card.error.is_none() && !card.several);
            cards.insert(place.folder.clone(), (found, card));
            if one_film {
                return (vec![place.folder], cards);
            }
        }
        let mut keys = Vec::new();
        for (key, found) in place.files {
            let card = self.find_or_build_card(&key, found, known).await;
            cards.insert(key.clone(), (found, card));
            keys.push(key);
        }
        (keys, cards)
    }

    async fn find_or_build_card(
        &self,
        key: &Key,
        found: u64,
        known: &KnownCards<'_>,
    ) -> Arc<TitleCard> {
        if let Some((then, card)) = known.cards.get(key)
            && *then == found
            && !card.is_temporary
        {
            return card.clone();
        }
        let wait = TITLE_WAIT.min(known.deadline.saturating_duration_since(Instant::now()));
        if wait.is_zero() {
            // Starts no build: each list would leave thousands of them behind.
            return Arc::new(match self.catalog.peek_title(key) {
                Some(Ok(title)) => TitleCard::from_title(&title),
                Some(Err(error)) => TitleCard::from_error(key, &error),
                None => TitleCard::from_name(key),
            });
        }
        // The title is built in a task of its own, which goes on.
        let loaded = tokio::time::timeout(wait, self.catalog.load_title(key)).await;
        Arc::new(match loaded {
            Ok(Ok(title)) => TitleCard::from_title(&title),
            Ok(Err(error)) => TitleCard::from_error(key, &error),
            Err(_late) => TitleCard::from_name(key),
        })
    }
}

/// The cards of the previous scan, and the time until which this one waits for titles.
struct KnownCards<'a> {
    cards: &'a TitleCards,
    deadline: Instant,
}

type TitleCards = HashMap<Key, (u64, Arc<TitleCard>)>;

impl TitleCard {
    fn from_title(title: &Title) -> TitleCard {
        let p = &*title.hls;
        TitleCard {
            path: title.key.as_str().to_owned(),
            name: title.display_name().to_owned(),
            kind: title.path_kind(),
            duration_ms: Some(p.duration.round_to(1000)),
            bytes: title.files.iter().map(|file| file.object.len()).sum(),
            video: p
                .video_renditions()
                .filter_map(|r| VideoSummary::from_rendition(p, r))
                .collect(),
            audio: p
                .audio_renditions()
                .filter_map(|r| AudioSummary::from_rendition(p, r))
                .collect(),
            error: None,
            several: are_several_films(p),
            is_temporary: false,
        }
    }

    fn from_listing(found: remote_listing::ListedTitle) -> TitleCard {
        TitleCard {
            path: found.key.as_str().to_owned(),
            name: file_names::display_name_of(&found.key).to_owned(),
            kind: found.kind,
            duration_ms: None,
            bytes: found.bytes,
            video: Vec::new(),
            audio: Vec::new(),
            error: None,
            several: false,
            is_temporary: true,
        }
    }

    fn from_error(key: &Key, error: &Error) -> TitleCard {
        TitleCard {
            error: Some(error.context.clone()),
            is_temporary: error.retry,
            ..TitleCard::from_name(key)
        }
    }

    fn from_name(key: &Key) -> TitleCard {
        TitleCard {
            path: key.as_str().to_owned(),
            name: file_names::display_name_of(key).to_owned(),
            kind: if file_names::is_media(key.name()) {
                "file"
            } else {
                "folder"
            },
            duration_ms: None,
            bytes: 0,
            video: Vec::new(),
            audio: Vec::new(),
            error: None,
            several: false,
            is_temporary: true,
        }
    }
}

impl VideoSummary {
    fn from_rendition(p: &Presentation, r: &Rendition) -> Option<VideoSummary> {
        let codec = &p.track(r).codec;
        let video = codec.video()?;
        Some(VideoSummary {
            width: video.width,
            height: video.height,
            codecs: codec.codec_string.clone(),
            bitrate: r.bandwidth.average,
        })
    }
}

impl AudioSummary {
    fn from_rendition(p: &Presentation, r: &Rendition) -> Option<AudioSummary> {
        let track = p.track(r);
        let audio = track.codec.audio()?;
        Some(AudioSummary {
            language: track.language.clone(),
            codecs: track.codec.codec_string.clone(),
            channels: audio.hls_channels.clone(),
        })
    }
}

/// Writes the list as JSON.
fn write_list(
    titles: Vec<&TitleCard>,
    truncated: bool,
    source: LibrarySource,
    ignored: &IgnoredFiles,
) -> Result<Arc<EncodedVariants>, Error> {
    let text = serde_json::to_string(&LibraryDocument {
        titles,
        truncated,
        source,
        ignored,
    });
    let text =
        text.map_err(|e| Error::internal(format_args!("cannot write the list of titles: {e}")))?;
    const SOON: HeaderValue = HeaderValue::from_static("no-cache");
    let json = HeaderValue::from_static("application/json");
    Ok(Arc::new(EncodedVariants::new(
        json,
        SOON,
        None,
        text.into(),
    )))
}

/// A folder that contains films.
struct LibraryFolder {
    folder: Key,
    /// Version of all its films together.
    version_hash: Option<u64>,
    /// Its films with their versions.
    files: Vec<(Key, u64)>,
}

/// Finds the films of a library, skipping unreadable entries. Blocks.
fn find_films(store: &Store) -> (Vec<LibraryFolder>, IgnoredFiles) {
    let (mut places, mut ignored) = (Vec::new(), IgnoredFiles::default());
    let mut count = 0;
    let mut ahead = vec![(Key::ROOT, 0)];
    while let Some((key, depth)) = ahead.pop() {
        let Ok(listing) = store.list_with_links(&key) else {
            continue;
        };
        ignored.add_links(&key, &listing.links_out);
        let mut files = Vec::new();
        for entry in listing.entries {
            let Ok(child) = key.join(&entry.name) else {
                continue;
            };
            match entry.file {
                None if depth < DEPTH_MAX => ahead.push((child, depth + 1)),
                Some(_) if file_names::is_media(&entry.name) || is_server_manifest(&entry.name) => {
                    files.extend(
                        TitleFiles::find_media(store, &child)
                            .map(|found| (child, found.version_hash())),
                    );
                }
                Some(_) => ignored.add_foreign_film(&child),
                None => {}
            }
        }
        files.sort_by(|(a, _), (b, _): &(Key, u64)| compare_names(a.name(), b.name()));
        count += files.len();
        if !files.is_empty() {
            let found = TitleFiles::find_media(store, &key)
                .ok()
                .map(|found| found.version_hash());
            places.push(LibraryFolder {
                folder: key,
                version_hash: found,
                files,
            });
        }
        if count > TITLES_MAX {
            break;
        }
    }
    places.sort_by(|a, b| compare_paths(a.folder.as_str(), b.folder.as_str()));
    (places, ignored)
}
