//! The list of titles, for the page.

mod distant;

use crate::catalog::Catalog;
use crate::manifest::Text;
use crate::respond::Ask;
use crate::sources::is_server_manifest;
use crate::title::{self, Found, Title};
use futures_util::stream::{self, StreamExt};
use http::Response;
use http::header::HeaderValue;
use media::presentation::{Presentation, Rendition};
use net::{Body, Error};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Key, Store};
use tokio::sync::Mutex;

/// Folders below folders that are looked into.
const DEPTH_MAX: usize = 8;
/// Titles that are listed.
const TITLES_MAX: usize = 5000;
/// Folders looked into at the same time.
const AT_ONCE: usize = 8;
/// How long a list is told again before the library is looked through anew; and over a network,
/// where that costs requests.
const KEPT: Duration = Duration::from_secs(2);
const KEPT_REMOTE: Duration = Duration::from_secs(30);

/// The list, and what was found out about each title, so that a second look is cheap.
pub(crate) struct Library {
    catalog: Arc<Catalog>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    list: Option<(Instant, Arc<Text>)>,
    cards: HashMap<Key, (u64, Arc<Card>)>,
}

#[derive(Serialize)]
struct List<'a> {
    titles: Vec<&'a Card>,
    /// Whether there are more titles than are listed.
    truncated: bool,
}

/// A title at a glance.
#[derive(Serialize)]
struct Card {
    path: String,
    name: String,
    /// `file`, `folder` or `index`.
    kind: &'static str,
    /// `None` as long as nobody asked for it, over a network.
    duration_ms: Option<i64>,
    bytes: u64,
    video: Vec<Pictures>,
    audio: Vec<Sound>,
    /// Why it cannot be played, if it cannot.
    error: Option<String>,
    /// Whether its files are not one film but several.
    #[serde(skip)]
    several: bool,
}

#[derive(Serialize)]
struct Pictures {
    width: u32,
    height: u32,
    codecs: String,
    bitrate: u64,
}

#[derive(Serialize)]
struct Sound {
    language: String,
    codecs: String,
    channels: String,
}

impl Library {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Library {
        Library {
            catalog,
            state: Mutex::default(),
        }
    }

    /// Answers with the list.
    pub(crate) async fn answer(&self, ask: &Ask<'_>) -> Result<Response<Body>, Error> {
        // One look at a time; those who come meanwhile get what it found.
        let mut state = self.state.lock().await;
        let kept = match self.catalog.store().is_remote() {
            true => KEPT_REMOTE,
            false => KEPT,
        };
        let text = match &state.list {
            Some((made, text)) if made.elapsed() < kept => text.clone(),
            _ => {
                let text = self.look(&mut state).await?;
                state.list = Some((Instant::now(), text.clone()));
                text
            }
        };
        drop(state);
        Ok(text.answer(ask).await)
    }

    async fn look(&self, state: &mut State) -> Result<Arc<Text>, Error> {
        let store = self.catalog.store().clone();
        if store.is_remote() {
            let walk = tokio::task::spawn_blocking(move || distant::walk(&store));
            let (found, truncated) = walk.await.map_err(|e| crate::error::of_task(&e))?;
            let cards = found.into_iter().map(|found| self.known(found));
            let cards: Vec<_> = cards.collect();
            return text(cards.iter().collect(), truncated);
        }
        let walk = tokio::task::spawn_blocking(move || walk(&store));
        let places = walk.await.map_err(|e| crate::error::of_task(&e))?;
        let (mut cards, mut listed) = (HashMap::new(), Vec::new());
        let known = &*state;
        let found = stream::iter(places).map(|place| self.titles_at(place, known));
        let mut found = found.buffered(AT_ONCE);
        while let Some((keys, looked)) = found.next().await {
            listed.extend(keys);
            cards.extend(looked);
        }
        drop(found);
        let truncated = listed.len() > TITLES_MAX;
        listed.truncate(TITLES_MAX);
        state.cards = cards;
        let titles = listed.iter().filter_map(|key| state.cards.get(key));
        text(titles.map(|(_, card)| &**card).collect(), truncated)
    }

    /// A title of a remote library: as it is known, since to look at it would be requests; else
    /// what its name and the listing say.
    fn known(&self, found: distant::Title) -> Card {
        match self.catalog.known(&found.key) {
            Some(Ok(title)) => Card::of(&title),
            Some(Err(error)) => Card::broken(&found.key, &error),
            None => Card::unseen(found),
        }
    }

    /// The titles of one folder: itself, if its files are one film's, else each of them; and
    /// what was found out on the way.
    async fn titles_at(&self, place: Place, state: &State) -> (Vec<Key>, Cards) {
        let mut cards = Cards::new();
        if place.files.len() > 1
            && let Some(found) = place.found
        {
            let card = self.card(&place.folder, found, state).await;
            let one_film = card.error.is_none() && !card.several;
            cards.insert(place.folder.clone(), (found, card));
            if one_film {
                return (vec![place.folder], cards);
            }
        }
        let mut keys = Vec::new();
        for (key, found) in place.files {
            let card = self.card(&key, found, state).await;
            cards.insert(key.clone(), (found, card));
            keys.push(key);
        }
        (keys, cards)
    }

