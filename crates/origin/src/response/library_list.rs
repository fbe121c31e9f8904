//! The list of titles, which the web page displays.

mod film_folders;
mod ignored_files;
pub(crate) mod remote_listing;
mod title_card;

use crate::library_status::describe_listing_failure;
use crate::response::compressible_text::CompressibleText;
use crate::response::responder::ClientRequest;
use crate::title::catalog::Catalog;
use film_folders::{FolderWithFilms, TITLES_MAX, find_films};
use futures_util::stream::{self, StreamExt};
use http::Response;
use http::header::HeaderValue;
use ignored_files::IgnoredFiles;
use net::{Body, Error};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Key;
use title_card::TitleCard;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Maximum number of folders that are examined in parallel.
const FOLDERS_AT_ONCE: usize = 8;
/// Maximum age of a reused list. The maximum age for a remote library is higher, because building
/// its list requires requests to the storage.
const LIST_MAX_AGE: Duration = Duration::from_secs(2);
const LIST_MAX_AGE_REMOTE: Duration = Duration::from_secs(30);
/// Maximum time that a list waits for one title. [`LIST_WAIT`] is the maximum for all titles
/// together. The limits are necessary because a key server or a disk may not respond. A late title
/// is listed by its name only. A later list contains its details.
const TITLE_WAIT: Duration = Duration::from_secs(3);
const LIST_WAIT: Duration = Duration::from_secs(10);

/// The list of titles, and the title cards of the previous scan. The next scan reuses the cards of
/// unchanged titles.
#[derive(Clone)]
pub(crate) struct CachedLibraryList {
    catalog: Arc<Catalog>,
    state: Arc<Mutex<ListState>>,
}

#[derive(Default)]
struct ListState {
    list: Option<(Instant, Arc<CompressibleText>)>,
    cards: CachedTitleCards,
    /// Ignored files of the previous scan. A scan logs its ignored files only if they differ from
    /// these files.
    ignored: IgnoredFiles,
}

#[derive(Serialize)]
struct LibraryDocument<'a> {
    titles: Vec<&'a TitleCard>,
    /// Whether the library contains more titles than the list.
    truncated: bool,
    source: LibraryKind,
    ignored: &'a IgnoredFiles,
}

/// Kind of the library. The web page displays different texts for each kind.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum LibraryKind {
    /// A local folder.
    Folder,
    /// An object store.
    Storage,
    /// An HTTP server, which cannot be listed.
    Unlisted,
}

impl CachedLibraryList {
    pub(crate) fn new(catalog: Arc<Catalog>) -> CachedLibraryList {
        CachedLibraryList {
            catalog,
            state: Arc::default(),
        }
    }

    /// Responds with the list.
    pub(crate) async fn respond_with_library_list(
        &self,
        request: &ClientRequest<'_>,
    ) -> Result<Response<Body>, Error> {
        // The lock permits one scan at a time. Concurrent requests wait for the result of that
        // scan.
        let state = self.state.clone().lock_owned().await;
        let reuse_time = match self.catalog.library().is_remote() {
            true => LIST_MAX_AGE_REMOTE,
            false => LIST_MAX_AGE,
        };
        let recent = state
            .list
            .as_ref()
            .filter(|(made, _)| made.elapsed() < reuse_time)
            .map(|(_, text)| text.clone());
        let text = match recent {
            Some(text) => {
                drop(state);
                text
            }
            None => self.start_scan(state).await?,
        };
        Ok(text.respond_in_preferred_coding(request).await)
    }

    /// Builds the list and stores it. The scan runs in a separate task, which holds the lock, so
    /// that the scan continues if the client disconnects. Otherwise, the next request would start
    /// another scan beside it.
    async fn start_scan(
        &self,
        mut state: OwnedMutexGuard<ListState>,
    ) -> Result<Arc<CompressibleText>, Error> {
        let list = self.clone();
        let scan = tokio::spawn(trace::bind_trace(async move {
            let text = list.build_list(&mut state).await?;
            state.list = Some((Instant::now(), text.clone()));
            Ok(text)
        }));
        scan.await
            .unwrap_or_else(|e| Err(crate::error::from_task(&e)))
    }

