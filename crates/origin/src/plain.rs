//! Files as they are: ranges of one file, and trees of ready-made segments.

use crate::catalog::{Catalog, soon};
use crate::error;
use crate::expand;
use crate::pieces::{Piece, Source};
use crate::respond::{Ask, Facts};
use crate::stores;
use crate::title::is_media;
use http::Response;
use http::header::HeaderValue;
use net::conditional::Validators;
use net::{Body, Error};
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::{Key, Object, Reason, Store};

/// Files kept open.
const OPEN_MAX: usize = 4096;
/// Paths remembered that lead to no file.
const ABSENT_MAX: usize = 4096;
/// The file of that name may become another at any time.
const SOON: HeaderValue =
    HeaderValue::from_static("public, max-age=2, stale-while-revalidate=30, stale-if-error=300");

/// Content types by the end of a name.
const TYPES: [(&str, &str); 30] = [
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("mpd", "application/dash+xml"),
    ("mp4", "video/mp4"),
    ("m4v", "video/mp4"),
    ("m4s", "video/iso.segment"),
    ("cmfv", "video/mp4"),
    ("cmfa", "audio/mp4"),
    ("cmft", "application/mp4"),
    ("m4a", "audio/mp4"),
    ("ismv", "video/mp4"),
    ("isma", "audio/mp4"),
    ("mov", "video/quicktime"),
    ("3gp", "video/3gpp"),
    ("ts", "video/mp2t"),
    ("aac", "audio/aac"),
    ("ac3", "audio/ac3"),
    ("ec3", "audio/eac3"),
    ("mp3", "audio/mpeg"),
    ("webm", "video/webm"),
    ("vtt", "text/vtt; charset=utf-8"),
    ("srt", "application/x-subrip; charset=utf-8"),
    ("ttml", "application/ttml+xml"),
    ("json", "application/json"),
    ("ism", "application/smil+xml"),
    ("xml", "application/xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("webp", "image/webp"),
];

/// Files of the library that were asked for as they are.
pub(crate) struct Files {
    store: Arc<Store>,
    open: Cache<Key, Open>,
    /// Paths of manifests that are no files (most are not), and when that was looked up, in
    /// milliseconds since `started`.
    absent: Cache<Key, u64>,
    /// How long a path is trusted to lead to the same file.
    recheck: Duration,
    started: Instant,
}

#[derive(Clone)]
struct Open {
    object: Arc<Object>,
    /// Whether it stands for a film that lies elsewhere.
    is_index: bool,
    looked_ms: Arc<AtomicU64>,
    /// Whether it is looked at beside the requests; what that finds takes its place.
    looking: Arc<AtomicBool>,
}

impl Files {
    pub(crate) fn new(store: Arc<Store>, recheck: Duration) -> Files {
        Files {
            store,
            open: Cache::new(OPEN_MAX),
            absent: Cache::new(ABSENT_MAX),
            recheck,
            started: Instant::now(),
        }
    }

    /// Answers with a file, or with the film that it stands for.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        catalog: &Arc<Catalog>,
        key: &Key,
        ask: &Ask<'_>,
    ) -> Result<Response<Body>, Error> {
        let open = self.object(key).await.map_err(|e| error::of_store(&e))?;
        if open.is_index {
            return expand::answer(catalog, key, ask).await;
        }
        let object = open.object;
        let pieces = Arc::new([Piece::Of(0..object.len())]);
        let facts = facts(key, &object);
        let source = Source {
            object,
            reason: Reason::Plain,
            touched: ask.touched,
            along: None,
            behind: Arc::new([]),
        };
        ask.pieces(&facts, source, pieces).await
    }

    /// Whether there is no such file. That there is none is believed for as long as that there is
    /// one: else every request for a playlist would wait for a look at the folder.
    pub(crate) async fn are_without(self: &Arc<Self>, key: &Key) -> bool {
        let now_ms = self.now_ms();
        if let Some(looked_ms) = self.absent.get(key)
            && self.is_fresh(looked_ms, now_ms)
        {
            return true;
        }
        let found = self.object(key).await.is_ok();
        if !found {
            self.absent.insert(key.clone(), now_ms);
        }
        !found
    }

    /// Whether what was seen then may still be told now.
    fn is_fresh(&self, looked_ms: u64, now_ms: u64) -> bool {
        Duration::from_millis(now_ms.saturating_sub(looked_ms)) < self.recheck
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn object(self: &Arc<Self>, key: &Key) -> Result<Open, store::Error> {
        let elapsed = self.now_ms();
        if let Some(open) = self.open.get(key) {
            let looked_ms = open.looked_ms.load(Relaxed);
            if self.is_fresh(looked_ms, elapsed) && !open.object.changed() {
                let age = Duration::from_millis(elapsed.saturating_sub(looked_ms));
                if age >= soon(self.recheck) && !open.looking.swap(true, Relaxed) {
                    // Before it has to be, so that nobody who asks all the time waits for it.
                    let (files, key) = (self.clone(), key.clone());
                    tokio::spawn(async move { files.look(&key, elapsed).await.is_ok() });
                }
                return Ok(open);
            }
        }
        self.look(key, elapsed).await
    }

    async fn look(&self, key: &Key, elapsed: u64) -> Result<Open, store::Error> {
        let (store, name) = (self.store.clone(), key.clone());
        let old = self.open.peek(key);
        let look = tokio::task::spawn_blocking(move || match old {
            // The same file as before: its mapping stays.
            Some(old) if store.look(&name)? == Some(*old.object.identity()) => {
                Ok((old.object, old.is_index))
            }
            _ => {
                let object = Arc::new(stores::open(&store, &name, Reason::Plain)?);
                let is_index = is_media(name.name()) && expand::is_index(&name, &object);
                object.settle();
                Ok((object, is_index))
            }
        });
        let looked = look
            .await
            .unwrap_or_else(|e| Err(store::Error::Io(std::io::Error::other(e))));
        match looked {
            Ok((object, is_index)) => {
                let looked_ms = Arc::new(AtomicU64::new(elapsed));
                let open = Open {
                    object,
                    is_index,
                    looked_ms,
                    looking: Arc::default(),
                };
                // One that began to look later may have answered before.
                let later = self.open.peek(key);
                let later = later.filter(|later| later.looked_ms.load(Relaxed) > elapsed);
                if later.is_none() {
                    self.open.insert(key.clone(), open.clone());
                }
                Ok(open)
            }
            Err(error) => {
                self.open.remove(key);
                Err(error)
            }
        }
    }
}

fn facts(key: &Key, object: &Object) -> Facts {
    let identity = object.identity();
    let etag = format!("\"{:x}-{:x}\"", identity.len, identity.mtime_ns);
    Facts {
        content_type: HeaderValue::from_static(content_type(key.name())),
        cache: SOON,
        validators: Validators::strong(&etag).modified_at(identity.modified()),
        coding: None,
    }
}

/// The content type of a file of this name.
pub(crate) fn content_type(name: &str) -> &'static str {
    let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    let known = TYPES
        .iter()
        .find(|(known, _)| suffix.eq_ignore_ascii_case(known));
    known.map_or("application/octet-stream", |(_, name)| name)
}