    async fn card(&self, key: &Key, found: u64, state: &State) -> Arc<Card> {
        if let Some((then, card)) = state.cards.get(key)
            && *then == found
        {
            return card.clone();
        }
        Arc::new(match self.catalog.title(key).await {
            Ok(title) => Card::of(&title),
            Err(error) => Card::broken(key, &error),
        })
    }
}

type Cards = HashMap<Key, (u64, Arc<Card>)>;

impl Card {
    fn of(title: &Title) -> Card {
        let p = &*title.hls;
        Card {
            path: title.key.as_str().to_owned(),
            name: title.name().to_owned(),
            kind: title.kind(),
            duration_ms: Some(p.duration.round_to(1000)),
            bytes: title.files.iter().map(|file| file.object.len()).sum(),
            video: p.videos().filter_map(|r| Pictures::of(p, r)).collect(),
            audio: p.audios().filter_map(|r| Sound::of(p, r)).collect(),
            error: None,
            several: looks_like_several(p),
        }
    }

    fn unseen(found: distant::Title) -> Card {
        Card {
            path: found.key.as_str().to_owned(),
            name: title::name_of(&found.key).to_owned(),
            kind: found.kind,
            duration_ms: None,
            bytes: found.bytes,
            video: Vec::new(),
            audio: Vec::new(),
            error: None,
            several: false,
        }
    }

    fn broken(key: &Key, error: &Error) -> Card {
        Card {
            path: key.as_str().to_owned(),
            name: title::name_of(key).to_owned(),
            kind: if title::is_media(key.name()) {
                "file"
            } else {
                "folder"
            },
            duration_ms: None,
            bytes: 0,
            video: Vec::new(),
            audio: Vec::new(),
            error: Some(error.context.clone()),
            several: false,
        }
    }
}

impl Pictures {
    fn of(p: &Presentation, r: &Rendition) -> Option<Pictures> {
        let codec = &p.track(r).codec;
        let video = codec.video()?;
        Some(Pictures {
            width: video.width,
            height: video.height,
            codecs: codec.string.clone(),
            bitrate: r.bandwidth.average,
        })
    }
}

impl Sound {
    fn of(p: &Presentation, r: &Rendition) -> Option<Sound> {
        let track = p.track(r);
        let audio = track.codec.audio()?;
        Some(Sound {
            language: track.language.clone(),
            codecs: track.codec.string.clone(),
            channels: audio.hls_channels.clone(),
        })
    }
}

/// The list as text.
fn text(titles: Vec<&Card>, truncated: bool) -> Result<Arc<Text>, Error> {
    let text = serde_json::to_string(&List { titles, truncated });
    let text = text.map_err(|e| Error::internal(format_args!("the list: {e}")))?;
    const SOON: HeaderValue = HeaderValue::from_static("no-cache");
    let json = HeaderValue::from_static("application/json");
    Ok(Arc::new(Text::new(json, SOON, None, text.into())))
}

/// Whether files of one length are rather several films than renditions of one: episodes of a
/// series are alike, renditions differ in size, codec or clearly in bitrate, and are cut alike.
fn looks_like_several(p: &Presentation) -> bool {
    let alike = |a: &Rendition, b: &Rendition| {
        let (x, y) = (&p.track(a).codec, &p.track(b).codec);
        let size = |codec: &media::codec::Codec| codec.video().map(|v| (v.width, v.height));
        let (low, high) = (
            a.bandwidth.average.min(b.bandwidth.average),
            a.bandwidth.average.max(b.bandwidth.average),
        );
        let near = high - low <= high / 4;
        a.file != b.file && x.fourcc == y.fourcc && size(x) == size(y) && near
    };
    let videos: Vec<_> = p.videos().collect();
    let pairs = videos.iter().enumerate();
    pairs
        .into_iter()
        .any(|(n, a)| videos.iter().skip(n + 1).any(|b| alike(a, b)))
}

/// A folder with films in it.
struct Place {
    folder: Key,
    /// The state of all its films together.
    found: Option<u64>,
    /// Its films, and the state of each.
    files: Vec<(Key, u64)>,
}

/// Looks for films in a library. Blocks. What cannot be read is left out.
fn walk(store: &Store) -> Vec<Place> {
    let mut places = Vec::new();
    let mut count = 0;
    let mut ahead = vec![(Key::ROOT, 0)];
    while let Some((key, depth)) = ahead.pop() {
        let Ok(entries) = store.list(&key) else {
            continue;
        };
        let mut files = Vec::new();
        for entry in entries {
            let Ok(child) = key.join(&entry.name) else {
                continue;
            };
            match entry.file {
                None if depth < DEPTH_MAX => ahead.push((child, depth + 1)),
                Some(_) if title::is_media(&entry.name) || is_server_manifest(&entry.name) => {
                    files.extend(Found::look(store, &child).map(|found| (child, found.hash())));
                }
                _ => {}
            }
        }
        count += files.len();
        if !files.is_empty() {
            let found = Found::look(store, &key).ok().map(|found| found.hash());
            places.push(Place {
                folder: key,
                found,
                files,
            });
        }
        if count > TITLES_MAX {
            break;
        }
    }
    places.sort_by(|a, b| a.folder.cmp(&b.folder));
    places
}