    async fn build_list(&self, state: &mut ListState) -> Result<Arc<CompressibleText>, Error> {
        let store = self.catalog.library().clone();
        if store.is_remote() {
            let walk = tokio::task::spawn_blocking(move || remote_listing::list_titles(&store));
            let listed = walk.await.map_err(|e| crate::error::from_task(&e))?;
            let (found, truncated) = match listed {
                Ok(listed) => listed,
                Err(store::Error::Unlisted) => {
                    let none = IgnoredFiles::default();
                    return write_library_document(Vec::new(), false, LibraryKind::Unlisted, &none);
                }
                Err(error) => {
                    let context = describe_listing_failure(&error);
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
            return write_library_document(titles, truncated, LibraryKind::Storage, &none);
        }
        let walk = tokio::task::spawn_blocking(move || find_films(&store));
        let (places, ignored) = walk.await.map_err(|e| crate::error::from_task(&e))?;
        if ignored != state.ignored {
            ignored.log_ignored_files(&self.catalog.library().location());
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
        write_library_document(cards, truncated, LibraryKind::Folder, &state.ignored)
    }

    /// Returns the card of a remote title without sending requests. If the catalog contains the
    /// title, the card comes from the catalog. Otherwise, it comes from the listing.
    fn card_without_requests(&self, found: remote_listing::ListedTitle) -> TitleCard {
        match self.catalog.peek_title(&found.key) {
            Some(Ok(title)) => TitleCard::from_title(&title),
            Some(Err(error)) => TitleCard::from_error(&found.key, &error),
            None => TitleCard::from_listing(found),
        }
    }

    /// Returns the titles of a folder. If the files form one film, the folder itself is the title.
    /// Otherwise, each file is a title. Also returns all cards that were found or built.
    async fn titles_in_folder(
        &self,
        place: FolderWithFilms,
        known: &KnownCards<'_>,
    ) -> (Vec<Key>, CachedTitleCards) {
        let mut cards = CachedTitleCards::new();
        if place.files.len() > 1
            && let Some(found) = place.version_hash
        {
            let card = self.find_or_build_card(&place.folder, found, known).await;
            // While keys or storage are temporarily unavailable, the folder remains one title.
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
            // Uses `peek_title`, which does not start a build. With `load_title`, each list could
            // start thousands of builds, which would continue after the list is complete.
            return Arc::new(match self.catalog.peek_title(key) {
                Some(Ok(title)) => TitleCard::from_title(&title),
                Some(Err(error)) => TitleCard::from_error(key, &error),
                None => TitleCard::from_path_only(key),
            });
        }
        // The title is built in its own task, which continues after the timeout.
        let loaded = tokio::time::timeout(wait, self.catalog.load_title(key)).await;
        Arc::new(match loaded {
            Ok(Ok(title)) => TitleCard::from_title(&title),
            Ok(Err(error)) => TitleCard::from_error(key, &error),
            Err(_late) => TitleCard::from_path_only(key),
        })
    }
}

/// The cards of the previous scan, and the time until which the current scan waits for titles.
struct KnownCards<'a> {
    cards: &'a CachedTitleCards,
    deadline: Instant,
}

type CachedTitleCards = HashMap<Key, (u64, Arc<TitleCard>)>;

/// Writes the list as JSON.
fn write_library_document(
    titles: Vec<&TitleCard>,
    truncated: bool,
    source: LibraryKind,
    ignored: &IgnoredFiles,
) -> Result<Arc<CompressibleText>, Error> {
    let text = serde_json::to_string(&LibraryDocument {
        titles,
        truncated,
        source,
        ignored,
    });
    let text = text.map_err(|e| {
        Error::new_internal_error(format_args!("cannot write the list of titles: {e}"))
    })?;
    const SOON: HeaderValue = HeaderValue::from_static("no-cache");
    let json = HeaderValue::from_static("application/json");
    Ok(Arc::new(CompressibleText::new(
        json,
        SOON,
        None,
        text.into(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::title::catalog::tests::create_catalog;
    use futures_util::FutureExt;
    use http::{HeaderMap, Method};

    #[tokio::test]
    async fn a_scan_continues_if_the_client_disconnects() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = create_catalog(folder.path(), Duration::from_secs(3600), Some(1 << 20));
        let list = CachedLibraryList::new(catalog);
        let request = ClientRequest {
            method: &Method::GET,
            headers: &HeaderMap::new(),
            is_copied: false,
        };
        // The future is dropped after the scan has started.
        let response = Box::pin(list.respond_with_library_list(&request)).now_or_never();
        assert!(response.is_none());
        // The scan holds the lock until the list is complete.
        assert!(list.state.lock().await.list.is_some());
    }
}
